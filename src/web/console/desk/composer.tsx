import { Lock, Paperclip, SquareSlash } from 'lucide-preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicket } from '../../../../client/src/client.ts'
import { toast } from '../../ui/toast.tsx'
import { CannedText } from './canned-text.tsx'
import { type Kind, useDrafts } from './draft.ts'
import { SendButton } from './send-button.tsx'
import { StaleNotice } from './stale-notice.tsx'
import { Attached, maxFiles, useUploads } from './uploads.tsx'
import { useSend } from './use-send.ts'
import type { Status } from './words.ts'

type ComposerProps = {
  ticket: DeskTicket
  /** The newest message that has been visible. */
  seenId: string | undefined
  /** A new object for each press of a shortcut, so that a repeated press has an effect. */
  requested: { kind: Kind } | undefined
  update: (change: (ticket: DeskTicket) => DeskTicket) => void
  refresh: () => void
}

/** Writes a reply to the owner, or a note for admins. */
export function Composer({ ticket, seenId, requested, update, refresh }: ComposerProps) {
  const [kind, setKind] = useState<Kind>('reply')
  const [status, setStatus] = useState<Status>()
  const area = useRef<HTMLTextAreaElement>(null)
  const { drafts, edit, clear } = useDrafts(ticket.id)
  const draft = drafts[kind]
  const sending = useUploads(maxFiles - drafts.reply.files.length, (stored) =>
    edit('reply', (before) => ({ ...before, files: [...before.files, stored] })),
  )
  const sender = useSend({ ticket, seenId, update, refresh })
  const isReady = draft.text.trim() !== '' && (kind === 'note' || sending.uploads.length === 0)

  // A message that arrived after the first keystroke may be on the screen without having been read.
  const begunAfter = useRef(seenId)
  if (draft.text === '') begunAfter.current = seenId
  begunAfter.current ??= seenId

  async function send(lastMessageId = begunAfter.current) {
    if (!isReady) return
    const isSent = await sender.send(kind, { draft, status, lastMessageId }, (tried) =>
      edit(kind, (before) => ({ ...before, tried })),
    )
    if (!isSent) return
    clear(kind)
    if (kind === 'reply') setStatus(undefined)
    area.current?.focus()
  }

  useLayoutEffect(() => {
    if (!requested) return
    setKind(requested.kind)
    area.current?.focus()
  }, [requested])

  return (
    <form
      class={`composer ${kind}`}
      aria-label="Answer"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
      onPaste={(event) => takeFiles(event, event.clipboardData)}
      onDrop={(event) => takeFiles(event, event.dataTransfer)}
      onDragOver={(event) => event.preventDefault()}
    >
      <KindChoice kind={kind} choose={setKind} />
      {sender.staleSince !== undefined && kind === 'reply' && (
        <StaleNotice
          ticket={ticket}
          since={sender.staleSince}
          isBusy={sender.isBusy}
          sendAnyway={() => send(ticket.messages.at(-1)?.id)}
        />
      )}
      <CannedText
        area={area}
        label={kind === 'note' ? 'Internal note' : 'Reply'}
        placeholder={
          kind === 'note' ? 'A note for the desk' : `Reply to ${ticket.user.display_name}`
        }
        text={draft.text}
        edit={(text) => edit(kind, (before) => ({ ...before, text }))}
        isReadOnly={sender.isBusy}
        send={() => void send()}
        leave={() => document.querySelector<HTMLElement>('.thread')?.focus()}
      />
      {kind === 'reply' && (
        <Attached
          files={draft.files}
          removeFile={({ id }) =>
            edit('reply', (before) => ({
              ...before,
              files: before.files.filter((file) => file.id !== id),
            }))
          }
          sending={sending}
        />
      )}
      <div class="row between">
        <Tools kind={kind} addFiles={sending.start} openCanned={openCanned} />
        <SendButton
          kind={kind}
          status={status}
          choose={setStatus}
          isBusy={sender.isBusy}
          isReady={isReady}
        />
      </div>
    </form>
  )

  function takeFiles(event: Event, data: DataTransfer | null) {
    const files = [...(data?.files ?? [])]
    if (files.length === 0) return
    event.preventDefault()
    if (kind === 'reply') sending.start(files)
    else toast('Files go with a reply, not with a note.')
  }

  function openCanned() {
    const element = area.current
    if (!element) return
    element.focus()
    const before = element.value.slice(0, element.selectionEnd)
    element.setRangeText(
      /(^|\s)$/.test(before) ? '/' : ' /',
      element.selectionEnd,
      element.selectionEnd,
      'end',
    )
    element.dispatchEvent(new InputEvent('input', { bubbles: true }))
  }
}

function KindChoice({ kind, choose }: { kind: Kind; choose: (kind: Kind) => void }) {
  return (
    <fieldset class="kinds">
      <legend class="visually-hidden">What to write</legend>
      {(['reply', 'note'] as const).map((value) => (
        <label key={value}>
          <input
            type="radio"
            name="kind"
            class="visually-hidden"
            checked={kind === value}
            onChange={() => choose(value)}
          />
          {value === 'note' && <Lock />}
          {value === 'note' ? 'Note' : 'Reply'}
        </label>
      ))}
      {kind === 'note' && <span class="small">Only admins see it</span>}
    </fieldset>
  )
}

type ToolsProps = { kind: Kind; addFiles: (files: File[]) => void; openCanned: () => void }

function Tools({ kind, addFiles, openCanned }: ToolsProps) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <span class="row tools">
      {kind === 'reply' && (
        <>
          <button
            type="button"
            class="button ghost icon"
            aria-label="Attach files"
            title="Attach files"
            onClick={() => input.current?.click()}
          >
            <Paperclip />
          </button>
          <input
            ref={input}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              addFiles([...(event.currentTarget.files ?? [])])
              event.currentTarget.value = ''
            }}
          />
        </>
      )}
      <button
        type="button"
        class="button ghost icon"
        aria-label="Canned replies"
        title="Canned replies (/)"
        onClick={openCanned}
      >
        <SquareSlash />
      </button>
    </span>
  )
}
