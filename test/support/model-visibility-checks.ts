import { fetchFile } from './files.ts'
import { mustHold } from './model.ts'
import {
  type Conversation,
  type Message,
  nameOf,
  type Person,
  rules,
  type World,
} from './model-visibility.ts'

const sorted = <T extends { id: string }>(rows: T[]) => rows.sort((a, b) => (a.id < b.id ? -1 : 1))

const stepsPerCheck = 4

/** Views that are compared after each fourth step, because they cost more than the step. */
export async function checkSometimes(world: World): Promise<void> {
  if (++world.steps % stepsPerCheck === 0) await checkViews(world)
}

async function checkViews(world: World) {
  await world.takeFrames()
  for (const person of world.present()) {
    await checkInbox(world, person)
    await checkBlocks(world, person)
  }
  for (const file of world.files) {
    const { status } = await fetchFile(world.service, file.url)
    mustHold(rules.files, status === (file.isGone ? 404 : 200), { url: file.url, status })
  }
}

async function checkInbox(world: World, person: Person) {
  const { token } = person
  const listed = async (isArchived: boolean) => {
    const path = `/v1/chat/conversations?per_page=100&archived=${isArchived}`
    const { body } = await world.ask(200, 'GET', path, { token })
    world.mustNotLeak(person, 'the list of conversations', body)
    mustHold(rules.inbox, body.pagination.total === body.data.length, body.pagination)
    return body.data
  }
  const items = [...(await listed(false)), ...(await listed(true))]
  // biome-ignore lint/suspicious/noExplicitAny: judged by the comparison
  const seen = items.map((item: any) => ({
    id: item.id,
    name: item.participant.display_name,
    picture: item.participant.avatar_url.includes('/v1/avatars/')
      ? null
      : item.participant.avatar_url,
    last: item.last_message?.body ?? null,
    first: item.first_seq,
    unread: item.unread_count,
    muted: item.muted,
    archived: item.archived,
    refusal: item.may_send_reason,
    state: item.state,
    data: item.data?.text,
  }))
  const due = world.ownConversations(person).map((conversation) => {
    const other = world.otherIn(conversation, person)
    const last = conversation.messages.at(-1)
    return {
      id: conversation.id,
      name: world.shownName(person, other),
      picture: world.shownPicture(person, other) ?? null,
      last: last ? shownText(last) : null,
      first: conversation.forgotten + 1,
      unread: world.unread(conversation, person),
      muted: conversation.muted.has(person),
      archived: conversation.archived.has(person),
      refusal: world.refusal(conversation, person) ?? null,
      state: conversation.isReadOnly ? 'read_only' : 'open',
      data: conversation.data.at(-1),
    }
  })
  mustHold(rules.inbox, Bun.deepEquals(sorted(seen), sorted(due)), {
    person: nameOf(person),
    seen,
    due,
  })
  const count = await world.ask(200, 'GET', '/v1/chat/unread-count', { token })
  const all = due.reduce((sum, { unread, archived }) => sum + (archived ? 0 : unread), 0)
  mustHold(rules.inbox, count.body.count === all, { badge: count.body.count, all })
}

async function checkBlocks(world: World, person: Person) {
  const { body } = await world.ask(200, 'GET', '/v1/users/blocks', { token: person.token })
  world.mustNotLeak(person, 'the list of blocks', body)
  const seen = body.data.map(({ user }: { user: { display_name: string } }) => user.display_name)
  const due = world.blocksOf(person).map(({ people, names }) => {
    const other = people.find((it) => it !== person)
    return other && names.get(other)
  })
  mustHold(rules.blocks, Bun.deepEquals(seen.sort(), due.sort()), {
    person: nameOf(person),
    seen,
    due,
  })
}

const shownText = ({ isRemoved, text }: Message) => (isRemoved ? '' : text)

/** All other views, compared once. */
export async function checkAtEnd(world: World): Promise<void> {
  await checkViews(world)
  for (const conversation of world.conversations) await checkConversation(world, conversation)
  for (const person of world.present()) {
    await checkCatchUp(world, person)
    await checkNotifications(world, person)
    await checkExport(world, person)
  }
  await checkReports(world)
  await world.settle()
  checkWebhooks(world)
}

async function checkConversation(world: World, conversation: Conversation) {
  const path = `/v1/chat/conversations/${conversation.id}/messages?per_page=100`
  for (const person of world.present()) {
    const isOwn = conversation.people.includes(person)
    const { body } = await world.ask(isOwn ? 200 : 403, 'GET', path, { token: person.token })
    if (!isOwn) continue
    world.mustNotLeak(person, 'messages', body)
    const seen = body.data.reverse().map(messageIn)
    const due = conversation.messages.map((message) => ({
      id: message.id,
      text: shownText(message),
      file: message.isRemoved ? null : (message.file?.url ?? null),
      isRemoved: message.isRemoved,
    }))
    mustHold(rules.messages, Bun.deepEquals(seen, due), { person: nameOf(person), seen, due })
  }
}

// biome-ignore lint/suspicious/noExplicitAny: judged by the comparison
const messageIn = (message: any) => ({
  id: message.id,
  // Data of the platform goes with the text.
  text: message.data ? message.data.text : message.body,
  file: message.file_url,
  isRemoved: message.deleted_at !== undefined,
})

const beginning = '0'.repeat(26)

async function checkCatchUp(world: World, person: Person) {
  const path = `/v1/chat/messages?since=${beginning}&limit=100`
  const { body } = await world.ask(200, 'GET', path, { token: person.token })
  world.mustNotLeak(person, 'what was missed', body)
  const due = world
    .ownConversations(person)
    .flatMap(({ messages }) => messages)
    .filter(({ isCopy, from }) => !isCopy || from !== person)
    .map((message) => `${message.id} ${shownText(message)}`)
  const seen = body.data.map(
    (message: { id: string; body: string }) => `${message.id} ${message.body}`,
  )
  mustHold(rules.catchUp, Bun.deepEquals(seen, due.sort()), { person: nameOf(person), seen, due })
}

async function checkNotifications(world: World, person: Person) {
  const { body } = await world.ask(200, 'GET', '/v1/notifications?per_page=100', {
    token: person.token,
  })
  world.mustNotLeak(person, 'notifications', body)
  const seen = body.data.map(({ title }: { title: string }) => title)
  const own = seen.filter((title: string) => title.startsWith('note~')).reverse()
  mustHold(rules.notifications, Bun.deepEquals(own, person.titles), {
    person: nameOf(person),
    seen,
  })
}

async function checkExport(world: World, person: Person) {
  const { body } = await world.ask(200, 'GET', '/v1/users/me/export', { token: person.token })
  // Removed texts are kept for reports, so the sender's export has them.
  const said = world.ownConversations(person).flatMap(({ messages }) => messages)
  const own = said.filter(({ from }) => from === person).map(({ text }) => text)
  world.mustNotLeak(person, 'the export', body, [...own, ...person.broadcasts])
  const text = JSON.stringify(body)
  const due = said.filter(
    ({ isRemoved, isCopy, from }) => !isRemoved && (!isCopy || from !== person),
  )
  for (const message of due) mustHold(rules.export, text.includes(message.text), message.text)
  for (const title of person.titles) mustHold(rules.export, text.includes(title), title)
}

async function checkReports(world: World) {
  for (const { id, texts, isOpen } of world.reports) {
    const { body } = await world.ask(200, 'GET', `/v1/admin/reports/${id}`, world.asAdmin)
    const messages: { body: string }[] = body.messages ?? []
    const shown = messages.flatMap((message) => message.body.match(/say~\d+~\d+~/g) ?? [])
    mustHold(rules.reports, Bun.deepEquals(shown, isOpen ? texts : []), { shown, texts, isOpen })
  }
}

function checkWebhooks(world: World) {
  const { received } = world.receiver
  const idsOf = (type: string) =>
    new Set(
      received.filter(({ body }) => body.type === type).map(({ body }) => body.data.message?.id),
    )
  const [created, deleted] = [idsOf('message.created'), idsOf('message.deleted')]
  for (const { messages } of world.conversations) {
    for (const { id, isCopy, isRemoved } of messages) {
      // A message removed before its delivery is not delivered.
      if (!isRemoved) mustHold(rules.webhooks, created.has(id) === !isCopy, { id, isCopy })
      mustHold(rules.webhooks, deleted.has(id) === isRemoved, { id, isRemoved })
    }
  }
  for (const { body, text } of received) {
    const isSilent = body.type === 'message.deleted' || body.type === 'report.created'
    mustHold(rules.webhooks, !isSilent || !/say~\d/.test(text), text)
  }
}
