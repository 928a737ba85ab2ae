import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { type Aging, createForgetting } from '../src/jobs/forgetting.ts'
import { firstIdAt } from '../src/lib/ids.ts'
import { createChatStore } from '../src/modules/chat/store.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { fetchFile, png, upload } from './support/files.ts'
import { damageOf } from './support/recount.ts'
import { messagesIn, replicas } from './support/replicas.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const day = 86_400_000
const minute = 60_000

const setDays = async (service: TestService, admin: Person, body: object) => {
  const { token } = admin
  expect((await service.call('PATCH', '/v1/admin/settings', { token, body })).status).toBe(200)
}
const runs = (service: TestService) =>
  service.sqlite
    .query<{ details: string }, []>(
      "SELECT details FROM audit_log WHERE action = 'retention_run' ORDER BY id",
    )
    .all()
    .map(({ details }) => JSON.parse(details))

/** The frames to a person from now on. */
function framesTo({ hub }: TestService, { id: userId }: Person) {
  const frames: unknown[] = []
  const send = (text: string) => frames.push(JSON.parse(text)) > 0
  const peer = { userId, sessionId: '', role: 'user', mayAdminister: false, send } as const
  const never = () => false
  hub.add({ ...peer, wants: () => true, isBehind: never, isExpired: never, drop() {}, close() {} })
  return frames
}

/** A service in which two people wrote three messages, the last of them on the 40th day. */
async function open(options: { listen?: boolean } = {}) {
  const clock = createTestClock()
  const service = await startService({ clock, ...options })
  const admin = await service.registerAs('admin')
  const people = await service.pair()
  const { a, b, conversationId } = people
  const emails = [admin, a, b].map(({ email }) => email)

  async function night() {
    const before = runs(service).length
    clock.advance(day)
    await waitFor(() => runs(service).length > before)
    await renew()
  }
  // Tokens expire within a day.
  async function renew() {
    const [root, ada, ben] = await Promise.all(emails.map(service.login))
    if (!root || !ada || !ben) throw new Error('no login')
    service.trust(root)
    Object.assign(admin, root)
    Object.assign(a, ada)
    Object.assign(b, ben)
  }
  async function wait(days: number) {
    clock.advance(days * day)
    await renew()
  }
  const get = async (who: Person, path: string) =>
    (await service.call('GET', path, { token: who.token })).body
  const path = `/v1/chat/conversations/${conversationId}`
  const texts = async (query = '', who = a) =>
    (await get(who, `${path}/messages?${query}`)).data.map(({ body }: { body: string }) => body)

  return {
    ...people,
    service,
    clock,
    admin,
    path,
    get,
    texts,
    night,
    wait,
    say: async (text: string, from = a): Promise<string> =>
      (await service.say(from, conversationId, text)).body.id,
    async [Symbol.asyncDispose]() {
      expect(damageOf(service.sqlite)).toEqual([])
      await service[Symbol.asyncDispose]()
    },
  }
}

/** Adds 500 long messages. */
function fill({ sqlite }: TestService, from: string, conversationId: string) {
  const now = Date.now()
  sqlite.run(
    `WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 501)
     INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, client_id, created_at)
     SELECT ?, n, ? || printf('%010d', n), ?, 'text', 'SECRET' || hex(randomblob(8000)), n, ? FROM numbers`,
    [conversationId, firstIdAt(now).slice(0, 16), from, now],
  )
  sqlite.run('UPDATE conversations SET last_seq = 501 WHERE id = ?', [conversationId])
  for (const table of ['participants', 'inboxes']) {
    sqlite.run(`UPDATE ${table} SET unread_count = 501 WHERE user_id <> ? AND unread_count = 1`, [
      from,
    ])
  }
}

describe('messages older than message_retention_days', () => {
  test.each([365, 0])('stay as soon as the setting is %d during a run', async (days) => {
    await using it = await open()
    await it.say('one')
    fill(it.service, it.a.id, it.conversationId)
    await it.wait(40)
    await it.say('new')
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    const kept = () =>
      it.service.sqlite.query<{ n: number }, []>('SELECT count(*) n FROM messages').get()?.n ?? 0
    const at = new Date(it.clock.now() + day)
    await it.wait((at.setHours(3, 0, 0, 0) - minute - it.clock.now()) / day)
    it.clock.advance(2 * minute)
    await waitFor(() => kept() < 502)
    await setDays(it.service, it.admin, { message_retention_days: days })
    const left = kept()
    await waitFor(() => runs(it.service).length === 1)
    expect(left).toBeGreaterThan(0)
    expect(kept()).toBe(left)
  })

  test('are deleted in the night; lists, cursors, catch-up and counters begin at first_seq', async () => {
    await using it = await open()
    const first = await it.say('one')
    await it.say('two')
    await it.wait(40)
    for (const text of ['three', 'four', 'five']) await it.say(text)
    const { cursor } = (await it.get(it.a, `${it.path}/messages?limit=2`)).pagination
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    expect((await it.get(it.b, it.path)).unread_count).toBe(5)
    await it.night()

    expect(await it.get(it.b, it.path)).toMatchObject({ first_seq: 3, unread_count: 3 })
    expect((await it.get(it.b, '/v1/chat/unread-count')).count).toBe(3)
    expect(await it.texts()).toEqual(['five', 'four', 'three'])
    expect(await it.texts(`limit=2&cursor=${cursor}`)).toEqual(['three'])
    const page = await it.get(it.a, `${it.path}/messages?page=2&per_page=2`)
    expect([page.pagination.total, page.data.length]).toEqual([3, 1])
    expect((await it.get(it.a, `${it.path}/messages?page=3&per_page=2`)).data).toEqual([])
    const missed = await it.get(it.b, `/v1/chat/messages?since=${first}`)
    expect(missed.data.map(({ body }: { body: string }) => body)).toEqual(['three', 'four', 'five'])
    const read = { token: it.b.token, body: { message_id: first } }
    expect((await it.service.call('PUT', `${it.path}/read`, read)).status).toBe(400)
    expect(runs(it.service)).toEqual([{ messages: '2', tickets: '0' }])
  })

  test('that were read, removed or silent do not lower the count of unread ones', async () => {
    await using it = await open()
    const { token } = await it.service.issueKey(['messages'])
    await it.say('read')
    await it.service.call('PUT', `${it.path}/read`, { token: it.b.token })
    const removed = await it.say('removed')
    await it.service.call('DELETE', `${it.path}/messages/${removed}`, { token: it.a.token })
    const notice = { user_ids: [it.a.id, it.b.id], body: 'silent' }
    await it.service.call('POST', '/v1/service/messages', { token, body: notice })
    await it.wait(40)
    await it.say('one')
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    await it.night()
    expect(await it.get(it.b, it.path)).toMatchObject({ first_seq: 4, unread_count: 1 })
  })

  test('leave an empty conversation in the list, with files, removed texts and idempotency keys gone', async () => {
    await using it = await open()
    const { token } = it.a
    const file = await upload(it.service, it.a, png, { type: 'image/png' })
    const body = { ...file.body, body: 'see', type: 'file', client_id: 'key' }
    const sent = await it.service.call('POST', `${it.path}/messages`, { token, body })
    expect(sent.status).toBe(201)
    const other = await upload(it.service, it.a, png, { type: 'image/png' })
    const alsoSent = { ...other.body, body: 'removed', type: 'file' }
    const second = await it.service.call('POST', `${it.path}/messages`, { token, body: alsoSent })
    const { updated_at } = await it.get(it.b, it.path)
    await it.service.call('DELETE', `${it.path}/messages/${second.body.id}`, { token })
    const frames = framesTo(it.service, it.a)
    await setDays(it.service, it.admin, { message_retention_days: 1 })
    await it.night()
    await it.night()

    const [item] = (await it.get(it.b, '/v1/chat/conversations')).data
    expect(item).toMatchObject({ last_message: null, unread_count: 0, first_seq: 3, updated_at })
    // The sender had nothing unread.
    const conversation = expect.objectContaining({ last_message: null })
    expect(frames).toContainEqual({ type: 'conversation_updated', conversation })
    expect(await it.texts()).toEqual([])
    for (const table of ['messages', 'removed_messages', 'file_uses']) {
      expect(it.service.sqlite.query(`SELECT * FROM ${table}`).all()).toEqual([])
    }
    const again = { token: it.a.token, body: { body: 'new', client_id: 'key' } }
    expect((await it.service.call('POST', `${it.path}/messages`, again)).status).toBe(201)
    expect(await it.get(it.b, it.path)).toMatchObject({ unread_count: 1, first_seq: 3 })
    it.clock.advance(2 * day)
    await waitFor(async () => (await fetchFile(it.service, file.body.file_url)).status === 404)
  })

  test('are no position of a socket that opens afterwards: it reconnects without a resync', async () => {
    await using it = await open({ listen: true })
    await it.say('one')
    await setDays(it.service, it.admin, { message_retention_days: 1 })
    await it.night()
    await it.night()
    const first = await it.service.connect(it.b, '&events=ready')
    const { newest_message_id } = await first.next('ready')
    const again = await it.service.connect(it.b, `&since=${newest_message_id}`)
    await again.settled()
    expect(again.frames).toEqual([])
  })

  test('stay from a reported one on, until the report is resolved', async () => {
    await using it = await open()
    await it.say('one')
    const message_id = await it.say('two')
    await it.say('three')
    // More than a part of the run.
    for (let n = 0; n < 10; n++) await it.say('later')
    const body = { message_id, reason: 'fraud' }
    const report = await it.service.call('POST', '/v1/reports', { token: it.b.token, body })
    await it.wait(40)
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    const survey = await it.get(it.admin, '/v1/admin/retention')
    expect(survey.messages).toEqual({ days: 30, due: 1, held: 12 })
    await it.night()
    expect((await it.texts()).slice(-3)).toEqual(['later', 'three', 'two'])
    expect((await it.get(it.b, it.path)).first_seq).toBe(2)

    const change = { token: it.admin.token, body: { status: 'resolved' } }
    await it.service.call('PATCH', `/v1/admin/reports/${report.body.id}`, change)
    await it.night()
    expect(await it.texts()).toEqual([])
  })

  test('are missing in exports, in which all others are', async () => {
    await using it = await open()
    for (let n = 0; n < 230; n++) await it.say('old')
    await it.wait(40)
    await it.say('new')
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    await it.night()
    const { messages } = await it.get(it.b, '/v1/users/me/export')
    expect(messages.map(({ body }: { body: string }) => body)).toEqual(['new'])
  })

  test('that go during an export leave all others in it', async () => {
    await using it = await open()
    await Promise.all(Array.from({ length: 410 }, () => it.say('old')))
    await it.wait(40)
    await it.say('new')
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    const rows = createChatStore(drizzle(it.service.sqlite)).eachOf(it.b.id)
    rows.next()
    await it.night()
    expect([...rows].at(-1)?.body).toBe('new')
  })

  test('include notices and copies of broadcasts, and the broadcast itself', async () => {
    await using it = await open()
    const host = await it.service.registerAs('host')
    const { token } = await it.service.issueKey()
    await it.service.call('PUT', `/v1/service/follows/${host.id}/${it.b.id}`, { token })
    for (const body of ['to all', 'given up']) {
      await it.service.call('POST', '/v1/chat/broadcast', { token: host.token, body: { body } })
    }
    // An admin has discarded its job.
    it.service.sqlite.run("UPDATE broadcasts SET completed_at = NULL WHERE body = 'given up'")
    const notice = { user_ids: [it.a.id, it.b.id], body: 'moved', unread: true }
    await it.service.call('POST', '/v1/service/messages', { token, body: notice })
    expect((await it.get(it.b, '/v1/chat/unread-count')).count).toBe(3)
    await it.wait(40)
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    await it.night()
    for (const table of ['messages', 'broadcasts']) {
      expect(it.service.sqlite.query(`SELECT * FROM ${table}`).all()).toEqual([])
    }
    expect((await it.get(it.b, '/v1/chat/unread-count')).count).toBe(0)
  })

  test('in any number of conversations go in one run, and the rest is exactly what is younger', async () => {
    await using it = await open()
    const others = await Promise.all(Array.from({ length: 30 }, () => it.service.register()))
    const ids = await Promise.all(others.map((other) => it.service.openConversation(it.a, other)))
    for (const id of ids) await it.service.say(it.a, id, 'old')
    await it.wait(40)
    for (const id of ids.slice(0, 10)) await it.service.say(it.a, id, 'new')
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    await it.night()
    const left = it.service.sqlite.query('SELECT DISTINCT body FROM messages').values()
    expect(left).toEqual([['new']])
    expect(runs(it.service)).toEqual([{ messages: '30', tickets: '0' }])
  })
})

describe('tickets closed for longer than ticket_retention_days', () => {
  test('are deleted with their messages, notes, history, search rows and files; younger and open ones stay', async () => {
    await using it = await open()
    const write = async (subject: string, files: string[] = []) => {
      const attachments = files.map((file_url) => ({ file_url }))
      const body = { subject, body: `about ${subject}`, category: 'other', attachments }
      const options = { token: it.a.token, body }
      return (await it.service.call('POST', '/v1/support/tickets', options)).body.id
    }
    const close = (id: string) =>
      it.service.call('POST', `/v1/support/tickets/${id}/close`, { token: it.a.token })
    const list = async (query = '') =>
      (await it.get(it.a, `/v1/support/tickets?${query}`)).data.map(
        ({ subject }: { subject: string }) => subject,
      )
    const file = await upload(it.service, it.a, png, { type: 'image/png' })
    await write('open')
    const old = await write('old', [file.body.file_url])
    const young = await write('young')
    const answers = () =>
      it.service.sqlite.query("SELECT title FROM notifications WHERE type = 'support_reply'").all()
        .length
    const answer = { token: it.admin.token, body: { body: 'An answer' } }
    await it.service.call('POST', `/v1/admin/support/tickets/${old}/messages`, answer)
    const { body: noted } = await upload(it.service, it.admin, png, { type: 'image/png' })
    const attachments = [{ file_url: noted.file_url }]
    const note = { token: it.admin.token, body: { body: 'A note', attachments } }
    await it.service.call('POST', `/v1/admin/support/tickets/${old}/notes`, note)
    const indexed = it.service.sqlite.query(
      'SELECT rowid FROM ticket_search WHERE ticket_search MATCH ?',
    )
    expect(indexed.values('note')).toHaveLength(1)
    expect((await close(old)).status).toBe(200)
    expect(answers()).toBe(1)
    await it.wait(40)
    await close(young)
    await setDays(it.service, it.admin, { ticket_retention_days: 30 })
    const { tickets } = await it.get(it.admin, '/v1/admin/retention')
    expect(tickets).toEqual({ days: 30, due: 1, held: 0 })
    const frames = framesTo(it.service, it.a)
    await it.night()

    expect(await list()).toEqual(['young', 'open'])
    expect(await list('page=2&per_page=1')).toEqual(['open'])
    const first = await it.get(it.a, '/v1/support/tickets?limit=1')
    expect(await list(`limit=1&cursor=${first.pagination.cursor}`)).toEqual(['open'])
    expect((await it.get(it.admin, '/v1/admin/support/tickets?q=old')).data).toEqual([])
    expect(indexed.values('note')).toEqual([])
    expect(it.service.sqlite.query('SELECT * FROM file_uses').all()).toEqual([])
    expect(answers()).toBe(0)
    expect(frames).toContainEqual({ type: 'notifications_read', unread_count: 0 })
    expect(runs(it.service)).toEqual([{ messages: '0', tickets: '1' }])
    await write('next')
    expect(await list()).toEqual(['next', 'young', 'open'])
  })
})

describe('a run', () => {
  test('waits for 03:00 after a setting was changed, and comes once a day', async () => {
    await using it = await open()
    await it.say('one')
    await it.wait(40)
    // A run would be over after them.
    const someWrites = async () => {
      for (let n = 0; n < 5; n++) await it.service.login(it.a.email)
    }
    const threeToday = new Date(it.clock.now())
    threeToday.setHours(3, 0, 0, 0)
    // Days with a change of the clock have 23 or 25 hours.
    const threeIn = (days: number) => new Date(threeToday).setDate(threeToday.getDate() + days)
    it.clock.advance(threeIn(1) + 12 * 60 * minute - it.clock.now())
    const { token } = await it.service.login(it.admin.email)
    it.service.trust(it.admin)
    await setDays(it.service, { ...it.admin, token }, { message_retention_days: 30 })
    const { body } = await it.service.call('GET', '/v1/admin/retention', { token })
    const next = threeIn(2)
    expect(body).toMatchObject({ last_run_at: null, next_run_at: new Date(next).toISOString() })
    it.clock.advance(next - 60 * minute - it.clock.now())
    await someWrites()
    expect(runs(it.service)).toEqual([])
    it.clock.advance(2 * 60 * minute)
    await waitFor(() => runs(it.service).length === 1)
    it.clock.advance(12 * 60 * minute)
    await someWrites()
    expect(runs(it.service)).toHaveLength(1)
  })

  test('that was missed is made up for after a start, also when another setting was changed', async () => {
    using directory = temporaryDirectory()
    const clock = createTestClock()
    const options = { clock, dataDir: directory.path }
    const before = await startService(options)
    const admin = await before.registerAs('admin')
    const { a, conversationId } = await before.pair()
    await before.say(a, conversationId, 'one')
    await setDays(before, admin, { message_retention_days: 30 })
    await before.stop()
    clock.advance(40 * day)
    await using service = await startService(options)
    const again = await service.login(admin.email)
    service.trust(again)
    const body = { accent: '#123456' }
    await service.call('PATCH', '/v1/admin/settings', { token: again.token, body })
    clock.advance(minute)
    await waitFor(() => runs(service).length === 1)
    expect(runs(service)).toEqual([{ messages: '1', tickets: '0' }])
  })

  test('that a stop interrupts is not recorded, so that it is repeated', async () => {
    const clock = createTestClock()
    const recorded: string[] = []
    const parts = {
      settings: { get: () => 30 },
      write: async (work: () => unknown) => work(),
      audit: {
        findLatest: () => undefined,
        record: (row: { action: string }) => recorded.push(row.action),
      },
      clock,
      log: { info() {}, warn() {} },
      orm: { $client: new Database(':memory:') },
    }
    let isStopping = true
    const stopDuring: Aging['forget'] = () => {
      if (isStopping) stop()
      return undefined
    }
    const aging = { forget: stopDuring, survey: () => [] }
    const start = () =>
      createForgetting(parts as never, { messages: aging, tickets: aging }).start()
    let stop = start()
    clock.advance(minute)
    for (let n = 0; n < 10; n++) await new Promise(setImmediate)
    expect(recorded).toEqual([])
    isStopping = false
    stop = start()
    clock.advance(minute)
    await waitFor(() => recorded.length === 1)
    stop()
  })

  test('comes also after one of a time when the clock was ahead', async () => {
    await using it = await open()
    await setDays(it.service, it.admin, { message_retention_days: 365 })
    it.clock.advance(30 * day)
    await waitFor(() => runs(it.service).length === 1)
    it.clock.setBack(20 * day)
    it.clock.advance(day)
    await waitFor(() => {
      it.clock.advance(minute)
      return runs(it.service).length === 2
    })
  })

  test('comes also after a change of a time when the clock was ahead', async () => {
    await using it = await open()
    it.clock.advance(30 * day)
    const { token } = await it.service.login(it.admin.email)
    it.service.trust(it.admin)
    await setDays(it.service, { ...it.admin, token }, { message_retention_days: 365 })
    it.clock.setBack(20 * day)
    it.clock.advance(day)
    await waitFor(() => runs(it.service).length === 1)
  })

  test('comes once a day also around the night in which 03:00 is skipped', async () => {
    const { TZ: zone = 'UTC' } = process.env
    using atEnd = new DisposableStack()
    atEnd.defer(() => Object.assign(process.env, { TZ: zone }))
    Object.assign(process.env, { TZ: 'Europe/Helsinki' })
    const clock = createTestClock(Date.parse('2026-03-27T12:00:00Z'))
    const ran: string[] = []
    const parts = {
      settings: { get: () => 30 },
      write: async (work: () => unknown) => work(),
      audit: {
        findLatest: (action: string) =>
          action === 'retention_run' && { at: Date.parse(ran.at(-1) ?? '2026-03-27T01:00:00Z') },
        record: () => ran.push(new Date(clock.now()).toISOString()),
      },
      clock,
      log: { info() {}, warn() {} },
      orm: { $client: new Database(':memory:') },
    }
    const aging = { forget: () => undefined, survey: () => [] }
    const stop = createForgetting(parts as never, { messages: aging, tickets: aging }).start()
    for (let n = 0; n < 72; n++) {
      clock.advance(60 * minute)
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    }
    stop()
    expect(ran).toEqual([
      '2026-03-28T01:00:00.000Z',
      '2026-03-29T01:00:00.000Z',
      '2026-03-30T00:00:00.000Z',
    ])
  })

  test('is foretold by hostline retention --dry-run, which deletes nothing', async () => {
    await using it = await open()
    const run = (...args: string[]) => hostline(['retention', ...args], it.service.directory)
    await it.say('one')
    await it.wait(40)
    expect((await run('--dry-run')).out).toContain('messages: kept for ever\n')
    await setDays(it.service, it.admin, { message_retention_days: 30 })
    const { exitCode, out } = await run('--dry-run')
    expect(exitCode).toBe(0)
    expect(out).toContain('messages: 1 of more than 30 days would be deleted, reports keep 0\n')
    expect(out).toMatch(/last run: never\nnext run: 20\d\d-/)
    expect(await it.texts()).toEqual(['one'])
    expect((await run()).exitCode).toBe(2)
  })
})

describe('the file of the database', () => {
  const fileOf = (directory: string) => join(directory, 'hostline.db')
  const megabytesOf = (directory: string) => statSync(fileOf(directory)).size / 1e6

  testAtLength('becomes smaller after a run, also in replica and backup', async () => {
    await using place = await replicas()
    const clock = createTestClock()
    const environment = place.environmentOf({})
    const dataDir = place.directory('first')
    await using service = await startService({ clock, dataDir, listen: true, environment })
    const admin = await service.registerAs('admin')
    const { a, conversationId } = await service.pair()
    await service.say(a, conversationId, 'one')
    fill(service, a.id, conversationId)
    await setDays(service, admin, { message_retention_days: 30 })
    const checkpoint = () => {
      using other = new Database(fileOf(dataDir))
      other.run('PRAGMA wal_checkpoint(PASSIVE)')
      return megabytesOf(dataDir)
    }
    // Another checkpoint may be under way.
    await waitFor(() => checkpoint() > 8, 'the file to grow')
    clock.advance(40 * day)
    await waitFor(() => runs(service).length === 1)
    await waitFor(() => checkpoint() < 5.5, 'the file to shrink')
    expect(readFileSync(fileOf(dataDir)).includes('SECRET')).toBe(false)
    await service.say(await service.login(a.email), conversationId, 'two')
    expect(damageOf(service.sqlite)).toEqual([])

    const copy = join(place.directory('first'), 'copy.db')
    expect(await hostline(['backup', copy], dataDir)).toMatchObject({ exitCode: 0 })
    const backup = place.directory('backup')
    expect(await hostline(['restore', copy], backup)).toMatchObject({ exitCode: 0 })
    await place.has(['two'])
    const { path: replica } = await place.restored()
    for (const directory of [backup, replica]) {
      expect(messagesIn(directory)).toEqual(['two'])
      expect(megabytesOf(directory)).toBeLessThan(5.5)
    }
  })
})
