import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { filesIn, upload } from './support/files.ts'
import { damageOf } from './support/recount.ts'
import { type Person, startService } from './support/service.ts'
import { watchRuns } from './support/statements.ts'
import { waitFor } from './support/wait.ts'

/** A spammer who wrote to two people, opened tickets and made a report, and an admin who answered. */
async function openSpam() {
  const clock = createTestClock()
  const service = await startService({ clock })
  const root = await service.registerAs('admin', 'root')
  const [spammer, ada, bob] = [
    await service.registerAs('host', 'spammer'),
    await service.register('ada'),
    await service.register('bob'),
  ]
  const as =
    ({ token }: Person) =>
    (method: string, path: string, body?: object) =>
      service.call(method, path, { token, body })
  const conversations = []
  for (const victim of [ada, bob]) {
    const id = await service.openConversation(spammer, victim)
    for (let n = 0; n < 120; n++) await service.say(spammer, id, `buy ${n}`)
    await service.say(victim, id, 'No, thank you.')
    conversations.push(id)
  }
  const file = await upload(service, spammer, 'spam')
  for (const subject of ['casino', 'casino again']) {
    const { body } = await as(spammer)('POST', '/v1/support/tickets', { subject, body: 'win' })
    const { body: attached } = await upload(service, root, 'terms')
    const messages = `/v1/admin/support/tickets/${body.id}/messages`
    await as(root)('POST', messages, {
      body: 'No.',
      attachments: [{ file_url: attached.file_url }],
    })
    const { body: noted } = await upload(service, root, 'proof')
    const note = { body: 'spam', attachments: [{ file_url: noted.file_url }] }
    await as(root)('POST', `/v1/admin/support/tickets/${body.id}/notes`, note)
  }
  await as(ada)('POST', '/v1/support/tickets', { subject: 'Refund', body: 'casino' })
  await as(spammer)('POST', '/v1/chat/broadcast', { body: 'casino' })
  await as(spammer)('POST', '/v1/reports', { user_id: ada.id, reason: 'other', text: 'x' })
  await as(ada)('POST', '/v1/reports', { user_id: spammer.id, reason: 'spam' })
  const purged = () =>
    waitFor(() => {
      clock.advance(500)
      const query = "SELECT details FROM audit_log WHERE action = 'user_purged'"
      const details = service.sqlite.query<{ details: string }, []>(query).get()?.details
      return details === undefined ? undefined : JSON.parse(details)
    })
  const dispose = () => service[Symbol.asyncDispose]()
  return {
    clock,
    service,
    root,
    spammer,
    ada,
    bob,
    as,
    conversations,
    file,
    purged,
    [Symbol.asyncDispose]: dispose,
  }
}

test('a purge removes the account with its messages, files and tickets and its reports, and says how much', async () => {
  await using it = await openSpam()
  const { service, root, spammer, ada, as, conversations, purged } = it
  const path = `/v1/chat/conversations/${conversations[0]}/messages`
  const [, newest] = (await as(spammer)('GET', path)).body.data
  expect((await as(spammer)('DELETE', `${path}/${newest.id}`)).status).toBe(204)
  const written = { messages: 240, broadcasts: 1, files: 1, tickets: 2, reports: 1 }
  const count = () => as(root)('GET', `/v1/admin/users/${spammer.id}/purge`)
  expect(await count()).toMatchObject({ status: 200, body: written })
  const answer = await as(root)('POST', `/v1/admin/users/${spammer.id}/purge`)
  expect([answer.status, answer.body]).toEqual([202, { user_id: spammer.id, status: 'processing' }])
  expect(await purged()).toEqual({
    messages: '240',
    broadcasts: '1',
    files: '1',
    tickets: '2',
    reports: '1',
  })
  const nothing = { messages: 0, broadcasts: 0, files: 0, tickets: 0, reports: 0 }
  expect((await count()).body).toEqual(nothing)
  expect(service.sqlite.query('SELECT body FROM broadcasts').values()).toEqual([['']])
  // For reports, too.
  expect(service.sqlite.query('SELECT count(*) FROM removed_messages').values()).toEqual([[0]])
  for (const id of conversations) {
    const { body } = await as(id === conversations[0] ? ada : it.bob)(
      'GET',
      `/v1/chat/conversations/${id}/messages?per_page=100&page=1`,
    )
    expect(body.pagination.total).toBe(121)
    expect([...new Set(body.data.map((one: { body: string }) => one.body))]).toEqual([
      'No, thank you.',
      '',
    ])
  }
  const { body: inbox } = await as(ada)('GET', '/v1/chat/conversations')
  expect(inbox.data[0].unread_count).toBe(0)
  const desk = '/v1/admin/support'
  const { body: found } = await as(root)('GET', `${desk}/tickets?q=casino`)
  expect(found.data.map(({ subject }: { subject: string }) => subject)).toEqual(['Refund'])
  const { body: counts } = await as(root)('GET', `${desk}/counts`)
  expect(counts.waiting).toBe(1)
  const { body: reports } = await as(root)('GET', '/v1/admin/reports')
  expect(reports.data).toMatchObject([{ reason: 'spam' }])
  expect(service.sqlite.query('SELECT count(*) FROM ticket_messages').values()).toEqual([[1]])
  const indexed = service.sqlite.query(
    'SELECT rowid FROM ticket_search WHERE ticket_search MATCH ?',
  )
  expect([indexed.values('casino').length, indexed.values('spam').length]).toEqual([1, 0])
  expect(service.sqlite.query('SELECT * FROM file_uses').values()).toEqual([])
  expect(damageOf(service.sqlite)).toEqual([])
  await waitFor(() => {
    it.clock.advance(500)
    return !filesIn(service).includes(it.file.body.id)
  })
  const next = await as(ada)('POST', '/v1/support/tickets', { subject: 'More', body: 'b' })
  expect(next.status).toBe(201)
})

test('a purge that was killed says how much it removed in all, once', async () => {
  using directory = temporaryDirectory()
  // What a kill would leave: the files as they are in the middle of the job.
  const dataDir = join(directory.path, 'data')
  const messages = 300
  await using before = await startService()
  const { token } = await before.registerAs('admin')
  const { a, conversationId } = await before.pair()
  for (let n = 0; n < messages; n++) await before.say(a, conversationId, `buy ${n}`)
  const path = `/v1/admin/users/${a.id}/purge`
  expect((await before.call('POST', path, { token })).status).toBe(202)
  const left = before.sqlite.query<{ n: number }, []>(
    "SELECT count(*) AS n FROM messages WHERE body <> ''",
  )
  await waitFor(() => left.get()?.n !== messages, 'the beginning')
  const filter = (name: string) => !name.endsWith('.sock')
  cpSync(before.directory, dataDir, { recursive: true, filter })
  await using after = await startService({ dataDir })
  const job = after.sqlite.query("SELECT 1 FROM outbox WHERE kind = 'erasure'")
  await waitFor(() => job.get() === null, 'the end')
  const recorded = after.sqlite.query<{ n: string }, []>(
    "SELECT details ->> 'messages' AS n FROM audit_log WHERE action = 'user_purged'",
  )
  expect(recorded.all()).toEqual([{ n: String(messages) }])
})

test('a purge whose job is discarded removes no more, and says how much it removed', async () => {
  const { promise: discarded, resolve: goOn } = Promise.withResolvers<void>()
  let isBegun = () => false
  const sync = async (real: () => Promise<void>) => {
    if (isBegun()) await discarded
    await real()
  }
  await using service = await startService({ sync })
  const { token } = await service.registerAs('admin')
  const { a, conversationId } = await service.pair()
  for (let n = 0; n < 250; n++) await service.say(a, conversationId, `buy ${n}`)
  const left = service.sqlite.query<{ n: number }, []>(
    "SELECT count(*) AS n FROM messages WHERE body <> ''",
  )
  isBegun = () => left.get()?.n === 150
  await service.call('POST', `/v1/admin/users/${a.id}/purge`, { token })
  const job = service.sqlite.query<{ id: string }, []>(
    "SELECT id FROM outbox WHERE kind = 'erasure'",
  )
  await waitFor(isBegun)
  const answer = service.call('DELETE', `/v1/admin/jobs/${job.get()?.id}`, { token })
  await waitFor(() => job.get() === null)
  goOn()
  expect((await answer).status).toBe(204)
  const recorded = service.sqlite.query<{ n: string }, []>(
    "SELECT details ->> 'messages' AS n FROM audit_log WHERE action = 'user_purged'",
  )
  expect(await waitFor(() => recorded.get()?.n)).toBe('100')
  expect(left.get()?.n).toBe(150)
  const rows = service.sqlite.query('SELECT 1 FROM sessions WHERE user_id = ?')
  await waitFor(() => rows.get(a.id) === null)
})

test('files that only a report of the purged account has kept are removed with it', async () => {
  await using it = await openSpam()
  const { service, root, spammer, ada, as, conversations, purged } = it
  const { body: photo } = await upload(service, ada, 'photo')
  const path = `/v1/chat/conversations/${conversations[0]}/messages`
  const said = await as(ada)('POST', path, { type: 'file', body: '', file_url: photo.file_url })
  const report = { message_id: said.body.id, reason: 'spam' }
  expect((await as(spammer)('POST', '/v1/reports', report)).status).toBe(201)
  await as(ada)('DELETE', `${path}/${said.body.id}`)
  await as(root)('POST', `/v1/admin/users/${spammer.id}/purge`)
  await purged()
  expect(filesIn(service)).toContain(photo.id)
  it.clock.advance(31 * 24 * 3_600_000)
  await waitFor(() => {
    it.clock.advance(600_000)
    return !filesIn(service).includes(photo.id)
  })
})

test('what a removed account left can be purged, by command as well; the last admin cannot', async () => {
  await using it = await openSpam()
  const { service, root, spammer, as, purged } = it
  const counted = await hostline(
    ['user', 'purge', 'spammer@example.com', '--dry-run'],
    service.directory,
  )
  expect(counted.out.split('\n').map((line) => line.split(/\s+/))).toContainEqual([
    'messages',
    '240',
  ])
  await as(root)('DELETE', `/v1/admin/users/${spammer.id}`)
  expect((await as(root)('POST', `/v1/admin/users/${spammer.id}/purge`)).status).toBe(202)
  expect(await purged()).toMatchObject({ messages: '240', tickets: '2' })
  const last = await hostline(['user', 'purge', 'root@example.com'], service.directory)
  expect(last).toMatchObject({ exitCode: 1, err: 'hostline: root@example.com is the last admin' })
  const bob = await hostline(['user', 'purge', 'bob@example.com'], service.directory)
  expect(bob).toMatchObject({
    exitCode: 0,
    out: expect.stringContaining('bob@example.com is removed'),
  })
  const unknown = await as(root)('POST', '/v1/admin/users/01ARZ3NDEKTSV4RRFFQ69G5FAV/purge')
  expect(unknown.status).toBe(404)
  const nobody = await as(root)('GET', '/v1/admin/users/01ARZ3NDEKTSV4RRFFQ69G5FAV/purge')
  expect(nobody.status).toBe(404)
})

test('the messages of others are passed over in parts', async () => {
  await using service = await startService()
  const { token } = await service.registerAs('admin')
  const [ada, bob] = [await service.register(), await service.register()]
  const id = await service.openConversation(ada, bob)
  let runs = 0
  watchRuns(() => runs++)
  const countRuns = async () => {
    runs = 0
    const { body } = await service.call('GET', `/v1/admin/users/${ada.id}/purge`, { token })
    expect(body.messages).toBe(0)
    return runs
  }
  // A timer of the service may run a statement meanwhile.
  const countFewest = async () => Math.min(...(await repeatedly(5, countRuns)))
  const before = await countFewest()
  service.sqlite.run(
    `WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 3000)
     INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, created_at)
     SELECT ?, n, 'message ' || n, ?, 'text', 'hi', 0 FROM many`,
    [id, bob.id],
  )
  expect(await countFewest()).toBe(before + 3)
})

test('the removal of an account deletes its rows a hundred at a time', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const root = await service.registerAs('admin')
  const [ada, other] = [await service.register(), await service.register()]
  const { sqlite } = service
  const many =
    'WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 1000)'
  const owned = [
    `INSERT INTO refresh_tokens SELECT 'token ' || n, id, 'parent', ${clock.now() * 2}, 0, NULL
       FROM sessions, many WHERE user_id = ?`,
    `INSERT INTO sessions (id, user_id, created_at, last_used_at)
       SELECT 'session ' || n, ?, 0, ${clock.now()} FROM many`,
    `INSERT INTO deliveries SELECT ?, n, 'push', 'message_push', 'sent', 1, NULL, ${clock.now()} FROM many`,
    `INSERT INTO notifications (user_id, id, type, title, body, data, in_app, created_at)
       SELECT ?, n, 'follow_new', '', '', '{}', 1, ${clock.now()} FROM many`,
  ]
  for (const insert of owned) sqlite.run(`${many} ${insert}`, [ada.id])
  sqlite.run('INSERT INTO follows VALUES (?, ?, 0)', [other.id, ada.id])
  const largest = watchChanges(sqlite)
  const path = `/v1/admin/users/${ada.id}`
  expect((await service.call('DELETE', path, { token: root.token })).status).toBe(204)
  const tables = ['refresh_tokens', 'sessions', 'deliveries', 'notifications', 'follows']
  const count = (table: string) => {
    const owner = table === 'follows' ? 'follower_id' : 'user_id'
    const isOwn =
      table === 'refresh_tokens'
        ? 'session_id NOT IN (SELECT id FROM sessions WHERE user_id <> ?)'
        : `${owner} = ?`
    return sqlite.query<{ n: number }, [string]>(
      `SELECT count(*) AS n FROM ${table} WHERE ${isOwn}`,
    )
  }
  await waitFor(() => {
    clock.advance(500)
    return tables.every((table) => count(table).get(ada.id)?.n === 0)
  })
  expect(largest()).toBeLessThan(300)
})

test('the removal of an account that a stop interrupts goes on after the next start', async () => {
  using directory = temporaryDirectory()
  const clock = createTestClock()
  const { promise: stopped, resolve: goOn } = Promise.withResolvers<void>()
  let isBegun = () => false
  const sync = async (real: () => Promise<void>) => {
    if (isBegun()) await stopped
    await real()
  }
  const options = { clock, dataDir: directory.path }
  await using before = await startService({ ...options, sync })
  const { id, token } = await before.register()
  before.sqlite.run(
    `WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 1000)
     INSERT INTO deliveries SELECT ?, n, 'push', 'message_push', 'sent', 1, NULL, ${clock.now()} FROM many`,
    [id],
  )
  const left = ({ sqlite }: typeof before) =>
    sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM deliveries').get()?.n ?? 0
  const body = { password: 'correct horse' }
  await before.call('DELETE', '/v1/users/me', { token, body })
  isBegun = () => left(before) < 1_000
  await waitFor(() => {
    clock.advance(500)
    return isBegun()
  })
  const stopping = before.stop()
  goOn()
  await stopping
  await using after = await startService(options)
  expect(left(after)).toBeGreaterThan(0)
  await waitFor(() => {
    clock.advance(500)
    return left(after) === 0
  })
})

async function repeatedly<T>(times: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  while (results.length < times) results.push(await work())
  return results
}

/** @returns the function that reads the most rows that one statement has changed since */
function watchChanges(sqlite: Database): () => number {
  const total = sqlite.prepare<{ n: number }, []>('SELECT total_changes() AS n')
  let [before, most, isReading] = [total.get()?.n ?? 0, 0, false]
  watchRuns(() => {
    if (isReading) return
    isReading = true
    const { n = 0 } = total.get() ?? {}
    most = Math.max(most, n - before)
    before = n
    isReading = false
  })
  return () => most
}
