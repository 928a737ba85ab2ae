import { Bell, LifeBuoy, LogOut, MessageCircle } from 'lucide-preact'
import type { ComponentType } from 'preact'
import { useEffect, useId } from 'preact/hooks'
import type { User } from '../../../client/src/client.ts'
import { useStore } from '../../../client/src/preact.ts'
import { openBlocks, openInbox, openNotifications } from '../../../client/src/state.ts'
import { Avatar } from '../kit/avatar.tsx'
import { IconButton } from '../kit/button.tsx'
import { useFocusWhenLost } from '../kit/form.tsx'
import { language, texts } from '../kit/texts.tsx'
import { ConversationList, NotificationList, TicketList, UnreadBadge } from './lists.tsx'
import { go, linkTo, placeOf, type Tab, tabs } from './place.ts'
import { MeContext, type Session, useMe } from './session.ts'
import { ThreadView } from './thread.tsx'
import { NewTicketForm, TicketView } from './ticket.tsx'

export function Home({ session, user }: { session: Session; user: User }) {
  const { client, side } = session
  const inbox = useStore(() => openInbox(client), [client])
  const outbox = useStore(() => ({ ...session.outbox, close() {} }), [session])
  const blocks = useStore(() => openBlocks(client), [client])
  const notifications = useStore(() => openNotifications(client), [client])
  const chat = inbox?.items.reduce((sum, { unread_count }) => sum + unread_count, 0) ?? 0
  const unread = { chat, tickets: 0, notifications: notifications?.unread ?? 0 }
  useEffect(() => {
    session.unreadCount.value = unread.chat + unread.notifications
  })
  // Notifications are written in the language of the account, also for people who are offline.
  useEffect(
    () => void client.account.update({ locale: language.value }).catch(() => {}),
    [client, language.value],
  )
  if (!inbox || !outbox || !blocks || !notifications) return null
  return (
    <MeContext.Provider
      value={{ side, session, client, user, inbox, outbox, blocks, notifications }}
    >
      <header class="panel-head">
        <Avatar name={user.display_name} />
        <div class="who">
          <h2 class="truncate" dir="auto">
            {user.display_name}
          </h2>
          <p class="small soft truncate">{user.email}</p>
        </div>
        <ConnectionSwitch session={session} />
        <IconButton
          icon={LogOut}
          label={texts.kit.logout}
          onClick={() => {
            go(side, 'chat')
            void session.logout()
          }}
        />
      </header>
      <Tabs unread={unread} />
      <Body />
    </MeContext.Provider>
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
      {tabs.map((tab) => {
        const Icon = icons[tab]
        return (
          <a
            key={tab}
            class="row"
            href={linkTo(side, tab)}
            aria-current={tab === current ? 'page' : undefined}
          >
            <Icon />
            {texts.demo.tabs[tab]}
            <UnreadBadge unread={unread[tab]} />
          </a>
        )
      })}
    </nav>
  )
}

function Body() {
  const { side } = useMe()
  const { tab, id } = placeOf(side)
  const element = useFocusWhenLost<HTMLDivElement>(`${tab} ${id}`, 'textarea, .form input')
  return (
    <div class="panel-body" ref={element} tabIndex={-1}>
      {tab === 'chat' && (id ? <ThreadView key={id} conversationId={id} /> : <ConversationList />)}
      {tab === 'tickets' && <Tickets id={id} />}
      {tab === 'notifications' && <NotificationList />}
    </div>
  )
}

/** @param id of a ticket, or `new` */
function Tickets({ id }: { id: string | undefined }) {
  if (id === undefined) return <TicketList />
  return id === 'new' ? <NewTicketForm /> : <TicketView key={id} id={id} />
}

const tones = {
  open: 'good',
  connecting: 'warning',
  waiting: 'danger',
  closed: 'danger',
  cut: 'danger',
} as const

function ConnectionSwitch({ session }: { session: Session }) {
  const { label, states } = texts.demo.connection
  const id = useId()
  const isCut = session.isCut.value
  const state = isCut ? 'cut' : session.status.value
  return (
    <>
      <label class="switch row small" for={id}>
        <span class={`dot ${tones[state]}`} />
        {label}
        <input
          id={id}
          type="checkbox"
          role="switch"
          checked={!isCut}
          aria-checked={!isCut}
          aria-describedby={`${id}-state`}
          onChange={({ currentTarget }) => session.setCut(!currentTarget.checked)}
        />
      </label>
      <p id={`${id}-state`} class={`connection-state small ${state}`} role="status">
        {states[state]}
      </p>
    </>
  )
}
