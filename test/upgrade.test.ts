import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { damageOf } from './support/recount.ts'
import { startService } from './support/service.ts'

// One database of each release, created by scripts/fixture.ts.
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
})
