import { Lock, SquareSlash } from 'lucide-preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicket } from '../../../../client/src/client.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { Button, IconButton } from '../../kit/button.tsx'
import { moveFocus } from '../../kit/form.tsx'
import { Select } from '../../kit/select.tsx'
import { fill, language, texts } from '../../kit/texts.tsx'
import { toastError } from '../../kit/toast.tsx'
import { AttachButton, Attached, maxFiles, useUploads } from '../../kit/uploads.tsx'
import { mutate } from '../data.ts'
import { client, request, user } from '../session.ts'
import { CannedText } from './canned-text.tsx'
import { type Draft, type Kind, useDrafts } from './draft.ts'
import { patchTicket, refreshTicket, sendHeld } from './ticket.ts'
import { type Message, type Note, withMessage, withNote } from './timeline.ts'
import { type Status, statuses } from './views.ts'

const words = texts.console.desk.composer

type ComposerProps = {
  ticket: DeskTicket
  /** The newest message that has been visible. */
  seenId: string | undefined
  /** A new object for each press of a shortcut, so that a repeated press has an effect. */
  requested: { kind: Kind } | undefined
  /** Called after a reply that settles the ticket, or after which the author wants the next one. */
  onDone: () => void
}

/** The step after a reply: none, a new status, or the next ticket. */
type AfterSending = '' | Status | 'next'
/** Kept for the next ticket. */
let opensNext = false

/** Writes a reply to the owner, or a note for admins. */
export function Composer(props: ComposerProps) {
  const { ticket, seenId, requested, onDone } = props
  const [kind, setKind] = useState<Kind>('reply')
  const [after, setAfter] = useState<AfterSending>(opensNext ? 'next' : '')
  const area = useRef<HTMLTextAreaElement>(null)
  const { drafts, edit, clear, attach, attemptOf } = useDrafts(ticket.id)
  const draft = drafts[kind]
  const uploadsOf = (kind: Kind) =>
    useUploads({
      send: client.files.upload,
      room: maxFiles - drafts[kind].files.length,
      add: (stored) => attach(kind, stored),
      goesOn: true,
    })
  // An upload stays with what it was begun for, so that no file of a note goes to the owner.
  const uploads = { reply: uploadsOf('reply'), note: uploadsOf('note') }
  const sending = uploads[kind]
  const sender = useSend(ticket)
  /** The other one can be written meanwhile. */
  const sentKind = useRef<Kind>(undefined)
  const isReady = draft.text.trim() !== '' && sending.uploads.length === 0
  const canSend = isReady && !sender.isBusy

  // A message that arrived after the first keystroke may be on the screen without having been read, until the refusal
  // says so.
  const begunAfter = useRef(seenId)
  if (draft.text === '' || sender.isStale) begunAfter.current = seenId
  begunAfter.current ??= seenId

  async function send() {
    if (!canSend) return
    const lastMessageId = begunAfter.current
    const status = after === 'next' ? '' : after
    const tried = attemptOf(kind, draft, status)
    edit(kind, (before) => ({ ...before, tried }))
    sentKind.current = kind
    const { clientId } = tried
    const isSent = await sender.send(kind, { draft, status, lastMessageId, clientId })
    if (!isSent) return
    clear(kind, draft)
    if (kind === 'reply' && after !== 'next') setAfter('')
    moveFocus(area.current?.form, area.current)
    if (kind === 'reply' && ['next', 'resolved', 'closed'].includes(after)) onDone()
  }

  useLayoutEffect(() => {
    if (!requested) return
    setKind(requested.kind)
    area.current?.focus()
  }, [requested])

  return (
    <form
      class={`composer stack tight ${kind}`}
      aria-label={words.label}
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
        <StaleNotice ticket={ticket} since={sender.staleSince} />
      )}
      <CannedText
        area={area}
        label={kind === 'note' ? words.internalNote : words.reply}
        placeholder={
          kind === 'note'
            ? words.notePlaceholder
            : fill(words.replyTo, { name: ticket.user.display_name })
        }
        owner={ticket.user}
        text={draft.text}
        edit={(text) => edit(kind, (before) => ({ ...before, text }))}
        isReadOnly={sender.isBusy && sentKind.current === kind}
        send={() => void send()}
        leave={() => document.querySelector<HTMLElement>('.thread')?.focus()}
      />
      <Attached
        files={draft.files}
        removeFile={({ id }) =>
          edit(kind, (before) => ({
            ...before,
            files: before.files.filter((file) => file.id !== id),
          }))
        }
        sending={sending}
      />
      <div class="row between">
        <Tools addFiles={sending.take} openCanned={openCanned} />
        <SendButton
          kind={kind}
          after={after}
          choose={(chosen) => {
            opensNext = chosen === 'next'
            setAfter(chosen)
          }}
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
    sending.take(files)
  }

  function openCanned() {
    const element = area.current
    if (!element) return
    element.focus()
    const at = element.selectionEnd
    const slash = /(^|\s)$/.test(element.value.slice(0, at)) ? '/' : ' /'
    element.setRangeText(slash, at, at, 'end')
    element.dispatchEvent(new InputEvent('input', { bubbles: true }))
  }
}

type Reply = {
  draft: Draft
  status: Status | ''
  lastMessageId: string | undefined
  clientId: string
}

/** Sends a reply or note exactly once; after a failure the draft stays. */
function useSend(ticket: DeskTicket) {
  const [isBusy, setBusy] = useState(false)
  const [staleSince, setStaleSince] = useState<string>()
  const knownNotes = useRef<Set<string>>(undefined)

  async function reply(given: Reply) {
    const message = await sendReply(ticket.id, given)
    patchTicket(ticket.id, (before) => withMessage(before, message))
    setStaleSince(undefined)
  }

  async function note({ draft }: Reply) {
    const known = knownNotes.current
    knownNotes.current = known ?? new Set(ticket.notes.map(({ id }) => id))
    const stored = await sendNote(ticket.id, draft, known)
    knownNotes.current = undefined
    patchTicket(ticket.id, (before) => withNote(before, stored))
  }

  /** @returns whether it was sent */
  async function send(kind: Kind, given: Reply) {
    if (isBusy) return false
    setBusy(true)
    try {
      await sendHeld(ticket.id)
      await (kind === 'note' ? note(given) : reply(given))
      return true
    } catch (error) {
      const isStale = error instanceof ApiError && error.reason === 'stale_ticket'
      if (isStale) setStaleSince(given.lastMessageId)
      else toastError(error)
      return false
    } finally {
      setBusy(false)
      refreshTicket(ticket.id)
    }
  }

  // The message that made it stale has been shown, with the notice.
  const isStale = staleSince !== undefined && (ticket.messages.at(-1)?.id ?? '') > staleSince
  return { send, isBusy, staleSince, isStale }
}

/** @throws ApiError, `stale_ticket` when there is a message newer than `lastMessageId` */
function sendReply(
  id: string,
  { draft, status, lastMessageId, clientId }: Reply,
): Promise<Message> {
  const attachments = attachmentsOf(draft)
  return mutate('POST /v1/admin/support/tickets/{id}/messages', {
    params: { id },
    body: {
      body: draft.text.trim(),
      client_id: clientId,
      ...(status && { status }),
      ...(lastMessageId && { last_message_id: lastMessageId }),
      ...(attachments.length > 0 && { attachments }),
    },
  })
}

/** Notes have no idempotency key: after a lost response the note is searched for before it is sent again.
 *  @param known the notes before the first attempt; undefined on the first attempt */
async function sendNote(id: string, draft: Draft, known?: Set<string>): Promise<Note> {
  const body = draft.text.trim()
  const attachments = attachmentsOf(draft)
  const params = { id }
  if (known) {
    const ticket = await request('GET /v1/admin/support/tickets/{id}', { params })
    const mine = ticket.notes.filter(({ author }) => author.id === user.value?.id)
    const isSame = (note: Note) =>
      note.body === body &&
      JSON.stringify(attachmentsOf({ files: note.attachments ?? [] })) ===
        JSON.stringify(attachments)
    const found = mine.find((note) => isSame(note) && !known.has(note.id))
    if (found) return found
  }
  return mutate('POST /v1/admin/support/tickets/{id}/notes', {
    params,
    body: { body, ...(attachments.length > 0 && { attachments }) },
  })
}

const attachmentsOf = ({ files }: { files: { file_url: string }[] }) =>
  files.map(({ file_url }) => ({ file_url }))

type StaleProps = {
  ticket: DeskTicket
  /** The newest message that the author has seen. */
  since: string
}

/** Names the authors of newer messages; the next press sends, once they have been in sight. */
function StaleNotice({ ticket, since }: StaleProps) {
  const newer = ticket.messages.filter(({ id }) => id > since)
  const names = new Set(newer.map(({ author }) => author.display_name))
  const who = names.size > 0 ? new Intl.ListFormat(language.value).format(names) : words.somebody
  return (
    <div class="notice warning" role="alert">
      <p class="grow">
        <strong>{fill(words.wrote, { names: who })}</strong> {words.stale}
      </p>
    </div>
  )
}

function KindChoice({ kind, choose }: { kind: Kind; choose: (kind: Kind) => void }) {
  return (
    <fieldset class="kinds row">
      <legend class="visually-hidden">{words.kinds}</legend>
      {(['reply', 'note'] as const).map((value) => (
        <label key={value} class="row">
          <input
            type="radio"
            name="kind"
            class="visually-hidden"
            checked={kind === value}
            onChange={() => choose(value)}
          />
          {value === 'note' && <Lock />}
          {value === 'note' ? words.note : words.reply}
        </label>
      ))}
      {kind === 'note' && <span class="small">{words.onlyAdmins}</span>}
    </fieldset>
  )
}

type ToolsProps = { addFiles: (files: File[]) => void; openCanned: () => void }

function Tools({ addFiles, openCanned }: ToolsProps) {
  return (
    <span class="row tools">
      <AttachButton label={words.attach} take={addFiles} />
      <IconButton
        icon={SquareSlash}
        label={texts.console.system.tabs.replies}
        keys="/"
        onClick={openCanned}
      />
    </span>
  )
}

type SendButtonProps = {
  kind: Kind
  after: AfterSending
  choose: (after: AfterSending) => void
  isBusy: boolean
  isReady: boolean
}

/** A send button with a menu for the step after it. */
function SendButton({ kind, after, choose, isBusy, isReady }: SendButtonProps) {
  const isReply = kind === 'reply'
  const action = after && isReply ? words.sendAnd[after] : isReply ? texts.kit.send : words.addNote
  return (
    <span class="split">
      <Button submits tone="primary" title={words.sendHint} disabled={!isReady} isBusy={isBusy}>
        {isBusy ? words.sending : action}
      </Button>
      {isReply && (
        <Select
          class="primary"
          label={words.afterSending}
          value={after}
          text=""
          options={[
            ['', words.sendOnly],
            ...(['next', ...statuses] as const).map(
              (value) => [value, words.sendAnd[value]] as const,
            ),
          ]}
          choose={choose}
        />
      )}
    </span>
  )
}
