import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { addFollowers } from './support/audience.ts'
import { temporaryDirectory } from './support/directory.ts'
import { size, testAtLength } from './support/faults.ts'
import { call, meet, startServer } from './support/process.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { watchRuns } from './support/statements.ts'
import { aWhile, waitFor } from './support/wait.ts'

const anyHost = shared(() => startHost())

const unknownId = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

async function startHost(fans = 0, options: Parameters<typeof startService>[0] = {}) {
  const service = await startService(options)
  const host = await service.registerAs('host', 'host')
  const followerIds = addFollowers(service.sqlite, host.id, fans)
  const broadcast = (body: unknown, headers = {}) =>
    service.call('POST', '/v1/chat/broadcast', { token: host.token, body, headers })
  const progress = async (id: string) =>
    (await service.call('GET', `/v1/chat/broadcasts/${id}`, { token: host.token })).body
  return {
    service,
    host,
    followerIds,
    broadcast,
    progress,
    async completed(id: string) {
      await waitFor(async () => (await progress(id)).status === 'completed')
      return progress(id)
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

async function follow(service: TestService, host: Person, fan: Person) {
  const { token } = await service.issueKey()
  await service.call('PUT', `/v1/service/follows/${host.id}/${fan.id}`, { token })
}

const inbox = async (service: TestService, { token }: Person) =>
  (await service.call('GET', '/v1/chat/conversations', { token })).body.data

/** The number of copies of a broadcast, and of their recipients. */
function copies(sqlite: Database) {
  return sqlite
    .query(
      'SELECT count(*) AS messages, count(DISTINCT conversation_id) AS people FROM messages WHERE broadcast_id IS NOT NULL',
    )
    .get()
}

describe('a broadcast', () => {
  test('and its recipient count leave out disabled accounts, also ones disabled by a command, until they are enabled', async () => {
    await using started = await startHost()
    const { service, host, broadcast } = started
    const [fan, banned] = [await service.register('fan'), await service.register('banned')]
    const { token } = await service.registerAs('admin')
    for (const person of [fan, banned]) await follow(service, host, person)
    const disable = (disabled: boolean) =>
      service.call('PATCH', `/v1/admin/users/${banned.id}`, { token, body: { disabled } })
    await disable(true)
    expect((await broadcast({ body: 'one' })).body).toMatchObject({ recipients_count: 1 })
    expect(copies(service.sqlite)).toEqual({ messages: 1, people: 1 })
    await disable(false)
    expect((await broadcast({ body: 'two' })).body).toMatchObject({ recipients_count: 2 })
    expect(await inbox(service, await service.login(banned.email))).toHaveLength(1)
  })

  test('counts its recipients without a statement for each block of the host', async () => {
    await using started = await startHost()
    const { service, host, broadcast } = started
    let runs = 0
    watchRuns(() => runs++)
    const countRuns = async () => {
      runs = 0
      expect((await broadcast({ body: 'hi' })).body).toMatchObject({ recipients_count: 0 })
      return runs
    }
    await countRuns()
    const before = await countRuns()
    for (const id of addFollowers(service.sqlite, host.id, 50)) {
      const block = `INSERT INTO blocks (user_id, other_user_id, id, blocked_at) VALUES (?1, ?2, ?2, 0), (?2, ?1, NULL, NULL)`
      service.sqlite.run(block, [host.id, id])
    }
    service.sqlite.run('DELETE FROM follows')
    expect(await countRuns()).toBeLessThan(before + 25)
  })

  test('to few recipients is complete with its response: a conversation and an unread message for each', async () => {
    await using started = await startHost()
    const { service, host, broadcast } = started
    const [fan, friend] = [await service.register('fan'), await service.register('friend')]
    await follow(service, host, fan)
    await follow(service, host, friend)
    const before = await service.openConversation(host, friend)
    const { status, body } = await broadcast({ body: 'live at nine' })
    expect([status, body]).toEqual([
      201,
      {
        id: expect.any(String),
        body: 'live at nine',
        recipients_count: 2,
        status: 'completed',
        created_at: expect.any(String),
      },
    ])
    const [[toFan], [toFriend]] = [await inbox(service, fan), await inbox(service, friend)]
    expect(toFan).toMatchObject({
      participant: { id: host.id },
      unread_count: 1,
      last_message: { body: 'live at nine', type: 'text' },
    })
    expect(toFriend.id).toBe(before)
    expect(
      (await inbox(service, host)).map((item: { unread_count: number }) => item.unread_count),
    ).toEqual([0, 0])
  })

  test('without recipients is completed', async () => {
    await using started = await startHost()
    const { body } = await started.broadcast({ body: 'anybody?' })
    expect(body).toMatchObject({ recipients_count: 0, status: 'completed' })
  })

  test('that is complete reaches nobody more when a crash has left its job', async () => {
    await using started = await startHost()
    const { service, host, broadcast, progress } = started
    const { body } = await broadcast({ body: 'hello' })
    const { token } = await service.registerAs('admin')
    await follow(service, host, await service.register())
    service.sqlite.run(
      `INSERT INTO outbox (id, kind, payload, created_at, run_at)
       VALUES (?1, 'broadcast', json_object('broadcast_id', ?1), 0, 0)`,
      [body.id],
    )
    await service.call('POST', `/v1/admin/jobs/${body.id}/retry`, { token })
    await waitFor(
      () => service.sqlite.query("SELECT 1 FROM outbox WHERE kind = 'broadcast'").get() === null,
    )
    expect(await progress(body.id)).toMatchObject({ status: 'completed', delivered_count: 0 })
  })

  test('to many recipients continues as a job and reports its progress', async () => {
    await using started = await startHost(300)
    const { service, broadcast, completed } = started
    const { body } = await broadcast({ body: 'hello all' })
    expect(body).toMatchObject({ recipients_count: 300, status: 'processing' })
    expect(await completed(body.id)).toEqual({
      ...body,
      status: 'completed',
      delivered_count: 300,
    })
    expect(copies(service.sqlite)).toEqual({ messages: 300, people: 300 })
    const waiting = service.sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM outbox')
    await waitFor(() => waiting.get()?.n === 0, 'the end of the job')
  })

  test('reaches users who still follow at their turn, and counts them at the end', async () => {
    await using started = await startHost(120)
    const { service, host, followerIds, broadcast, completed } = started
    const { token } = await service.issueKey()
    const { body } = await broadcast({ body: 'hello all' })
    const last = followerIds.at(-1)
    await service.call('DELETE', `/v1/service/follows/${host.id}/${last}`, { token })
    expect(await completed(body.id)).toMatchObject({ recipients_count: 119, delivered_count: 119 })
  })

  test('stops when its sender loses the role', async () => {
    await using started = await startHost(300)
    const { service, host, broadcast, completed } = started
    const { body } = await broadcast({ body: 'spam' })
    service.sqlite.run('UPDATE users SET email_verified = 0 WHERE id = ?', [host.id])
    const { recipients_count, delivered_count } = await completed(body.id)
    expect(recipients_count).toBe(delivered_count)
    expect(delivered_count).toBeLessThan(300)
  })

  test('reaches nobody more once its job is discarded', async () => {
    const { promise: discarded, resolve: goOn } = Promise.withResolvers<void>()
    let isBegun = () => false
    const sync = async (real: () => Promise<void>) => {
      if (isBegun()) await discarded
      await real()
    }
    await using started = await startHost(400, { sync })
    const { service, broadcast } = started
    const { sqlite } = service
    const { token } = await service.registerAs('admin')
    // The first 20 are reached before the answer, then ten at a time.
    isBegun = () => (copies(sqlite) as { people: number }).people === 30
    await broadcast({ body: 'hello' })
    await waitFor(isBegun)
    const job = sqlite.query<{ id: string }, []>("SELECT id FROM outbox WHERE kind = 'broadcast'")
    const answer = service.call('DELETE', `/v1/admin/jobs/${job.get()?.id}`, { token })
    await waitFor(() => job.get() === null)
    goOn()
    expect((await answer).status).toBe(204)
    for (let n = 0; n < 5; n++) await service.register()
    expect(copies(sqlite)).toEqual({ messages: 30, people: 30 })
  })

  test('arrives as a frame for online followers, and not as an echo for the host', async () => {
    await using started = await startHost(0, { listen: true })
    const { service, host, broadcast } = started
    const fan = await service.register('fan')
    await follow(service, host, fan)
    const [socket, own] = [await service.connect(fan), await service.connect(host)]
    await broadcast({ body: 'live at nine' })
    const frame = await socket.next('new_message')
    expect(frame.message).toMatchObject({ sender_id: host.id, body: 'live at nine', type: 'text' })
    await own.settled()
    expect(own.frames).toEqual([])
  })

  test('is sent once, however often it is posted with the same key', async () => {
    await using started = await startHost(120)
    const { service, broadcast, completed } = started
    const body = { body: 'only once', client_id: 'b1' }
    const answers = await Promise.all([broadcast(body), broadcast(body), broadcast(body)])
    const later = await broadcast({ body: 'only once' }, { 'x-idempotency-key': 'b1' })
    const ids = [...answers, later].map((answer) => answer.body.id)
    expect(new Set(ids).size).toBe(1)
    expect(later.headers.get('idempotent-replayed')).toBe('true')
    await completed(ids[0])
    expect(copies(service.sqlite)).toEqual({ messages: 120, people: 120 })
    expect((await broadcast({ body: 'something else', client_id: 'b1' })).status).toBe(409)
  })

  test.each([
    ['user', true, 403],
    ['verified_user', true, 403],
    ['host', false, 403],
    ['host', true, 201],
    ['admin', false, 201],
  ])('by a %s with a verified address (%p) is answered with %i', async (role, verified, status) => {
    await using service = await startService()
    const { id, token } = await service.registerAs(role)
    service.sqlite.run('UPDATE users SET email_verified = ? WHERE id = ?', [verified, id])
    const answer = await service.call('POST', '/v1/chat/broadcast', {
      token,
      body: { body: 'hi' },
    })
    expect(answer.status).toBe(status)
    const wrong = await service.call('POST', '/v1/chat/broadcast', { token, body: {} })
    expect(wrong.status).toBe(status === 201 ? 400 : 403)
  })

  test.each([{}, { body: '' }, { body: ' \u2060\n' }, { body: 'x'.repeat(5_001) }, { body: 5 }])(
    'with %j is refused',
    async (body) => {
      const started = await anyHost()
      const answer = await started.broadcast(body)
      expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, ['body']])
    },
  )

  test('shows its progress to its sender only', async () => {
    await using started = await startHost()
    const { service, broadcast } = started
    const { body } = await broadcast({ body: 'hello' })
    const { token } = await service.registerAs('admin')
    const look = (id: string) => service.call('GET', `/v1/chat/broadcasts/${id}`, { token })
    expect([(await look(body.id)).status, (await look(unknownId)).status]).toEqual([403, 404])
  })

  test('appears once in the export of its sender', async () => {
    await using started = await startHost(3)
    const { service, host, broadcast } = started
    const { body } = await broadcast({ body: 'hello' })
    const mine = await service.call('GET', '/v1/users/me/export', { token: host.token })
    expect([mine.body.broadcasts, mine.body.messages]).toEqual([[body], []])
  })
})

testAtLength('repeated kill -9 during a broadcast: each follower gets one message', async () => {
  using directory = temporaryDirectory()
  const dataDir = directory.path
  const count = size(10_000, 3_000, 1_000)
  const first = await startServer({ dataDir })
  const { a: host } = await meet(first.base)
  await first.kill('SIGTERM')
  using sqlite = new Database(join(dataDir, 'hostline.db'))
  sqlite.run("UPDATE users SET role = 'host', email_verified = 1 WHERE id = ?", [host.id])
  addFollowers(sqlite, host.id, count)

  let id = ''
  for (let kill = 0; kill < size(10, 3, 1); kill++) {
    await using server = await startServer({ dataDir })
    const post = { token: host.token, body: { body: 'hello all', client_id: 'once' } }
    const answer = await call(server.base, 'POST', '/v1/chat/broadcast', post)
    id = answer.body.id
    await aWhile(30)
    await server.kill('SIGKILL')
  }
  await using server = await startServer({ dataDir })
  const path = `/v1/chat/broadcasts/${id}`
  const seen = await waitFor(async () => {
    const { body } = await call(server.base, 'GET', path, { token: host.token })
    return body.status === 'completed' && body
  }, 'the end of the broadcast')
  expect(seen.delivered_count).toBe(count)
  expect(copies(sqlite)).toEqual({ messages: count, people: count })
  const unread =
    'SELECT count(*) AS n, sum(unread_count) AS unread FROM participants WHERE other_user_id = ?'
  expect(sqlite.query(unread).get(host.id)).toMatchObject({ unread: count })
})
