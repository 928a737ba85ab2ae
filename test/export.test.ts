import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { createExports } from '../src/modules/accounts/exports.ts'
import { createChatStore } from '../src/modules/chat/store.ts'
import { addFollowers } from './support/audience.ts'
import { codeOf } from './support/authenticator.ts'
import { createTestClock } from './support/clock.ts'
import { upload } from './support/files.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { waitFor, waitOut } from './support/wait.ts'

const path = '/v1/users/me/export'
const exportOf = (service: TestService, { token }: Person) => service.call('GET', path, { token })

const insertConversation =
  'INSERT INTO conversations (id, user_a, user_b, created_at) VALUES (?, ?, ?, 0)'
const insertParticipant =
  'INSERT INTO participants (user_id, conversation_id, other_user_id, last_activity_id) VALUES (?, ?, ?, ?)'

/** A user with data in every table, and other users whose data must not appear. */
async function startFull() {
  const clock = createTestClock()
  const service = await startService({ clock, isAllowedPushEndpoint: () => true })
  const [ada, bob, root] = [
    await service.registerAs('host', 'ada'),
    await service.register('bob'),
    await service.registerAs('admin', 'root'),
  ]
  const key = await service.issueKey()
  const as = (who: { token: string }, method: string, where: string, body?: unknown) =>
    service.call(method, where, { token: who.token, body })
  const conversationId = await service.openConversation(ada, bob)
  await service.say(ada, conversationId, 'from ada')
  await service.say(bob, conversationId, 'to ada')
  const file = { type: 'file', body: '', file_url: 'https://files.example.com/1' }
  await as(bob, 'POST', `/v1/chat/conversations/${conversationId}/messages`, file)
  await as(key, 'PUT', `/v1/service/follows/${ada.id}/${bob.id}`)
  const host = await service.registerAs('host', 'holly')
  await as(key, 'PUT', `/v1/service/follows/${host.id}/${ada.id}`)
  await as(key, 'PUT', '/v1/service/calls/c1', {
    state: 'ringing',
    host_id: ada.id,
    guest_id: bob.id,
  })
  await as(ada, 'POST', '/v1/chat/broadcast', { body: 'to all' })
  await as(ada, 'POST', '/v1/notifications/push-tokens', {
    token: 'device of ada',
    platform: 'ios',
  })
  await as(ada, 'PUT', '/v1/notifications/preferences', { follow_new: { email: true } })
  const ticket = await as(ada, 'POST', '/v1/support/tickets', {
    subject: 'Help',
    body: 'It broke.',
  })
  await as(root, 'POST', `/v1/admin/support/tickets/${ticket.body.id}/messages`, {
    body: 'Try again.',
  })
  await as(root, 'POST', `/v1/admin/support/tickets/${ticket.body.id}/notes`, {
    body: 'a secret note',
  })
  return {
    service,
    clock,
    ada,
    bob,
    root,
    host,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** A second factor, an external id and a former address. */
async function addCredentials({ service, clock, ada }: Awaited<ReturnType<typeof startFull>>) {
  const as = async (method: string, where: string, body?: object) =>
    (await service.call(method, where, { token: ada.token, body })).body
  const { secret } = await as('POST', '/v1/auth/totp', { password: 'correct horse' })
  await as('POST', '/v1/auth/totp/confirm', { code: codeOf(secret, clock.now()) })
  const hashes = service.sqlite.query<{ hash: string }, []>('SELECT hash FROM recovery_codes')
  const [code] = hashes.all()
  const { token: key } = await service.issueKey()
  await service.call('PATCH', `/v1/service/users/${ada.id}`, {
    token: key,
    body: { external_id: 'crm-of-ada' },
  })
  const change = { new_email: 'lovelace@example.com', password: 'correct horse' }
  await as('POST', '/v1/auth/email/change', change)
  const token = await waitFor(() => {
    clock.advance(500)
    return /change-email\?lang=en#token=([\w-]{43})/.exec(service.log())?.[1]
  })
  await as('POST', '/v1/auth/email/confirm', { token })
  await service.call('POST', '/v1/auth/refresh', {
    body: { refresh_token: ada.refreshToken },
    headers: { 'x-idempotency-key': 'k1' },
  })
  const keyHash = new Bun.CryptoHasher('sha256').update('k1').digest('hex')
  return [secret, code?.hash ?? '', 'crm-of-ada', 'lovelace@example.com', keyHash]
}

/** A removed file in a removed message, a report, a block and a pending address. */
async function addRest({ service, clock, ada, bob, root }: Awaited<ReturnType<typeof startFull>>) {
  const { token } = ada
  const post = async (where: string, body: object) =>
    (await service.call('POST', where, { token, body })).body
  const { file_url } = (await upload(service, ada, 'x')).body
  const { id } = await post('/v1/chat/conversations', { user_id: bob.id })
  const message = { type: 'file', body: 'mine', file_url }
  const sent = await post(`/v1/chat/conversations/${id}/messages`, message)
  await service.call('DELETE', `/v1/admin/messages/${sent.id}`, { token: root.token })
  await post('/v1/reports', { user_id: bob.id, reason: 'spam' })
  await service.call('PUT', `/v1/users/blocks/${bob.id}`, { token })
  clock.advance(120_000)
  const address = { new_email: 'countess@example.com', password: 'correct horse' }
  await post('/v1/auth/email/change', address)
}

/** A schema that refuses fields which the description does not have. */
const closed = (description: object) =>
  JSON.parse(JSON.stringify(description), (_, part) =>
    part?.type === 'object' && part.properties ? { additionalProperties: false, ...part } : part,
  )

describe('the export', () => {
  test('contains all data of a person, and no secrets', async () => {
    await using full = await startFull()
    const { service, ada, bob, host } = full
    const { status, headers, body } = await exportOf(service, ada)
    expect([status, headers.get('content-disposition')]).toEqual([
      200,
      'attachment; filename="account.json"',
    ])
    expect(body.user.email).toBe(ada.email)
    expect(
      body.messages.map((it: { body: string; file_url: string }) => it.file_url ?? it.body),
    ).toEqual(['from ada', 'to ada', 'https://files.example.com/1'])
    expect(body.conversations[0].participant.id).toBe(bob.id)
    expect(body.follows).toEqual([expect.objectContaining({ host_id: host.id })])
    expect(body.followers).toEqual([expect.objectContaining({ follower_id: bob.id })])
    expect(body.calls).toEqual([expect.objectContaining({ call_session_id: 'c1' })])
    expect(body.broadcasts).toEqual([expect.objectContaining({ body: 'to all' })])
    expect(body.push_tokens).toEqual([expect.objectContaining({ token: 'device of ada' })])
    expect(body.notification_preferences[0].follow_new.email).toBe(true)
    expect(body.tickets[0].messages.map((it: { body: string }) => it.body)).toEqual([
      'It broke.',
      'Try again.',
    ])
    expect(body.notifications.map((it: { type: string }) => it.type).sort()).toEqual([
      'call_incoming',
      'follow_new',
      'support_reply',
    ])
    expect(body.sessions).toHaveLength(1)
    expect(body.audit_log.map((it: { action: string }) => it.action)).toContain('user_registered')
    const text = JSON.stringify(body)
    for (const secret of [bob.email, 'argon2', 'a secret note', ada.refreshToken]) {
      expect(text).not.toContain(secret)
    }
  })

  test('is described: every list, and every field of its rows', async () => {
    await using full = await startFull()
    const { service, ada } = full
    await addCredentials(full)
    await addRest(full)
    const { body } = await exportOf(service, ada)
    const { body: api } = await service.call('GET', '/v1/openapi.json')
    const { properties } = api.components.schemas.Export
    expect(Object.keys(body)).toEqual(Object.keys(properties))
    expect(Object.keys(body).filter((name) => body[name].length === 0)).toEqual([])
    expect(body.files).toEqual([expect.objectContaining({ removed_at: expect.any(String) })])
    const ajv = addFormats(new Ajv({ strict: false }))
    const validate = ajv.addSchema(closed(api), 'api').getSchema('api#/components/schemas/Export')
    validate?.(body)
    expect(validate?.errors).toBeNull()
  })

  test('runs one at a time, and five times an hour', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const ada = await service.register()
    // In-process, an export advances only as it is read.
    const first = await service.request(path, { headers: { authorization: `Bearer ${ada.token}` } })
    const second = await exportOf(service, ada)
    expect([second.status, second.headers.get('x-error-reason')]).toEqual([429, 'quota_exceeded'])
    await first.text()
    for (let n = 0; n < 4; n++) expect((await exportOf(service, ada)).status).toBe(200)
    const sixth = await exportOf(service, ada)
    expect([sixth.status, sixth.headers.get('x-error-reason')]).toEqual([429, 'quota_exceeded'])
    expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(3_000)
    clock.advance(3_600_001)
    expect((await exportOf(service, await service.login(ada.email))).status).toBe(200)
  })

  test('is not refused for exports of a time when the clock was ahead', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const ada = await service.register()
    clock.advance(30 * 86_400_000)
    const later = await service.login(ada.email)
    for (let n = 0; n < 5; n++) expect((await exportOf(service, later)).status).toBe(200)
    clock.setBack(30 * 86_400_000)
    expect((await exportOf(service, ada)).status).toBe(200)
  })

  test('that is not read to its end stops, and another may begin', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, listen: true })
    const { a, b, conversationId } = await service.pair()
    for (let n = 0; n < 400; n++) await service.say(b, conversationId, 'x'.repeat(5_000))
    const abort = new AbortController()
    const headers = { authorization: `Bearer ${a.token}` }
    const answer = await service.request(path, { headers, signal: abort.signal })
    await answer.body?.getReader().read()
    abort.abort()
    await waitFor(async () => (await exportOf(service, a)).status === 200, 'another export')
  })

  test('whose client leaves before the response makes way for another', async () => {
    let disk = Promise.resolve()
    let syncs = 0
    const sync = async (real: () => Promise<void>) => {
      syncs++
      await disk
      await real()
    }
    await using service = await startService({ clock: createTestClock(), listen: true, sync })
    const ada = await service.register()
    const { promise, resolve } = Promise.withResolvers<void>()
    disk = promise
    const before = syncs
    const abort = new AbortController()
    const headers = { authorization: `Bearer ${ada.token}` }
    const asked = service.request(path, { headers, signal: abort.signal }).catch(() => 'left')
    await waitFor(() => syncs > before)
    abort.abort()
    expect(await asked).toBe('left')
    await waitOut(100)
    resolve()
    await waitFor(async () => (await exportOf(service, ada)).status === 200, 'another', 30_000)
  })

  test('contains a conversation in which somebody writes meanwhile', async () => {
    await using service = await startService()
    const { sqlite } = service
    const ada = await service.register()
    const fans = addFollowers(sqlite, ada.id, 210)
    sqlite.transaction(() => {
      for (const id of fans) {
        const [userA = '', userB = ''] = [ada.id, id].sort()
        sqlite.run(insertConversation, [id, userA, userB])
        for (const one of [userA, userB])
          sqlite.run(insertParticipant, [one, id, one === userA ? userB : userA, id])
      }
    })()
    const listed = createChatStore(drizzle(sqlite)).eachConversation(ada.id)
    listed.next()
    const [oldest = '', newest = ''] = [fans[0], fans.at(-1)]
    sqlite.run('UPDATE participants SET last_activity_id = ? WHERE conversation_id = ?', [
      `${newest}~`,
      oldest,
    ])
    expect([oldest, ...listed.map(({ id }) => id)]).toEqual(fans)
  })

  test.each([
    ['its reader was logged out', 'user'],
    ['its reader was removed', 'user'],
    ['the person was removed', 'admin'],
  ])('fails once %s', async (change, role) => {
    await using service = await startService()
    const root = await service.registerAs('admin')
    const { a, b, conversationId } = await service.pair()
    const messages = `/v1/chat/conversations/${conversationId}/messages`
    for (let n = 0; n < 600; n++)
      await service.callInProcess('POST', messages, { token: b.token, body: { body: 'hello' } })
    const { token, refreshToken: refresh_token } = a
    const [read, by] =
      role === 'admin' ? [`/v1/admin/users/${a.id}/export`, root.token] : [path, token]
    const answer = await service.request(read, { headers: { authorization: `Bearer ${by}` } })
    const reader = answer.body?.getReader()
    await reader?.read()
    if (change.endsWith('removed'))
      await service.call('DELETE', `/v1/admin/users/${a.id}`, { token: root.token })
    else await service.call('POST', '/v1/auth/logout', { token, body: { refresh_token } })
    const readOn = async () => {
      while (!(await reader?.read())?.done);
    }
    await expect(readOn()).rejects.toMatchObject({ kind: 'session_ended' })
  })
})

describe('an export', () => {
  const by = { actor: { type: 'user', id: 'ada' }, ip: '' } as const
  const open = (rows: Iterable<unknown>) => {
    const clock = createTestClock()
    const audit = { mustHaveLeft() {}, record: () => {} }
    const core = { audit, clock, write: async (run: () => void) => run() }
    const list = { description: 'Rows.', item: Type.Unknown(), each: () => rows }
    const exports = createExports(core as never, { list })
    const { signal } = new AbortController()
    const reader = { by, signal, isAllowed: () => true }
    return { clock, begin: () => exports.begin('ada', {}, reader) }
  }
  const start = (rows: Iterable<unknown>) => open(rows).begin()

  test('that has stalled makes way for another, and its end ends no other', async () => {
    const { clock, begin } = open(Array(1_000).fill('row'))
    const stalled = await begin()
    await stalled.next()
    clock.advance(61_000)
    const next = await begin()
    await next.next()
    await stalled.return(undefined)
    await expect(begin()).rejects.toMatchObject({ kind: 'quota_exceeded' })
  })

  test('that has stalled makes way for another also when the clock was set back', async () => {
    const { clock, begin } = open(Array(1_000).fill('row'))
    const stalled = await begin()
    await stalled.next()
    clock.setBack(3_600_000)
    const next = await begin()
    expect((await next.next()).done).toBe(false)
  })

  test('yields to the event loop after 200 rows, skipped rows included', async () => {
    let turns = 0
    const turn = () => void (turns++ < 10 && setImmediate(turn))
    turn()
    const rows = Array(1_000).fill(undefined).with(900, 'found')
    const pieces = await Array.fromAsync(await start(rows))
    expect([pieces.length, turns]).toEqual([3, 6])
    expect(JSON.parse(pieces.join(''))).toEqual({ user: {}, list: ['found'] })
  })
})

describe('removing an account', () => {
  async function leave(full: Awaited<ReturnType<typeof startFull>>, person: Person) {
    const { service, clock } = full
    await service.call('DELETE', '/v1/users/me', {
      token: person.token,
      body: { password: 'correct horse' },
    })
    const waiting = service.sqlite.query("SELECT 1 FROM outbox WHERE kind = 'erasure'")
    await waitFor(() => {
      clock.advance(500)
      return waiting.all().length === 0
    }, 'the end of the erasure')
  }

  /** The tables of the database that contain a text. */
  function placesOf({ sqlite }: TestService, text: string): string[] {
    const tables = sqlite
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%\\_data' ESCAPE '\\'",
      )
      .all()
    return tables.flatMap(({ name }) =>
      JSON.stringify(sqlite.query(`SELECT * FROM "${name}"`).all()).includes(text) ? [name] : [],
    )
  }

  test('removes name, address and devices everywhere, also from the notifications of others', async () => {
    await using full = await startFull()
    const { service, ada, bob, host } = full
    const listed = () => service.call('GET', '/v1/notifications', { token: host.token })
    expect((await listed()).body.data[0].body).toBe('ada follows you now.')
    const traces = ['ada@example.com', 'device of ada', '"ada"', 'ada follows']
    expect(traces.map((text) => placesOf(service, text).length > 0)).toEqual([
      true,
      true,
      true,
      true,
    ])
    await leave(full, ada)
    expect(traces.flatMap((text) => placesOf(service, text))).toEqual([])
    expect((await listed()).body.data[0]).toMatchObject({
      body: 'Somebody follows you now.',
      data: { follower_id: ada.id },
    })
    const of = (table: string, column: string) =>
      service.sqlite.query(`SELECT 1 FROM ${table} WHERE ${column} = ?`).all(ada.id).length
    const left = [
      of('follows', 'host_id'),
      of('follows', 'follower_id'),
      of('audiences', 'host_id'),
      of('one_time_tokens', 'user_id'),
      of('sessions', 'user_id'),
      of('push_tokens', 'user_id'),
      of('notifications', 'user_id'),
      of('notification_preferences', 'user_id'),
    ]
    expect(left).toEqual(left.map(() => 0))
    const jobs = service.sqlite
      .query('SELECT 1 FROM outbox WHERE payload LIKE ?')
      .all(`%${ada.id}%`)
    expect(jobs).toEqual([])
    // Messages stay, without the name.
    const { body } = await service.call('GET', '/v1/chat/conversations', { token: bob.token })
    expect(body.data[0].participant.display_name).toBe('Deleted user')
  })

  test('ends the requests that are running, which leave nothing of the person', async () => {
    await using full = await startFull()
    const { service, ada, root } = full
    const running: [method: string, path: string, body?: object][] = [
      ['PATCH', '/v1/users/me', { display_name: 'Ada Lovelace' }],
      ['PUT', '/v1/users/me/quiet-hours', { from: '01:00', to: '02:00', time_zone: 'Asia/Baku' }],
      ['PUT', '/v1/notifications/preferences', { 'custom.of_ada': { push: false } }],
      ['POST', '/v1/notifications/push-tokens', { token: 'another of ada', platform: 'ios' }],
      ['POST', '/v1/auth/verify-email/resend'],
    ]
    // Each is authorized before the account is removed, and writes after it.
    const [gone, ...answers] = await Promise.all([
      service.callInProcess('DELETE', `/v1/admin/users/${ada.id}`, { token: root.token }),
      ...running.map(([method, path, body]) =>
        service.callInProcess(method, path, { token: ada.token, body }),
      ),
    ])
    expect([gone?.status, ...answers.map(({ status }) => status)]).toEqual([
      204, 401, 401, 401, 401, 401,
    ])
    const traces = ['Ada Lovelace', 'Asia/Baku', 'custom.of_ada', 'another of ada']
    expect(traces.flatMap((text) => placesOf(service, text))).toEqual([])
  })

  test('replaces addresses in the audit log by keyed hashes; rows of others cannot be changed', async () => {
    await using full = await startFull()
    const { service, ada, bob } = full
    const ips = (id: string) =>
      service.sqlite
        .query<{ ip: string }, [string]>('SELECT DISTINCT ip FROM audit_log WHERE actor_id = ?')
        .all(id)
        .map(({ ip }) => ip)
    expect(ips(ada.id)).toEqual(['unknown'])
    await leave(full, ada)
    expect(ips(ada.id)).toEqual([expect.stringMatching(/^[\w-]{43}$/)])
    expect(ips(bob.id)).toEqual(['unknown'])
    const change = (id: string) =>
      service.sqlite.run('UPDATE audit_log SET ip = NULL WHERE actor_id = ?', [id])
    expect(() => change(bob.id)).toThrow('append-only')
  })

  test('changes nothing in a second run', async () => {
    await using full = await startFull()
    const { service, ada } = full
    const ips = () =>
      service.sqlite.query('SELECT id, ip FROM audit_log WHERE actor_id = ?').values(ada.id)
    await leave(full, ada)
    const once = ips()
    service.sqlite.run(
      "INSERT INTO outbox (id, kind, payload, created_at, run_at) VALUES ('again', 'erasure', ?, 0, 0)",
      [JSON.stringify({ user_id: ada.id })],
    )
    // Adds a job, which wakes the queue.
    await service.register('eve')
    await waitFor(() => {
      full.clock.advance(500)
      return service.sqlite.query("SELECT 1 FROM outbox WHERE id = 'again'").all().length === 0
    }, 'the end of the second erasure')
    expect(ips()).toEqual(once)
  })

  test('removes the name from call notifications; announcements stay', async () => {
    await using full = await startFull()
    const { service, ada, bob } = full
    const { token } = await service.issueKey()
    const notify = (body: object) =>
      service.call('POST', '/v1/service/notifications', {
        token,
        body: { user_id: ada.id, ...body },
      })
    const data = { guest_id: bob.id, guest_name: 'bob' }
    await notify({ type: 'call_missed', title: 'bob called', data })
    await notify({ type: 'broadcast', title: 'News', body: 'For all.', data })
    const parties = { guest_id: ada.id, host_id: bob.id }
    await notify({ type: 'call_missed', title: 'bob', data: { ...parties, host_name: 'bob' } })
    await leave(full, bob)
    const { body } = await service.call('GET', '/v1/notifications', { token: ada.token })
    expect(body.data.slice(0, 3)).toEqual([
      expect.objectContaining({ title: 'Missed call', data: parties }),
      expect.objectContaining({ title: 'News', body: 'For all.', data: { guest_id: bob.id } }),
      expect.objectContaining({ title: 'Missed call', data: { guest_id: bob.id } }),
    ])
  })

  test('keeps the name out of notifications that come after it', async () => {
    await using full = await startFull()
    const { service, ada, bob } = full
    const { token } = await service.issueKey()
    await leave(full, bob)
    const data = { follower_id: bob.id, follower_name: 'Roberto' }
    const event = { user_id: ada.id, type: 'follow_new', title: 'Roberto is here', data }
    await service.call('POST', '/v1/service/notifications', { token, body: event })
    const { body } = await service.call('GET', '/v1/notifications', { token: ada.token })
    expect(body.data[0]).toMatchObject({
      title: 'New follower',
      body: 'Somebody follows you now.',
      data: { follower_id: bob.id },
    })
    expect(placesOf(service, 'Roberto')).toEqual([])
  })

  test('removes the name from announcements, also while they arrive', async () => {
    await using full = await startFull()
    const { service, ada, root } = full
    addFollowers(service.sqlite, ada.id, 200)
    const data = { host_id: ada.id, host_name: 'Countess' }
    const body = { audience: 'all', title: 'Live', body: 'Now.', data }
    const call = (method: string, where: string, body?: object) =>
      service.call(method, where, { token: root.token, body })
    const { body: sent } = await call('POST', '/v1/admin/notifications', body)
    await leave(full, ada)
    const where = `/v1/admin/notifications/${sent.broadcast_id}`
    await waitFor(async () => (await call('GET', where)).body.status === 'completed')
    expect(placesOf(service, 'Countess')).toEqual([])
  })

  test('leaves nothing in the bytes of the database: freed pages are overwritten', async () => {
    await using full = await startFull()
    const { service, ada } = full
    const credentials = await addCredentials(full)
    const { body } = await exportOf(service, ada)
    expect(body.user).toMatchObject({ totp: true, external_id: 'crm-of-ada' })
    expect(body.former_addresses).toEqual([
      { email: 'ada@example.com', reserved_until: expect.any(String) },
    ])
    expect(JSON.stringify(body)).not.toContain(credentials[0])
    const traces = [...credentials, 'ada@example.com', 'device of ada', 'ada follows']
    const traced = async () => {
      service.sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
      const files = ['hostline.db', 'hostline.db-wal'].map((name) => join(service.directory, name))
      const bytes = await Promise.all(files.map((file) => Bun.file(file).bytes()))
      return traces.filter((text) => bytes.some((part) => Buffer.from(part).includes(text)))
    }
    expect(service.sqlite.query('PRAGMA secure_delete').values()).toEqual([[1]])
    expect(await traced()).toEqual(traces)
    await leave(full, ada)
    expect(await traced()).toEqual([])
  })
})
