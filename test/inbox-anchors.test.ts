import { expect, test } from 'bun:test'
import { openForServer } from '../src/db/open.ts'
import { createAccountStore } from '../src/modules/accounts/store.ts'
import { createConversations } from '../src/modules/chat/conversations.ts'
import { createInboxAnchors } from '../src/modules/chat/inbox-anchors.ts'
import { type ConversationRow, createChatStore } from '../src/modules/chat/store.ts'
import { temporaryDirectory } from './support/directory.ts'

/** The list of somebody with many conversations; the time moves with every id. */
function openInbox(conversationCount: number) {
  const directory = temporaryDirectory()
  const connection = openForServer(directory.path)
  const { orm, sqlite } = connection
  const accounts = createAccountStore(orm)
  const store = createChatStore(orm)
  let made = 0
  const newId = () => String(++made).padStart(26, '0')
  const clock = { now: () => made, every: () => () => {} }
  const conversations = createConversations({ store, newId, clock })
  const insertPerson = () =>
    accounts.insert({
      id: newId(),
      email: `${made}@example.com`,
      displayName: 'x',
      locale: 'en',
      role: 'user',
      emailVerified: true,
      passwordHash: 'x',
      createdAt: 0,
    }).id
  const owner = insertPerson()
  const open = () => conversations.open(owner, insertPerson())
  const rows = sqlite.transaction(() => Array.from({ length: conversationCount }, open))()
  const send = (conversation: ConversationRow) => {
    const file = { fileUrl: null, fileName: null, fileSize: null, fileType: null }
    const people = { senderId: conversation.userA, recipientId: conversation.userB }
    const text = { type: 'text' as const, body: 'x', clientId: null, broadcastId: null }
    const content = { conversationId: conversation.id, ...people, ...text, ...file }
    conversations.append(content, conversation)
  }
  const list = (limit: number, offset: number) =>
    store.listInbox(owner, { limit, offset }).map((row) => row.conversationId)

  return {
    rows,
    open,
    send,
    page: (offset: number) => list(20, offset),
    whole: () => list(10_000, 0),
    rollBack(work: () => void) {
      const failing = sqlite.transaction(() => {
        work()
        throw new Error('rolled back')
      })
      expect(failing).toThrow('rolled back')
    },
    [Symbol.dispose]() {
      connection.close()
      directory[Symbol.dispose]()
    },
  }
}

test('pages stay right while conversations move, appear and fail to', () => {
  using inbox = openInbox(400)
  let state = 7
  const pick = (below: number) => {
    state = (state * 16_807) % 2_147_483_647
    return state % below
  }
  const sendAnywhere = () => {
    const row = inbox.rows[pick(inbox.rows.length)]
    if (row) inbox.send(row)
  }
  for (let n = 0; n < 300; n++) {
    for (let moves = pick(4); moves > 0; moves--) sendAnywhere()
    if (pick(10) === 0) inbox.rows.push(inbox.open())
    if (pick(5) === 0) inbox.rollBack(sendAnywhere)
    if (pick(10) === 0) inbox.rollBack(inbox.open)
    const offset = pick(inbox.rows.length)
    expect(inbox.page(offset)).toEqual(inbox.whole().slice(offset, offset + 20))
  }
})

test('pages stay right after more moves than are kept', () => {
  using inbox = openInbox(300)
  inbox.page(260)
  for (const row of inbox.rows.slice(0, 250)) inbox.send(row)
  expect(inbox.page(260)).toEqual(inbox.whole().slice(260, 280))
})

test.each([
  ['from behind a place to the top', 10, 401],
  ['from before a place to the top', 900, 400],
  ['into the list', undefined, 401],
])('a move %s shifts the place instead of losing it', (_, before, offset) => {
  const position = { lastActivityAt: 500, conversationId: 'c' }
  let activity: number | undefined = before
  const anchors = createInboxAnchors(() => activity)
  anchors.remember('u', 400, position)

  anchors.beforeMove('u', 'other')
  activity = 1_000

  expect(anchors.find('u', 410)).toEqual({ offset, position })
  expect(anchors.find('u', 390)).toEqual({ offset, position })
})
