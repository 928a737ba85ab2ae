import { afterAll, expect, test } from 'bun:test'
import { describedRoutes } from '../src/http/route-table.ts'
import { desk, openDesk } from './support/desk.ts'
import { startService } from './support/service.ts'

// Rules that hold for every route there is, also for those that come later.

const service = await startService({ environment: { RATE_LIMIT_ANONYMOUS: '100000/1m' } })
afterAll(() => service[Symbol.asyncDispose]())
const routes = describedRoutes(service.app)
const at = (path: string) => path.replace(/:\w+/g, 'x')

test.each(routes)(
  '$method $path: access $access, limit $limit',
  async ({ method, path, access, limit }) => {
    await using own = await startService({
      environment: {
        RATE_LIMIT_ANONYMOUS: '100/1m',
        RATE_LIMIT_LOGIN: '100/1m',
        RATE_LIMIT_REGISTER: '100/1m',
      },
    })
    const { status, headers, body } = await own.call(method, at(path))
    expect(headers.get('x-request-id')).toHaveLength(26)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.has('x-ratelimit-limit')).toBe(limit !== 'none')
    if (access !== 'public') expect([status, body.error.code]).toEqual([401, 'unauthorized'])
  },
)

test('nothing is open that is not meant to be', () => {
  const open = routes.filter(({ access }) => access === 'public').map(({ path }) => path)
  expect(open.sort()).toEqual([
    '/',
    '/.well-known/jwks.json',
    '/assets/account.css',
    '/assets/account.js',
    '/healthz',
    '/metrics',
    '/readyz',
    '/reset-password',
    '/set-up',
    '/v1/.well-known/jwks.json',
    '/v1/auth/login',
    '/v1/auth/password/forgot',
    '/v1/auth/password/reset',
    '/v1/auth/refresh',
    '/v1/auth/register',
    '/v1/auth/set-up',
    '/v1/auth/verify-email',
    '/v1/avatars/:hue/:file',
    '/v1/openapi.json',
    '/verify-email',
  ])
})

test.each(routes.filter(({ access }) => access === 'admin'))(
  '$method $path is for admins alone',
  async ({ method, path }) => {
    const { token } = await service.register()
    const { status, body } = await service.call(method, at(path), { token })
    expect([status, body.error.code]).toEqual([403, 'forbidden'])
  },
)

test('no answer and no frame for its owner holds a note', async () => {
  await using d = await openDesk({ listen: true })
  const marker = 'what only the desk may know'
  const socket = await d.service.connect(d.ada, '&events=ack,read,notification,support')
  const { id: ticket } = await d.open()
  const conversation = await d.service.openConversation(d.ada, d.root)
  const note = { token: d.root.token, body: { body: marker } }
  expect((await d.service.call('POST', `${desk}/${ticket}/notes`, note)).status).toBe(201)
  expect(JSON.stringify(await d.show(ticket))).toContain(marker)
  await d.answer(ticket, { status: 'resolved' })
  await d.service.call('POST', `${desk}/${ticket}/notes`, note)

  // What ends the account or its session comes last.
  const last = [
    '/v1/auth/logout',
    '/v1/auth/password/change',
    '/v1/users/me',
    '/v1/auth/sessions/:id',
  ]
  const mine = routes
    .filter(({ access }) => access === 'user' || access === 'public')
    .sort((a, b) => last.indexOf(a.path) - last.indexOf(b.path))
  const bodies = [
    undefined,
    { subject: 's', body: 'b', user_id: d.root.id, type: 'text', client_id: marker.slice(0, 5) },
  ]
  const answers: string[] = []
  for (const { method, path } of mine) {
    const id = path.includes('/support/') ? ticket : conversation
    const at = path.replace(':id', id).replace(/:\w+/g, 'x')
    for (const body of method === 'GET' ? [undefined] : bodies) {
      const { status, body: answer } = await d.service.call(method, at, {
        token: d.ada.token,
        body,
      })
      answers.push(`${method} ${path} ${status} ${JSON.stringify(answer)}`)
    }
  }
  await socket.settled()
  expect(socket.frames.length).toBeGreaterThan(2)
  expect(
    [...answers, JSON.stringify(socket.frames)].filter((text) => text.includes(marker)),
  ).toEqual([])
  const shown = answers.filter((text) => text.includes('On its way.') && text.includes(' 200 '))
  expect(shown.map((text) => text.split(' ', 2).join(' ')).sort()).toEqual([
    'GET /v1/support/tickets/:id',
    'GET /v1/users/me/export',
    'POST /v1/support/tickets/:id/close',
    'POST /v1/support/tickets/:id/close',
  ])
})
