import { signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import {
  type Answer,
  type ChannelStatus,
  type Client,
  createClient,
  type User,
  webStorage,
} from '../../../client/src/client.ts'
import {
  type openBlocks,
  type openInbox,
  type openNotifications,
  openOutbox,
  type Used,
} from '../../../client/src/state.ts'
import { navigate, withQuery } from '../kit/router.ts'
import { language, texts } from '../kit/texts.tsx'

export const sides = ['left', 'right'] as const
/** The demo shows two people in one page. Each has a client of their own, as if on two phones. */
export type Side = (typeof sides)[number]
export type Session = ReturnType<typeof openSession>

export const sessions = { left: openSession('left'), right: openSession('right') }

export const otherSide = (side: Side): Side => (side === 'left' ? 'right' : 'left')

function openSession(side: Side) {
  /** Simulates a lost connection. A real app has no such thing and leaves `fetch` alone. */
  const isCut = signal(false)
  const client = createClient({
    baseUrl: location.origin,
    language: () => language.value,
    // Two people share this browser's storage. An app with one person needs no key.
    storage: webStorage(localStorage),
    storageKey: `demo ${side}`,
    fetch: (url, init) =>
      isCut.value
        ? Promise.reject(new TypeError('the demo has cut the network'))
        : fetch(url, init),
  })
  const user = signal<User | undefined>(client.restore())
  const status = signal<ChannelStatus>('closed')
  client.on('status', (event) => {
    status.value = event.status
  })
  /** The session ended without a logout here. */
  const hasEnded = signal(false)
  /** Shown for the person who is hidden on a phone. */
  const unreadCount = signal(0)
  /** Open as long as the page: another language renders everything else again. */
  const outbox = openOutbox(client)
  client.on('session_ended', () => {
    leave()
    hasEnded.value = true
  })

  function leave() {
    user.value = undefined
    unreadCount.value = 0
    for (const refused of outbox.getSnapshot().refused) outbox.dismiss(refused)
  }

  // The client reconnects by itself. `session_ended` reports the end for good.
  function goLive() {
    if (!isCut.value) client.connect().catch(() => {})
  }

  function enter(entered: User) {
    hasEnded.value = false
    user.value = entered
    goLive()
  }

  if (user.value) goLive()
  return {
    side,
    client,
    user,
    hasEnded,
    status,
    unreadCount,
    outbox,
    isCut,
    register: async (registration: Parameters<Client['register']>[0]) =>
      enter(await client.register(registration)),
    /** Begins the session of an invented person. */
    begin: (authenticated: Authenticated) => enter(client.setSession(authenticated)),
    login: async (credentials: Parameters<Client['login']>[0]) =>
      enter(await client.login(credentials)),
    async logout() {
      leave()
      isCut.value = false
      // The session ends here even when the service cannot be reached.
      await client.logout().catch(() => {})
    },
    setCut(isNowCut: boolean) {
      isCut.value = isNowCut
      if (isNowCut) client.disconnect()
      else if (user.value) goLive()
    },
  }
}

type Authenticated = Answer<'POST /v1/auth/login'>

declare module '../../../client/src/schema.ts' {
  interface Operations {
    /** The demo's own, which the contract leaves out. */
    'POST /demo/people': {
      body: { subject: string; body: string; answer: string }
      answer: Record<Side, Authenticated>
    }
  }
}

/** Begins with two invented people who talk, and a ticket that support has answered. */
export async function startWithTwo(): Promise<void> {
  const { left, right } = sessions
  const { ticket, talk } = texts.demo.start
  const made = await left.client.request('POST /demo/people', { body: ticket })
  left.begin(made.left)
  right.begin(made.right)
  const { id } = await left.client.conversations.open(made.right.user.id)
  await left.client.send(id, { body: talk.left })
  await right.client.send(id, { body: talk.right })
  navigate(withQuery({ left: `chat.${id}` }), 'replace')
}

/** A signed-in person with the stores that stay open in every view. */
export type Me = {
  side: Side
  session: Session
  client: Client
  user: User
  inbox: Used<typeof openInbox>
  outbox: Used<typeof openOutbox>
  blocks: Used<typeof openBlocks>
  notifications: Used<typeof openNotifications>
}

export const MeContext = createContext<Me | undefined>(undefined)

export function useMe(): Me {
  const me = useContext(MeContext)
  if (!me) throw new Error('nobody is logged in here')
  return me
}
