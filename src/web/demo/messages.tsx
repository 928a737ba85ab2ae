import {
  Check,
  CheckCheck,
  CircleAlert,
  Clock,
  MessageCircle,
  Paperclip,
  Trash2,
} from 'lucide-preact'
import { type ComponentChildren, Fragment } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import {
  ApiError,
  type Draft,
  type Message,
  type Queued,
  type Refused,
} from '../../../client/src/client.ts'
import { Button, IconButton, useAction } from '../kit/button.tsx'
import { confirmAction } from '../kit/dialog.tsx'
import { errorText } from '../kit/errors.ts'
import { MessageFiles } from '../kit/file-link.tsx'
import { dayHeading } from '../kit/format.ts'
import { useKeptPlace } from '../kit/kept-place.ts'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { texts } from '../kit/texts.tsx'
import { TimeOfDay } from '../kit/time.tsx'
import { useMe } from './session.ts'
import type { Thread } from './thread.tsx'

type MessageListProps = { thread: Thread; conversationId: string }

/** Messages by day, then those that were refused or wait. */
export function MessageList({ thread, conversationId }: MessageListProps) {
  const { user, outbox } = useMe()
  const text = texts.demo.chat
  const label = texts.fields.messages
  const { items: messages, waiting, status, conversation } = thread
  const refused = outbox.refused.filter(({ queued }) => queued.conversation_id === conversationId)
  const frame = useKeptPlace(messages.at(-1)?.id)
  const own = waiting.at(-1)?.client_id
  useLayoutEffect(() => {
    if (own !== undefined) frame.current?.scrollTo(0, 0)
  }, [own])
  const end = useMarkRead(thread)
  const isEmpty = status === 'ready' && messages.length + waiting.length + refused.length === 0
  const readUpTo = conversation?.participant_read_up_to ?? ''
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus
    <div class="scroll from-end" ref={frame} tabIndex={0} role="log" aria-label={label}>
      <div class="messages">
        {thread.hasMore && <EarlierButton thread={thread} />}
        {status === 'loading' && <Loading rows={6} />}
        {status === 'failed' && messages.length === 0 && (
          <Failure error={thread.error} retry={thread.reload} />
        )}
        {isEmpty && <Empty icon={MessageCircle} title={text.nothingSaid} />}
        {messages.map((message, index) => (
          <Fragment key={message.id}>
            {dayOf(message) !== dayOf(messages[index - 1]) && (
              <p class="day small soft">{dayHeading(dayOf(message))}</p>
            )}
            <MessageView
              message={message}
              isOwn={message.sender_id === user.id}
              isRead={message.id <= readUpTo}
              remove={thread.remove}
            />
          </Fragment>
        ))}
        {refused.map((refusal) => (
          <RefusedMessage key={refusal.queued.client_id} refused={refusal} />
        ))}
        {waiting.map((queued) => (
          <WaitingMessage key={queued.client_id} queued={queued} />
        ))}
        <div ref={end} class="end" />
      </div>
    </div>
  )
}

/** Loads earlier messages when pressed or scrolled into view. */
function EarlierButton({ thread: { isLoadingMore, loadEarlier } }: { thread: Thread }) {
  const button = useInView<HTMLButtonElement>((isInSight) => isInSight && loadEarlier())
  return (
    <Button tone="ghost" class="more" of={button} isBusy={isLoadingMore} onClick={loadEarlier}>
      {isLoadingMore ? texts.kit.loading : texts.demo.chat.earlier}
    </Button>
  )
}

const dayOf = (message: Message | undefined) =>
  message ? new Date(message.created_at).toDateString() : ''

/** Marks messages as read while the bottom of the list is visible. */
function useMarkRead({ items, markRead }: Thread) {
  const { user } = useMe()
  const newest = items.findLast(({ sender_id }) => sender_id !== user.id)?.id
  const latest = useRef(newest)
  latest.current = newest
  const isInSight = useRef(false)
  const marked = useRef<string>(undefined)

  function mark() {
    const upTo = latest.current
    const isSeen = isInSight.current && document.visibilityState === 'visible'
    if (!isSeen || upTo === undefined || upTo === marked.current) return
    marked.current = upTo
    // The next message or visit tries again.
    markRead(upTo).catch(() => {
      marked.current = undefined
    })
  }

  // Runs before paint, so that a message that arrives in view never counts as unread.
  useLayoutEffect(mark, [newest])
  useEffect(() => {
    document.addEventListener('visibilitychange', mark)
    return () => document.removeEventListener('visibilitychange', mark)
  }, [])
  return useInView<HTMLDivElement>((isNowInSight) => {
    isInSight.current = isNowInSight
    mark()
  })
}

/** Calls `onChange` when an element enters or leaves the viewport. In a hidden browser tab nothing is visible. */
function useInView<E extends Element>(onChange: (isInView: boolean) => void) {
  const element = useRef<E>(null)
  const latest = useRef(onChange)
  latest.current = onChange
  useEffect(() => {
    if (!element.current) return
    const observer = new IntersectionObserver((entries) => {
      const newest = entries.at(-1)
      if (newest) latest.current(newest.isIntersecting)
    })
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return element
}

type MessageViewProps = {
  message: Message
  isOwn: boolean
  isRead: boolean
  remove: (id: string) => Promise<void>
}

function MessageView({ message, isOwn, isRead, remove }: MessageViewProps) {
  const text = texts.demo.chat
  const { created_at: at, deleted_at } = message
  if (message.type === 'notice') {
    return (
      <p class="day small">
        {deleted_at === undefined ? message.body : texts.kit.removedMessage} <TimeOfDay at={at} />
      </p>
    )
  }
  if (deleted_at !== undefined) {
    return (
      <Bubble isOwn={isOwn} kind="removed">
        <p class="soft">{texts.kit.removedMessage}</p>
      </Bubble>
    )
  }
  return (
    <Bubble isOwn={isOwn} kind="stored">
      <Content message={message} />
      <p class="meta">
        {isOwn && <RemoveButton message={message} remove={remove} />}
        <TimeOfDay at={at} />
        {isOwn && (isRead ? <CheckCheck /> : <Check />)}
        {isOwn && <span>{isRead ? text.read : text.sent}</span>}
      </p>
    </Bubble>
  )
}

export function WaitingMessage({ queued }: { queued: Queued }) {
  const { session } = useMe()
  const { waiting, sending } = texts.demo.chat
  return (
    <Bubble isOwn kind="waiting">
      <Content message={draftOf(queued)} />
      <p class="meta">
        <Clock />
        <span>{session.status.value === 'open' ? sending : waiting}</span>
      </p>
    </Bubble>
  )
}

export function RefusedMessage({ refused }: { refused: Refused }) {
  const { outbox } = useMe()
  const text = texts.demo.chat
  const { queued, error } = refused
  return (
    <Bubble isOwn kind="refused">
      <Content message={draftOf(queued)} />
      <p class="meta error" role="alert">
        <CircleAlert />
        <span>{reasonOf(error)}</span>
      </p>
      <div class="row">
        <Button onClick={() => outbox.retry(refused).catch(() => {})}>{text.sendAgain}</Button>
        <Button tone="ghost" onClick={() => outbox.dismiss(refused)}>
          {text.dismiss}
        </Button>
      </div>
    </Bubble>
  )
}

const draftOf = (queued: Queued): Draft =>
  queued.ticket_id === undefined ? queued.message : { body: queued.reply.body }

/** Translates the reasons of the contract; a new reason is shown with the service's message. */
function reasonOf(error: unknown): string {
  const reasons: Record<string, string> = texts.demo.refusals
  const reason = error instanceof ApiError ? error.reason : undefined
  return (reason && reasons[reason]) ?? errorText(error).text
}

type BubbleProps = {
  isOwn: boolean
  kind: 'stored' | 'removed' | 'waiting' | 'refused'
  children: ComponentChildren
}

function Bubble({ isOwn, kind, children }: BubbleProps) {
  return <div class={`bubble ${isOwn ? 'own' : 'others'} ${kind}`}>{children}</div>
}

function shownOf(message: Message | Draft) {
  if (message.type !== 'file' || !('id' in message)) return {}
  const { width, height, placeholder, attachments } = message
  return { width, height, placeholder, ...(attachments && { attachments }) }
}

function Content({ message }: { message: Message | Draft }) {
  const { body, file_url = null, file_name = null, file_size = null, file_type = null } = message
  return (
    <>
      {file_url === '' && (
        <p class="file">
          <Paperclip />
          <span class="truncate" dir="auto">
            {file_name}
          </span>
        </p>
      )}
      <MessageFiles
        message={{
          file_url: file_url || null,
          file_name,
          file_size,
          file_type,
          ...shownOf(message),
        }}
      />
      {body !== '' && (
        <p class="prose" dir="auto">
          {body}
        </p>
      )}
    </>
  )
}

function RemoveButton({ message, remove }: Pick<MessageViewProps, 'message' | 'remove'>) {
  const { remove: action, removeTitle: title, removeText: text } = texts.demo.chat
  const removal = useAction(async () => {
    const isSure = await confirmAction({ title, text, action, isDangerous: true })
    if (isSure) await remove(message.id)
  })
  return (
    <IconButton
      icon={Trash2}
      class="remove"
      label={action}
      isBusy={removal.isBusy}
      onClick={removal.run}
    />
  )
}
