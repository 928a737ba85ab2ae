import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrations } from '../src/db/migrations.ts'
import { letOldShrink } from '../src/db/shrinking.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { damageOf } from './support/recount.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

// Databases of each release and of commits between them with other tables, created by scripts/fixture.ts.
const fixtures = join(import.meta.dir, 'fixtures')

const databases = readdirSync(fixtures).filter((name) => name.endsWith('.db.gz'))

test.each(databases)('the data of %s can be read and written', async (name) => {
  const data = Bun.gunzipSync(readFileSync(join(fixtures, name)))
  await using service = await startService({
    fill: async (directory) => writeFileSync(join(directory, 'hostline.db'), data),
  })
  const logged = service.logged.filter((line) => line.includes('migrating the database'))
  using fixture = Database.deserialize(data)
  const from = fixture.query<{ user_version: number }, []>('PRAGMA user_version').get()
  expect(logged.map((line) => JSON.parse(line).version)).toEqual(
    migrations.map((_, index) => index + 1).slice(from?.user_version),
  )
  const [root, carol] = [
    await service.login('root@example.com'),
    await service.login('carol@example.com'),
  ]
  const list = async (path: string) =>
    (await service.call('GET', path, { token: carol.token })).body.data
  const [conversation] = await list('/v1/chat/conversations')
  expect(conversation).toMatchObject({ unread_count: 1 })
  await service.say(carol, conversation.id, 'Thank you')
  expect(await list(`/v1/chat/conversations/${conversation.id}/messages`)).toMatchObject([
    { body: 'Thank you', sender_id: carol.id },
    { body: 'Welcome', sender_id: root.id },
  ])
  const [ticket] = await list('/v1/support/tickets')
  expect(ticket).toMatchObject({ subject: 'Refund', status: 'open' })
  expect(await list(`/v1/support/tickets/${ticket.id}/messages`)).toMatchObject([
    { body: 'Where is it?' },
  ])
  expect(await list('/v1/notifications')).toMatchObject([
    { type: 'follow_new', body: 'Root follows you now.' },
    { type: 'broadcast', body: 'For you.' },
  ])
  const token = root.token
  const desk = async (query: string) =>
    (await service.call('GET', `/v1/admin/support/${query}`, { token })).body
  const { data: waiting } = await desk('tickets?waiting=true')
  expect(waiting).toContainEqual(expect.objectContaining({ id: ticket.id }))
  expect((await desk('counts')).waiting).toBe(waiting.length)
  const found = (await desk('tickets?q=refund&waiting=true')).data
  expect(found).toContainEqual(expect.objectContaining({ id: ticket.id }))
  expect((await desk('tickets?q=refund&waiting=false')).data).not.toContainEqual(
    expect.objectContaining({ id: ticket.id }),
  )
  expect(damageOf(service.sqlite)).toEqual([])
  // The file can shrink.
  expect(service.sqlite.query('PRAGMA auto_vacuum').values()).toEqual([[2]])
})

test('a notification that the command of 0.1.0 queued arrives once', async () => {
  await using service = await startService({
    fill: async (directory) => {
      const path = join(directory, 'hostline.db')
      writeFileSync(path, Bun.gunzipSync(readFileSync(join(fixtures, '0.1.0.db.gz'))))
      using sqlite = new Database(path)
      sqlite.run(
        `INSERT INTO outbox (id, kind, payload, created_at, run_at)
         SELECT '01', 'notification', json_object('user_id', id, 'type', 'payout_failed',
           'body', 'Bank closed', 'data', json_object('amount', '5.00')), 0, 0
         FROM users WHERE email = 'carol@example.com'`,
      )
    },
  })
  const { token } = await service.login('carol@example.com')
  await waitFor(() => service.sqlite.query("SELECT 1 FROM outbox WHERE id = '01'").get() === null)
  const { body } = await service.call('GET', '/v1/notifications', { token })
  expect(body.data[0]).toMatchObject({ type: 'payout_failed', body: 'Bank closed' })
})

test('a large database of an older release is left to a restore, which lets its file shrink', async () => {
  using directory = temporaryDirectory()
  const at = (name: string) => join(directory.path, name)
  writeFileSync(at('old.db'), Bun.gunzipSync(readFileSync(join(fixtures, '0.1.0.db.gz'))))
  const modeOf = (path: string, change = (_: Database) => {}) => {
    using sqlite = new Database(path)
    change(sqlite)
    return sqlite.query('PRAGMA auto_vacuum').values()
  }
  expect(modeOf(at('old.db'), (sqlite) => letOldShrink(sqlite, 1))).toEqual([[0]])
  expect(await hostline(['restore', at('old.db')], at('new'))).toMatchObject({ exitCode: 0 })
  expect(modeOf(at('new/hostline.db'))).toEqual([[2]])
})
