import { MessageCircle } from 'lucide-preact'
import { Fragment } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { Message } from '../../../client/src/client.ts'
import { Button } from '../kit/button.tsx'
import { Empty, Loading } from '../kit/states.tsx'
import { language, texts } from '../kit/texts.tsx'
import { MessageView, RefusedMessage, WaitingMessage } from './message-view.tsx'
import { useMe } from './session.ts'
import type { Thread } from './thread-view.tsx'

type MessageListProps = { thread: Thread; conversationId: string }

/** Messages by day, then those that were refused or wait. */
export function MessageList({ thread, conversationId }: MessageListProps) {
  const { user, outbox } = useMe()
  const text = texts.demo.chat
  const { items: messages, waiting, status, conversation } = thread
  const refused = outbox.refused.filter(({ queued }) => queued.conversation_id === conversationId)
  const frame = useKeptPlace(messages, waiting.length)
  const end = useMarkRead(thread)
  const isEmpty = status === 'ready' && messages.length + waiting.length + refused.length === 0
  const readUpTo = conversation?.participant_read_up_to ?? ''
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus
    <div class="scroll from-end" ref={frame} tabIndex={0} role="log" aria-label={text.messages}>
      <div class="messages">
        {thread.hasMore && <EarlierButton thread={thread} />}
        {status === 'loading' && <Loading rows={6} />}
        {isEmpty && <Empty icon={MessageCircle} title={text.nothingSaid} />}
        {messages.map((message, index) => (
          <Fragment key={message.id}>
            {dayOf(message) !== dayOf(messages[index - 1]) && <Day at={message.created_at} />}
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
    <Button tone="ghost" class="more" of={button} disabled={isLoadingMore} onClick={loadEarlier}>
      {isLoadingMore ? texts.kit.loading : texts.demo.chat.earlier}
    </Button>
  )
}

function Day({ at }: { at: string }) {
  const date = new Date(at)
  const daysAgo = Math.round((startOfDay(new Date()) - startOfDay(date)) / 86_400_000)
  const locale = language.value
  const text =
    daysAgo < 2
      ? new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(-daysAgo, 'day')
      : new Intl.DateTimeFormat(locale, { dateStyle: 'full' }).format(date)
  return <p class="day small soft">{text}</p>
}

const startOfDay = (date: Date) => new Date(date).setHours(0, 0, 0, 0)
const dayOf = (message: Message | undefined) =>
  message && new Date(message.created_at).toDateString()

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

/** The list is scrolled from the bottom, so earlier messages and loading images do not move it. A new message
 *  scrolls to the bottom if that was visible, or if the message is one's own. */
function useKeptPlace(messages: readonly Message[], waitingCount: number) {
  const frame = useRef<HTMLDivElement>(null)
  const before = useRef({ last: '', height: 0, waitingCount: 0 })
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const last = messages.at(-1)?.id ?? ''
    const grown = element.scrollHeight - before.current.height
    const isNewAtEnd = before.current.last !== '' && last !== before.current.last
    if (waitingCount > before.current.waitingCount) element.scrollTop = 0
    else if (isNewAtEnd && element.scrollTop < -1) element.scrollTop -= grown
    before.current = { last, height: element.scrollHeight, waitingCount }
  })
  return frame
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
