import { ArrowDown, Lock, Pencil, Trash2 } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicket } from '../../../../client/src/client.ts'
import { Avatar } from '../../kit/avatar.tsx'
import { Button, IconButton, useAction } from '../../kit/button.tsx'
import { confirmAction } from '../../kit/dialog.tsx'
import { TextArea } from '../../kit/field.tsx'
import { FileLink } from '../../kit/file-link.tsx'
import { askForm, moveFocus, useFocusWhenLost } from '../../kit/form.tsx'
import { dayHeading } from '../../kit/format.ts'
import { isNearEnd, useKeptPlace } from '../../kit/kept-place.ts'
import { fill, texts } from '../../kit/texts.tsx'
import { TimeOfDay, Times } from '../../kit/time.tsx'
import { mutate } from '../data.ts'
import { user } from '../session.ts'
import { useFoundWords } from './found-words.ts'
import { admins, nameOfAdmin, patchTicket } from './ticket.ts'
import {
  type Change,
  type Entry,
  type Message,
  type Note,
  timelineOf,
  withNote,
  withoutNote,
} from './timeline.ts'
import { filter } from './views.ts'

const words = texts.console.desk
const { changes } = words

type ThreadProps = {
  ticket: DeskTicket
  loadOlder: () => Promise<void>
  /** Called with the newest message while the bottom is visible. */
  onSeen: (messageId: string) => void
}

export function Thread({ ticket, loadOlder, onSeen }: ThreadProps) {
  const entries = timelineOf(ticket)
  const newest = ticket.messages.at(-1)
  const frame = useKeptPlace(entries.at(-1)?.id)
  const [isAtEnd, setAtEnd] = useState(true)
  const toEnd = () => frame.current?.scrollTo(0, 0)
  useFoundWords(frame, filter.value.q, `${entries[0]?.id} ${entries.at(-1)?.id}`)
  const older = useAction(loadOlder)
  const hasOlder = ticket.messages_before !== undefined
  // The button goes with the last earlier messages.
  const outer = useFocusWhenLost<HTMLDivElement>(hasOlder, '.thread')
  const seenId = useRef(newest?.id)
  if (isAtEnd) seenId.current = newest?.id

  // At once: until then a reply is refused as stale.
  useLayoutEffect(() => {
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
    <div class="thread-frame" ref={outer}>
      <div
        class="thread from-end"
        ref={frame}
        role="log"
        aria-label={texts.fields.messages}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys
        tabIndex={0}
        onScroll={({ currentTarget }) => setAtEnd(isNearEnd(currentTarget))}
      >
        <div class="timeline stack">
          {hasOlder && (
            <Button class="older" isBusy={older.isBusy} onClick={older.run}>
              {older.isBusy ? texts.kit.loading : words.earlier}
            </Button>
          )}
          <Days ticketId={ticket.id} entries={entries} />
        </div>
      </div>
      {seenId.current !== newest?.id && (
        <Button
          class="new-message"
          onClick={() => {
            toEnd()
            setAtEnd(true) // the event of the scroll comes late
            frame.current?.focus() // the pressed button goes
          }}
        >
          {words.newMessage}
          <ArrowDown />
        </Button>
      )}
    </div>
  )
}

export function ThreadSkeleton() {
  return (
    <div class="thread-frame" role="status">
      <span class="visually-hidden">{texts.kit.loading}</span>
      <div class="timeline stack">
        <span class="skeleton block" />
        <span class="skeleton block from-desk" />
        <span class="skeleton block" />
      </div>
    </div>
  )
}

function Days({ ticketId, entries }: { ticketId: string; entries: Entry[] }) {
  const days = new Map<string, Entry[]>()
  for (const entry of entries) {
    const day = new Date(entry.at).toDateString()
    days.set(day, [...(days.get(day) ?? []), entry])
  }
  return [...days].map(([day, ofDay]) => (
    <section class="day stack" key={day} aria-label={dayHeading(day)}>
      <h3 class="day-name row small soft">{dayHeading(day)}</h3>
      {ofDay.map((entry) => (
        <EntryView key={entry.id} ticketId={ticketId} entry={entry} />
      ))}
    </section>
  ))
}

function EntryView({ ticketId, entry }: { ticketId: string; entry: Entry }) {
  if (entry.kind === 'message') return <MessageView message={entry.message} />
  return entry.kind === 'note' ? (
    <NoteView ticketId={ticketId} note={entry.note} />
  ) : (
    <ChangeView change={entry.change} />
  )
}

function MessageView({ message }: { message: Message }) {
  const { author, body, created_at, is_admin, attachments } = message
  return (
    <article class={`message ${is_admin ? 'from-desk' : ''}`}>
      <Avatar name={author.display_name} />
      <div class="bubble">
        <Meta at={created_at}>
          <strong dir="auto">{author.display_name}</strong>
          {is_admin && <span class="visually-hidden">{words.forDesk}</span>}
        </Meta>
        <p class="prose" dir="auto">
          <Linked text={body} />
        </p>
        <Files of={attachments} />
      </div>
    </article>
  )
}

function NoteView({ ticketId, note }: { ticketId: string; note: Note }) {
  const { author, body, created_at, edited_at, attachments } = note
  return (
    <article class="note">
      <div class="row between">
        <Meta at={created_at} editedAt={edited_at}>
          <Lock />
          <strong dir="auto">{author.display_name}</strong>
          <span>{words.noteMark}</span>
        </Meta>
        <NoteActions ticketId={ticketId} note={note} />
      </div>
      <p class="prose" dir="auto">
        <Linked text={body} />
      </p>
      <Files of={attachments} />
    </article>
  )
}

function Files({ of: files }: { of: Message['attachments'] }) {
  if (!files?.length) return null
  return (
    <div class="files">
      {files.map((file) => (
        <FileLink key={file.id} file={file} />
      ))}
    </div>
  )
}

function ChangeView({ change }: { change: Change }) {
  return (
    <p class="change small soft">
      {changeText(change)} · <TimeOfDay at={change.at} />
    </p>
  )
}

/** A sentence about a change. Automatic changes have no actor. */
function changeText({ field, to, actor }: Change): string {
  if (field === 'assignee') return assignmentText(to, actor)
  const { statuses: status, priorities: priority, categories: category } = texts.tickets
  const names: Record<string, string> = { status, priority, category }[field]
  const value = names[to ?? ''] ?? ''
  // Only the status changes automatically.
  if (actor.type === 'system') return fill(changes.autoStatus, { value })
  return fill(changes[field], { name: actor.display_name, value })
}

function assignmentText(to: string | null, actor: Change['actor']) {
  const value = to === null ? '' : nameOfAdmin(to)
  if (actor.type === 'system') {
    return fill(to === null ? changes.autoUnassigned : changes.autoAssigned, { value })
  }
  const { assigned, taken, unassigned } = changes
  const text = to === null ? unassigned : actor.id === to ? taken : assigned
  return fill(text, { name: actor.display_name, value })
}

type MetaProps = { at: string; editedAt?: string | undefined; children: ComponentChildren }

function Meta({ at, editedAt, children }: MetaProps) {
  return (
    <p class="meta small">
      {children}
      <TimeOfDay at={at} />
      {editedAt && (
        <span>
          <Times of={[[words.notes.edited, editedAt]]} />
        </span>
      )}
    </p>
  )
}

const address = /(https?:\/\/[^\s<>"]*[^\s<>".,;:!?)\]])/

/** A text in which web addresses are links. */
function Linked({ text }: { text: string }) {
  return (
    <>
      {text.split(address).map((part, index) =>
        // A split by one group alternates between texts and matches.
        index % 2 === 0 ? (
          part
        ) : (
          <a key={index} href={part} target="_blank" rel="noreferrer">
            {part}
          </a>
        ),
      )}
    </>
  )
}

const route = '/v1/admin/support/tickets/{id}/notes/{note_id}'

type NoteProps = { ticketId: string; note: Note }

/** Only the author edits a note. Any admin deletes the note of an author who is no longer an admin. */
function NoteActions(props: NoteProps) {
  const { author } = props.note
  const isOwn = author.id === user.value?.id
  const mayAuthor = admins.value.length === 0 || admins.value.some(({ id }) => id === author.id)
  const tools = useRef<HTMLSpanElement>(null)
  const deletion = useAction(() => deleteNote(props, tools.current))
  if (!isOwn && mayAuthor) return null
  return (
    <span class="row tools" ref={tools}>
      {isOwn && <IconButton icon={Pencil} label={words.notes.edit} onClick={() => edit(props)} />}
      <IconButton
        icon={Trash2}
        tone="ghost danger"
        label={words.notes.delete.action}
        isBusy={deletion.isBusy}
        onClick={deletion.run}
      />
    </span>
  )
}

const edit = ({ ticketId, note }: NoteProps) =>
  askForm({
    title: words.notes.edit,
    action: texts.kit.save,
    fields: (
      <TextArea
        label={texts.console.desk.composer.internalNote}
        name="body"
        rows={8}
        defaultValue={note.body}
        required
      />
    ),
    async submit(given) {
      const params = { id: ticketId, note_id: note.id }
      const body = { body: String(given.get('body')) }
      const edited = await mutate(`PATCH ${route}`, { params, body })
      patchTicket(ticketId, (ticket) => withNote(ticket, edited))
    },
  })

async function deleteNote({ ticketId, note }: NoteProps, tools: HTMLElement | null) {
  if (!(await confirmAction({ ...words.notes.delete, isDangerous: true }))) return
  await mutate(`DELETE ${route}`, { params: { id: ticketId, note_id: note.id } })
  // The button that had the focus goes with the note.
  moveFocus(tools, document.querySelector<HTMLElement>('.thread'))
  patchTicket(ticketId, (ticket) => withoutNote(ticket, note.id))
}
