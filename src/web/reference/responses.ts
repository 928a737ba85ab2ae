import type { ApiDocument, Header, Operation, ResponseObject, Schema } from './documents.ts'

export type Example = { label: string; value: unknown }
export type SuccessResponse = {
  status: string
  description: string
  schema: Schema | undefined
  headers: { name: string; description: string }[]
}
export type ErrorResponse = { status: string; code: string; message: string; reasons: string[] }
export type Responses = {
  successes: SuccessResponse[]
  errors: ErrorResponse[]
  examples: Example[]
}

/** The responses with their references resolved. */
export function responsesOf({ responses }: Operation, api: ApiDocument): Responses {
  const all = Object.entries(responses).map(([status, given]): [string, ResponseObject] => [
    status,
    resolved(given, api.components.responses),
  ])
  const isError = ([status]: [string, ResponseObject]) => /^[45]/.test(status)
  return {
    successes: all
      .filter((one) => !isError(one))
      .map(([status, response]) => ({
        status,
        description: response.description,
        schema: response.content?.['application/json']?.schema,
        headers: headersOf(response, api),
      })),
    errors: all.filter(isError).flatMap(([status, response]) => errorsOf(status, response)),
    examples: all.flatMap(([status, response]) => examplesOf(status, response)),
  }
}

const headersOf = ({ headers = {} }: ResponseObject, api: ApiDocument) =>
  Object.entries(headers).map(([name, header]) => ({
    name,
    description: resolved<Header>(header, api.components.headers).description ?? '',
  }))

function resolved<T extends { $ref?: string }>(given: T, known: Record<string, T>): T {
  if (given.$ref === undefined) return given
  return known[given.$ref.slice(given.$ref.lastIndexOf('/') + 1)] ?? given
}

type ErrorBody = { error: { code: string; message: string } }

/** One entry for each code; the reasons distinguish its causes. */
function errorsOf(status: string, { content, headers }: ResponseObject): ErrorResponse[] {
  const examples = Object.values(content?.['application/json']?.examples ?? {})
  const causes = examples.map(({ value }) => (value as ErrorBody).error)
  const reasons = (headers?.['X-Error-Reason']?.schema?.enum ?? []).map(String)
  const codes = [...new Set(causes.map(({ code }) => code))]
  return codes.map((code) => ({
    status,
    code,
    message: causes
      .filter((cause) => cause.code === code)
      .map(({ message }) => message)
      .join(' Or: '),
    reasons,
  }))
}

function examplesOf(status: string, { description, content }: ResponseObject): Example[] {
  const { example, examples = {} } = content?.['application/json'] ?? {}
  if (example !== undefined) return [{ label: `${status} ${description}`, value: example }]
  return Object.entries(examples).map(([name, { value }]) => ({
    label: `${status} ${name}`,
    value,
  }))
}
