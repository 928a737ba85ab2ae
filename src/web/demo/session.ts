import { effect, signal } from '@preact/signals'
import {
  type Client,
  type ClientEvents,
  createClient,
  type Storage,
  type User,
} from '../../../client/src/client.ts'
import { watchStatus } from '../ui/connection.tsx'
import { type Language, language } from './language.tsx'
import { createNetwork, type Network } from './network.ts'

export const sides = ['left', 'right'] as const
/** The demo shows two people in one page. Each has a client of their own, as if on two phones. */
export type Side = (typeof sides)[number]
export type Session = ReturnType<typeof openSession>
export type Refused = ClientEvents['message_refused']

const networks: Record<Side, Network> = { left: createNetwork(), right: createNetwork() }
// Only the page keeps refused messages: they outlive the client, which is replaced when the language changes.
const refusedMessages = { left: signal<Refused[]>([]), right: signal<Refused[]>([]) }
export const sessions = {
  left: signal(openSession('left', language.peek())),
  right: signal(openSession('right', language.peek())),
}

export const otherSide = (side: Side): Side => (side === 'left' ? 'right' : 'left')

// A client has one language. Its successor takes over the session and the queued messages from the storage.
effect(() => {
  for (const side of sides) {
    const before = sessions[side].peek()
    if (before.language === language.value) continue
    before.client.close()
    sessions[side].value = openSession(side, language.value)
    sessions[side].peek().saveLanguage()
  }
})

function openSession(side: Side, spoken: Language) {
  const network = networks[side]
  const client = createClient({
    baseUrl: location.origin,
    language: spoken,
    storage: storageOf(side),
    fetch: network.fetch,
  })
  const user = signal<User | undefined>(client.restore())
  /** The session ended without a logout here. */
  const hasEnded = signal(false)
  const status = watchStatus(client)
  /** Shown for the person who is hidden on a phone. */
  const unreadCount = signal(0)
  const refused = refusedMessages[side]
  client.on('message_refused', (refusal) => {
    refused.value = [...refused.value, refusal]
  })
  client.on('session_ended', () => {
    leave()
    hasEnded.value = true
  })

  function leave() {
    user.value = undefined
    refused.value = []
  }

  // The client reconnects by itself. `session_ended` reports the end for good.
  function goLive() {
    if (!network.isCut.value) client.connect().catch(() => {})
  }

  function enter(entered: User) {
    hasEnded.value = false
    user.value = entered
    goLive()
    saveLanguage()
  }

  // Notifications are written in the language of the account, also for people who are offline.
  function saveLanguage() {
    if (user.value) client.account.update({ locale: spoken }).catch(() => {})
  }

  if (user.value) goLive()
  return {
    side,
    language: spoken,
    client,
    user,
    hasEnded,
    status,
    unreadCount,
    refused,
    isCut: network.isCut,
    saveLanguage,
    register: async (registration: Parameters<Client['register']>[0]) =>
      enter(await client.register(registration)),
    login: async (credentials: Parameters<Client['login']>[0]) =>
      enter(await client.login(credentials)),
    async logout() {
      leave()
      unreadCount.value = 0
      network.isCut.value = false
      // The session ends here even when the service cannot be reached.
      await client.logout().catch(() => {})
    },
    setCut(isCut: boolean) {
      network.isCut.value = isCut
      if (isCut) client.disconnect()
      else if (user.value) goLive()
    },
  }
}

/** Two people share this browser's storage, so each has a prefix. An app with one person uses
 *  `webStorage(localStorage)`. */
function storageOf(side: Side): Storage {
  const own = (key: string) => `demo ${side} ${key}`
  return {
    get: (key) => localStorage.getItem(own(key)),
    set: (key, value) => localStorage.setItem(own(key), value),
    remove: (key) => localStorage.removeItem(own(key)),
  }
}

type Handlers = { [Name in keyof ClientEvents]?: (event: ClientEvents[Name]) => void }

/** Adds several handlers.
 *  @returns a function that removes them */
export function listen(client: Client, handlers: Handlers): () => void {
  const names = Object.keys(handlers) as (keyof ClientEvents)[]
  const removers = names.map((name) => client.on(name, handlers[name] as (event: unknown) => void)) // handler and name match
  return () => {
    for (const remove of removers) remove()
  }
}
