import { Bell, LifeBuoy, LogOut, MessageCircle } from 'lucide-preact'
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { User } from '../../../client/src/client.ts'
import { Avatar } from '../ui/avatar.tsx'
import { count } from '../ui/format.ts'
import { openBlocks } from './blocks.ts'
import { ConnectionSwitch } from './connection-switch.tsx'
import { ConversationList } from './conversation-list.tsx'
import { openInbox } from './inbox.ts'
import { texts } from './language.tsx'
import { MeContext, useMe } from './me.ts'
import { NotificationList } from './notification-list.tsx'
import { openNotificationBadge } from './notifications.ts'
import { openOutbox } from './outbox.ts'
import { go, linkTo, placeOf, type Tab } from './place.ts'
import type { Session } from './session.ts'
import { useStore } from './store.ts'
import { ThreadView } from './thread-view.tsx'
import { Tickets } from './tickets.tsx'

export function Home({ session, user }: { session: Session; user: User }) {
  const { client, side } = session
  const inbox = useStore(() => openInbox(client, user.id))
  const outbox = useStore(() => openOutbox(session))
  const [blocks] = useState(() => openBlocks(client))
  const badge = useStore(() => openNotificationBadge(client))
  const unread = { chat: inbox.unreadCount.value, tickets: 0, notifications: badge.count.value }
  useEffect(() => {
    session.unreadCount.value = unread.chat + unread.notifications
  })
  return (
    <MeContext.Provider value={{ side, session, client, user, inbox, outbox, blocks }}>
      <header class="panel-head">
        <Avatar name={user.display_name} />
        <div class="who">
          <h2 class="truncate">{user.display_name}</h2>
          <p class="small soft truncate">{user.email}</p>
        </div>
        <ConnectionSwitch session={session} />
        <LogoutButton />
      </header>
      <Tabs unread={unread} />
      <Body />
    </MeContext.Provider>
  )
}

function LogoutButton() {
  const { session, side } = useMe()
  const label = texts.value.logout
  return (
    <button
      type="button"
      class="button ghost icon"
      aria-label={label}
      title={label}
      onClick={() => {
        go(side, 'chat')
        void session.logout()
      }}
    >
      <LogOut />
    </button>
  )
}

const icons: Record<Tab, ComponentType> = {
  chat: MessageCircle,
  tickets: LifeBuoy,
  notifications: Bell,
}

function Tabs({ unread }: { unread: Record<Tab, number> }) {
  const { side, user } = useMe()
  const current = placeOf(side).tab
  return (
    <nav class="tabs" aria-label={user.display_name}>
      {(Object.keys(icons) as Tab[]).map((tab) => {
        const Icon = icons[tab]
        return (
          <a key={tab} href={linkTo(side, tab)} aria-current={tab === current ? 'page' : undefined}>
            <Icon />
            {texts.value.tabs[tab]}
            {unread[tab] > 0 && (
              <span class="badge accent number">
                {count(unread[tab])}
                <span class="visually-hidden"> {texts.value.unread}</span>
              </span>
            )}
          </a>
        )
      })}
    </nav>
  )
}

function Body() {
  const { side } = useMe()
  const { tab, id } = placeOf(side)
  const element = useFocusWhenLost(`${tab} ${id}`)
  return (
    <div class="panel-body" ref={element} tabIndex={-1}>
      {tab === 'chat' && (id ? <ThreadView key={id} conversationId={id} /> : <ConversationList />)}
      {tab === 'tickets' && <Tickets id={id} />}
      {tab === 'notifications' && <NotificationList />}
    </div>
  )
}

/** The focused element may be gone after navigation: the focus then moves to the composer, or else to the view. */
function useFocusWhenLost(place: string) {
  const element = useRef<HTMLDivElement>(null)
  const before = useRef(place)
  useEffect(() => {
    const hasMoved = before.current !== place
    before.current = place
    if (!hasMoved || document.activeElement !== document.body) return
    const field = element.current?.querySelector<HTMLElement>('textarea, .form input')
    const target = field ?? element.current
    target?.focus()
  }, [place])
  return element
}
