import type { Answer, ApiDocument, Header, Operation, Schema } from './documents.ts'

export type Example = { label: string; value: unknown }
export type SuccessAnswer = {
  status: string
  description: string
  schema: Schema | undefined
  headers: { name: string; description: string }[]
}
export type ErrorAnswer = { status: string; code: string; message: string; reasons: string[] }
export type Answers = { successes: SuccessAnswer[]; errors: ErrorAnswer[]; examples: Example[] }

/** The responses with their references resolved. */
export function answersOf({ responses }: Operation, api: ApiDocument): Answers {
  const all = Object.entries(responses).map(([status, given]): [string, Answer] => [
    status,
    resolved(given, api.components.responses),
  ])
  const isError = ([status]: [string, Answer]) => /^[45]/.test(status)
  return {
    successes: all
      .filter((one) => !isError(one))
      .map(([status, answer]) => ({
        status,
        description: answer.description,
        schema: answer.content?.['application/json']?.schema,
        headers: headersOf(answer, api),
      })),
    errors: all.filter(isError).flatMap(([status, answer]) => errorsOf(status, answer)),
    examples: all.flatMap(([status, answer]) => examplesOf(status, answer)),
  }
}

const headersOf = ({ headers = {} }: Answer, api: ApiDocument) =>
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
function errorsOf(status: string, { content, headers }: Answer): ErrorAnswer[] {
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

function examplesOf(status: string, { description, content }: Answer): Example[] {
  const { example, examples = {} } = content?.['application/json'] ?? {}
  if (example !== undefined) return [{ label: `${status} ${description}`, value: example }]
  return Object.entries(examples).map(([name, { value }]) => ({
    label: `${status} ${name}`,
    value,
  }))
}
