import { expect, test } from 'bun:test'
import { type Client, memoryStorage } from '../client/src/client.ts'
import { createStore } from '../client/src/list.ts'
import { openBlocks, openInbox, openNotifications, openThread } from '../client/src/state.ts'
import { ada, clientsOfFile, pageStorage } from './support/clients.ts'
import { testAtLength } from './support/faults.ts'
import { waitFor, waitOut } from './support/wait.ts'

const { startChat } = clientsOfFile()

/** Stores whose loads meet changes, outages, and each other. */

type Chat = Awaited<ReturnType<typeof startChat>>
const conversations = '/v1/chat/conversations'

/** Holds the next answer to a path.
 *  @param isEarly whether the service answers before the release */
function hold(proxy: Chat['proxy'], path: string, isEarly = false) {
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  proxy.onNext(path, async (forward) => {
    const answer = isEarly ? await forward() : undefined
    asked.resolve()
    await released.promise
    return answer ?? forward()
  })
  return { asked: asked.promise, release: () => released.resolve() }
}

/** People who write to Ada, one after the other. */
async function gather({ service, user, advance }: Chat, count: number, name = 'sender', pause = 1) {
  const talks = []
  for (let n = 0; n < count; n++) {
    const sender = await service.register(`${name}${n}`)
    const id = await service.openConversation(sender, user)
    await service.say(sender, id, 'hello')
    advance(pause)
    talks.push({ id, sender })
  }
  return talks
}

async function readyInbox(client: Client) {
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  return inbox
}

async function loadAll(inbox: ReturnType<typeof openInbox>) {
  while (inbox.getSnapshot().hasMore) await inbox.loadMore()
  return new Set(inbox.getSnapshot().items.map(({ id }) => id))
}

async function expectAll(client: Client, shown: Set<string>) {
  const all = await Array.fromAsync(client.conversations.each())
  expect(all.filter(({ id }) => !shown.has(id))).toEqual([])
  expect(shown.size).toBe(all.length)
}

async function loseChannel({ client, proxy }: Chat) {
  proxy.control.refusesUpgrades = true
  proxy.cut(1012)
  await waitFor(() => client.status() === 'waiting')
}

async function regainChannel({ client, proxy }: Chat) {
  proxy.control.refusesUpgrades = false
  client.check()
  await waitFor(() => client.status() === 'open')
}

test('a request for more that waits for a load leaves alone the load that replaced it', async () => {
  await using chat = await startChat()
  await gather(chat, 32)
  const { client, proxy, service } = chat
  await client.connect()
  const inbox = await readyInbox(client)
  const first = hold(proxy, conversations)
  void inbox.reload()
  await first.asked
  const more = inbox.loadMore()
  const second = hold(proxy, conversations)
  void inbox.reload()
  await second.asked
  service.sqlite.run("UPDATE users SET display_name = 'Renamed' WHERE display_name = 'sender31'")
  first.release()
  second.release()
  await more
  const names = inbox.getSnapshot().items.map(({ participant }) => participant.display_name)
  expect([names.length, names.includes('Renamed')]).toEqual([33, true])
  const requests = proxy.count('GET', conversations)
  const third = hold(proxy, conversations)
  void inbox.reload()
  await third.asked
  const late = inbox.loadMore()
  inbox.close()
  third.release()
  await late
  expect(proxy.count('GET', conversations)).toBe(requests + 1)
})

test('rows that are loaded while the channel is away stay', async () => {
  await using chat = await startChat()
  await gather(chat, 70)
  const { client } = chat
  await client.connect()
  const inbox = await readyInbox(client)
  await loseChannel(chat)
  await inbox.loadMore()
  expect(inbox.getSnapshot().items).toHaveLength(60)
  await gather(chat, 1, 'new')
  await regainChannel(chat)
  await inbox.reload()
  await expectAll(client, await loadAll(inbox))
  inbox.close()
})

test('rows of one moment at the end of a page stay', async () => {
  await using chat = await startChat()
  await gather(chat, 35)
  await gather(chat, 35, 'same', 0)
  const { client } = chat
  await client.connect()
  const inbox = await readyInbox(client)
  await inbox.loadMore()
  await inbox.reload()
  await expectAll(client, await loadAll(inbox))
  inbox.close()
})

test('an inbox has no hole after an outage in which much has happened', async () => {
  await using chat = await startChat()
  const known = (await gather(chat, 70)).at(-1)
  const { client, service } = chat
  await client.connect()
  const inbox = await readyInbox(client)
  await inbox.loadMore()
  await loseChannel(chat)
  await gather(chat, 34, 'new')
  if (known) await service.say(known.sender, known.id, 'again')
  await regainChannel(chat)
  await inbox.reload()
  await expectAll(client, await loadAll(inbox))
  inbox.close()
})

test('a conversation that another device took out of the archive during an outage can be reached', async () => {
  await using chat = await startChat()
  const { client } = chat
  const talks = await gather(chat, 34)
  const oldest = talks[0]?.id ?? ''
  await client.connect()
  await client.conversations.archive(oldest)
  const inbox = await readyInbox(client)
  await loadAll(inbox)
  await loseChannel(chat)
  await client.conversations.unarchive(oldest)
  await gather(chat, 3, 'late')
  await regainChannel(chat)
  await waitFor(() => inbox.getSnapshot().items.length > 34)
  await expectAll(client, await loadAll(inbox))
  inbox.close()
})

test('a row of a later page that changes is shown with its page', async () => {
  await using chat = await startChat()
  const [known] = await gather(chat, 35)
  const { client, service } = chat
  const { token } = await service.issueKey()
  await client.connect()
  const inbox = await readyInbox(client)
  const body = { state: 'read_only' }
  await service.call('PATCH', `/v1/service/conversations/${known?.id}`, { token, body })
  await service.call('PATCH', `/v1/service/conversations/${inbox.getSnapshot().items[0]?.id}`, {
    token,
    body,
  })
  await waitFor(() => inbox.getSnapshot().items[0]?.state === 'read_only')
  expect(inbox.getSnapshot().items).toHaveLength(30)
  await expectAll(client, await loadAll(inbox))
  expect(inbox.getSnapshot().items.find(({ id }) => id === known?.id)?.state).toBe('read_only')
  inbox.close()
})

test('a mark that is sent while an inbox loads hides no later message', async () => {
  const storage = pageStorage()
  await using chat = await startChat({ storage })
  const { client, proxy, conversationId, create } = chat
  const one = await chat.say('one')
  await chat.say('two')
  proxy.control.isOffline = true
  void client.conversations.markRead(conversationId, one.id).catch(() => {})
  client.close()
  proxy.control.isOffline = false
  const page = create()
  const slow = hold(proxy, conversations)
  page.restore()
  const inbox = openInbox(page)
  await slow.asked
  await new Promise<unknown>((resolve) => page.once('marked_read', resolve))
  slow.release()
  await waitFor(() => inbox.getSnapshot().items[0]?.unread_count === 1)
  inbox.close()
})

test('a message that arrives before the answer to a mark of everything stays unread', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId } = chat
  await chat.say('one')
  await client.connect()
  const inbox = await readyInbox(client)
  const passOn = Promise.withResolvers<() => void>()
  proxy.onNextFrame('toClient', 'pong', passOn.resolve)
  const marking = client.conversations.markRead(conversationId)
  const pass = await passOn.promise
  await chat.say('two')
  await waitFor(() => inbox.getSnapshot().items[0]?.last_message?.body === 'two')
  pass()
  await marking
  await waitFor(() => inbox.getSnapshot().items[0]?.unread_count === 1)
  inbox.close()
})

test('a mark that a block refuses hides no message', async () => {
  await using chat = await startChat()
  const { client, friend, conversationId } = chat
  await chat.say('one')
  await client.connect()
  const inbox = await readyInbox(client)
  await client.blocks.add(friend.id)
  await waitFor(() => inbox.getSnapshot().items[0]?.may_send === false)
  await client.conversations.markRead(conversationId)
  expect(inbox.getSnapshot().items[0]?.unread_count).toBe(1)
  inbox.close()
})

test('a message that is removed while an inbox loads is not shown', async () => {
  await using chat = await startChat()
  const { client, proxy, service, friend, messagesPath } = chat
  const message = await chat.say('secret')
  await client.connect()
  const slow = hold(proxy, conversations, true)
  const inbox = openInbox(client)
  await slow.asked
  const removed = new Promise<unknown>((resolve) => client.once('message_deleted', resolve))
  await service.call('DELETE', `${messagesPath}/${message.id}`, { token: friend.token })
  await removed
  slow.release()
  await waitFor(() => inbox.getSnapshot().items[0]?.last_message?.body === '')
  inbox.close()
})

test('a late answer brings back no removed message', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId, create } = chat
  const phone = create({ storage: memoryStorage() })
  await phone.login(ada)
  await client.connect()
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().status === 'ready')
  const late = Promise.withResolvers<() => void>()
  proxy.onNextFrame('toClient', 'ack', late.resolve)
  const sending = thread.send({ body: 'oops' })
  const acknowledge = await late.promise
  const [shown] = await waitFor(() => {
    const { items } = thread.getSnapshot()
    return items.length === 1 ? items : undefined
  })
  await phone.messages.remove(conversationId, shown?.id ?? '')
  await waitFor(() => thread.getSnapshot().items[0]?.body === '')
  acknowledge()
  await sending
  expect(thread.getSnapshot().items[0]?.body).toBe('')
  thread.close()
})

test('a store calls its listeners once for changes that come together', async () => {
  const store = createStore(0)
  let calls = 0
  store.subscribe(() => calls++)
  for (let next = 1; next <= 100; next++) {
    store.set(next)
    await null
  }
  expect([store.getSnapshot(), calls]).toEqual([100, 0])
  await waitFor(() => calls > 0)
  expect(calls).toBe(1)
})

test('a load that a listener begins keeps the changes during it', async () => {
  await using chat = await startChat()
  const { client, proxy, conversationId, messagesPath } = chat
  await client.connect()
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().status === 'ready')
  let again: Promise<void> | undefined
  const slow = Promise.withResolvers<ReturnType<typeof hold>>()
  thread.subscribe(() => {
    if (again) return
    slow.resolve(hold(proxy, messagesPath, true))
    again = thread.reload()
  })
  await thread.reload()
  const held = await slow.promise
  await held.asked
  await chat.say('hello')
  await waitFor(() => thread.getSnapshot().items.length === 1)
  held.release()
  await again
  expect(thread.getSnapshot().items.map(({ body }) => body)).toEqual(['hello'])
  thread.close()
})

test('an older answer replaces no newer list of blocks', async () => {
  await using chat = await startChat()
  const { client, proxy, friend } = chat
  await client.connect()
  const slow = hold(proxy, '/v1/users/blocks', true)
  const blocks = openBlocks(client)
  await slow.asked
  await blocks.add(friend.id)
  expect(blocks.getSnapshot().blocks).toHaveLength(1)
  slow.release()
  await waitOut(30)
  expect(blocks.getSnapshot().blocks).toHaveLength(1)
  blocks.close()
})

testAtLength(
  'marks of two devices, and one whose answer is lost, end as the service has them',
  async () => {
    await using chat = await startChat()
    const { client, proxy, service, user } = chat
    const { token } = await service.issueKey()
    for (const title of ['one', 'two', 'three', 'four']) {
      const body = { user_id: user.id, type: 'broadcast', title, body: title }
      await service.call('POST', '/v1/service/notifications', { token, body })
    }
    await client.connect()
    const phone = chat.create({ storage: memoryStorage() })
    await phone.login(ada)
    const notifications = openNotifications(client)
    await waitFor(() => notifications.getSnapshot().items.length === 4)
    const [first = '', second = '', third = ''] = notifications
      .getSnapshot()
      .items.map(({ id }) => id)
    const unread = () => notifications.getSnapshot().items.filter(({ read }) => !read).length
    await phone.notifications.markRead(first)
    await notifications.markRead(first)
    await waitOut(1_500)
    await phone.notifications.markRead(second)
    await waitFor(() => unread() === 2)
    proxy.onNext(`/v1/notifications/${third}/read`, async (forward) => {
      await forward()
      return new Response('', { status: 502 })
    })
    await notifications.markRead(third).catch(() => {})
    await waitFor(() => unread() === 1)
    notifications.close()
  },
)

testAtLength('a store that is left open asks for nothing after a logout', async () => {
  await using chat = await startChat()
  const { client, proxy, service, user } = chat
  await client.connect()
  const inbox = await readyInbox(client)
  const sender = await service.register('carl')
  const id = await service.openConversation(sender, user)
  const { body } = await service.say(sender, id, 'hello')
  await waitFor(() => inbox.getSnapshot().items[0]?.last_message?.id === body.id)
  const slow = hold(proxy, `${conversations}/${id}`)
  const path = `${conversations}/${id}/messages/${body.id}`
  await service.call('DELETE', path, { token: sender.token })
  await slow.asked
  await client.logout()
  slow.release()
  await waitOut(6_000)
  expect(proxy.count('GET', `${conversations}/${id}`)).toBe(1)
  inbox.close()
})
