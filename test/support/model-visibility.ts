import { day, hour } from '../../src/lib/clock.ts'
import { createTestClock } from './clock.ts'
import { upload } from './files.ts'
import { Broken, mustHold } from './model.ts'
import { startGoogle } from './push-services.ts'
import { type Answer, type Person as Registered, startService } from './service.ts'
import type { TestSocket } from './socket.ts'
import { waitFor } from './wait.ts'
import { startReceiver } from './webhook-receiver.ts'

export const rules = {
  answer: 'each action gets the response that the model expects',
  inbox: 'a conversation list shows exactly what its owner may see',
  messages: 'a conversation shows its two people the same, and others nothing',
  frames: 'a socket gets the frames that its owner may see, once',
  secret: 'no one reads data of others',
  files: 'a file exists until its owner or an admin removes it',
  reports: 'a report shows the desk the reported messages',
  notifications: 'users get exactly their own notifications',
  blocks: 'a list of blocks shows the names as at the block',
  pushes: 'muted and blocked conversations cause no pushes',
  export: 'an export contains what its owner may see',
  catchUp: 'the catch-up matches the lists',
  webhooks: 'a webhook gets exactly the events that happened',
}

export type Person = Registered & {
  /** Every name, the current one last. */
  names: string[]
  /** The URL of the uploaded picture; undefined for the generated one. */
  picture: string | undefined
  isGone: boolean
  socket: TestSocket
  /** Titles of notifications, oldest first. */
  titles: string[]
  /** Texts sent to all followers, possibly none. */
  broadcasts: string[]
}
export type File = { owner: Person; id: string; url: string; isGone: boolean }
export type Message = {
  id: string
  /** Undefined for a notice of the platform. */
  from: Person | undefined
  text: string
  file: File | undefined
  /** A copy of a broadcast, for one follower. */
  isCopy: boolean
  isRemoved: boolean
  /** A notice that does not count as unread. */
  isSilent: boolean
}
export type Conversation = {
  id: string
  people: [Person, Person]
  messages: Message[]
  /** Number of messages that were forgotten before those. */
  forgotten: number
  /** Number of messages that each has read. */
  read: Map<Person, number>
  muted: Set<Person>
  isReadOnly: boolean
  /** The texts in the data of the platform, the present one last. */
  data: (string | undefined)[]
  archived: Set<Person>
  /** Recipients of messages in the last half minute. */
  unpushed: Set<Person>
  /** Number of messages up to the last one pushed to each. */
  pushed: Map<Person, number>
}
/** Two people one of whom blocks the other: the blockers, and the names at the first block. */
type Apart = {
  people: [Person, Person]
  by: Set<Person>
  names: Map<Person, string>
  since: Map<Person, number>
}
export type Report = {
  id: string
  messageId: string
  texts: string[]
  files: File[]
  isOpen: boolean
}
type Frame = { to: Person; frame: string }

export type Stage = Awaited<ReturnType<typeof startStage>>

/** A service shared by many worlds, with an admin, the platform's key and the platform's endpoint. */
export async function startStage() {
  const receiver = startReceiver()
  const clock = createTestClock()
  const google = startGoogle(clock)
  const service = await startService({
    clock,
    listen: true,
    sync: async () => {},
    environment: {
      RATE_LIMIT_FRAMES: 'off',
      WEBHOOK_PRIVATE: 'true',
      FCM_SERVICE_ACCOUNT: google.keyFile,
      FCM_URL: google.url,
    },
  })
  const admin = await service.registerAs('admin', 'root')
  const key = await service.issueKey([
    'notifications',
    'follows',
    'messages',
    'messages_as',
    'users',
  ])
  const events = ['message.created', 'message.deleted', 'report.created', 'user.deleted']
  await service.call('POST', '/v1/admin/webhooks', {
    token: admin.token,
    body: { url: receiver.url, events },
  })
  await service.call('PATCH', '/v1/admin/settings', {
    token: admin.token,
    body: { message_retention_days: 1 },
  })
  let worlds = 0
  return {
    clock,
    google,
    service,
    receiver,
    admin,
    key,
    nextWorld: () => ++worlds,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await receiver[Symbol.asyncDispose]()
      await google[Symbol.asyncDispose]()
    },
  }
}

export type World = Awaited<ReturnType<typeof beginWorld>>

/** A host with followers, and other people, with their messages and actions. */
export async function beginWorld(stage: Stage) {
  const { service, clock, admin, key } = stage
  const n = stage.nextWorld()
  // Former worlds have advanced the clock.
  Object.assign(admin, await service.login(admin.email))
  service.trust(admin)
  const people: Person[] = []
  const conversations: Conversation[] = []
  const files: File[] = []
  const aparts: Apart[] = []
  const reports: Report[] = []
  const followers = new Set<Person>()
  const removedIds = new Set<string>()
  let expected: Frame[] = []
  let texts = 0

  for (const name of ['hal', 'ann', 'bea', 'cy']) {
    const registered = await service.registerAs(
      name === 'hal' ? 'host' : 'verified_user',
      `${name}-${n}`,
    )
    people.push({
      ...registered,
      socket: await connect(registered),
      names: [`${name}-${n}`],
      picture: undefined,
      isGone: false,
      titles: [],
      broadcasts: [],
    })
  }
  const [host] = people as [Person, ...Person[]]

  async function connect(person: Registered): Promise<TestSocket> {
    await service.call('POST', '/v1/notifications/push-tokens', {
      token: person.token,
      body: { token: `device-${person.id}`, platform: 'ios' },
    })
    return service.connect(person, '&events=notification,changes')
  }

  async function ask(
    status: number,
    method: string,
    path: string,
    options: Parameters<typeof service.call>[2] = {},
  ): Promise<Answer> {
    const answer = await service.callInProcess(method, path, options)
    mustHold(
      rules.answer,
      answer.status === status,
      `${method} ${path}: ${answer.status} for ${status}`,
    )
    return answer
  }

  const apartOf = (a: Person, b: Person) =>
    aparts.find(({ people }) => people.includes(a) && people.includes(b) && a !== b)

  function hiddenNames(viewer: Person, other: Person): string[] {
    if (other === viewer) return []
    return other.isGone
      ? other.names
      : other.names.slice(apartOf(viewer, other)?.since.get(other) ?? Infinity)
  }

  const present = () => people.filter(({ isGone }) => !isGone)

  const world = {
    ...stage,
    n,
    people,
    host,
    conversations,
    files,
    reports,
    followers,
    removedIds,
    ask,
    present,
    apartOf,
    asAdmin: { token: admin.token },
    asPlatform: { token: key.token },
    steps: 0,
    lastTwo: [people[0], people[1]] as [Person, Person],
    newText: (kind: string) => `${kind}~${n}~${++texts}~`,
    conversationOf: (a: Person, b: Person) =>
      conversations.find(({ people }) => people.includes(a) && people.includes(b)),
    ownConversations: (person: Person) =>
      conversations.filter(({ people }) => people.includes(person)),
    otherIn: ({ people: [a, b] }: Conversation, person: Person) => (a === person ? b : a),

    /** A conversation of two people, created at the first call.
     *  @param isTold whether both get a frame about a new one; false when a broadcast has created it */
    async open(a: Person, b: Person, isTold = true): Promise<Conversation> {
      const known = world.conversationOf(a, b)
      if (known) return known
      const { body } = await ask(201, 'POST', '/v1/chat/conversations', {
        token: a.token,
        body: { user_id: b.id },
      })
      const made = world.opened(body.id, [a, b])
      if (isTold) for (const to of made.people) world.expectUpdate(to, made)
      return made
    },

    opened(id: string, people: [Person, Person]): Conversation {
      const made: Conversation = {
        id,
        people,
        messages: [],
        forgotten: 0,
        read: new Map(),
        muted: new Set(),
        isReadOnly: false,
        data: [],
        archived: new Set(),
        unpushed: new Set(),
        pushed: new Map(),
      }
      conversations.push(made)
      return made
    },

    /** The pushes due after half a minute, by device and conversation. */
    takeDuePushes(): string[] {
      const due = conversations.flatMap((conversation) =>
        [...conversation.unpushed]
          .filter(
            (to) => !world.isSilent(conversation, to) && world.isNewToDevice(conversation, to),
          )
          .map((to) => `device-${to.id} ${conversation.id}`),
      )
      for (const { unpushed } of conversations) unpushed.clear()
      return due
    },

    /** Whether the newest unread message was not pushed before; from now on it was. */
    isNewToDevice(conversation: Conversation, to: Person): boolean {
      const { messages, read, pushed } = conversation
      const isApart = apartOf(to, world.otherIn(conversation, to)) !== undefined
      const newest =
        messages.findLastIndex(
          (message) => isUnreadFor(message, to) && !(isApart && message.from),
        ) + 1
      const isNew = newest > (read.get(to) ?? 0) && newest > (pushed.get(to) ?? 0)
      if (isNew) pushed.set(to, newest)
      return isNew
    },

    isSilent(conversation: Conversation, person: Person): boolean {
      const { muted, archived } = conversation
      return person.isGone || muted.has(person) || archived.has(person)
    },

    /** Undefined if a person may send. */
    refusal(conversation: Conversation, person: Person): string | undefined {
      const other = world.otherIn(conversation, person)
      if (other.isGone) return 'recipient_gone'
      if (apartOf(person, other)) return 'blocked'
      return conversation.isReadOnly ? 'read_only' : undefined
    },

    said(
      conversation: Conversation,
      said: Omit<Message, 'isRemoved' | 'isSilent'>,
      isSilent = false,
    ) {
      const message = { ...said, isRemoved: false, isSilent }
      conversation.messages.push(message)
      conversation.archived.clear()
      for (const to of conversation.people) {
        if (isUnreadFor(message, to)) conversation.unpushed.add(to)
      }
      for (const to of conversation.people) {
        if (!message.isCopy || to !== message.from) world.expect(to, `new_message ${message.id}`)
      }
    },

    expect(to: Person, frame: string) {
      if (!to.isGone) expected.push({ to, frame })
    },

    removed(conversation: Conversation, message: Message, by: Person | undefined) {
      if (message.isRemoved) return
      message.isRemoved = true
      if (message.file) world.removedFile(message.file)
      const [a, b] = conversation.people
      const isForOther = by === undefined || !apartOf(a, b)
      for (const to of conversation.people) {
        if (isForOther || to === by) world.expect(to, `message_deleted ${message.id}`)
      }
    },

    removedFile(file: File) {
      file.isGone = true
      for (const person of people) if (person.picture === file.url) person.picture = undefined
    },

    /** Expects the frame for a person whose right to send has changed. */
    expectUpdate(to: Person, conversation: Conversation | undefined) {
      if (conversation) world.expect(to, `conversation_updated ${conversation.id}`)
    },

    blocked(by: Person, other: Person) {
      const apart = apartOf(by, other)
      if (apart) {
        apart.by.add(by)
        return
      }
      const both: [Person, Person] = [by, other]
      for (const to of both) world.expectUpdate(to, world.conversationOf(by, other))
      aparts.push({
        people: both,
        by: new Set([by]),
        names: new Map(both.map((it) => [it, nameOf(it)])),
        since: new Map(both.map((it) => [it, it.names.length])),
      })
    },

    unblocked(by: Person, other: Person) {
      const apart = apartOf(by, other)
      if (!apart?.by.delete(by) || apart.by.size > 0) return
      aparts.splice(aparts.indexOf(apart), 1)
      for (const to of [by, other]) world.expectUpdate(to, world.conversationOf(by, other))
    },

    /** After a person was disabled, enabled or removed. */
    expectReach(person: Person) {
      for (const conversation of world.ownConversations(person))
        world.expectUpdate(world.otherIn(conversation, person), conversation)
    },

    /** Logs in again after all sessions ended. */
    async comeBack(person: Person) {
      Object.assign(person, await service.login(person.email))
      person.socket = await connect(person)
    },

    removedPerson(person: Person) {
      person.isGone = true
      world.expectReach(person)
      person.picture = undefined
      followers.delete(person)
      for (const apart of [...aparts]) {
        if (apart.people.includes(person)) aparts.splice(aparts.indexOf(apart), 1)
      }
      for (const file of files) if (file.owner === person) file.isGone = true
    },

    shownName(viewer: Person, other: Person): string {
      if (other.isGone) return 'Deleted user'
      return apartOf(viewer, other)?.names.get(other) ?? nameOf(other)
    },
    shownPicture: (viewer: Person, other: Person) =>
      apartOf(viewer, other) ? undefined : other.picture,
    blocksOf: (person: Person) => aparts.filter(({ by }) => by.has(person)),

    unread(conversation: Conversation, person: Person): number {
      const after = conversation.messages.slice(conversation.read.get(person) ?? 0)
      return after.filter((message) => isUnreadFor(message, person)).length
    },

    /** Checks that a person does not see texts of others, removed texts, or names changed during a block.
     *  @param own texts that they may see nevertheless */
    mustNotLeak(viewer: Person, place: string, content: unknown, own: string[] = []) {
      world.mustNotLeakTexts(viewer, place, content, own)
      const text = JSON.stringify(content)
      const names = people.flatMap((other) => hiddenNames(viewer, other))
      const name = names.find((it) => text.includes(`"${it}"`))
      mustHold(rules.secret, !name, `${nameOf(viewer)} reads ${name} in ${place}`)
    },

    mustNotLeakTexts(viewer: Person, place: string, content: unknown, own: unknown[]) {
      const allowed = new Set<unknown>([...world.readableBy(viewer), ...own])
      const texts = JSON.stringify(content).match(/(?:say|note|data)~\d+~\d+~/g)
      const leaked = texts?.find((found) => !allowed.has(found))
      mustHold(rules.secret, !leaked, `${nameOf(viewer)} reads ${leaked} in ${place}`)
    },

    readableBy(viewer: Person): string[] {
      const messages = world.ownConversations(viewer).flatMap((it) => it.messages)
      const texts = messages.filter(({ isRemoved }) => !isRemoved).map(({ text }) => text)
      const data = world.ownConversations(viewer).flatMap((it) => it.data.at(-1) ?? [])
      return [...texts, ...data, ...viewer.titles]
    },

    /** Compares the frames of each socket since the last call with the expected ones. */
    async takeFrames() {
      for (const person of present()) {
        await person.socket.settled()
        const got = person.socket.frames.splice(0)
        // Messages may have been removed, data replaced, and people have left.
        const own = world
          .ownConversations(person)
          .flatMap(({ messages, data }) => [...data, ...messages.map(({ text }) => text)])
        world.mustNotLeakTexts(person, 'frames', got, own)
        const due = expected.filter(({ to }) => to === person).map(({ frame }) => frame)
        // The host also gets notifications of first followers, which this model does not count.
        const counted = got.filter(({ notification }) => notification?.type !== 'follow_new')
        const seen = counted.map((frame) => `${frame.type} ${idOf(frame)}`)
        mustHold(rules.frames, Bun.deepEquals(seen.sort(), due.sort()), {
          person: nameOf(person),
          seen,
          due,
        })
      }
      expected = []
    },

    /** Waits for all jobs. */
    async settle() {
      const waiting = service.sqlite.query<unknown, [number]>(
        `SELECT 1 FROM outbox WHERE dead_at IS NULL AND (kind = 'unread_push' AND run_at <= ?
         OR kind IN ('erasure', 'broadcast', 'file_removal', 'file_release', 'webhook_delivery', 'message_push', 'reach_changed')) LIMIT 1`,
      )
      await waitFor(() => waiting.get(clock.now()) === null, 'jobs')
    },

    /** A day passes, in which messages and unused files are forgotten and sessions end. */
    async passDay() {
      const { sqlite } = service
      const runs = sqlite.query<{ n: number }, []>(
        "SELECT count(*) AS n FROM audit_log WHERE action = 'retention_run'",
      )
      const unused = sqlite.query('SELECT 1 FROM files WHERE unused_since < ? LIMIT 1')
      const before = runs.get()?.n ?? 0
      const kept = world.usedFiles()
      clock.advance(day + hour)
      await waitFor(() => (runs.get()?.n ?? 0) > before, 'a run of retention')
      await waitFor(() => unused.get(clock.now() - day) === null, 'unused files to go')
      await world.settle()
      for (const file of files) if (!kept.has(file)) file.isGone = true
      for (const conversation of conversations) world.forget(conversation)
      Object.assign(admin, await service.login(admin.email))
      service.trust(admin)
      world.asAdmin.token = admin.token
      for (const person of present()) {
        person.socket.close()
        await world.comeBack(person)
      }
    },

    /** Files of messages, pictures and open reports. */
    usedFiles(): Set<File> {
      const said = conversations.flatMap(({ messages }) =>
        messages.flatMap(({ file }) => file ?? []),
      )
      const reported = reports.flatMap((report) => (report.isOpen ? report.files : []))
      const pictures = files.filter(({ url }) => people.some(({ picture }) => picture === url))
      return new Set([...said, ...reported, ...pictures])
    },

    /** Forgets all messages before the first one that an open report names. */
    forget(conversation: Conversation) {
      const { messages, read, pushed } = conversation
      const held = messages.findIndex(({ id }) =>
        reports.some(({ isOpen, messageId }) => isOpen && messageId === id),
      )
      const gone = messages.splice(0, held < 0 ? messages.length : held).length
      conversation.forgotten += gone
      for (const counts of [read, pushed]) {
        for (const [person, count] of counts) counts.set(person, Math.max(0, count - gone))
      }
    },

    async newFile(owner: Person): Promise<File> {
      const { status, body } = await upload(service, owner, world.newText('bytes'), {
        name: 'a.txt',
      })
      if (status !== 201) throw new Broken(rules.answer, `an upload: ${status}`)
      const file = {
        owner,
        id: new URL(body.file_url).pathname.split('/')[3] ?? '',
        url: body.file_url,
        isGone: false,
      }
      files.push(file)
      return file
    },

    async [Symbol.asyncDispose]() {
      for (const { socket } of people) socket.close()
    },
  }
  return world
}

const isUnreadFor = ({ from, isRemoved, isSilent }: Message, to: Person) =>
  from !== to && !isRemoved && !isSilent

export const nameOf = ({ names }: Person): string => names.at(-1) ?? ''

// biome-ignore lint/suspicious/noExplicitAny: frames are judged by the checks on them
function idOf(frame: any): string {
  return (
    frame.message?.id ??
    frame.conversation?.id ??
    frame.message_id ??
    frame.notification?.title ??
    frame.user_id ??
    ''
  )
}
