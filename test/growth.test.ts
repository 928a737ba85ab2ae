import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { join } from 'node:path'
import { generate } from '../bench/growth/generate.ts'
import { isScope, scopes } from '../bench/growth/scopes.ts'
import { startSubject } from '../bench/growth/subject.ts'
import { databaseFile } from '../src/db/open.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'

testAtLength('a generated database can be served', async () => {
  using directory = temporaryDirectory()
  const landmarks = await generate(directory.path, 0.002, 'chat')
  const { bigConversation, people } = landmarks
  const [ada = '', bob = '', cleo = ''] = people
  const subject = await startSubject(directory.path, landmarks)
  using sqlite = new Database(join(directory.path, databaseFile), { readonly: true })
  const count = (rows: string, ...values: string[]) =>
    sqlite.query(`SELECT count(*) FROM ${rows}`).values(...values)[0]?.[0] as number
  try {
    await subject.logIn()

    const inbox = await subject.read('cleo', '/v1/chat/conversations')
    expect(inbox.pagination.total).toBe(count('participants WHERE user_id = ?', cleo))
    for (const { id, unread_count } of inbox.data) {
      const received = 'messages WHERE conversation_id = ? AND sender_id <> ?'
      expect(unread_count).toBe(count(received, id, cleo)) // she never read any
    }
    const path = `/v1/chat/conversations/${bigConversation}/messages`
    const page = await subject.read('ada', `${path}?page=2&per_page=30`)
    expect(page.data).toHaveLength(30)
    expect(page.pagination.total).toBe(count('messages WHERE conversation_id = ?', bigConversation))
    expect(count('messages WHERE sender_id IN (?, ?)', ada, bob)).toBeGreaterThan(400)
  } finally {
    await subject.stop()
  }
})

testAtLength.each(Object.keys(scopes).filter(isScope))(
  '%s: each measured operation works',
  async (scope) => {
    using directory = temporaryDirectory()
    const subject = await startSubject(directory.path, await generate(directory.path, 0.002, scope))
    try {
      await subject.logIn()
      for (const { prepare } of scopes[scope].operations) {
        const { before, request } = await prepare(subject)
        await before?.(0)
        expect(await subject.ask(request(0))).toBeString()
      }
    } finally {
      await subject.stop()
    }
  },
)

testAtLength('the same scale generates the same rows', async () => {
  const digest = async () => {
    using directory = temporaryDirectory()
    await generate(directory.path, 0.001, 'chat')
    using sqlite = new Database(join(directory.path, databaseFile), { readonly: true })
    return Bun.hash(JSON.stringify(sqlite.query('SELECT * FROM messages').values()))
  }
  expect(await digest()).toBe(await digest())
})
