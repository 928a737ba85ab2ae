import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TSchema } from '@sinclair/typebox'
import { describedRoutes } from '../src/http/route-table.ts'
import { AppError, type FieldProblems } from '../src/lib/errors.ts'
import { insertDeadJob } from './support/dead-job.ts'
import { desk, openDesk } from './support/desk.ts'
import { upload } from './support/files.ts'
import { type Answer, startService } from './support/service.ts'
import { insertDelivery } from './support/webhook-receiver.ts'

// Rules for all routes, including future ones.

const unreached = '100000/1m'
const service = await startService({
  environment: {
    RATE_LIMIT_ANONYMOUS: unreached,
    RATE_LIMIT_LOGIN: unreached,
    RATE_LIMIT_REGISTER: unreached,
  },
})
afterAll(() => service[Symbol.asyncDispose]())
const all = describedRoutes(service.app)
// The routes of the command socket are not served to other clients.
const routes = all.filter(({ access }) => access !== 'operator')
const webhook = { url: 'https://hooks.example.com/', events: ['user.created'] }
const notOfThisList = 'is not a cursor of this list'
const at = (path: string) => path.replace(/:\w+/g, 'x')

test.each(routes)(
  '$method $path: access $access, limit $limit',
  async ({ method, path, access, limit }) => {
    const { status, headers, body } = await service.call(method, at(path))
    expect(headers.get('x-request-id')).toHaveLength(26)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none';.*frame-ancestors 'none'/,
    )
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.has('x-ratelimit-limit')).toBe(limit !== 'none')
    if (access !== 'public') expect([status, body.error.code]).toEqual([401, 'unauthorized'])
  },
)

test('the routes of the command socket do not exist for other clients', async () => {
  const { token } = await service.registerAs('admin')
  const own = all.filter(({ access }) => access === 'operator')
  expect(own.map(({ path }) => path)).toContain('/v1/operator/users')
  for (const { method, path } of own) {
    expect((await service.call(method, at(path), { token, body: {} })).status).toBe(404)
  }
})

// Bodies that the contract makes optional.
const mayBeEmpty = ['/v1/chat/conversations/:id/read', '/v1/chat/conversations/:id/mute']
const changes = routes.filter(({ method }) => method === 'PATCH' || method === 'PUT')

test('a change that names no known field is refused on every route', async () => {
  const { token } = await service.registerAs('admin')
  const { token: key } = await service.issueKey()
  const withBody = changes.filter(({ path, guardBody }) => guardBody && !mayBeEmpty.includes(path))
  expect(withBody.length).toBeGreaterThan(8)
  for (const { method, path } of withBody) {
    const as = path.startsWith('/v1/service/') ? key : token
    for (const body of [{}, { no_such_field: 1, toString: 'x' }]) {
      const answer = await service.call(method, at(path), { token: as, body })
      expect([path, answer.status, answer.body.error?.code]).toEqual([
        path,
        400,
        'validation_error',
      ])
    }
  }
})

test('only the intended routes are open', () => {
  const open = routes.filter(({ access }) => access === 'public').map(({ path }) => path)
  expect(open.sort()).toEqual([
    '/',
    '/.well-known/jwks.json',
    '/assets/:name',
    '/change-email',
    '/client.d.ts',
    '/client.js',
    '/console',
    '/console/*',
    '/demo',
    '/demo/*',
    '/demo/people',
    '/docs',
    '/docs/*',
    '/healthz',
    '/hostline-client.tgz',
    '/mail-preferences',
    '/mail-preferences',
    '/metrics',
    '/platform.css',
    '/readyz',
    '/reset-password',
    '/service-worker.js',
    '/set-up',
    '/state.js',
    '/undo-email',
    '/v1/.well-known/jwks.json',
    '/v1/asyncapi.json',
    '/v1/auth/email/confirm',
    '/v1/auth/email/undo',
    '/v1/auth/login',
    '/v1/auth/password/forgot',
    '/v1/auth/password/reset',
    '/v1/auth/refresh',
    '/v1/auth/register',
    '/v1/auth/set-up',
    '/v1/auth/verify-email',
    '/v1/avatars/:hue/:file',
    '/v1/files/:id/:name',
    '/v1/notifications/web-push-key',
    '/v1/openapi.json',
    '/verify-email',
  ])
})

test('every route names a repeated query parameter, known or not', async () => {
  const admin = await service.registerAs('admin')
  const key = await service.issueKey(['all', 'sessions'])
  for (const { method, path, access } of routes) {
    const { token } = access === 'service' ? key : admin
    const answer = await service.call(method, `${at(path)}?page=0&x=1&x=1`, { token })
    expect([path, answer.status, answer.body.error.details.x]).toEqual([
      path,
      400,
      'must be given only once',
    ])
  }
})

/** The messages of a ticket are one list with two paths. */
const isSameList = (path: string, other: string) =>
  path === other ||
  (path.endsWith('/messages') && path === other.replace('/v1/admin', '/v1')) ||
  (other.endsWith('/messages') && other === path.replace('/v1/admin', '/v1')) ||
  (path.endsWith('/sessions') && other.endsWith('/sessions'))

/** Cursors of the same list with other positions. */
function forgedAfter(cursor: string): string[] {
  const [name] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  const positions = [[], ['x'], [null], [-1], [2 ** 60], [[]], [['x', 'x']], [-1, -1]]
  return positions.map((position) =>
    Buffer.from(JSON.stringify([name, ...position])).toString('base64url'),
  )
}

test('a list accepts its own cursors and no others', async () => {
  await using own = await startService()
  const { token, id, email } = await own.registerAs('admin')
  const key = await own.issueKey()
  let conversation = ''
  for (const n of [1, 2]) {
    const as = (path: string, body: object) => own.call('POST', path, { token, body })
    await own.login(email)
    insertDeadJob(own.sqlite)
    await own.issueKey()
    const other = await own.register()
    conversation = await own.openConversation({ token }, other)
    await as(`/v1/chat/conversations/${conversation}/messages`, { body: 'one' })
    await as(`/v1/chat/conversations/${conversation}/messages`, { body: 'two' })
    await own.call('PUT', `/v1/users/blocks/${other.id}`, { token })
    await upload(own, { token }, 'x')
    await as('/v1/reports', { user_id: other.id, reason: 'spam' })
    await as('/v1/support/tickets', { subject: 's', body: 'b' })
    await as('/v1/admin/support/canned-replies', { title: 't', body: 'b' })
    await as('/v1/admin/webhooks', webhook)
    await as('/v1/admin/bans', { kind: 'mail_domain', value: `spam${n}.example` })
    await as('/v1/notifications/push-tokens', { token: `device${n}`, platform: 'ios' })
    const event = { user_id: id, type: 'broadcast', title: 't', body: 'b' }
    await own.call('POST', '/v1/service/notifications', { token: key.token, body: event })
    await as('/v1/admin/notifications', { audience: 'all', title: 't', body: 'b' })
  }
  const asked = await own.call('POST', '/v1/support/tickets', {
    token,
    body: { subject: 's', body: 'one' },
  })
  const ticket = asked.body.id
  await own.call('POST', `/v1/support/tickets/${ticket}/messages`, { token, body: { body: 'two' } })
  const hook = (await own.call('GET', '/v1/admin/webhooks', { token })).body.data[0].id
  for (let n = 0; n < 2; n++) insertDelivery(own.sqlite, hook)
  // The deliveries of the mails above may not be recorded yet.
  own.sqlite.run(
    `INSERT INTO deliveries (user_id, id, channel, kind, state, attempts, at)
     SELECT ?, id, 'email', 'verification_mail', 'sent', 1, 0 FROM users`,
    [id],
  )
  const idIn = (path: string) =>
    path.includes('webhook')
      ? hook
      : path.includes('ticket')
        ? ticket
        : path.includes('user')
          ? id
          : conversation
  const lists = service.app.routes
    .filter(({ path }) => !path.startsWith('/v1/service/'))
    .filter(({ hooks }) => hooks.operation?.query?.cursor !== undefined)
    .map(({ path }) => path.replace(':id', idIn(path)))
  const page = (path: string, query: string) => own.call('GET', `${path}?${query}`, { token })
  const cursors = new Map<string, string>()
  for (const path of lists) {
    cursors.set(path, (await page(path, 'limit=1')).body.pagination.cursor)
  }
  expect(cursors.size).toBeGreaterThan(9)
  for (const [from, cursor] of cursors) {
    for (const path of lists) {
      const { status, body } = await page(path, `cursor=${cursor}`)
      expect([from, path, status]).toEqual([from, path, isSameList(path, from) ? 200 : 400])
      if (status !== 200) expect(body.error.details).toEqual({ cursor: notOfThisList })
    }
    const forged = forgedAfter(cursor).map((text) => page(from, `cursor=${text}`))
    const failed = (await Promise.all(forged)).filter(({ status }) => status > 400)
    expect([from, failed]).toEqual([from, []])
  }
})

test.each(routes.filter(({ access }) => access === 'admin'))(
  '$method $path is for admins only',
  async ({ method, path }) => {
    const { token } = await service.register()
    const { status, body } = await service.call(method, at(path), { token })
    expect([status, body.error.code]).toEqual([403, 'forbidden'])
  },
)

test('every action of an admin is in the audit log, with actor and target', async () => {
  await using d = await openDesk({ resolveHost: async () => [] })
  const { service, root } = d
  const eve = await service.register('eve')
  const gone = await service.register('gone')
  const { id: ticket } = await d.open()
  const job = insertDeadJob(service.sqlite)
  const key = await service.issueKey(['calls'])
  const report = await service.call('POST', '/v1/reports', {
    token: eve.token,
    body: { user_id: gone.id, reason: 'spam' },
  })
  const conversation = await service.openConversation(eve, gone)
  const said = await service.say(eve, conversation, 'Hello')
  const file = await upload(service, eve, 'x')
  const replies = '/v1/admin/support/canned-replies'
  const reply = { title: 'Thanks', body: 'Thank you.' }
  const made = await service.call('POST', replies, { token: root.token, body: reply })
  const hooks = '/v1/admin/webhooks'
  const hook = await service.call('POST', hooks, { token: root.token, body: webhook })
  service.sqlite.run("INSERT INTO totp_factors VALUES (?, 'AAAA', 1, 0, 1, 0)", [eve.id])
  const delivery = insertDelivery(service.sqlite, hook.body.id)
  const banned = { kind: 'mail_domain', value: 'x.example' }
  const ban = await service.call('POST', '/v1/admin/bans', { token: root.token, body: banned })
  const notes = `${desk}/${ticket}/notes`
  const noted = await service.call('POST', notes, { token: root.token, body: { body: 'b' } })
  const note = `${notes}/${noted.body.id}`
  const actions: [route: string, path: string, body?: object][] = [
    ['PATCH /v1/admin/users/:id', `/v1/admin/users/${eve.id}`, { role: 'host' }],
    ['POST /v1/admin/users/:id/password-reset', `/v1/admin/users/${eve.id}/password-reset`],
    ['DELETE /v1/admin/users/:id/sessions', `/v1/admin/users/${eve.id}/sessions`],
    ['DELETE /v1/admin/users/:id/totp', `/v1/admin/users/${eve.id}/totp`],
    ['POST /v1/admin/jobs/:id/retry', `/v1/admin/jobs/${job}/retry`],
    ['DELETE /v1/admin/jobs/:id', `/v1/admin/jobs/${job}`],
    ['POST /v1/admin/service-keys', '/v1/admin/service-keys', { name: 'k', scopes: ['all'] }],
    ['DELETE /v1/admin/service-keys/:id', `/v1/admin/service-keys/${key.id}`],
    [
      'POST /v1/admin/notifications',
      '/v1/admin/notifications',
      { audience: 'all', title: 't', body: 'b' },
    ],
    ['PATCH /v1/admin/settings', '/v1/admin/settings', { accent: '#000000' }],
    [
      'POST /v1/admin/settings/texts/preview',
      '/v1/admin/settings/texts/preview',
      { kind: 'confirm', lang: 'en', send: true },
    ],
    ['PATCH /v1/admin/reports/:id', `/v1/admin/reports/${report.body.id}`, { note: 'Known.' }],
    ['DELETE /v1/admin/messages/:id', `/v1/admin/messages/${said.body.id}`],
    ['POST /v1/admin/bans', '/v1/admin/bans', { kind: 'mail_domain', value: 'spam.example' }],
    ['DELETE /v1/admin/bans/:id', `/v1/admin/bans/${ban.body.id}`],
    ['DELETE /v1/admin/files/:id', `/v1/admin/files/${file.body.id}`],
    ['DELETE /v1/admin/users/:id', `/v1/admin/users/${gone.id}`],
    ['POST /v1/admin/users/:id/purge', `/v1/admin/users/${gone.id}/purge`],
    ['POST /v1/admin/support/tickets', desk, { user_id: eve.id, subject: 's', body: 'b' }],
    ['PATCH /v1/admin/support/tickets/:id', `${desk}/${ticket}`, { priority: 'high' }],
    ['POST /v1/admin/support/tickets/:id/messages', `${desk}/${ticket}/messages`, { body: 'b' }],
    ['POST /v1/admin/support/tickets/:id/notes', notes, { body: 'b' }],
    ['PATCH /v1/admin/support/tickets/:id/notes/:note_id', note, { body: 'c' }],
    ['DELETE /v1/admin/support/tickets/:id/notes/:note_id', note],
    ['POST /v1/admin/webhooks', hooks, webhook],
    ['PATCH /v1/admin/webhooks/:id', `${hooks}/${hook.body.id}`, { description: 'd' }],
    ['POST /v1/admin/webhooks/:id/secret', `${hooks}/${hook.body.id}/secret`],
    ['POST /v1/admin/webhooks/:id/test', `${hooks}/${hook.body.id}/test`],
    [
      'POST /v1/admin/webhooks/:id/deliveries/:delivery_id/retry',
      `${hooks}/${hook.body.id}/deliveries/${delivery}/retry`,
    ],
    [
      'POST /v1/admin/webhooks/:id/deliveries/retry',
      `${hooks}/${hook.body.id}/deliveries/retry`,
      { since: '2026-01-01T00:00:00Z' },
    ],
    ['DELETE /v1/admin/webhooks/:id', `${hooks}/${hook.body.id}`],
    ['POST /v1/admin/support/canned-replies', replies, reply],
    ['PATCH /v1/admin/support/canned-replies/:id', `${replies}/${made.body.id}`, { title: 'T' }],
    ['DELETE /v1/admin/support/canned-replies/:id', `${replies}/${made.body.id}`],
  ]
  const acting = routes.filter(({ access, method }) => access === 'admin' && method !== 'GET')
  const known = actions.map(([route]) => route)
  expect(known.sort()).toEqual(acting.map(({ method, path }) => `${method} ${path}`).sort())
  const ofPeople = "WHERE actor_type <> 'system'" // a job says how much a purge removed
  const rows = service.sqlite.query<{ actor_id: string; target_id: string; ip: string }, []>(
    `SELECT actor_id, target_id, ip FROM audit_log ${ofPeople} ORDER BY id DESC LIMIT 1`,
  )
  const count = service.sqlite.query<{ n: number }, []>(
    `SELECT count(*) AS n FROM audit_log ${ofPeople}`,
  )
  for (const [route, path, body] of actions) {
    const before = count.get()?.n ?? 0
    const method = route.split(' ')[0] ?? ''
    const { status } = await service.call(method, path, { token: root.token, body })
    expect([route, status < 300, count.get()?.n]).toEqual([route, true, before + 1])
    expect(rows.get()).toEqual({ actor_id: root.id, target_id: expect.any(String), ip: 'unknown' })
    if (method === 'POST' || route.endsWith('/sessions')) continue
    // Again, it changes nothing.
    await service.call(method, path, { token: root.token, body })
    expect([route, count.get()?.n]).toEqual([route, before + 1])
  }
})

const takingBodies = service.app.routes.flatMap(({ method, path, hooks }) => {
  const { body }: { body?: TSchema } = hooks
  const guard = routes.find((route) => route.method === method && route.path === path)?.guardBody
  return body && guard ? [{ method, path, body, guard }] : []
})

test.each(takingBodies)(
  '$method $path accepts null for optional fields',
  ({ method, path, body, guard }) => {
    for (const value of nullBodies(body)) {
      const at = `${method} ${path} ${JSON.stringify(value)}`
      expect({ at, ...problemsOf(guard, {}) }).toMatchObject({ at, ...problemsOf(guard, value) })
    }
  },
)

function problemsOf(guard: (value: unknown) => void, body: object): FieldProblems {
  try {
    guard(body)
    return {}
  } catch (error) {
    if (error instanceof AppError && error.details) return error.details
    throw error
  }
}

/** Yields a body for each optional field, at any depth, in which it is null. */
function* nullBodies({ properties = {}, required = [] }: TSchema): Generator<object> {
  for (const [name, field] of Object.entries<TSchema>(properties)) {
    if (!required.includes(name)) yield { [name]: null }
    for (const option of field['anyOf'] ?? [field]) {
      for (const body of nullBodies(option)) yield { [name]: body }
    }
  }
}

// Operations that end the account or its session come last.
const endings = [
  '/v1/auth/logout',
  '/v1/auth/password/change',
  '/v1/auth/sessions/:id',
  '/v1/users/me',
]
const forPeople = routes
  .filter(({ access }) => access === 'user' || access === 'public')
  .sort((a, b) => endings.indexOf(a.path) - endings.indexOf(b.path))

/** Every response that a user can get, of all routes for users, with and without a body. */
async function everyAnswer(
  call: (method: string, path: string, body?: object) => Promise<Answer>,
  idFor: (path: string) => string,
) {
  const answers: string[] = []
  for (const { method, path } of forPeople) {
    const real = at(path.replace(':id', idFor(path)))
    const bodies = [undefined, { subject: 's', body: 'b', user_id: idFor('') }]
    for (const body of method === 'GET' ? [undefined] : bodies) {
      const answer = await call(method, real, body)
      answers.push(`${method} ${path} ${answer.status} ${JSON.stringify(answer.body)}`)
    }
  }
  return answers
}

test('no response or frame for the owner of a ticket contains a note', async () => {
  await using d = await openDesk({ listen: true })
  const marker = 'what only the desk may know'
  const socket = await d.service.connect(d.ada, '&events=ack,read,notification,support')
  const { id: ticket } = await d.open()
  const conversation = await d.service.openConversation(d.ada, d.root)
  const file = await upload(d.service, d.root, 'x', { name: marker })
  const attachments = [{ file_url: file.body.file_url }]
  const note = { token: d.root.token, body: { body: marker, attachments } }
  const edit = { token: d.root.token, body: { body: `${marker}, edited` } }
  const { id } = (await d.service.call('POST', `${desk}/${ticket}/notes`, note)).body
  await d.service.call('PATCH', `${desk}/${ticket}/notes/${id}`, edit)
  await d.answer(ticket, { status: 'resolved' })
  await d.service.call('POST', `${desk}/${ticket}/notes`, note)
  expect((await d.show(ticket)).notes).toHaveLength(2)
  const answers = await everyAnswer(
    (method, path, body) => d.service.call(method, path, { token: d.ada.token, body }),
    (path) => (path.includes('/support/') ? ticket : conversation),
  )
  await socket.settled()
  const all = [...answers, ...socket.frames.map((frame) => JSON.stringify(frame))]
  expect(all.filter((text) => text.includes(marker))).toEqual([])
  expect(all.filter((text) => text.includes('"ticket_updated"')).length).toBeGreaterThan(2)
  const shown = answers.filter((text) => text.includes('On its way.'))
  expect(new Set(shown.map((text) => text.split(' {')[0]))).toEqual(
    new Set([
      'GET /v1/notifications 200',
      'GET /v1/support/tickets/:id 200',
      'GET /v1/support/tickets/:id/messages 200',
      'POST /v1/support/tickets/:id/close 200',
      'GET /v1/users/me/export 200',
    ]),
  )
})

test('no test sleeps for a fixed time, measures time or retries: such tests are in bench', async () => {
  const timed = /Bun\.sleep\(|setTimeout\(|\bretry: \d|expect\(performance/
  const files = [...new Bun.Glob('*.test.ts').scanSync(import.meta.dir)]
  const isTimed = async (file: string) =>
    timed.test(await Bun.file(join(import.meta.dir, file)).text())
  const found = await Promise.all(files.map(async (file) => ((await isTimed(file)) ? [file] : [])))
  expect(found.flat()).toEqual([])
})

test('the types of the client carry the pages: they assert none themselves', async () => {
  const pages = join(import.meta.dir, '../src/web')
  const assertion = /\S+ as (?:any|never|unknown|object|string|number|keyof|typeof|[A-Z({[]).*/g
  const found: string[] = []
  for (const file of new Bun.Glob('**/*.{ts,tsx}').scanSync(pages)) {
    const text = await Bun.file(join(pages, file)).text()
    const code = text.replace(/^import [^']*|'[^'\n]*'| \/\/ .*/gm, '')
    for (const [line] of code.matchAll(assertion)) found.push(`${file}: ${line.trim()}`)
  }
  expect(found).toEqual(['pages.ts: documents as Documents'])
})
