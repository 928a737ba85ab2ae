import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import type { RateLimits } from '../http/rate-limit.ts'
import { type RouteApp, routeBase } from '../http/request-context.ts'
import { type DescribedRoute, describedRoutes } from '../http/route-table.ts'
import { AppError, type ErrorKind } from '../lib/errors.ts'
import { createComponents, type JsonContent, type SuccessAnswer } from './openapi-components.ts'
import { errorKindsOf, policyOf } from './openapi-policy.ts'
import { closed, type Json } from './openapi-schemas.ts'
import { detailOf, tags } from './operation.ts'

type Operation = Json & {
  description?: string
  operationId: string
  responses?: Record<string, SuccessAnswer>
  requestBody?: { content: JsonContent }
  'x-errors'?: ErrorKind[]
  'x-example'?: Json
}
type Document = Json & { paths: Record<string, Record<string, Operation>> }

type Described = {
  version: string
  publicUrl: string
  limits: RateLimits
  webhooks: Record<string, TSchema>
}

const sourcePath = '/routes'

/** Adds what the pipeline enforces to the output of the swagger plugin: security, error responses, common headers. */
export async function describeApi(addRoutes: (app: RouteApp) => void, described: Described) {
  const { version, publicUrl, limits, webhooks } = described
  const routes = new Elysia().use(routeBase)
  addRoutes(routes)
  for (const { hooks } of routes.routes) hooks.detail ??= detailOf(hooks.operation)
  const known = new Map(describedRoutes(routes).map((route) => [keyOf(route), route]))
  const document = await collect(routes)
  const components = createComponents()
  const shared = { components, limits }
  const paths: Json = {}
  for (const [path, operations] of Object.entries(document.paths)) {
    const described = Object.entries(operations).flatMap(([method, operation]) => {
      const route = known.get(`${method} ${path}`)
      return route ? [[method, complete(operation, route, shared)]] : []
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

function describeWebhooks(bodies: Described['webhooks'], components: Components) {
  const described = Object.entries(bodies).map(([type, schema]) => {
    const named = { ...schema, title: `${pascalCase(type)}Event` }
    const content = components.content(named, { name: type })
    const post = {
      tags: ['Administration'],
      summary: `Sends the event ${type} to an endpoint.`,
      operationId: `webhook${pascalCase(type)}`,
      parameters: webhookHeaders,
      requestBody: { required: true, content },
      responses: { '2XX': received },
    }
    return [type, { post }]
  })
  return Object.fromEntries(described)
}

const received = { description: 'The event was received. Any other response is retried.' }

const webhookHeaders = [
  ['webhook-id', 'The same in each attempt, to recognise repetitions.'],
  ['webhook-timestamp', 'The time of the attempt, in Unix seconds.'],
  [
    'webhook-signature',
    '`v1,` followed by the HMAC-SHA256 of id, timestamp and body; several signatures are separated by spaces.',
  ],
].map(([name, description]) => ({
  in: 'header',
  name,
  description,
  required: true,
  schema: { type: 'string' },
}))

async function collect(routes: AnyElysia): Promise<Document> {
  // Loaded at the first request for the description, to keep the start short.
  const { swagger } = await import('@elysiajs/swagger')
  routes.use(swagger({ path: sourcePath, excludeStaticFile: false }))
  const answer = await routes.handle(new Request(`http://localhost${sourcePath}/json`))
  return (await answer.json()) as Document // the plugin's own document
}

function keyOf({ method, path }: DescribedRoute) {
  return `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`
}

type Components = ReturnType<typeof createComponents>
type Parts = { components: Components; limits: RateLimits }

function complete(operation: Operation, route: DescribedRoute, { components, limits }: Parts) {
  const {
    'x-errors': declared = [],
    'x-example': change,
    responses = {},
    requestBody,
    ...rest
  } = operation
  const isLimited = route.limit !== 'none'
  const takesFile = route.maxFileBytes !== undefined
  const body = route.guardBody && requestBody?.content['application/json'].schema
  const parameters = rest['parameters'] as Parameter[] | undefined // the plugin's own document
  const kinds = errorKindsOf(route, declared, takesFile || body !== undefined)
  const name = rest.operationId
  const described = parameters && components.lift(parameters.map((one) => withWords(one, route)))
  const content = body && components.content(closed(body), { name })
  const answers = Object.entries(responses).map(([status, response]) => [
    status,
    components.success(response, isLimited, { name, change }),
  ])
  return {
    ...rest,
    ...(described !== undefined && { parameters: described }),
    ...policyOf(route, limits, rest.description),
    // The examples of the shared error responses that this operation may have.
    'x-errors': kinds,
    'x-error-reasons': reasonsOf(kinds),
    ...(takesFile && { requestBody }),
    ...(content && { requestBody: { required: route.needsBody, content } }),
    responses: { ...Object.fromEntries(answers), ...components.errors(kinds, isLimited) },
  }
}

type Parameter = Json & { in: string; name: string }

function withWords(parameter: Parameter, { path, access }: DescribedRoute): Parameter {
  const { in: place, name } = parameter
  if (place !== 'path') return parameter
  const segments = path.split('/')
  const before = segments[segments.indexOf(`:${name}`) - 1] ?? ''
  const thing = name === 'id' ? singular(before) : name.replace(/_id$/, '')
  const words = thing.replaceAll(/[-_]/g, ' ')
  if (!/id$/.test(name)) return { ...parameter, description: `The ${words}.` }
  const isPerson = access === 'service' && ['user', 'host', 'follower'].includes(thing)
  const how = isPerson ? ': an id, or `ext:` and an external id' : ''
  return { ...parameter, description: `The id of the ${words}${how}.` }
}

const singular = (segment: string) => segment.replace(/ies$/, 'y').replace(/s$/, '')

function reasonsOf(kinds: ErrorKind[]) {
  const refusals = kinds.map((kind) => new AppError(kind)).filter(({ reason }) => reason)
  const byStatus = Map.groupBy(refusals, ({ status }) => status)
  return Object.fromEntries(
    [...byStatus].map(([status, own]) => [status, [...new Set(own.map(({ reason }) => reason))]]),
  )
}

/** For example UserCreated for user.created. */
const pascalCase = (words: string) =>
  words
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
