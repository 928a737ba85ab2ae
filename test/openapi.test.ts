import { describe, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { ValidateFunction } from 'ajv'
import Ajv2020 from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describedRoutes } from '../src/http/route-table.ts'
import { errorCodes } from '../src/lib/errors.ts'
import { eventTypes, roles } from '../src/lib/vocabulary.ts'
import { desk, openDesk, own } from './support/desk.ts'
import { testAtLength } from './support/faults.ts'
import { type Answer, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document that is explored freely
type Json = any

async function describe31(service: TestService): Promise<Json> {
  return (await service.call('GET', '/v1/openapi.json')).body
}

function operationsOf(document: Json): { method: string; path: string; operation: Json }[] {
  return Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => ({ method, path, operation })),
  )
}

/** Validates a response against the schema of its operation and status. */
function createJudge(document: Json) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats(ajv)
  ajv.addSchema(document, 'api')
  const compiled = new Map<string, ValidateFunction>()
  const lookUp = (steps: readonly string[]): Json =>
    steps.reduce((at: Json, key) => at?.[key], document)

  return (method: string, path: string, { status, headers, body }: Answer) => {
    const own = ['paths', path, method.toLowerCase(), 'responses', `${status}`]
    const steps: string[] = lookUp(own)?.$ref?.slice(2).split('/') ?? own
    const described = lookUp(steps)
    if (!described) throw new Error(`${method} ${path} does not describe ${status}`)
    const missing = Object.keys(described.headers ?? {}).filter(
      (name) =>
        !headers.has(name) &&
        name !== 'Idempotent-Replayed' &&
        (name !== 'X-Error-Reason' || status === 403 || status === 409),
    )
    const schema = described.content?.['application/json']?.schema
    if (!schema)
      return {
        missing,
        errors:
          body === '' || !headers.get('content-type')?.includes('json')
            ? []
            : ['an undescribed body'],
      }
    // Referenced by its URL, so that shared schemas are compiled once.
    const address = [...steps, 'content', 'application/json', 'schema'].map(asStep).join('/')
    const validate = compiled.get(address) ?? ajv.compile({ $ref: `api#/${address}` })
    compiled.set(address, validate)
    validate(body)
    return { missing, errors: validate.errors ?? [] }
  }
}

/** A key as a segment of a JSON pointer in a URL. */
const asStep = (key: string) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))

const fine = { missing: [], errors: [] }

const limits = {
  RATE_LIMIT_USER: '1000/1m',
  RATE_LIMIT_ANONYMOUS: '1000/1m',
  RATE_LIMIT_LOGIN: '1000/1m',
  RATE_LIMIT_REGISTER: '1000/1m',
}
const allowed: Partial<Record<string, string[]>> = {
  user: [...roles],
  socket: [...roles],
  host: ['host', 'admin'],
  admin: ['admin'],
}
const limitNames: Record<string, string> = {
  public: 'RATE_LIMIT_ANONYMOUS',
  user: 'RATE_LIMIT_USER',
  socket: 'RATE_LIMIT_USER',
  host: 'RATE_LIMIT_USER',
  admin: 'RATE_LIMIT_USER',
  service: 'RATE_LIMIT_SERVICE',
  login: 'RATE_LIMIT_LOGIN',
  register: 'RATE_LIMIT_REGISTER',
}

function limitNameOf({ limit, access }: { limit: string; access: string }) {
  return limit === 'none' ? undefined : limitNames[limit === 'default' ? access : limit]
}

/** All objects in a part of a document, references followed. */
function* schemasIn(document: Json, node: Json): Generator<Json> {
  if (typeof node !== 'object' || node === null) return
  const referred = node.$ref && document.components.schemas[node.$ref.split('/').at(-1)]
  const whole = referred ?? node
  yield whole
  for (const part of Object.values(whole)) yield* schemasIn(document, part)
}

/** The fields of each nested object without a name. */
function* inlineObjects(node: Json, isTop = true): Generator<string> {
  if (typeof node !== 'object' || node === null) return
  if (!isTop && node.type === 'object' && node.properties) yield Object.keys(node.properties).join()
  for (const [key, part] of Object.entries(node))
    if (!/^examples?$/.test(key)) yield* inlineObjects(part, false)
}

const start = shared(startService)

describe('the description', () => {
  testAtLength('is valid OpenAPI 3.1 to an independent validator', async () => {
    const service = await start()
    const document = await describe31(service)
    const result = await new Validator().validate(structuredClone(document))
    expect(result).toMatchObject({ valid: true })
    expect(document.openapi).toBe('3.1.0')
    expect(JSON.stringify(document)).not.toContain('nullable')
  })

  test('has every route except pages and their assets, and no other', async () => {
    const service = await start()
    const document = await describe31(service)
    const described = operationsOf(document).map(
      ({ method, path }) => `${method.toUpperCase()} ${path}`,
    )
    const served = describedRoutes(service.app).map(
      ({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`,
    )
    const hidden = served.filter(
      (route) => !described.includes(route) && !route.includes(' /v1/operator/'),
    )
    expect(described.filter((route) => !served.includes(route))).toEqual([])
    expect(hidden.sort()).toEqual([
      'GET /',
      'GET /assets/{name}',
      'GET /change-email',
      'GET /client.d.ts',
      'GET /client.js',
      'GET /console',
      'GET /console/*',
      'GET /demo',
      'GET /demo/*',
      'GET /docs',
      'GET /docs/*',
      'GET /hostline-client.tgz',
      'GET /mail-preferences',
      'GET /platform.css',
      'GET /reset-password',
      'GET /service-worker.js',
      'GET /set-up',
      'GET /state.js',
      'GET /undo-email',
      'GET /v1/avatars/{hue}/{file}',
      'GET /verify-email',
      'POST /demo/people',
      'POST /mail-preferences',
    ])
  })

  test('has a body in every success but 204', async () => {
    const service = await start()
    const successes = operationsOf(await describe31(service)).flatMap(({ operation }) =>
      Object.entries<Json>(operation.responses)
        .filter(([status]) => /^2/.test(status))
        .map(([status, { content }]) => [operation.operationId, status, content !== undefined]),
    )
    expect(successes.filter(([, status, hasBody]) => hasBody === (status === '204'))).toEqual([])
  })

  test('has one JSON content type, named schemas, an id, security and errors in every operation', async () => {
    const service = await start()
    const document = await describe31(service)
    const operations = operationsOf(document)
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(operations.length)
    expect(ids.filter((id) => !/^[a-z]+([A-Z][a-z]+)*$/.test(id))).toEqual([])
    for (const { path, operation } of operations) {
      const { requestBody, responses, security, tags, summary } = operation
      // The body of an upload is no JSON.
      if (requestBody && path !== '/v1/files') {
        const isOptional =
          /\/(mute|read)$/.test(path) || operation.operationId === 'createTotpSecret'
        expect([path, requestBody.required]).toEqual([path, !isOptional])
        expect(Object.keys(requestBody.content)).toEqual(['application/json'])
        expect(requestBody.content['application/json'].schema.$ref).toStartWith(
          '#/components/schemas/',
        )
      }
      expect([path, Array.isArray(security), tags.length, typeof summary]).toEqual([
        path,
        true,
        1,
        'string',
      ])
      expect([path, Object.keys(responses)]).toEqual([
        path,
        expect.arrayContaining(['400', '500', '503']),
      ])
      if (security.length > 0) expect(responses['401'].$ref).toStartWith('#/components/responses/')
    }
    const names = [
      'User',
      'TokenSet',
      'Conversation',
      'ConversationListItem',
      'Message',
      'NewMessage',
      'ErrorBody',
    ]
    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(names))
  })

  test('names both forms of every list under one name', async () => {
    const service = await start()
    const { schemas } = (await describe31(service)).components
    const lists = Object.keys(schemas).filter((name) => /(?<!Cursor)Page$/.test(name))
    expect(lists.length).toBeGreaterThan(15)
    for (const page of lists) {
      const name = page.replace(/Page$/, '')
      const forms = [`${name}Page`, `${name}CursorPage`].map((form) => ({
        $ref: `#/components/schemas/${form}`,
      }))
      expect(schemas[`${name}List`].anyOf).toEqual(forms)
    }
    expect(schemas.Message.anyOf).toEqual([
      { $ref: '#/components/schemas/TextMessage' },
      { $ref: '#/components/schemas/FileMessage' },
      { $ref: '#/components/schemas/NoticeMessage' },
    ])
  })

  test('has no object without a name that appears in several places', async () => {
    const service = await start()
    const { schemas } = (await describe31(service)).components
    const places = Object.entries(schemas).flatMap(([name, schema]: [string, Json]) =>
      [...inlineObjects(schema)].map((fields): [string, string] => [fields, name]),
    )
    const repeated = Map.groupBy(places, ([fields]) => fields)
    // The data of two webhook events have the same field; its types differ.
    const known = /^(id|user|message|ticket|push|ticket,message)$/
    expect(
      [...repeated].filter(([fields, names]) => names.length > 1 && !known.test(fields)),
    ).toEqual([])
  })

  test('names error responses by code and status alone, with the causes in the operation', async () => {
    const service = await start()
    const document = await describe31(service)
    const names = Object.keys(document.components.responses)
    const code = `(${errorCodes.join('|')})`
    const form = new RegExp(`^${code}(_or_${code})*_\\d{3}(_unlimited)?$`)
    expect(names.filter((name) => !form.test(name))).toEqual([])
    expect(names.length).toBeLessThan(25)
    for (const { operation } of operationsOf(document)) {
      const described = Object.values<Json>(operation.responses).flatMap(({ $ref }) =>
        $ref === undefined
          ? []
          : Object.keys(
              document.components.responses[$ref.split('/').at(-1)].content['application/json']
                .examples,
            ),
      )
      expect(described).toEqual(expect.arrayContaining(operation['x-errors']))
    }
    const send = document.paths['/v1/chat/conversations/{id}/messages'].post
    expect(send['x-errors']).toContain('blocked')
    expect(send['x-errors']).not.toContain('role_required')
    expect(send['x-error-reasons']['409']).toEqual(['idempotency_mismatch'])
  })

  test('has a summary for every operation and a description for every tag', async () => {
    const service = await start()
    const document = await describe31(service)
    const sentence = /^[A-Z](?!.*\. ).*[^.:;,]\.$/
    for (const { operation } of operationsOf(document)) {
      expect([operation.operationId, operation.summary]).toEqual([
        operation.operationId,
        expect.stringMatching(sentence),
      ])
      expect(document.tags.map(({ name }: Json) => name)).toContain(operation.tags[0])
    }
    for (const { name, description } of document.tags)
      expect([name, description]).toEqual([name, expect.stringMatching(sentence)])
  })

  test('has words for every parameter and every field', async () => {
    const service = await start()
    const document = await describe31(service)
    const { body: channel } = await service.call('GET', '/v1/asyncapi.json')
    const operations = operationsOf(document)
    const parameters = operations.flatMap(({ operation }) => operation.parameters ?? [])
    const { webhooks, components } = document
    const fields = [
      ...schemasIn(document, [operations, webhooks, components.schemas]),
      ...schemasIn(channel, channel.components),
    ].flatMap(({ properties = {} }) => Object.entries<Json>(properties))
    const bare = [
      ...parameters.filter((one) => wordsOf(one) === undefined).map(({ name }) => name),
      ...fields
        .filter(([, field]) => wordsOf(field, document, channel) === undefined)
        .map(([name]) => name),
    ]
    expect(fields.length + parameters.length).toBeGreaterThan(1_000)
    expect(bare).toEqual([])
  })

  test('says the same about a setting wherever it is described', async () => {
    const { components } = await describe31(await start())
    const wordsIn = (schema: Json = {}): string[] => [
      ...(schema.description ? [schema.description] : []),
      ...(schema.anyOf ?? []).flatMap(wordsIn),
    ]
    const { Settings, SettingsUpdate } = components.schemas
    const fields = [Settings, SettingsUpdate].flatMap((one: Json) =>
      Object.entries<Json>(one.properties),
    )
    const contradictory = fields.filter(([, field]) => new Set(wordsIn(field)).size > 1)
    expect(contradictory.map(([name]) => name)).toEqual([])
  })

  test('does not promise the first result for the key of a refresh, which gets another one', async () => {
    const { paths } = await describe31(await start())
    const [key] = paths['/v1/auth/refresh'].post.parameters
    expect(wordsOf(key)).toBe('After a lost response the same token and key get another token set.')
  })

  test('names the roles, the scope and the limit that the pipeline enforces', async () => {
    await using service = await startService({ environment: limits })
    const { paths } = await describe31(service)
    for (const route of describedRoutes(service.app).filter(({ path }) => path.startsWith('/v1'))) {
      const methods = paths[route.path.replace(/:(\w+)/g, '{$1}')]
      if (!methods) continue
      const {
        'x-roles': roles,
        'x-scope': scope,
        'x-rate-limit': limit,
        description = '',
      } = methods[route.method.toLowerCase()]
      expect([route.path, roles, scope]).toEqual([route.path, allowed[route.access], route.scope])
      expect([route.path, limit?.name]).toEqual([route.path, limitNameOf(route)])
      for (const name of [scope, limit?.name].filter(Boolean))
        expect(description).toContain(`\`${name}\``)
    }
  })

  test('shows limits as configured, and none that are off', async () => {
    const environment = { RATE_LIMIT_LOGIN: '5/15m', RATE_LIMIT_USER: 'off' }
    await using service = await startService({ environment })
    const { paths } = await describe31(service)
    const { post: login } = paths['/v1/auth/login']
    expect(login['x-rate-limit']).toEqual({
      name: 'RATE_LIMIT_LOGIN',
      requests: 5,
      window_seconds: 900,
      per: 'ip_address',
    })
    expect(login.description).toEndWith(
      'Counts towards the 5 requests in 15 minutes of each IP address (`RATE_LIMIT_LOGIN`).',
    )
    expect(paths['/v1/users/me'].get).not.toHaveProperty('x-rate-limit')
  })

  test('has closed request bodies, in which only `data` is a map', async () => {
    const service = await start()
    const document = await describe31(service)
    const bodies = operationsOf(document).flatMap(({ operation }) => operation.requestBody ?? [])
    const reached = new Set(bodies.flatMap((body) => [...schemasIn(document, body)]))
    const open = [...reached].filter(
      ({ additionalProperties }) => additionalProperties !== undefined,
    )
    expect(reached.size).toBeGreaterThan(40)
    const types = open.map(({ additionalProperties }) => additionalProperties.type)
    // `data` of notifications holds texts, `data` of a conversation any JSON.
    expect(types.toSorted()).toEqual(['string', 'string', undefined])
  })

  test('names the well-known keys of the data of a notification, and allows others', async () => {
    const service = await start()
    const { NotificationData } = (await describe31(service)).components.schemas
    expect(Object.keys(NotificationData.properties)).toContain('call_session_id')
    expect(NotificationData.required).toBeUndefined()
    expect(NotificationData.additionalProperties).toEqual({ type: 'string' })
  })

  test('names the kind of token of each operation', async () => {
    const service = await start()
    const { paths, components } = await describe31(service)
    expect(paths['/v1/auth/login'].post.security).toEqual([])
    expect(paths['/v1/chat/conversations'].get.security).toEqual([{ bearer: [] }])
    expect(paths['/v1/chat/ws'].get.security).toEqual([{ accessTokenInQuery: [] }, { bearer: [] }])
    expect(Object.keys(components.securitySchemes)).toEqual([
      'bearer',
      'serviceKey',
      'accessTokenInQuery',
    ])
  })

  test('has the body of each webhook, built from the REST schemas', async () => {
    const service = await start()
    const { webhooks, components } = await describe31(service)
    expect(Object.keys(webhooks)).toEqual([...eventTypes, 'webhook.test'])
    const shown = [...JSON.stringify(webhooks).matchAll(/#\/components\/schemas\/(\w+)/g)]
    expect(shown.length).toBeGreaterThan(9)
    for (const [, name = ''] of shown)
      expect([name, components.schemas[name]]).not.toContain(undefined)
  })

  test('shows the bounds of fields and parameters', async () => {
    const service = await start()
    const { components, paths } = await describe31(service)
    expect(components.schemas.Registration.properties.password).toMatchObject({
      type: 'string',
      minLength: 8,
      maxLength: 256,
    })
    expect(components.schemas.NewMessage.properties.type).toMatchObject({
      anyOf: [{ $ref: '#/components/schemas/SentType' }, { type: 'null' }],
    })
    expect(components.schemas.SentType).toMatchObject({ type: 'string', enum: ['text', 'file'] })
    expect(components.schemas.FileMessage.properties.file_size).toMatchObject({
      anyOf: [{ type: 'integer' }, { type: 'null' }],
    })
    const parameters = paths['/v1/chat/conversations/{id}/messages'].get.parameters
    expect(parameters.map(({ name }: Json) => name).sort()).toEqual([
      'cursor',
      'id',
      'limit',
      'page',
      'per_page',
    ])
    expect(parameters.find(({ name }: Json) => name === 'per_page').schema).toMatchObject({
      type: 'integer',
      default: 50,
    })
  })
})

/** The description of a field or a parameter; a constant needs none. */
function wordsOf(field: Json, ...documents: Json[]): string | undefined {
  const { description, schema, anyOf = [], $ref } = field
  if ('const' in field) return field.const
  const name = $ref?.split('/').at(-1)
  const components = documents.map((document) => document.components.schemas[name])
  const parts = [...anyOf, ...components.filter(Boolean)]
  return (
    description ??
    schema?.description ??
    parts.map((one: Json) => wordsOf(one, ...documents)).find(Boolean)
  )
}

/** Every node with examples, and the URL and the text of its schema. */
function* illustrated(
  node: Json,
  at = '',
): Generator<{ schema: string; text: string; values: Json[] }> {
  if (typeof node !== 'object' || node === null) return
  const values = examplesIn(node)
  if (values.length > 0) {
    const text = JSON.stringify(node.schema ?? node)
    yield { schema: node.schema ? `${at}/schema` : at, text, values }
  }
  for (const [key, part] of Object.entries(node)) {
    if (!['example', 'examples'].includes(key)) yield* illustrated(part, `${at}/${asStep(key)}`)
  }
}

function examplesIn({ schema, example, examples }: Json): Json[] {
  if (Array.isArray(examples)) return examples
  if (schema === undefined) return []
  const named = Object.values<Json>(examples ?? {}).map(({ value }) => value)
  return example === undefined ? named : [example, ...named]
}

/** Every JSON body of a request or response. */
function* jsonBodies(node: Json, at = ''): Generator<{ at: string; body: Json }> {
  if (typeof node !== 'object' || node === null) return
  const { content } = node
  if (content?.['application/json']) yield { at, body: content['application/json'] }
  for (const [key, part] of Object.entries(node)) yield* jsonBodies(part, `${at}/${key}`)
}

describe('the examples', () => {
  test('match their schemas', async () => {
    const service = await start()
    const document = await describe31(service)
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    addFormats(ajv)
    ajv.addSchema(document, 'api')
    const found = [...illustrated(document)]
    expect(found.length).toBeGreaterThan(500)
    // Many fields have the same schema, which is compiled once.
    const compiled = new Map<string, ValidateFunction>()
    for (const { schema, text, values } of found) {
      const validate = compiled.get(text) ?? ajv.compile({ $ref: `api#${schema}` })
      compiled.set(text, validate)
      for (const value of values) {
        validate(value)
        expect([schema, value, validate.errors]).toEqual([schema, value, null])
      }
    }
  })

  test('of bodies are accepted by the server', async () => {
    const service = await start()
    const { paths } = await describe31(service)
    for (const { method, path, access, guardBody } of describedRoutes(service.app)) {
      if (!guardBody || access === 'operator' || path === '/demo/people') continue
      const operation = paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()]
      expect(() =>
        guardBody(operation.requestBody.content['application/json'].example),
      ).not.toThrow()
    }
  })

  // A reader of the reference sends them as they are: only what names something of the example's people may be wrong.
  test('of bodies are taken when they are sent, but for their tokens and ids', async () => {
    await using service = await startService()
    const { paths } = await describe31(service)
    const key = await service.issueKey(['all'])
    const refused: string[] = []
    for (const { method, path, access, guardBody } of describedRoutes(service.app)) {
      if (!guardBody || access === 'operator' || path === '/demo/people') continue
      const operation = paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()]
      const { example } = operation.requestBody.content['application/json']
      const { token } = access === 'service' ? key : await service.registerAs('admin')
      const { status, body } = await service.call(method, path, { token, body: example })
      if (status === 400) refused.push(...Object.keys(body.error.details))
    }
    expect(new Set(refused)).toEqual(
      new Set(['token', 'user_id', 'user_ids.0', 'host_id', 'guest_id']),
    )
  })

  test('exist for every body and every response', async () => {
    const service = await start()
    const bodies = [...jsonBodies(await describe31(service))]
    expect(bodies.length).toBeGreaterThan(150)
    const bare = bodies.filter(({ body }) => (body.example ?? body.examples) === undefined)
    expect(bare.map(({ at }) => at)).toEqual([])
  })

  test('are plausible: one story, and pages with right counts', async () => {
    const service = await start()
    const { paths } = await describe31(service)
    const page = paths['/v1/chat/conversations'].get.responses['200'].content['application/json']
    expect(page.example.pagination).toEqual({ page: 1, per_page: 20, total: 1, total_pages: 1 })
    const [conversation] = page.example.data
    const send = paths['/v1/chat/conversations/{id}/messages'].post
    const message = send.responses['201'].content['application/json'].example
    expect(message.conversation_id).toBe(conversation.id)
    expect(message.sender_id).not.toBe(conversation.participant.id)
    expect(send.requestBody.content['application/json'].example.body).toBe(message.body)
  })
})

test('real responses match the description: bodies, statuses and headers', async () => {
  await using service = await startService({ environment: limits })
  const judge = createJudge(await describe31(service))
  const { a, b, conversationId: id } = await service.pair()
  await service.say(b, id, 'hello')
  const { token } = a
  const admin = await service.registerAs('admin', 'root')
  const [key, other] = [await service.issueKey(), await service.issueKey(['users'])]
  const report = { state: 'active', host_id: a.id, guest_id: b.id }
  const notification = { user_id: a.id, type: 'broadcast' }
  const device = { token: 'x', platform: 'ios' }
  const news = { audience: 'all', title: 'News', body: 'a', client_id: 'n' }
  const message = {
    body: 'a',
    type: 'file',
    file_url: 'https://x.example/a',
    file_size: 1,
    client_id: 'k',
  }
  const calls: [string, string, object, number][] = [
    [
      'POST',
      '/v1/auth/register',
      { body: { email: 'c@example.com', password: 'long enough' } },
      201,
    ],
    [
      'POST',
      '/v1/auth/register',
      { body: { email: 'c@example.com', password: 'long enough' } },
      409,
    ],
    ['POST', '/v1/auth/register', { body: {} }, 400],
    ['POST', '/v1/auth/login', { body: { email: a.email, password: 'correct horse' } }, 200],
    ['POST', '/v1/auth/login', { body: { email: a.email, password: 'wrong' } }, 401],
    ['POST', '/v1/auth/refresh', { body: { refresh_token: b.refreshToken } }, 200],
    ['POST', '/v1/auth/refresh', { body: { refresh_token: 'x' } }, 401],
    ['GET', '/.well-known/jwks.json', {}, 200],
    ['GET', '/v1/.well-known/jwks.json', {}, 200],
    ['GET', '/v1/openapi.json', {}, 200],
    ['GET', '/healthz', {}, 200],
    ['GET', '/readyz', {}, 200],
    ['GET', '/v1/chat/ws', {}, 401],
    ['POST', '/v1/chat/conversations', { token, body: { user_id: b.id } }, 201],
    [
      'POST',
      '/v1/chat/conversations',
      { token, body: { user_id: '01ARZ3NDEKTSV4RRFFQ69G5FAV' } },
      404,
    ],
    ['GET', '/v1/chat/conversations', { token }, 200],
    ['GET', '/v1/chat/conversations?limit=1', { token }, 200],
    ['GET', '/v1/chat/conversations?page=0', { token }, 400],
    ['GET', '/v1/chat/conversations', {}, 401],
    ['POST', '/v1/chat/conversations/{id}/messages', { token, body: message }, 201],
    ['POST', '/v1/chat/conversations/{id}/messages', { token, body: message }, 201],
    [
      'POST',
      '/v1/chat/conversations/{id}/messages',
      { token, body: { ...message, body: 'b' } },
      409,
    ],
    ['POST', '/v1/chat/conversations/{id}/messages', { token, body: {} }, 400],
    ['GET', '/v1/chat/conversations/{id}/messages', { token }, 200],
    ['GET', '/v1/chat/conversations/{id}/messages?limit=1', { token }, 200],
    ['PUT', '/v1/chat/conversations/{id}/read', { token }, 204],
    ['GET', '/v1/chat/messages', { token }, 200],
    ['GET', '/v1/chat/messages?since=x', { token }, 400],
    ['POST', '/v1/chat/broadcast', { token, body: { body: 'x' } }, 403],
    ['POST', '/v1/chat/broadcast', { token: admin.token, body: { body: 'x' } }, 201],
    ['GET', '/v1/chat/broadcasts/{id}', { token }, 404],
    ['GET', '/v1/admin/service-keys', { token: admin.token }, 200],
    [
      'POST',
      '/v1/admin/service-keys',
      { token: admin.token, body: { name: 'x', scopes: ['all'] } },
      201,
    ],
    ['POST', '/v1/admin/service-keys', { token: admin.token, body: {} }, 400],
    ['DELETE', '/v1/admin/service-keys/{id}', { token: admin.token }, 404],
    ['GET', '/v1/service/users/{id}', { token: key.token }, 404],
    ['PATCH', '/v1/service/users/{id}', { token, body: {} }, 401],
    ['PUT', '/v1/service/follows/{host_id}/{follower_id}', { token: key.token }, 404],
    ['DELETE', '/v1/service/follows/{host_id}/{follower_id}', { token: other.token }, 403],
    ['PUT', '/v1/service/follows/{host_id}', { token: key.token, body: {} }, 400],
    ['PUT', '/v1/service/calls/{call_session_id}', { token: key.token, body: report }, 200],
    ['GET', '/v1/asyncapi.json', {}, 200],
    ['POST', '/v1/service/notifications', { token: key.token, body: notification }, 201],
    ['POST', '/v1/service/notifications', { token: key.token, body: {} }, 400],
    ['POST', '/v1/service/notifications', { token: other.token, body: notification }, 403],
    ['GET', '/v1/notifications', { token }, 200],
    ['GET', '/v1/notifications?unread=true&limit=1', { token }, 200],
    ['GET', '/v1/notifications?unread=x', { token }, 400],
    ['GET', '/v1/notifications/unread-count', { token }, 200],
    ['PUT', '/v1/notifications/{id}/read', { token }, 404],
    ['PUT', '/v1/notifications/read-all', { token }, 204],
    ['GET', '/v1/notifications/preferences', { token }, 200],
    ['PUT', '/v1/notifications/preferences', { token, body: { broadcast: { push: true } } }, 200],
    ['PUT', '/v1/notifications/preferences', { token, body: { broadcast: 1 } }, 400],
    ['GET', '/v1/notifications/web-push-key', {}, 200],
    ['POST', '/v1/notifications/push-tokens', { token, body: device }, 201],
    ['POST', '/v1/notifications/push-tokens', { token, body: {} }, 400],
    ['GET', '/v1/notifications/push-tokens', { token }, 200],
    ['DELETE', '/v1/notifications/push-tokens/{id}', { token }, 404],
    ['POST', '/v1/admin/notifications', { token: admin.token, body: news }, 201],
    ['POST', '/v1/admin/notifications', { token: admin.token, body: { ...news, body: 'b' } }, 409],
    ['POST', '/v1/admin/notifications', { token, body: news }, 403],
    ['GET', '/v1/admin/notifications', { token: admin.token }, 200],
    ['GET', '/v1/admin/notifications?limit=1', { token: admin.token }, 200],
    ['GET', '/v1/admin/notifications/{id}', { token: admin.token }, 404],
    ['POST', '/v1/auth/logout', { token, body: { refresh_token: a.refreshToken } }, 204],
  ]
  for (const [method, path, call, status] of calls) {
    const answer = await service.call(method, path.replace('{id}', id), call)
    const about = `${method} ${path}`
    expect([about, answer.status]).toEqual([about, status])
    expect([about, judge(method, path.split('?')[0] ?? path, answer)]).toEqual([about, fine])
  }
})

test('real responses about tickets match the description', async () => {
  const environment = { RATE_LIMIT_USER: '1000/1m', RATE_LIMIT_ANONYMOUS: '1000/1m' }
  await using d = await openDesk({ environment })
  const judge = createJudge(await describe31(d.service))
  const { id } = await d.open()
  const [ada, root] = [{ token: d.ada.token }, { token: d.root.token }]
  const eve = { token: (await d.hire('eve')).token }
  const ticket = { subject: 's', body: 'b', client_id: 'k' }
  const canned = '/v1/admin/support/canned-replies'
  const made = await d.service.call('POST', canned, { ...root, body: { title: 't', body: 'b' } })
  const noted = await d.service.call('POST', `${desk}/${id}/notes`, {
    ...root,
    body: { body: 'a' },
  })
  const noteId = noted.body.id
  const calls: [string, string, object, number][] = [
    ['POST', own, { ...ada, body: ticket }, 201],
    ['POST', own, { ...ada, body: ticket }, 201],
    ['POST', own, { ...ada, body: { ...ticket, body: 'c' } }, 409],
    ['POST', own, { ...ada, body: {} }, 400],
    ['GET', own, ada, 200],
    ['GET', `${own}?limit=1`, ada, 200],
    ['GET', own, {}, 401],
    ['POST', `${own}/{id}/messages`, { ...ada, body: { body: 'b' } }, 201],
    ['POST', `${own}/{id}/messages`, { ...root, body: { body: 'b' } }, 403],
    ['POST', `${desk}/{id}/messages`, { ...root, body: { body: 'b', status: 'resolved' } }, 201],
    ['POST', `${desk}/{id}/notes`, { ...root, body: { body: 'b' } }, 201],
    ['PATCH', `${desk}/{id}/notes/{note_id}`, { ...root, body: { body: 'c' } }, 200],
    ['PATCH', `${desk}/{id}/notes/{note_id}`, { ...eve, body: { body: 'd' } }, 403],
    ['GET', `${desk}/{id}`, root, 200],
    ['DELETE', `${desk}/{id}/notes/{note_id}`, root, 204],
    ['PATCH', `${desk}/{id}`, { ...root, body: { priority: 'low', assigned_to: null } }, 200],
    ['PATCH', `${desk}/{id}`, { ...root, body: {} }, 400],
    ['POST', `${own}/{id}/close`, ada, 200],
    ['GET', `${own}/{id}`, ada, 200],
    ['GET', `${desk}/{id}`, root, 200],
    ['GET', desk, root, 200],
    ['GET', `${desk}?limit=1`, root, 200],
    ['GET', `${desk}?q=s&status=closed`, root, 200],
    ['GET', `${desk}?status=x`, root, 400],
    ['GET', `${desk}?status=open,closed&waiting=false`, root, 200],
    ['GET', '/v1/admin/support/counts', root, 200],
    ['GET', desk, ada, 403],
    ['GET', canned, root, 200],
    ['POST', canned, { ...root, body: { title: 't', body: 'b' } }, 201],
    ['PATCH', `${canned}/{id}`, { ...root, body: { title: 'u' } }, 200],
    ['DELETE', `${canned}/{id}`, root, 204],
    ['DELETE', `${canned}/{id}`, root, 404],
  ]
  for (const [method, path, call, status] of calls) {
    const ids = path.replace('{id}', path.startsWith(canned) ? made.body.id : id)
    const at = ids.replace('{note_id}', noteId)
    const answer = await d.service.call(method, at, call)
    const about = `${method} ${path}`
    expect([about, answer.status]).toEqual([about, status])
    expect([about, judge(method, path.split('?')[0] ?? path, answer)]).toEqual([about, fine])
  }
})
