import { expect, test } from 'bun:test'
import { memoryStorage } from '../client/src/client.ts'
import {
  openBlocks,
  openInbox,
  openNotifications,
  openOutbox,
  openThread,
  openTicket,
  openTickets,
} from '../client/src/state.ts'
import { ada, clientsOfFile, refusalOf } from './support/clients.ts'
import { networkError, refusal } from './support/fault-proxy.ts'
import { testAtLength } from './support/faults.ts'
import { waitFor, waitOut } from './support/wait.ts'

const { startChat } = clientsOfFile()

test('an inbox follows messages, read marks and receipts, and reloads after a gap', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, friend, proxy } = chat
  await client.connect()
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  let shown = inbox.getSnapshot()
  const unsubscribe = inbox.subscribe(() => {
    shown = inbox.getSnapshot()
  })
  await chat.say('hello')
  const first = () => inbox.getSnapshot().items[0]
  await waitFor(() => first()?.unread_count === 1)
  expect(first()).toMatchObject({ id: conversationId, last_message: { body: 'hello' } })
  await client.conversations.markRead(conversationId)
  expect(first()?.unread_count).toBe(0)
  const other = await service.register('carl')
  const otherId = await service.openConversation(other, chat.user)
  await service.say(other, otherId, 'new here')
  await waitFor(() => first()?.id === otherId)
  const before = proxy.count('GET', '/v1/chat/conversations')
  const beforeGap = inbox.getSnapshot()
  proxy.push({ type: 'resync', newest_message_id: client.newestMessageId() })
  await waitFor(() => proxy.count('GET', '/v1/chat/conversations') > before)
  await waitFor(() => shown === inbox.getSnapshot() && shown !== beforeGap)
  unsubscribe()
  inbox.close()
  const known = inbox.getSnapshot()
  const { body: unheard } = await service.say(friend, conversationId, 'unheard')
  await waitFor(() => client.newestMessageId() === unheard.id)
  expect(inbox.getSnapshot()).toBe(known)
})

test('a listener that throws changes no state, and the others are called', async () => {
  await using chat = await startChat()
  const real = globalThis.queueMicrotask
  const reported: unknown[] = []
  globalThis.queueMicrotask = (work) => {
    try {
      work()
    } catch (error) {
      reported.push(error)
    }
  }
  try {
    const inbox = openInbox(chat.client)
    const shown: string[] = []
    inbox.subscribe(() => {
      throw new Error('of the app')
    })
    inbox.subscribe(() => shown.push(inbox.getSnapshot().status))
    await waitFor(() => shown.includes('ready'))
    expect(inbox.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(shown.at(-1)).toBe('ready')
    expect(reported).toContainEqual(new Error('of the app'))
    inbox.close()
  } finally {
    globalThis.queueMicrotask = real
  }
})

test('an inbox counts no quiet notice and no replayed message, and follows archive, data and state', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, friend } = chat
  const { token } = await service.issueKey()
  const post = (more: object) =>
    service.call('POST', '/v1/service/messages', {
      token,
      body: { conversation_id: conversationId, body: 'Moved', ...more },
    })
  await client.connect()
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  const item = () => inbox.getSnapshot().items.find(({ id }) => id === conversationId)
  await post({})
  await waitFor(() => item()?.last_message?.type === 'notice')
  expect(item()?.unread_count).toBe(0)
  await post({ unread: true })
  await waitFor(() => item()?.unread_count === 1)
  const path = `/v1/service/conversations/${conversationId}`
  await service.call('PATCH', path, { token, body: { state: 'read_only', data: { n: 1 } } })
  await waitFor(() => item()?.may_send_reason === 'read_only')
  expect(item()?.data).toEqual({ n: 1 })
  await client.conversations.archive(conversationId)
  await waitFor(() => item() === undefined)
  await client.conversations.unarchive(conversationId)
  await waitFor(() => item()?.unread_count === 1)
  await client.conversations.archive(conversationId)
  await waitFor(() => item() === undefined)
  await post({ body: 'Back' })
  await waitFor(() => item()?.last_message?.body === 'Back')
  inbox.close()

  chat.proxy.cut(1006)
  await service.call('PATCH', path, { token, body: { state: 'open' } })
  const { body: missed } = await service.say(friend, conversationId, 'missed')
  const late = openInbox(client)
  await waitFor(() => late.getSnapshot().items[0]?.last_message?.id === missed.id)
  chat.advance(60_000)
  await client.connect()
  await waitFor(() => client.newestMessageId() === missed.id)
  expect(late.getSnapshot().items[0]?.unread_count).toBe(2)
  late.close()
})

test('a thread shows each message once, waiting ones apart, and who types', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, friend, proxy } = chat
  for (let n = 1; n <= 32; n++) await chat.say(`${n}`)
  await client.connect()
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().status === 'ready')
  const bodies = () => thread.getSnapshot().items.map(({ body }) => body)
  expect([bodies().length, bodies().at(-1), thread.getSnapshot().hasMore]).toEqual([30, '32', true])
  await thread.loadEarlier()
  expect(bodies()).toEqual(Array.from({ length: 32 }, (_, n) => `${n + 1}`))
  const socket = await service.connect(friend)
  socket.send({ type: 'typing', conversation_id: conversationId })
  await waitFor(() => thread.getSnapshot().isTyping)
  await chat.say('done')
  await waitFor(() => bodies().at(-1) === 'done')
  expect(thread.getSnapshot().isTyping).toBe(false)
  const answered = Promise.withResolvers<() => void>()
  proxy.onNextFrame('toClient', 'ack', answered.resolve)
  const sent = thread.send({ body: 'mine' })
  expect(thread.getSnapshot().waiting).toHaveLength(1)
  const acknowledge = await answered.promise
  await waitFor(() => bodies().at(-1) === 'mine')
  expect(thread.getSnapshot().waiting).toEqual([])
  acknowledge()
  await sent
  expect(bodies().filter((body) => body === 'mine')).toHaveLength(1)
  thread.close()
})

test('a thread shows a removed message as the service does: without files and data', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, user } = chat
  const { token } = await service.issueKey(['all', 'messages_as'])
  const post = async (more: object) => {
    const body = { conversation_id: conversationId, body: 'Moved', data: { n: 1 }, ...more }
    return (await service.call('POST', '/v1/service/messages', { token, body })).body
  }
  const attachments = ['a', 'b'].map((name) => ({ file_url: `https://example.com/${name}` }))
  const files = await client.messages.send(conversationId, { body: '', type: 'file', attachments })
  const [notice, own] = [await post({}), await post({ from: user.id })]
  await client.connect()
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().status === 'ready')
  await thread.remove(files.id)
  await client.messages.remove(conversationId, own.id)
  await service.call('DELETE', `/v1/service/messages/${notice.id}`, { token })
  const items = () => thread.getSnapshot().items
  await waitFor(() => items().every(({ deleted_at }) => deleted_at !== undefined))
  const timeless = (messages: readonly object[]) =>
    messages.map((message) => ({ ...message, deleted_at: 'a time' }))
  expect(timeless(items())).toEqual(timeless(await chat.stored()))
  thread.close()
})

test('an inbox orders conversations of one millisecond as the service does', async () => {
  await using chat = await startChat()
  const { client, service, user } = chat
  const carl = await service.register('carl')
  const otherId = await service.openConversation(carl, user)
  await chat.say('first')
  await service.say(carl, otherId, 'second')
  await client.connect()
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  const { id } = await chat.say('third')
  await waitFor(() => client.newestMessageId() === id)
  const { data } = await client.conversations.list()
  expect(inbox.getSnapshot().items.map((item) => item.id)).toEqual(data.map((item) => item.id))
  inbox.close()
})

test('the conversation of a thread is no longer archived after its next message', async () => {
  await using chat = await startChat()
  const { client, conversationId } = chat
  await client.conversations.archive(conversationId)
  await client.connect()
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().conversation?.archived)
  await chat.say('hello')
  await waitFor(() => thread.getSnapshot().items.length === 1)
  expect(thread.getSnapshot().conversation?.archived).toBe(false)
  thread.close()
})

test('a replayed message does not take the conversation of a thread out of the archive', async () => {
  await using chat = await startChat()
  const { client, conversationId, proxy } = chat
  await client.connect()
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().status === 'ready')
  const phone = chat.create()
  await phone.login(ada)
  proxy.control.refusesUpgrades = true
  proxy.cut(1012)
  await waitFor(() => client.status() === 'waiting')
  const { id } = await chat.say('missed')
  await phone.conversations.archive(conversationId)
  proxy.control.refusesUpgrades = false
  client.check()
  await waitFor(() => client.newestMessageId() === id)
  await waitFor(() => thread.getSnapshot().conversation?.archived)
  thread.close()
})

test('a message further down that was removed during an outage is empty', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, friend, proxy } = chat
  const { id } = await chat.say('private')
  for (let n = 1; n <= 40; n++) await chat.say(`${n}`)
  await client.connect()
  const thread = openThread(client, conversationId)
  await waitFor(() => thread.getSnapshot().status === 'ready')
  await thread.loadEarlier()
  const first = () => thread.getSnapshot().items[0]
  expect(first()?.body).toBe('private')
  proxy.control.refusesUpgrades = true
  proxy.cut(1012)
  await waitFor(() => client.status() === 'waiting')
  const path = `/v1/chat/conversations/${conversationId}/messages/${id}`
  await service.call('DELETE', path, { token: friend.token })
  proxy.control.refusesUpgrades = false
  client.check()
  await waitFor(() => first()?.body === '', 'the removal')
  expect(thread.getSnapshot().items).toHaveLength(41)
  thread.close()
})

test('an inbox reads many new conversations by pages', async () => {
  await using chat = await startChat()
  const { client, service, user, proxy } = chat
  const senders = await Promise.all(
    Array.from({ length: 8 }, (_, n) => service.register(`sender${n}`)),
  )
  await client.connect()
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  const talks = await Promise.all(
    senders.map(async (sender) => ({ sender, id: await service.openConversation(sender, user) })),
  )
  const before = proxy.requests.length
  // The first one is being read while all others are heard of.
  const held = Promise.withResolvers<void>()
  proxy.onNext(`/v1/chat/conversations/${talks[0]?.id}`, async (forward) => {
    await held.promise
    return forward()
  })
  let newest = ''
  for (const { sender, id } of talks) {
    for (const body of ['one', 'two', 'three']) {
      newest = (await service.say(sender, id, body)).body.id
    }
  }
  await waitFor(() => client.newestMessageId() === newest)
  held.resolve()
  const counts = () => inbox.getSnapshot().items.map(({ unread_count }) => unread_count)
  await waitFor(() => counts().filter((count) => count === 3).length === 8)
  // That one, the page, and perhaps that one again.
  expect(proxy.requests.length - before).toBeLessThanOrEqual(3)
  inbox.close()
})

testAtLength('an inbox reads a new conversation again after a failure', async () => {
  await using chat = await startChat()
  const { client, service, user, proxy } = chat
  await client.connect()
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  const sender = await service.register('carl')
  const id = await service.openConversation(sender, user)
  proxy.onNext(`/v1/chat/conversations/${id}`, async () => refusal(500, 'internal_error'))
  await service.say(sender, id, 'hello')
  await waitFor(() => inbox.getSnapshot().items.some((item) => item.id === id), 'it')
  inbox.close()
})

test('rows that were changed during an outage stay changed further down', async () => {
  await using chat = await startChat()
  const { client, service, user, proxy } = chat
  for (let n = 0; n < 35; n++) {
    const sender = await service.register(`sender${n}`)
    await service.say(sender, await service.openConversation(sender, user), 'hello')
    chat.advance(1)
  }
  await client.connect()
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  await inbox.loadMore()
  const oldest = inbox
    .getSnapshot()
    .items.filter(({ unread_count }) => unread_count > 0)
    .at(-1)
  proxy.control.refusesUpgrades = true
  proxy.cut(1012)
  await waitFor(() => client.status() === 'waiting')
  await client.conversations.markRead(oldest?.id ?? '')
  proxy.control.refusesUpgrades = false
  client.check()
  await waitFor(() => client.status() === 'open')
  await inbox.reload()
  const shown = inbox.getSnapshot().items.find(({ id }) => id === oldest?.id)
  expect(shown?.unread_count).toBe(0)
})

test('own marks of notifications cost a request each, and one that fails is taken back', async () => {
  await using chat = await startChat()
  const { client, service, user, proxy } = chat
  const { token } = await service.issueKey()
  for (const title of ['one', 'two', 'three', 'four']) {
    const body = { user_id: user.id, type: 'broadcast', title, body: title }
    await service.call('POST', '/v1/service/notifications', { token, body })
  }
  await client.connect()
  const notifications = openNotifications(client)
  await waitFor(() => notifications.getSnapshot().items.length === 4)
  const [first, second, third] = notifications.getSnapshot().items
  const lists = () => proxy.count('GET', '/v1/notifications')
  const before = lists()
  await notifications.markRead(first?.id ?? '')
  await notifications.markRead(second?.id ?? '')
  await waitFor(() => notifications.getSnapshot().unread === 2)
  await waitOut(1_100)
  expect(lists()).toBe(before)
  const unread = () => notifications.getSnapshot().items.filter(({ read }) => !read).length
  proxy.control.isOffline = true
  const marking = notifications.markRead(third?.id ?? '', { retry: false })
  expect(unread()).toBe(1)
  expect(await refusalOf(marking)).toMatchObject({ name: 'NetworkError' })
  expect(unread()).toBe(2)
  proxy.control.isOffline = false
  const elsewhere = chat.create({ storage: memoryStorage() })
  await elsewhere.login(ada)
  await elsewhere.notifications.markRead(third?.id ?? '')
  await waitFor(() => unread() === 1)
  notifications.close()
})

test('the mark of another device counts while an own one is refused', async () => {
  await using chat = await startChat()
  const { client, service, user, proxy } = chat
  const { token } = await service.issueKey()
  for (const title of ['one', 'two', 'three']) {
    const body = { user_id: user.id, type: 'broadcast', title, body: title }
    await service.call('POST', '/v1/service/notifications', { token, body })
  }
  await client.connect()
  const notifications = openNotifications(client)
  await waitFor(() => notifications.getSnapshot().items.length === 3)
  const [first, second] = notifications.getSnapshot().items
  const answer = Promise.withResolvers<Response>()
  proxy.onNext(`/v1/notifications/${first?.id}/read`, () => answer.promise)
  const marking = refusalOf(notifications.markRead(first?.id ?? ''))
  const elsewhere = chat.create({ storage: memoryStorage() })
  await elsewhere.login(ada)
  await elsewhere.notifications.markRead(second?.id ?? '')
  await waitFor(() => notifications.getSnapshot().unread === 2)
  answer.resolve(refusal(429, 'rate_limited', { 'retry-after': '60' }))
  expect(await marking).toMatchObject({ code: 'rate_limited' })
  const unread = () => notifications.getSnapshot().items.filter(({ read }) => !read)
  await waitFor(() => unread().length === 2, 'the other mark')
  expect(unread().map(({ title }) => title)).toEqual(['three', 'one'])
  notifications.close()
})

test('notifications and tickets follow their frames', async () => {
  await using chat = await startChat()
  const { client } = chat
  await client.connect()
  const [notifications, tickets] = [openNotifications(client), openTickets(client)]
  await waitFor(() => notifications.getSnapshot().status === 'ready')
  await waitFor(() => tickets.getSnapshot().status === 'ready')
  const ticket = await tickets.create({ subject: 'Help', body: 'It is broken.' })
  expect(tickets.getSnapshot().items).toEqual([ticket])
  await client.tickets.close(ticket.id)
  await waitFor(() => tickets.getSnapshot().items[0]?.status === 'closed')
  const notification = {
    id: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    type: 'broadcast',
    title: 'News',
    body: 'Here',
    data: {},
    read: false,
    created_at: new Date().toISOString(),
  }
  chat.proxy.push({ type: 'notification', notification, unread_count: 1 })
  await waitFor(() => notifications.getSnapshot().unread === 1)
  expect(notifications.getSnapshot().items).toMatchObject([{ title: 'News', read: false }])
  await notifications.markAllRead()
  expect(notifications.getSnapshot().items).toMatchObject([{ read: true }])
})

test('a receipt covers the copy of an own broadcast, which does not come over the channel', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, user, friend } = chat
  service.sqlite.run("UPDATE users SET role = 'host', email_verified = 1 WHERE id = ?", [user.id])
  const { token } = await service.issueKey()
  await service.call('PUT', `/v1/service/follows/${user.id}/${friend.id}`, { token })
  await client.connect()
  await client.request('POST /v1/chat/broadcast', { body: { body: 'live at nine' } })
  const [inbox, thread] = [openInbox(client), openThread(client, conversationId)]
  const shown = () => [
    inbox.getSnapshot().items[0]?.participant_read_up_to,
    thread.getSnapshot().conversation?.participant_read_up_to,
  ]
  const id = await waitFor(() => inbox.getSnapshot().items[0]?.last_message?.id)
  await waitFor(() => thread.getSnapshot().items.some((message) => message.id === id))
  const path = `/v1/chat/conversations/${conversationId}/read`
  await service.call('PUT', path, { token: friend.token })
  await waitFor(() => shown().every((one) => one === id))
  inbox.close()
  thread.close()
})

test('an outbox keeps refused messages until they are sent again', async () => {
  await using chat = await startChat()
  const { client, conversationId, proxy, messagesPath } = chat
  const outbox = openOutbox(client)
  proxy.onNext(messagesPath, () => refusal(403, 'forbidden'))
  const refused = refusalOf(client.send(conversationId, { body: 'again' }))
  expect(outbox.getSnapshot().pending).toHaveLength(1)
  await refused
  const [one] = outbox.getSnapshot().refused
  expect(one?.queued).toMatchObject({ message: { body: 'again' } })
  if (one) await outbox.retry(one)
  await waitFor(() => outbox.getSnapshot().pending.length === 0)
  expect(outbox.getSnapshot().refused).toEqual([])
  expect((await chat.stored()).map(({ body }) => body)).toEqual(['again'])
})

test('a thread keeps earlier messages when it comes back, and shows removals in place', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, friend } = chat
  for (let n = 1; n <= 35; n++) await chat.say(`${n}`)
  const thread = openThread(client, conversationId)
  const bodies = () => thread.getSnapshot().items.map(({ body }) => body)
  await waitFor(() => thread.getSnapshot().status === 'ready')
  await Promise.all([thread.reload(), thread.loadEarlier(), thread.loadEarlier()])
  expect(bodies()).toHaveLength(35)
  // No frame replays a message that comes between the first load and the first opening.
  await chat.say('36')
  await client.connect()
  await waitFor(() => bodies().at(-1) === '36')
  expect(bodies()).toHaveLength(36)
  const [oldest] = thread.getSnapshot().items
  const removal = `/v1/chat/conversations/${conversationId}/messages/${oldest?.id}`
  await service.call('DELETE', removal, { token: friend.token })
  await waitFor(() => bodies()[0] === '')
  expect(thread.getSnapshot().items[0]?.deleted_at).toBeDefined()
  await service.call('PUT', `/v1/chat/conversations/${conversationId}/read`, {
    token: friend.token,
  })
  await waitFor(() => thread.getSnapshot().conversation?.participant_read_up_to)
  expect(thread.getSnapshot().conversation?.participant).toMatchObject({ id: friend.id })

  client.disconnect()
  chat.advance(60_000) // a new minute for the limit
  for (let n = 37; n <= 70; n++) await chat.say(`${n}`)
  await client.connect()
  await waitFor(() => bodies().at(-1) === '70')
  await waitFor(() => thread.getSnapshot().status === 'ready' && bodies().length === 70)
})

test('a thread starts anew after more than a page, whatever the channel replays', async () => {
  await using chat = await startChat()
  const { client, conversationId } = chat
  await chat.say('0')
  await client.connect()
  const thread = openThread(client, conversationId)
  const bodies = () => thread.getSnapshot().items.map(({ body }) => body)
  await waitFor(() => bodies().length === 1)
  client.disconnect()
  for (let n = 1; n <= 31; n++) await chat.say(`${n}`)
  await client.connect()
  await waitFor(() => bodies()[0] === '2')
  await waitFor(() => client.newestMessageId() === thread.getSnapshot().items.at(-1)?.id)
  expect([bodies().length, thread.getSnapshot().hasMore]).toEqual([30, true])
  await thread.loadEarlier()
  expect(bodies()).toHaveLength(32)
})

test('an inbox opens a talk with anybody, and counts what the service alone can count', async () => {
  await using chat = await startChat()
  const { client, conversationId, service, friend } = chat
  await client.connect()
  const inbox = openInbox(client)
  await waitFor(() => inbox.getSnapshot().status === 'ready')
  const other = await service.register('carl')
  const id = await inbox.open(other.id)
  expect(inbox.getSnapshot().items.find((one) => one.id === id)?.participant.id).toBe(other.id)
  const [first] = [await chat.say('one'), await chat.say('two')]
  const item = () => inbox.getSnapshot().items.find((one) => one.id === conversationId)
  await waitFor(() => item()?.last_message?.body === 'two')
  await client.conversations.markRead(conversationId, first.id)
  await waitFor(() => item()?.unread_count === 1)
  const path = `/v1/chat/conversations/${conversationId}/messages/${item()?.last_message?.id}`
  await service.call('DELETE', path, { token: friend.token })
  await waitFor(() => item()?.unread_count === 0)
})

test('a ticket shows all its messages, and replies that wait or were refused', async () => {
  await using chat = await startChat()
  const { client, proxy } = chat
  const { id } = await client.tickets.create({ subject: 'Help', body: '0' })
  for (const body of ['1', '2']) await client.tickets.reply(id, { body })
  await client.connect()
  // As a ticket of more than 200 messages comes.
  proxy.onNext(`/v1/support/tickets/${id}`, async () => {
    const { messages, ...ticket } = await client.tickets.get(id)
    const route = 'GET /v1/support/tickets/{id}/messages'
    const { pagination } = await client.request(route, { params: { id }, query: { limit: 1 } })
    const messages_before = pagination.cursor
    return Response.json({ ...ticket, messages: messages.slice(-1), messages_before })
  })
  const opened = openTicket(client, id)
  const bodies = () => opened.getSnapshot().items.map(({ body }) => body)
  await waitFor(() => opened.getSnapshot().status === 'ready')
  expect([bodies(), opened.getSnapshot().hasMore]).toEqual([['2'], true])
  await opened.loadEarlier()
  expect(bodies()).toEqual(['0', '1', '2'])
  const path = `/v1/support/tickets/${id}/messages`
  proxy.onNext(path, networkError)
  const sending = opened.reply({ body: 'late' })
  expect(opened.getSnapshot().waiting).toMatchObject([{ reply: { body: 'late' } }])
  await waitFor(() => proxy.count('POST', path) === 3)
  proxy.onNext(path, () => refusal(403, 'forbidden'))
  const outbox = openOutbox(client)
  const refused = refusalOf(sending)
  await waitFor(() => chat.timers.waiting().includes(500))
  chat.timers.advance(500)
  expect(await refused).toMatchObject({ code: 'forbidden' })
  const [one] = outbox.getSnapshot().refused
  if (one) await outbox.retry(one)
  await waitFor(() => bodies().at(-1) === 'late')
  expect(opened.getSnapshot().waiting).toEqual([])
  await opened.closeTicket()
  expect(opened.getSnapshot().ticket).toMatchObject({ subject: 'Help', status: 'closed' })
})

test('blocks follow other devices', async () => {
  await using chat = await startChat()
  const { client, friend } = chat
  const phone = chat.create()
  await phone.login(ada)
  await client.connect()
  const blocks = openBlocks(client)
  const names = () => blocks.getSnapshot().blocks.map(({ user }) => user.id)
  await phone.blocks.add(friend.id)
  await waitFor(() => names().length === 1)
  await blocks.remove(friend.id)
  expect(names()).toEqual([])
  await blocks.add(friend.id)
  expect(names()).toEqual([friend.id])
})

testAtLength('blocks are read again after a failure', async () => {
  await using chat = await startChat()
  const { client, friend, proxy } = chat
  const phone = chat.create()
  await phone.login(ada)
  await client.connect()
  const blocks = openBlocks(client)
  await waitFor(() => proxy.count('GET', '/v1/users/blocks') > 0)
  proxy.onNext('/v1/users/blocks', () => refusal(429, 'rate_limited', { 'retry-after': '60' }))
  await phone.blocks.add(friend.id)
  await waitFor(() => blocks.getSnapshot().blocks.length === 1, 'the block')
  blocks.close()
})

test('the actions of a store take the options of a request', async () => {
  await using chat = await startChat()
  const { client, conversationId } = chat
  await client.connect()
  const inbox = openInbox(client)
  const thread = openThread(client, conversationId)
  const tickets = openTickets(client)
  const { id } = await tickets.create({ subject: 'Help', body: 'x' })
  const ticket = openTicket(client, id)
  const notifications = openNotifications(client)
  const blocks = openBlocks(client)
  const aborted = { signal: AbortSignal.abort('left') }
  const actions = [
    inbox.open(chat.friend.id, aborted),
    thread.send({ body: 'x' }, aborted),
    thread.remove(id, aborted),
    tickets.create({ subject: 'Help', body: 'x' }, aborted),
    ticket.reply({ body: 'x' }, aborted),
    ticket.closeTicket(aborted),
    notifications.markRead(id, aborted),
    notifications.markAllRead(aborted),
    blocks.add(id, aborted),
    blocks.remove(id, aborted),
  ]
  for (const action of actions) {
    expect(await refusalOf(action)).toMatchObject({ name: 'AbortError', cause: 'left' })
  }
  for (const one of [inbox, thread, tickets, ticket, notifications, blocks]) one.close()
})
