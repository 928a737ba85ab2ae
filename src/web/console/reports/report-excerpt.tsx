import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Message } from '../../../../client/src/contract.ts'
import { FileLink } from '../../ui/file-link.tsx'
import { Time } from '../../ui/time.tsx'
import type { ReportContext } from './report-details.tsx'

/** The messages around the reported one, oldest first. */
export function ReportExcerpt({ found }: { found: ReportContext }) {
  const { messages, message_id, status } = found.report
  const frame = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const element = frame.current
    const marked = element?.querySelector<HTMLElement>('.is-reported')
    if (!element || !marked) return
    element.scrollTop = marked.offsetTop - (element.clientHeight - marked.offsetHeight) / 2
  }, [])
  if (message_id === null) return null
  return (
    <section class="stack tight">
      <h3>The message in its context</h3>
      {messages === null ? (
        <p class="soft">
          {status === 'resolved'
            ? 'The copies of these messages were deleted when the report was resolved.'
            : 'Nothing was kept of this conversation.'}
        </p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keyboard
        <section class="excerpt" ref={frame} tabIndex={0} aria-label="Conversation">
          <ol>
            {messages.map((message) => (
              <Line key={message.id} message={message} found={found} />
            ))}
          </ol>
        </section>
      )}
    </section>
  )
}

function Line({ message, found }: { message: Message; found: ReportContext }) {
  const { reporter, reported, message_id } = found.report
  const isReported = message.id === message_id
  const sender = message.sender_id === reporter.id ? reporter : reported
  return (
    <li class={isReported ? 'is-reported' : ''}>
      <p class="row wrap small">
        <strong>{sender.display_name}</strong>
        <span class="soft">
          <Time at={message.created_at} />
        </span>
        {isReported && <span class="badge danger">Reported message</span>}
      </p>
      <Said message={message} />
      {isReported && found.removedAt !== undefined && (
        <p class="small soft">
          Removed for both of them <Time at={found.removedAt} />. This copy goes when the report is
          resolved.
        </p>
      )}
    </li>
  )
}

function Said({ message }: { message: Message }) {
  const isRemoved = message.deleted_at !== undefined
  const isEmpty = message.body === '' && message.file_url === null
  return (
    <>
      {isRemoved && (
        <p class="small soft">
          {isEmpty
            ? 'This message was removed.'
            : 'Removed before the report: only the desk sees it.'}
        </p>
      )}
      {message.body !== '' && <p class="prose">{message.body}</p>}
      <FileLink file={message} />
    </>
  )
}
