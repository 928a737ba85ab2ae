import { Bell, CheckCheck, LifeBuoy, MessageCircle, MessageCirclePlus, Plus } from 'lucide-preact'
import type { ComponentChildren, ComponentType } from 'preact'
import { useRef } from 'preact/hooks'
import type {
  ConversationListItem,
  Notification,
  TicketListItem,
} from '../../../client/src/client.ts'
import { useStore } from '../../../client/src/preact.ts'
import type { ListState } from '../../../client/src/state.ts'
import { openTickets } from '../../../client/src/state.ts'
import { Avatar } from '../kit/avatar.tsx'
import { ActionButton, Button, useAction } from '../kit/button.tsx'
import { useFocusWhenLost } from '../kit/form.tsx'
import { count } from '../kit/format.ts'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { fill, texts } from '../kit/texts.tsx'
import { Time } from '../kit/time.tsx'
import { go, linkTo, placeOf } from './place.ts'
import { PushOptIn } from './push-opt-in.tsx'
import { otherSide, sessions, useMe } from './session.ts'

export function ConversationList() {
  const { inbox } = useMe()
  const text = texts.demo.chat
  return (
    <div class="scroll">
      <NewConversation />
      <List
        label={text.conversations}
        list={inbox}
        icon={MessageCircle}
        words={text}
        render={(item) => <ConversationRow item={item} />}
      />
    </div>
  )
}

function ConversationRow({ item }: { item: ConversationListItem }) {
  const { side } = useMe()
  const { id, participant, last_message, unread_count, updated_at } = item
  return (
    <div class={unread_count > 0 ? 'item unread' : 'item'}>
      <Avatar name={participant.display_name} />
      <a href={linkTo(side, 'chat', id)}>
        <span class="row between">
          <strong class="truncate" dir="auto">
            {participant.display_name}
          </strong>
          <Time at={updated_at} />
        </span>
        <span class="row between">
          <span class="truncate" dir="auto">
            {previewOf(last_message)}
          </span>
          <UnreadBadge unread={unread_count} />
        </span>
      </a>
    </div>
  )
}

function previewOf(last: ConversationListItem['last_message']): string {
  const { chat } = texts.demo
  if (!last) return chat.noMessages
  if (last.body !== '') return last.body
  return last.type === 'file' ? texts.fields.file : texts.kit.removedMessage
}

/** Offers the person of the other panel; other people are found by their id. */
function NewConversation() {
  const { side, inbox, user } = useMe()
  const text = texts.demo.chat
  const other = sessions[otherSide(side)].user.value
  const begin = useAction(async (userId: string) => {
    const conversationId = await inbox.open(userId)
    const { tab, id } = placeOf(side)
    // The person may have gone elsewhere.
    if (tab === 'chat' && id === undefined) go(side, 'chat', conversationId)
  })
  return (
    <div class="stack tight begin">
      {other && other.id !== user.id ? (
        <Button
          tone="primary"
          icon={MessageCirclePlus}
          isBusy={begin.isBusy}
          onClick={() => begin.run(other.id)}
        >
          <span class="truncate">{fill(texts.kit.writeTo, { name: other.display_name })}</span>
        </Button>
      ) : (
        <p class="small soft">{text.nobodyElse}</p>
      )}
      <details class="small">
        <summary>{text.somebodyElse}</summary>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault()
            const data = new FormData(event.currentTarget)
            void begin.run(String(data.get('user_id')).trim())
          }}
        >
          <input name="user_id" aria-label={text.userId} placeholder={text.userId} required />
          <Button submits isBusy={begin.isBusy}>
            {text.write}
          </Button>
        </form>
        <p class="soft">
          {text.ownId} <code>{user.id}</code>
        </p>
      </details>
    </div>
  )
}

export function UnreadBadge({ unread }: { unread: number }) {
  if (unread === 0) return null
  return (
    <span class="badge accent number">
      {count(unread)}
      <span class="visually-hidden"> {texts.demo.unread}</span>
    </span>
  )
}

export function TicketList() {
  const { client, side } = useMe()
  const text = texts.demo.tickets
  const tickets = useStore(() => openTickets(client), [client])
  if (!tickets) return null
  return (
    <div class="scroll">
      <div class="stack tight begin">
        <a class="button primary" href={linkTo(side, 'tickets', 'new')}>
          <Plus />
          {text.create}
        </a>
      </div>
      <List
        label={texts.demo.tabs.tickets}
        list={tickets}
        icon={LifeBuoy}
        words={text}
        render={(ticket) => <TicketRow ticket={ticket} />}
      />
    </div>
  )
}

function TicketRow({ ticket }: { ticket: TicketListItem }) {
  const { side } = useMe()
  const { id, subject, status, priority, category, updated_at } = ticket
  return (
    <div class="item">
      <a href={linkTo(side, 'tickets', id)}>
        <span class="row between">
          <strong class="truncate" dir="auto">
            {subject}
          </strong>
          <StatusBadge status={status} />
        </span>
        <span class="row between">
          <span class="truncate">
            {texts.tickets.categories[category]} · {texts.tickets.priorities[priority]}
          </span>
          <Time at={updated_at} />
        </span>
      </a>
    </div>
  )
}

const tones = { open: 'warning', in_progress: '', resolved: 'good', closed: '' } as const

export function StatusBadge({ status }: { status: TicketListItem['status'] }) {
  return <span class={`badge ${tones[status]}`}>{texts.tickets.statuses[status]}</span>
}

export function NotificationList() {
  const { notifications } = useMe()
  const text = texts.demo.notifications
  return (
    <div class="scroll">
      <PushOptIn />
      {notifications.items.some(({ read }) => !read) && (
        <div class="stack tight begin">
          <ActionButton
            icon={CheckCheck}
            texts={{ button: text.markAllRead }}
            work={notifications.markAllRead}
          />
        </div>
      )}
      <List
        label={texts.demo.tabs.notifications}
        list={notifications}
        icon={Bell}
        words={text}
        render={(item) => <NotificationRow item={item} markRead={notifications.markRead} />}
      />
    </div>
  )
}

type RowProps = { item: Notification; markRead: (id: string) => Promise<unknown> }

/** A click marks the notification as read and opens its subject. */
function NotificationRow({ item, markRead }: RowProps) {
  const { side } = useMe()
  const reading = useAction(markRead)
  function press() {
    if (!item.read) void reading.run(item.id)
    if (item.type === 'support_reply' && item.data.ticket_id)
      go(side, 'tickets', item.data.ticket_id)
  }
  return (
    <div class={item.read ? 'item' : 'item unread'}>
      <span class={item.read ? 'dot seen' : 'dot accent'} />
      <button type="button" onClick={press}>
        <span class="row between">
          <strong dir="auto">{item.title}</strong>
          <Time at={item.created_at} />
        </span>
        <span class="prose" dir="auto">
          {item.body}
        </span>
        {!item.read && <span class="visually-hidden">{texts.demo.unread}</span>}
      </button>
    </div>
  )
}

type ListProps<T> = {
  label: string
  list: ListState<T> & Record<'reload' | 'loadMore', () => Promise<void>>
  icon: ComponentType
  /** For an empty list. */
  words: { none: string; noneText: string }
  render: (item: T) => ComponentChildren
}

/** The rows of a list, and at its end: loading, an error, or a button for more. */
function List<T extends { id: string }>({ label, list, icon, words, render }: ListProps<T>) {
  const { items, status, error, hasMore, isLoadingMore, loadMore, reload } = list
  const known = useRef(0)
  const rows = useFocusWhenLost<HTMLUListElement>(
    hasMore,
    `li:nth-child(${known.current + 1}) :is(a, button)`,
  )
  function showMore() {
    known.current = items.length
    void loadMore()
  }
  return (
    <>
      {status === 'ready' && items.length === 0 && (
        <Empty icon={icon} title={words.none} text={words.noneText} />
      )}
      <ul class="rows" aria-label={label} ref={rows}>
        {items.map((item) => (
          <li key={item.id}>{render(item)}</li>
        ))}
      </ul>
      {status === 'failed' && <Failure error={error} retry={reload} />}
      {status === 'loading' && <Loading />}
      {status === 'ready' && hasMore && (
        <Button tone="ghost" class="more" isBusy={isLoadingMore} onClick={showMore}>
          {texts.kit.showMore}
        </Button>
      )}
    </>
  )
}
