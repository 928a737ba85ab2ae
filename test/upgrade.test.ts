import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startService } from './support/service.ts'

// One database of each release, made by scripts/fixture.ts.
const fixtures = join(import.meta.dir, 'fixtures')

test.each(readdirSync(fixtures))('the data of %s can be read and written', async (name) => {
  const data = Bun.gunzipSync(readFileSync(join(fixtures, name)))
  await using service = await startService({
    fill: async (directory) => writeFileSync(join(directory, 'hostline.db'), data),
  })
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
  const pragmas = ['integrity_check', 'foreign_key_check']
  expect(pragmas.map((name) => service.sqlite.query(`PRAGMA ${name}`).all())).toEqual([
    [{ integrity_check: 'ok' }],
    [],
  ])
})
