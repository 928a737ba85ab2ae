import { ArrowDown } from 'lucide-preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { DeskTicket } from '../../../../client/src/client.ts'
import { useAction } from '../../ui/action.ts'
import { user } from '../session.ts'
import { useStickToBottom } from './stick-to-bottom.ts'
import { Days } from './thread-entries.tsx'
import { timelineOf } from './timeline.ts'

type ThreadProps = {
  ticket: DeskTicket
  loadOlder: () => Promise<void>
  /** Called with the newest message while the bottom is visible. */
  onSeen: (messageId: string) => void
}

export function Thread({ ticket, loadOlder, onSeen }: ThreadProps) {
  const entries = timelineOf(ticket)
  const newest = ticket.messages.at(-1)
  const { frame, content, isAtEnd, toEnd } = useStickToBottom(entries[0]?.id, entries.at(-1)?.id)
  const older = useAction(loadOlder)
  const seenId = useRef(newest?.id)
  if (isAtEnd) seenId.current = newest?.id

  useEffect(() => {
    const reportSeen = () => document.hidden || (isAtEnd && newest && onSeen(newest.id))
    reportSeen()
    document.addEventListener('visibilitychange', reportSeen)
    return () => document.removeEventListener('visibilitychange', reportSeen)
  }, [isAtEnd, newest?.id])
  // After sending, scrolls to the new message.
  useLayoutEffect(() => {
    if (newest?.author.id === user.value?.id) toEnd()
  }, [newest?.id])

  return (
    <div class="thread-frame">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys */}
      <div class="thread" ref={frame} role="log" aria-label="Messages" tabIndex={0}>
        <div class="timeline" ref={content}>
          {ticket.messages_before !== undefined && (
            <button
              type="button"
              class="button older"
              disabled={older.isBusy}
              onClick={() => older.run()}
            >
              {older.isBusy ? 'Loading…' : 'Show earlier messages'}
            </button>
          )}
          <Days entries={entries} />
        </div>
      </div>
      {seenId.current !== newest?.id && (
        <button type="button" class="button new-message" onClick={toEnd}>
          New message
          <ArrowDown />
        </button>
      )}
    </div>
  )
}

export function ThreadSkeleton() {
  return (
    <div class="thread-frame" role="status">
      <span class="visually-hidden">Loading…</span>
      <div class="timeline">
        <span class="skeleton block" />
        <span class="skeleton block from-desk" />
        <span class="skeleton block" />
      </div>
    </div>
  )
}
