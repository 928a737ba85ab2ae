import { type Model, mustHold, type Random } from './model.ts'
import {
  type Conversation,
  type Message,
  nameOf,
  type Person,
  rules,
  type World,
} from './model-visibility.ts'

async function block(world: World, by: Person, other: Person) {
  await world.ask(204, 'PUT', `/v1/users/blocks/${other.id}`, { token: by.token })
  world.blocked(by, other)
}

/** Two present people, mostly the same as before, so that features interact. */
function two(world: World, random: Random): [Person, Person] {
  const people = world.present()
  const [a, b] = world.lastTwo
  if (a && b && people.includes(a) && people.includes(b) && random.below(4) > 0) {
    return random.below(2) === 0 ? [a, b] : [b, a]
  }
  const one = random.pick(people)
  world.lastTwo = [one, random.pick(people.filter((it) => it !== one))]
  return world.lastTwo
}

const someConversation = (world: World, random: Random): Conversation | undefined =>
  world.conversationOf(...two(world, random))

function someMessage(world: World, random: Random): [Conversation, Message] | undefined {
  const spoken = world.conversations.filter(({ messages }) => messages.length > 0)
  if (spoken.length === 0) return undefined
  const conversation = random.pick(spoken)
  return [conversation, random.pick(conversation.messages)]
}

const messagesPath = ({ id }: Conversation) => `/v1/chat/conversations/${id}/messages`

/** Sends a message and records the expected effects. */
async function say(world: World, [from, to]: [Person, Person], isFile: boolean) {
  const { ask, apartOf } = world
  const known = world.conversationOf(from, to)
  if (!known && apartOf(from, to)) {
    const body = { user_id: to.id }
    await ask(403, 'POST', '/v1/chat/conversations', { token: from.token, body })
    return `${nameOf(from)} cannot begin with ${nameOf(to)}`
  }
  const conversation = await world.open(from, to)
  const file = isFile ? await world.newFile(from) : undefined
  const text = world.newText('say')
  const body = { body: text, ...(file && { type: 'file', file_url: file.url }) }
  const refusal = world.refusal(conversation, from)
  const sent = await ask(refusal ? 403 : 201, 'POST', messagesPath(conversation), {
    token: from.token,
    body,
  })
  mustHold(rules.answer, sent.headers.get('x-error-reason') === (refusal ?? null), refusal)
  if (refusal) return `${nameOf(from)} cannot write to ${nameOf(to)}: ${refusal}`
  world.said(conversation, { id: sent.body.id, from, text, file, isCopy: false })
  return `${nameOf(from)} sends ${text} to ${nameOf(to)}${file ? ' with a file' : ''}`
}

async function removeNotice(world: World, conversation: Conversation, notice: Message) {
  const path = `${messagesPath(conversation)}/${notice.id}`
  const reader = conversation.people.find(({ isGone }) => !isGone)
  if (reader) await world.ask(403, 'DELETE', path, { token: reader.token })
  await world.ask(204, 'DELETE', `/v1/service/messages/${notice.id}`, world.asPlatform)
  world.removed(conversation, notice, undefined)
  return `the platform removes ${notice.text}`
}

/** The receiver reports a message. */
async function report(world: World, random: Random): Promise<string | undefined> {
  const [conversation, message] = someMessage(world, random) ?? []
  if (!conversation || !message) return undefined
  if (!message.from) {
    const reader = conversation.people.find(({ isGone }) => !isGone)
    if (!reader) return undefined
    const body = { message_id: message.id, reason: 'spam' }
    await world.ask(400, 'POST', '/v1/reports', { token: reader.token, body })
    return `${nameOf(reader)} cannot report a notice`
  }
  const reporter = world.otherIn(conversation, message.from)
  const outsider = world.present().find((person) => !conversation.people.includes(person))
  const body = { message_id: message.id, reason: 'spam' }
  if (outsider) await world.ask(404, 'POST', '/v1/reports', { token: outsider.token, body })
  if (reporter.isGone) return undefined
  const made = await world.ask(201, 'POST', '/v1/reports', { token: reporter.token, body })
  if (!world.reports.some(({ id, isOpen }) => isOpen && id === made.body.id)) {
    const texts = conversation.messages.map(({ text }) => text)
    const files = conversation.messages.flatMap(({ file }) => file ?? [])
    const messageId = message.id
    world.reports.push({ id: made.body.id, messageId, texts, files, isOpen: true })
  }
  return `${nameOf(reporter)} reports ${message.text}`
}

/** After this time a message that is still unread is pushed, even with open sockets. */
const halfMinute = 31_000

/** Checks the pushes that are due by then. */
async function passHalfMinute(world: World) {
  const due = world.takeDuePushes()
  const before = world.google.sends.length
  world.clock.advance(halfMinute)
  await world.settle()
  // Messages of other worlds and notifications are pushed as well.
  const sent = world.google.sends
    .slice(before)
    .map(({ message }) => pushIn(message))
    .filter((push) => world.conversations.some(({ id }) => push.endsWith(id)))
  mustHold(rules.pushes, Bun.deepEquals(sent.sort(), due.sort()), { sent, due })
}

function pushIn(message: unknown): string {
  const { token, data } = message as { token: string; data: { conversation_id?: string } }
  return `${token} ${data.conversation_id}`
}

export const visibilityModel: Pick<Model<World>, 'actions'> = {
  actions: {
    say: (world, random) => say(world, two(world, random), false),
    sayMore: (world, random) => say(world, two(world, random), false),
    sendFile: (world, random) => say(world, two(world, random), true),

    async notice(world, random) {
      const people = two(world, random)
      const text = world.newText('say')
      const unread = random.below(2) === 0
      const place = { user_ids: people.map(({ id }) => id) }
      const body = { ...place, body: text, unread, data: { text } }
      const { body: sent } = await world.ask(201, 'POST', '/v1/service/messages', {
        ...world.asPlatform,
        body,
      })
      const known = world.conversationOf(...people)
      const conversation = known ?? world.opened(sent.conversation_id, people)
      const notice = { id: sent.id, from: undefined, text, file: undefined, isCopy: false }
      world.said(conversation, notice, !unread)
      return `the platform tells ${people.map(nameOf).join(' and ')} ${text}`
    },

    async sayAs(world, random) {
      const [from, to] = two(world, random)
      const conversation = world.conversationOf(from, to)
      if (!conversation) return undefined
      const text = world.newText('say')
      const refusal = world.refusal(conversation, from)
      const sent = await world.ask(refusal ? 403 : 201, 'POST', '/v1/service/messages', {
        ...world.asPlatform,
        body: { conversation_id: conversation.id, body: text, from: from.id },
      })
      if (refusal) return `the platform cannot write as ${nameOf(from)}: ${refusal}`
      world.said(conversation, { id: sent.body.id, from, text, file: undefined, isCopy: false })
      return `the platform sends ${text} to ${nameOf(to)} as ${nameOf(from)}`
    },

    async closeOrOpen(world, random) {
      const conversation = someConversation(world, random)
      if (!conversation) return undefined
      conversation.isReadOnly = !conversation.isReadOnly
      const text = random.below(2) === 0 ? world.newText('data') : undefined
      conversation.data.push(text)
      const state = conversation.isReadOnly ? 'read_only' : 'open'
      await world.ask(200, 'PATCH', `/v1/service/conversations/${conversation.id}`, {
        ...world.asPlatform,
        body: { state, data: text === undefined ? null : { text } },
      })
      for (const to of conversation.people) world.expectUpdate(to, conversation)
      return `the platform makes a conversation ${state}, with the data ${text}`
    },

    async switchOffAndOn(world, random) {
      const [person, other] = two(world, random)
      const conversation = world.conversationOf(person, other)
      const path = `/v1/service/users/${person.id}`
      await world.takeFrames()
      await world.ask(200, 'PATCH', path, { ...world.asPlatform, body: { disabled: true } })
      world.expectReach(person)
      await world.ask(401, 'GET', '/v1/users/me', { token: person.token })
      if (conversation) {
        const body = { body: 'x' }
        await world.ask(403, 'POST', messagesPath(conversation), { token: other.token, body })
      }
      await world.ask(200, 'PATCH', path, { ...world.asPlatform, body: { disabled: false } })
      world.expectReach(person)
      await world.settle()
      await world.comeBack(person)
      return `the platform disables and enables ${nameOf(person)}`
    },

    async forward(world, random) {
      const file = world.files.find(({ isGone }) => !isGone)
      const [from, to] = two(world, random)
      if (!file || file.owner === from || world.apartOf(from, to)) return undefined
      const conversation = await world.open(from, to)
      const body = { body: 'x', type: 'file', file_url: file.url }
      const refusal = conversation.isReadOnly ? 403 : 400
      await world.ask(refusal, 'POST', messagesPath(conversation), { token: from.token, body })
      await world.ask(400, 'PATCH', '/v1/users/me', {
        token: from.token,
        body: { avatar_url: file.url },
      })
      return `${nameOf(from)} cannot take the file of ${nameOf(file.owner)}`
    },

    async rename(world, random) {
      const [person] = two(world, random)
      const name = `${person.names[0]}-${person.names.length}`
      await world.ask(200, 'PATCH', '/v1/users/me', {
        token: person.token,
        body: { display_name: name },
      })
      person.names.push(name)
      return `${person.names.at(-2)} is ${name} now`
    },

    async picture(world, random) {
      const [person] = two(world, random)
      const file = await world.newFile(person)
      await world.ask(200, 'PATCH', '/v1/users/me', {
        token: person.token,
        body: { avatar_url: file.url },
      })
      person.picture = file.url
      return `${nameOf(person)} has a new picture`
    },

    async block(world, random) {
      const [by, other] = two(world, random)
      const areBoth = random.below(3) === 0
      await block(world, by, other)
      if (areBoth) await block(world, other, by)
      return `${nameOf(by)} blocks ${nameOf(other)}${areBoth ? ', and is blocked' : ''}`
    },

    async unblock(world, random) {
      const [by, other] = two(world, random)
      await world.ask(204, 'DELETE', `/v1/users/blocks/${other.id}`, { token: by.token })
      world.unblocked(by, other)
      return `${nameOf(by)} unblocks ${nameOf(other)}`
    },

    async mute(world, random) {
      const conversation = someConversation(world, random)
      const person = conversation && random.pick(conversation.people)
      if (!person || person.isGone) return undefined
      const { id, muted } = conversation
      const isMuted = muted.has(person)
      const method = isMuted ? 'DELETE' : 'PUT'
      await world.ask(204, method, `/v1/chat/conversations/${id}/mute`, { token: person.token })
      if (isMuted) muted.delete(person)
      else muted.add(person)
      world.expectUpdate(person, conversation)
      return `${nameOf(person)} ${isMuted ? 'unmutes' : 'mutes'} a conversation`
    },

    async archive(world, random) {
      const conversation = someConversation(world, random)
      const person = conversation && random.pick(conversation.people)
      if (!person || person.isGone) return undefined
      const { id, archived } = conversation
      const isArchived = archived.has(person)
      const method = isArchived ? 'DELETE' : 'PUT'
      await world.ask(204, method, `/v1/chat/conversations/${id}/archive`, { token: person.token })
      if (isArchived) archived.delete(person)
      else archived.add(person)
      world.expectUpdate(person, conversation)
      return `${nameOf(person)} ${isArchived ? 'unarchives' : 'archives'} a conversation`
    },

    async read(world, random) {
      const conversation = someConversation(world, random)
      const person = conversation && random.pick(conversation.people)
      if (!person || person.isGone) return undefined
      const { id, read, messages } = conversation
      await world.ask(204, 'PUT', `/v1/chat/conversations/${id}/read`, { token: person.token })
      const other = world.otherIn(conversation, person)
      if (!world.apartOf(person, other)) {
        read.set(person, messages.length)
        world.expect(other, `read_receipt ${person.id}`)
      }
      return `${nameOf(person)} reads what ${nameOf(other)} wrote`
    },

    async remove(world, random) {
      const [conversation, message] = someMessage(world, random) ?? []
      if (!conversation || !message || message.from?.isGone) return undefined
      const { from } = message
      if (!from) return removeNotice(world, conversation, message)
      const receiver = world.otherIn(conversation, from)
      const path = `${messagesPath(conversation)}/${message.id}`
      if (!receiver.isGone) await world.ask(403, 'DELETE', path, { token: receiver.token })
      await world.ask(204, 'DELETE', path, { token: from.token })
      world.removed(conversation, message, from)
      return `${nameOf(from)} removes ${message.text}`
    },

    async removeAsAdmin(world, random) {
      const [conversation, message] = someMessage(world, random) ?? []
      if (!conversation || !message) return undefined
      await world.ask(204, 'DELETE', `/v1/admin/messages/${message.id}`, world.asAdmin)
      world.removed(conversation, message, undefined)
      return `an admin removes ${message.text}`
    },

    async removeFile(world, random) {
      const file = world.files.find(({ isGone, owner }) => !isGone && !owner.isGone)
      if (!file) return undefined
      const isAdmin = random.below(2) === 0
      const stranger = world.present().find((person) => person !== file.owner)
      if (stranger)
        await world.ask(404, 'DELETE', `/v1/files/${file.id}`, { token: stranger.token })
      const path = isAdmin ? `/v1/admin/files/${file.id}` : `/v1/files/${file.id}`
      await world.ask(204, 'DELETE', path, {
        token: isAdmin ? world.admin.token : file.owner.token,
      })
      world.removedFile(file)
      return `${isAdmin ? 'an admin' : nameOf(file.owner)} removes a file`
    },

    report,

    async resolve(world) {
      const report = world.reports.find(({ isOpen }) => isOpen)
      if (!report) return undefined
      const { token } = world.admin
      await world.ask(200, 'PATCH', `/v1/admin/reports/${report.id}`, {
        token,
        body: { status: 'resolved' },
      })
      report.isOpen = false
      return 'an admin resolves a report'
    },

    async follow(world, random) {
      const follower = random.pick(world.present())
      const { host, followers } = world
      if (host.isGone || follower === host) return undefined
      const isFollowing = followers.has(follower)
      const path = `/v1/service/follows/${host.id}/${follower.id}`
      await world.ask(204, isFollowing ? 'DELETE' : 'PUT', path, world.asPlatform)
      if (isFollowing) followers.delete(follower)
      else followers.add(follower)
      return `${nameOf(follower)} ${isFollowing ? 'leaves' : 'follows'} the host`
    },

    async broadcast(world) {
      const { host, followers } = world
      if (host.isGone) return undefined
      const text = world.newText('say')
      const reached = [...followers].filter(
        (person) => !world.apartOf(host, person) && !world.conversationOf(host, person)?.isReadOnly,
      )
      host.broadcasts.push(text)
      const { body } = await world.ask(201, 'POST', '/v1/chat/broadcast', {
        token: host.token,
        body: { body: text },
      })
      mustHold(rules.answer, body.recipients_count === reached.length, body)
      await world.settle()
      for (const person of reached) {
        const conversation = await world.open(host, person, false)
        const { body: page } = await world.ask(
          200,
          'GET',
          `${messagesPath(conversation)}?per_page=1`,
          { token: person.token },
        )
        const [{ id, body: shown }] = page.data
        mustHold(rules.messages, shown === text, { shown, text })
        world.said(conversation, { id, from: host, text, file: undefined, isCopy: true })
      }
      return `the host sends ${text} to ${reached.map(nameOf).join(', ') || 'nobody'} `
    },

    async notify(world, random) {
      const person = random.pick(world.present())
      const title = world.newText('note')
      const body = { user_id: person.id, type: 'broadcast', title, body: title }
      await world.ask(201, 'POST', '/v1/service/notifications', { ...world.asPlatform, body })
      person.titles.push(title)
      world.expect(person, `notification ${title}`)
      return `the platform notifies ${nameOf(person)}`
    },

    async wait(world) {
      await passHalfMinute(world)
      return 'half a minute passes'
    },

    async forget(world, random) {
      const reported = random.below(2) === 0 ? await report(world, random) : undefined
      await passHalfMinute(world)
      await world.takeFrames()
      await world.passDay()
      return [reported, 'a day passes, and old messages are forgotten'].filter(Boolean).join('; ')
    },

    async leave(world, random) {
      const anybody = random.pick(world.present())
      // A notification of the host names a follower.
      const person = world.present().find((it) => world.followers.has(it)) ?? anybody
      // One person is removed in every second world, never two.
      if (random.below(4) > 0 || world.present().length < 4) return undefined
      const isOwnWish = random.below(2) === 0
      const body = { password: 'correct horse' }
      if (isOwnWish) await world.ask(204, 'DELETE', '/v1/users/me', { token: person.token, body })
      else await world.ask(204, 'DELETE', `/v1/service/users/${person.id}`, world.asPlatform)
      world.removedPerson(person)
      await world.settle()
      return isOwnWish
        ? `${nameOf(person)} leaves for good`
        : `the platform removes ${nameOf(person)}`
    },
  },
}
