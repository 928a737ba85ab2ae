import { Check, CheckCheck, CircleAlert, Clock, Trash2 } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import {
  ApiError,
  type Draft,
  type Message,
  type QueuedMessage,
} from '../../../client/src/client.ts'
import { useAction } from '../ui/action.ts'
import { confirmAction } from '../ui/dialog.tsx'
import { errorText } from '../ui/errors.ts'
import { FileLink } from '../ui/file-link.tsx'
import { absoluteTime, clockTime } from '../ui/format.ts'
import { texts } from './language.tsx'
import { useMe } from './me.ts'
import type { Refused } from './session.ts'

type MessageViewProps = {
  message: Message
  isOwn: boolean
  isRead: boolean
  remove: (message: Message) => Promise<void>
}

export function MessageView({ message, isOwn, isRead, remove }: MessageViewProps) {
  const text = texts.value.chat
  const { created_at: at, deleted_at } = message
  if (deleted_at !== undefined) {
    return (
      <Bubble isOwn={isOwn} kind="removed">
        <p class="soft">{text.removed}</p>
      </Bubble>
    )
  }
  return (
    <Bubble isOwn={isOwn} kind="stored">
      <Content message={message} />
      <p class="mark">
        {isOwn && <RemoveButton message={message} remove={remove} />}
        <time dateTime={at} title={absoluteTime(at)}>
          {clockTime(at)}
        </time>
        {isOwn && (isRead ? <CheckCheck /> : <Check />)}
        {isOwn && <span>{isRead ? text.read : text.sent}</span>}
      </p>
    </Bubble>
  )
}

/** A queued message. */
export function WaitingMessage({ queued }: { queued: QueuedMessage }) {
  const { session } = useMe()
  const { waiting, sending } = texts.value.chat
  return (
    <Bubble isOwn kind="waiting">
      <Content message={queued.message} />
      <p class="mark">
        <Clock />
        <span>{session.status.value === 'open' ? sending : waiting}</span>
      </p>
    </Bubble>
  )
}

export function RefusedMessage({ refused }: { refused: Refused }) {
  const { outbox } = useMe()
  const text = texts.value.chat
  return (
    <Bubble isOwn kind="refused">
      <Content message={refused.queued.message} />
      <p class="mark error" role="alert">
        <CircleAlert />
        <span>{reasonOf(refused.error)}</span>
      </p>
      <div class="row">
        <button type="button" class="button" onClick={() => outbox.retry(refused)}>
          {text.sendAgain}
        </button>
        <button type="button" class="button ghost" onClick={() => outbox.dismiss(refused.queued)}>
          {text.dismiss}
        </button>
      </div>
    </Bubble>
  )
}

/** Translates the reasons of the contract; a new reason is shown with the service's message. */
function reasonOf(error: unknown): string {
  const reasons: Record<string, string> = texts.value.refusals
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

function Content({ message }: { message: Message | Draft }) {
  const { body, file_url = null, file_name = null, file_size = null, file_type = null } = message
  return (
    <>
      <FileLink file={{ file_url, file_name, file_size, file_type }} />
      {body !== '' && (
        <p class="prose" dir="auto">
          {body}
        </p>
      )}
    </>
  )
}

function RemoveButton({ message, remove }: Pick<MessageViewProps, 'message' | 'remove'>) {
  const text = texts.value.chat
  const removal = useAction(remove)
  async function ask() {
    const isSure = await confirmAction({
      title: text.removeTitle,
      text: text.removeText,
      action: text.remove,
      isDangerous: true,
    })
    if (isSure) await removal.run(message)
  }
  return (
    <button
      type="button"
      class="remove"
      aria-label={text.remove}
      title={text.remove}
      disabled={removal.isBusy}
      onClick={ask}
    >
      <Trash2 />
    </button>
  )
}
