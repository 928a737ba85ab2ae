import { ErrorBody, errorBody } from '../lib/error-body.ts'
import { AppError, type ErrorKind, type FieldProblems, problem } from '../lib/errors.ts'
import { texts } from '../lib/i18n.ts'
import { createSchemas, type Json, merged } from './openapi-schemas.ts'

const rateHeaders = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

export type SuccessAnswer = { description: string; headers: Json; content?: Partial<JsonContent> }
export type JsonContent = { 'application/json': { schema: object } }

type Example = { name: string; change?: Json | undefined }

type SharedError = { kinds: Set<ErrorKind>; isLimited: boolean; status: number }

export function createComponents() {
  const { lift, schemas, exampleOf } = createSchemas()
  const errorResponses: Record<string, SharedError> = {}

  function headers(isLimited: boolean, more: string[] = []) {
    const names = ['X-Request-ID', ...(isLimited ? rateHeaders : []), ...more]
    return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
  }

  function content(schema: object, { name, change }: Example) {
    const lifted = lift(schema) as Json
    const composed = exampleOf(lifted, name)
    const example = change === undefined ? composed : merged(composed, change)
    return { 'application/json': { schema: lifted, example } }
  }

  function success(answer: SuccessAnswer, isLimited: boolean, example: Example) {
    const json = answer.content?.['application/json']
    return {
      ...answer,
      headers: { ...headers(isLimited), ...answer.headers },
      ...(json && { content: content(json.schema, example) }),
    }
  }

  // The name has the status and the codes alone, so that a new reason renames no type of a generated client.
  function error(status: number, kinds: ErrorKind[], isLimited: boolean) {
    const codes = new Set(kinds.map((kind) => new AppError(kind).code))
    const name = `${[...codes].sort().join('_or_')}_${status}${isLimited ? '' : '_unlimited'}`
    errorResponses[name] ??= { kinds: new Set(), isLimited, status }
    for (const kind of kinds) errorResponses[name].kinds.add(kind)
    return { $ref: `#/components/responses/${name}` }
  }

  function errors(kinds: ErrorKind[], isLimited: boolean): Json {
    const byStatus = Map.groupBy(kinds, (kind) => new AppError(kind).status)
    return Object.fromEntries(
      [...byStatus].map(([status, own]) => [status, error(status, own, isLimited)]),
    )
  }

  function errorResponse({ kinds: found, isLimited, status }: SharedError) {
    const kinds = [...found].sort()
    const retry = status === 429 || status === 503 ? ['Retry-After'] : []
    const reasons = kinds.flatMap((kind) => new AppError(kind).reason ?? [])
    const examples = kinds.map((kind) => [kind, { value: failureExample(kind) }])
    return {
      description: kinds.map((kind) => texts.en.errors[kind].replace('{value}', '…')).join(' Or: '),
      headers: { ...headers(isLimited, retry), ...(reasons.length > 0 && reasonHeader(reasons)) },
      content: {
        'application/json': { schema: lift(ErrorBody), examples: Object.fromEntries(examples) },
      },
    }
  }

  function all() {
    const described = Object.entries(errorResponses).map(([name, it]) => [name, errorResponse(it)])
    const responses = Object.fromEntries(described)
    return { responses, schemas, headers: headerComponents, securitySchemes }
  }

  return { lift, content, success, errors, all }
}

function failureExample(kind: ErrorKind) {
  const details = exampleDetails[kind]
  const options = { value: 'notifications', ...(details && { details }) }
  return errorBody(new AppError(kind, options), 'en')
}

const exampleDetails: Partial<Record<ErrorKind, FieldProblems>> = {
  validation_error: { email: problem('email') },
  body_too_large: { body: problem('body_too_large') },
  range_not_satisfiable: { Range: problem('invalid') },
}

const reasonHeader = (reasons: string[]) => ({
  'X-Error-Reason': {
    description:
      'Distinguishes errors that have the same code; absent if the code is unambiguous. New reasons may be added: handle unknown ones by their code.',
    schema: { type: 'string', enum: [...new Set(reasons)] },
  },
})

const integerHeader = (description: string) => ({ description, schema: { type: 'integer' } })

const headerComponents: Json = {
  'X-Request-ID': { description: 'Identifier of this request.', schema: { type: 'string' } },
  'X-RateLimit-Limit': integerHeader('Requests per window. Absent if the limit is switched off.'),
  'X-RateLimit-Remaining': integerHeader('Remaining requests in the window after this one.'),
  'X-RateLimit-Reset': integerHeader(
    'Unix time when the oldest counted request leaves the window.',
  ),
  'Retry-After': integerHeader('Seconds to wait before trying again.'),
}

const securitySchemes: Json = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
  serviceKey: { type: 'http', scheme: 'bearer', description: 'A service key: `sk_…`.' },
  accessTokenInQuery: { type: 'apiKey', in: 'query', name: 'token' },
}
