import { type Client, type ClientOptions, createClient } from '../../client/client.ts'
import { startChatStandIn } from './chat-stand-in.ts'
import { createTestClock } from './clock.ts'
import { startService } from './service.ts'
import { createTestTimers } from './timers.ts'

const password = 'correct horse'
export const ada = { email: 'ada@example.com', password, display_name: 'Ada' }
export const bob = { email: 'bob@example.com', password, display_name: 'Bob' }

/** Notes what goes through `fetch`, and breaks it on demand. */
function recordFetch() {
  const seen: string[] = []
  const control = { isOffline: false }
  return {
    control,
    count: (line: string) => seen.filter((it) => it === line).length,
    fetch(url: string, init: RequestInit) {
      seen.push(`${init.method} ${new URL(url).pathname}`)
      return control.isOffline ? Promise.reject(new TypeError('no network')) : fetch(url, init)
    },
  }
}

/** Waits for a refusal and shows it. */
export async function refusalOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  )
}

/** The service itself, and clients of it whose time is the service's. */
export async function startReal(options: Partial<ClientOptions> = {}) {
  const timers = createTestTimers()
  const clock = createTestClock(timers.now())
  const service = await startService({ listen: true, clock })
  const network = recordFetch()
  let endings = 0
  const create = (more: Partial<ClientOptions> = {}) =>
    createClient({
      baseUrl: service.base,
      timers,
      random: () => 0.5,
      fetch: network.fetch,
      onSessionEnded: () => endings++,
      ...options,
      ...more,
    })
  return {
    service,
    network,
    timers,
    create,
    client: create(),
    endings: () => endings,
    advance(milliseconds: number) {
      clock.advance(milliseconds)
      timers.advance(milliseconds)
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** Logs the other devices of a person out. */
export async function endOtherSessions(client: Client) {
  const path = '/v1/auth/sessions'
  const sessions = await client.request<{ data: { id: string; current: boolean }[] }>('GET', path)
  for (const { id, current } of sessions.data) {
    if (!current) await client.request('DELETE', `${path}/${id}`)
  }
}

/** Two people with clients of their own, and their conversation. */
export async function startPair() {
  const real = await startReal()
  const [one, other] = [real.create(), real.create()]
  const users = { one: await one.register(ada), other: await other.register(bob) }
  const conversation = await one.conversations.open(users.other.id)
  return { ...real, one, other, users, conversation }
}

/** Somebody who is logged in at the stand-in. */
export async function startLoggedIn(options: Partial<ClientOptions> = {}) {
  const standIn = startChatStandIn()
  const timers = createTestTimers()
  const network = new EventTarget()
  let endings = 0
  const create = () =>
    createClient({
      baseUrl: standIn.base,
      timers,
      random: () => 0.5,
      network,
      onSessionEnded: () => endings++,
      ...options,
    })
  const client = create()
  await client.login(ada)
  return {
    standIn,
    timers,
    network,
    client,
    create,
    endings: () => endings,
    [Symbol.asyncDispose]: () => standIn[Symbol.asyncDispose](),
  }
}
