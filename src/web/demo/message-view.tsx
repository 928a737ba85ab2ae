import { Check, CheckCheck, CircleAlert, Clock, Paperclip, Trash2 } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
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
import { texts } from '../kit/texts.tsx'
import { TimeOfDay } from '../kit/time.tsx'
import { useMe } from './session.ts'

type MessageViewProps = {
  message: Message
  isOwn: boolean
  isRead: boolean
  remove: (id: string) => Promise<void>
}

export function MessageView({ message, isOwn, isRead, remove }: MessageViewProps) {
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
