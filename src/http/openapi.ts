import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import { ErrorBody } from '../lib/error-body.ts'
import { AppError, type ErrorKind } from '../lib/errors.ts'
import { texts } from '../lib/i18n.ts'
import { shownAsKeyword } from '../lib/shown-as.ts'
import { errorKindsOf, policyOf } from './openapi-policy.ts'
import { tags } from './operation.ts'
import type { RateLimits } from './rate-limit.ts'
import { type DescribedRoute, describedRoutes } from './route-table.ts'

export type Json = { [key: string]: unknown }

type Operation = Json & {
  description?: string
  responses?: Json
  requestBody?: { content: Json }
  'x-errors'?: ErrorKind[]
}
type Document = Json & { paths: Record<string, Record<string, Operation>> }

type Described = {
  version: string
  publicUrl: string
  limits: RateLimits
  /** Bodies of requests that we send, by event. */
  webhooks: Record<string, TSchema>
}

const sourcePath = '/routes'
const successHeaders = [
  'X-Request-ID',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
]

/** The OpenAPI 3.1 description of an application's routes: what the swagger plugin collects, made valid and
 *  complete. Each operation gets its security, its error answers and the headers of every answer from the same
 *  options that the pipeline enforces. */
export async function describeApi(
  routes: AnyElysia,
  { version, publicUrl, limits, webhooks }: Described,
) {
  const known = new Map(describedRoutes(routes).map((route) => [keyOf(route), route]))
  const document = await collect(routes)
  const components = createComponents()
  const parts = { components, limits }
  const paths: Json = {}
  for (const [path, operations] of Object.entries(document.paths)) {
    const described = Object.entries(operations).flatMap(([method, operation]) => {
      const route = known.get(`${method} ${path}`)
      return route ? [[method, complete(operation, route, parts)]] : []
    })
    if (described.length > 0) paths[path] = Object.fromEntries(described)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hostline',
      version,
      description: 'Messaging, accounts, support and notifications for hosts and their clients.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: publicUrl }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: describeWebhooks(webhooks, components),
    components: components.all(),
  }
}

/** What we send to endpoints of others. */
function describeWebhooks(bodies: Described['webhooks'], { lift }: Components) {
  const described = Object.entries(bodies).map(([type, schema]) => {
    const content = { 'application/json': { schema: lift(schema) } }
    const post = {
      tags: ['Administration'],
      summary: `Tells an endpoint: ${type}`,
      operationId: `webhook${type.split('.').map(capital).join('')}`,
      parameters: webhookHeaders,
      requestBody: { required: true, content },
      responses: { '2XX': { description: 'It has been heard; anything else is tried again.' } },
    }
    return [type, { post }]
  })
  return Object.fromEntries(described)
}

const webhookHeaders = [
  ['webhook-id', 'The same in each attempt: tells a repetition.'],
  ['webhook-timestamp', 'When it was sent, in Unix seconds.'],
  [
    'webhook-signature',
    '`v1,` and the HMAC-SHA256 of id, timestamp and body; several are separated by spaces.',
  ],
].map(([name, description]) => ({
  in: 'header',
  name,
  description,
  required: true,
  schema: { type: 'string' },
}))

async function collect(routes: AnyElysia): Promise<Document> {
  // Loaded when somebody asks: a start does not need it.
  const { swagger } = await import('@elysiajs/swagger')
  const host = new Elysia().use(routes).use(swagger({ path: sourcePath, excludeStaticFile: false }))
  const answer = await host.handle(new Request(`http://localhost${sourcePath}/json`))
  return (await answer.json()) as Document // the plugin's own document
}

function keyOf({ method, path }: DescribedRoute) {
  return `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`
}

type Components = ReturnType<typeof createComponents>
type Parts = { components: Components; limits: RateLimits }

function complete(operation: Operation, route: DescribedRoute, { components, limits }: Parts) {
  const { 'x-errors': declared = [], responses = {}, requestBody, ...rest } = operation
  const isLimited = route.limit !== 'none'
  const takesFile = route.maxFileBytes !== undefined
  const body = requestBody?.content['application/json'] as Json | undefined
  const kinds = errorKindsOf(route, declared, takesFile || body !== undefined)
  return {
    ...rest,
    ...policyOf(route, limits, rest.description),
    ...(takesFile && { requestBody }),
    ...(body && {
      requestBody: {
        required: route.needsBody,
        content: { 'application/json': components.lift(closed(body)) },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, response]) => [
          status,
          components.success(response as Json, isLimited),
        ]),
      ),
      ...components.errors(kinds, isLimited),
    },
  }
}

/** A body as generated clients shall see it: a misspelt field is then a mistake that a compiler finds. The server ignores
 *  fields that it does not know. */
export const closed = (schema: object) =>
  withoutKeywords(schema, (keyword, value) => keyword === 'additionalProperties' && value === true)

/** The JSON form of a schema without some keywords, at any depth. */
export function withoutKeywords(
  schema: object,
  isUnwanted: (keyword: string, value: unknown) => boolean,
): Json {
  return JSON.parse(
    JSON.stringify(schema, (key, value) => (isUnwanted(key, value) ? undefined : value)),
  )
}

function capital(word: string) {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

/** Collects what the operations share: schemas that have a title, error answers, headers. */
function createComponents() {
  const { lift, schemas } = createSchemas()
  const responses: Json = {}

  function headers(isLimited: boolean, more: string[] = []) {
    const names = isLimited ? [...successHeaders, ...more] : ['X-Request-ID', ...more]
    return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
  }

  function success(response: Json, isLimited: boolean): Json {
    const lifted = lift(response) as Json
    return { ...lifted, headers: { ...headers(isLimited), ...(lifted['headers'] as Json) } }
  }

  function error(kinds: ErrorKind[], isLimited: boolean): Json {
    const { status } = new AppError(kinds[0] ?? 'internal_error')
    const name = `${kinds.join('_or_')}${isLimited ? '' : '_unlimited'}`
    const retry = status === 429 || status === 503 ? ['Retry-After'] : []
    const reasons = kinds.flatMap((kind) => new AppError(kind).reason ?? [])
    responses[name] = {
      description: kinds.map((kind) => texts.en.errors[kind].replace('{value}', '…')).join(' Or: '),
      headers: { ...headers(isLimited, retry), ...(reasons.length > 0 && reasonHeader(reasons)) },
      content: { 'application/json': { schema: lift(ErrorBody) } },
    }
    return { $ref: `#/components/responses/${name}` }
  }

  function errors(kinds: ErrorKind[], isLimited: boolean): Json {
    const byStatus = Map.groupBy(kinds, (kind) => new AppError(kind).status)
    return Object.fromEntries([...byStatus].map(([status, own]) => [status, error(own, isLimited)]))
  }

  return {
    lift,
    success,
    errors,
    all: () => ({ schemas, responses, headers: headerComponents, securitySchemes }),
  }
}

const reasonHeader = (reasons: string[]) => ({
  'X-Error-Reason': {
    description:
      'Tells apart what has one code, absent where that says it all. More may come: fall back to the code.',
    schema: { type: 'string', enum: [...new Set(reasons)] },
  },
})

const integerHeader = (description: string) => ({ description, schema: { type: 'integer' } })

const headerComponents: Json = {
  'X-Request-ID': { description: 'Identifier of this request.', schema: { type: 'string' } },
  'X-RateLimit-Limit': integerHeader('Requests per window. Absent when the limit is switched off.'),
  'X-RateLimit-Remaining': integerHeader('Requests left in the window after this one.'),
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

/** Collects the schemas that a description shares. */
export function createSchemas() {
  const schemas: Json = {}

  /** The JSON form of a schema. One with a title becomes a component of that name wherever it appears. */
  function lift(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(lift)
    if (typeof value !== 'object' || value === null) return value
    const { [shownAsKeyword]: form, ...plain } = value as Json
    if (form !== undefined) return lift(form)
    const rest = literalsOf(plain) ?? mapOf(plain) ?? plain
    const lifted = Object.fromEntries(Object.entries(rest).map(([key, part]) => [key, lift(part)]))
    const { title } = lifted
    if (typeof title !== 'string') return lifted
    schemas[title] = lifted
    return { $ref: `#/components/schemas/${title}` }
  }

  return { lift, schemas }
}

/** Without the keyword that a map of texts has in place of `additionalProperties`, which generators know. */
function mapOf({ patternProperties, ...rest }: Json): Json | undefined {
  if (patternProperties === undefined) return undefined
  return { ...rest, additionalProperties: Object.values(patternProperties as Json)[0] }
}

/** `enum` for a union of text literals, which says the same in one line. */
function literalsOf({ anyOf, ...rest }: Json): Json | undefined {
  if (!Array.isArray(anyOf)) return undefined
  const values = anyOf.map((option: Json) => option['const'])
  if (!values.every((value) => typeof value === 'string')) return undefined
  return { ...rest, type: 'string', enum: values }
}
