import {
  type Client,
  type ClientOptions,
  createClient,
  type Message,
  memoryStorage,
  type Storage,
} from '../../client/src/client.ts'
import { createTestClock } from './clock.ts'
import { startFaultProxy } from './fault-proxy.ts'
import { startService, type TestService } from './service.ts'
import { shared } from './shared.ts'
import { createTestTimers } from './timers.ts'

const password = 'correct horse'
export const ada = { email: 'ada@example.com', password, display_name: 'Ada' }
export const bob = { email: 'bob@example.com', password, display_name: 'Bob' }
export const sessionKey = 'session'

/** Waits for an error and returns its fields. */
export async function refusalOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  )
}

/** What the tests of a file start, all with one service: its clock only moves on, and the addresses of Ada and Bob are
 *  free again for each test. */
export function clientsOfFile() {
  const service = shared(async () => {
    const clock = createTestClock()
    return Object.assign(await startService({ listen: true, clock }), { clock })
  })
  return {
    startClients: async (options?: Partial<ClientOptions>) =>
      startClients(await service(), options),
    startPair: async () => startPair(await service()),
    startChat: async (options?: Partial<ClientOptions>) => startChat(await service(), options),
  }
}

type ClockedService = TestService & { clock: ReturnType<typeof createTestClock> }

/** The service behind a proxy, with clients on the same clock. */
async function startClients(service: ClockedService, options: Partial<ClientOptions> = {}) {
  const { clock } = service
  service.sqlite.run("UPDATE users SET email = id || '@example.org'")
  const timers = createTestTimers(clock.now())
  const proxy = startFaultProxy(service.base)
  const network = new EventTarget()
  const created: Client[] = []
  let endings = 0
  const create = (more: Partial<ClientOptions> = {}) => {
    const client = createClient({
      baseUrl: proxy.base,
      timers,
      random: () => 0.5,
      network,
      ...options,
      ...more,
    })
    client.on('session_ended', () => endings++)
    created.push(client)
    return client
  }
  return {
    service,
    proxy,
    network,
    /** Advances the clients' time only; `advance` moves the service's, too. */
    timers,
    create,
    client: create(),
    endings: () => endings,
    advance(milliseconds: number) {
      clock.advance(milliseconds)
      timers.advance(milliseconds)
    },
    /** Logs a user out of every device, from a new one. */
    async endSessionsOf(person: typeof ada) {
      const elsewhere = create({ storage: memoryStorage() })
      await elsewhere.login(person)
      await endOtherSessions(elsewhere)
    },
    async [Symbol.asyncDispose]() {
      for (const client of created) client.close()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

async function endOtherSessions(client: Client) {
  for await (const { id, current } of client.sessions.each()) {
    if (!current) await client.sessions.end(id)
  }
}

/** Two people with clients of their own, and their conversation. */
async function startPair(service: ClockedService) {
  const all = await startClients(service)
  const [one, other] = [all.create(), all.create()]
  const users = { one: await one.register(ada), other: await other.register(bob) }
  const conversation = await one.conversations.open(users.other.id)
  return { ...all, one, other, users, conversation }
}

/** Ada, logged in with a client, and Bob, whose requests bypass the proxy. */
async function startChat(service: ClockedService, options: Partial<ClientOptions> = {}) {
  const all = await startClients(service, options)
  const { client } = all
  const user = await client.register(ada)
  const friend = await service.register('bob')
  const conversationId = await service.openConversation(friend, user)
  return {
    ...all,
    user,
    friend,
    conversationId,
    messagesPath: `/v1/chat/conversations/${conversationId}/messages`,
    /** Bob writes to Ada. */
    say: async (body: string): Promise<Message> =>
      (await service.say(friend, conversationId, body)).body,
    /** The messages of the conversation, oldest first. */
    async stored(): Promise<Message[]> {
      const path = `/v1/chat/conversations/${conversationId}/messages`
      return (await service.call('GET', path, { token: friend.token })).body.data.toReversed()
    },
  }
}

/** A storage with keys independent of the service's address, which differs in each test. */
export function pageStorage(): Storage {
  const storage = memoryStorage()
  const short = (key: string) => key.replace(/^hostline \S+ /, '')
  return {
    get: (key) => storage.get(short(key)),
    set: (key, value) => storage.set(short(key), value),
    remove: (key) => storage.remove(short(key)),
  }
}

/** The session that a client keeps in its storage. */
export function storedSession(storage: Storage) {
  return JSON.parse(storage.get(sessionKey) ?? '{}')
}
