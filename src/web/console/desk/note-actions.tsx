import { Pencil, Trash2 } from 'lucide-preact'
import { IconButton, useAction } from '../../kit/button.tsx'
import { confirmAction } from '../../kit/dialog.tsx'
import { TextArea } from '../../kit/field.tsx'
import { askForm } from '../../kit/form.tsx'
import { texts } from '../../kit/texts.tsx'
import { mutate } from '../data.ts'
import { user } from '../session.ts'
import { patchTicket } from './ticket.ts'
import { type Note, withNote, withoutNote } from './timeline.ts'

const words = texts.console.desk.notes
const route = '/v1/admin/support/tickets/{id}/notes/{note_id}'

type NoteProps = { ticketId: string; note: Note }

/** Only the author edits a note. Any admin deletes the note of an author whose account was removed. */
export function NoteActions(props: NoteProps) {
  const { author, author_removed } = props.note
  const isOwn = author.id === user.value?.id
  const deletion = useAction(() => deleteNote(props))
  if (!isOwn && !author_removed) return null
  return (
    <span class="row tools">
      {isOwn && <IconButton icon={Pencil} label={words.edit.title} onClick={() => edit(props)} />}
      <IconButton
        icon={Trash2}
        tone="ghost danger"
        label={words.delete.action}
        isBusy={deletion.isBusy}
        onClick={deletion.run}
      />
    </span>
  )
}

const edit = ({ ticketId, note }: NoteProps) =>
  askForm({
    ...words.edit,
    action: texts.kit.save,
    fields: (
      <TextArea
        label={texts.console.desk.composer.internalNote}
        name="body"
        rows={8}
        maxLength={10_000}
        defaultValue={note.body}
        required
        takesFocus
      />
    ),
    async submit(given) {
      const params = { id: ticketId, note_id: note.id }
      const body = { body: String(given.get('body')) }
      const edited = await mutate(`PATCH ${route}`, { params, body })
      patchTicket(ticketId, (ticket) => withNote(ticket, edited))
    },
  })

async function deleteNote({ ticketId, note }: NoteProps) {
  if (!(await confirmAction({ ...words.delete, isDangerous: true }))) return
  await mutate(`DELETE ${route}`, { params: { id: ticketId, note_id: note.id } })
  // The button that had the focus goes with the note.
  document.querySelector<HTMLElement>('.thread')?.focus()
  patchTicket(ticketId, (ticket) => withoutNote(ticket, note.id))
}
