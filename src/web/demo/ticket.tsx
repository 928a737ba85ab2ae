import { SendHorizontal } from 'lucide-preact'
import { useStore } from '../../../client/src/preact.ts'
import { openTicket, type Used } from '../../../client/src/state.ts'
import { ActionButton, Button, IconButton, useAction } from '../kit/button.tsx'
import { fieldProblems } from '../kit/errors.ts'
import { TextArea, TextField } from '../kit/field.tsx'
import { FileLink } from '../kit/file-link.tsx'
import { Select } from '../kit/select.tsx'
import { Failure, Loading } from '../kit/states.tsx'
import { texts } from '../kit/texts.tsx'
import { Time } from '../kit/time.tsx'
import { AttachButton, Attached } from '../kit/uploads.tsx'
import { sendDraft, useDraft, useFiles } from './drafts.ts'
import { StatusBadge } from './lists.tsx'
import { RefusedMessage, WaitingMessage } from './messages.tsx'
import { go, placeOf } from './place.ts'
import { useMe } from './session.ts'
import { BackLink } from './thread.tsx'

type Ticket = Used<typeof openTicket>

export function TicketView({ id }: { id: string }) {
  const { client } = useMe()
  const opened = useStore(() => openTicket(client, id), [client, id])
  if (!opened) return null
  const { ticket, status, error, reload } = opened
  return (
    <div class="thread">
      <header class="thread-head row">
        <BackLink tab="tickets" />
        {ticket && (
          <h3 class="truncate" dir="auto">
            {ticket.subject}
          </h3>
        )}
        {ticket && <span class="soft number">#{id.slice(-6)}</span>}
        {ticket && <StatusBadge status={ticket.status} />}
      </header>
      {!ticket && status === 'failed' && <Failure error={error} retry={reload} />}
      {!ticket && status === 'loading' && <Loading />}
      {ticket && <Said opened={opened} id={id} />}
      {ticket && <ReplyForm opened={opened} id={id} isClosed={ticket.status === 'closed'} />}
    </div>
  )
}

function Said({ opened, id }: { opened: Ticket; id: string }) {
  const { outbox } = useMe()
  const { tickets: text, chat } = texts.demo
  const { ticket, items, waiting, hasMore, isLoadingMore, loadEarlier } = opened
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus
    <div class="scroll from-end" tabIndex={0} role="log" aria-label={ticket?.subject}>
      <div class="messages">
        {hasMore && (
          <Button tone="ghost" class="more" isBusy={isLoadingMore} onClick={loadEarlier}>
            {isLoadingMore ? texts.kit.loading : chat.earlier}
          </Button>
        )}
        {items.map(({ id, is_admin, body, attachments, created_at }) => (
          <div key={id} class={`bubble ${is_admin ? 'others' : 'own'} stored`}>
            {is_admin && <p class="small author">{text.desk}</p>}
            <p class="prose" dir="auto">
              {body}
            </p>
            {attachments?.map((file) => (
              <FileLink key={file.id} file={file} />
            ))}
            <p class="meta">
              <Time at={created_at} />
            </p>
          </div>
        ))}
        {outbox.refused
          .filter(({ queued }) => queued.ticket_id === id)
          .map((refusal) => (
            <RefusedMessage key={refusal.queued.client_id} refused={refusal} />
          ))}
        {waiting.map((queued) => (
          <WaitingMessage key={queued.client_id} queued={queued} />
        ))}
        {ticket?.status === 'open' && (
          <p class="small soft hint">
            {text.answerHint}{' '}
            <a href="/console" target="_blank" rel="noreferrer">
              {text.answerLink}
            </a>
          </p>
        )}
      </div>
    </div>
  )
}

function ReplyForm({ opened, id, isClosed }: { opened: Ticket; id: string; isClosed: boolean }) {
  const text = texts.demo.tickets
  const uploads = useFiles()
  const draft = useDraft(`tickets ${id}`)
  const body = draft.value['body'] ?? ''
  function send() {
    opened.reply({ body, attachments: uploads.files }).catch(() => {}) // the outbox shows what was refused
    draft.value = {}
    uploads.clear()
  }
  return (
    <form
      class="composer stack tight"
      onSubmit={(event) => {
        event.preventDefault()
        if (!uploads.isUploading) send()
      }}
    >
      <Attached files={uploads.files} removeFile={uploads.removeFile} sending={uploads.sending} />
      <div class="row">
        <AttachButton label={texts.demo.attach} take={uploads.sending.take} />
        <textarea
          name="body"
          rows={1}
          dir="auto"
          aria-label={text.reply}
          placeholder={isClosed ? text.reopen : text.reply}
          maxLength={10_000}
          required
          value={body}
          onInput={({ currentTarget }) => {
            draft.value = { body: currentTarget.value }
          }}
        />
        <IconButton submits tone="primary" icon={SendHorizontal} label={texts.kit.send} />
      </div>
      {!isClosed && (
        <ActionButton
          tone="ghost"
          class="close"
          texts={{ button: text.close, title: text.closeTitle, text: text.closeText }}
          work={opened.closeTicket}
        />
      )}
    </form>
  )
}

const categories = ['billing', 'technical', 'account', 'other'] as const
const priorities = ['low', 'normal', 'high', 'urgent'] as const

export function NewTicketForm() {
  const { client, side } = useMe()
  const text = texts.demo.tickets
  const uploads = useFiles()
  const draft = useDraft('tickets new')
  const { subject = '', body = '', ...chosen } = draft.value
  const category = categories.find((name) => name === chosen['category']) ?? 'other'
  const priority = priorities.find((name) => name === chosen['priority']) ?? 'normal'
  const creation = useAction(async () => {
    const ticket = { subject, body, category, priority, attachments: uploads.files }
    const { id } = await sendDraft(draft, ticket, client.tickets.create)
    if (placeOf(side).id === 'new') go(side, 'tickets', id)
  })
  const problems = fieldProblems(creation.error)
  const change = (part: Record<string, string>) => {
    draft.value = { ...draft.value, ...part }
  }
  return (
    <form
      class="scroll form stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (!uploads.isUploading) void creation.run()
      }}
    >
      <header class="row">
        <BackLink tab="tickets" />
        <h3>{text.create}</h3>
      </header>
      <TextField
        label={texts.fields.subject}
        problem={problems['subject']}
        maxLength={200}
        required
        value={subject}
        onInput={({ currentTarget }) => change({ subject: currentTarget.value })}
      />
      <div class="pair">
        <Select
          isField
          label={texts.tickets.category}
          value={category}
          options={Object.entries(texts.tickets.categories)}
          choose={(name) => change({ category: name })}
        />
        <Select
          isField
          label={texts.tickets.priority}
          value={priority}
          options={Object.entries(texts.tickets.priorities)}
          choose={(name) => change({ priority: name })}
        />
      </div>
      <TextArea
        label={text.body}
        problem={problems['body']}
        rows={5}
        maxLength={10_000}
        required
        value={body}
        onInput={({ currentTarget }) => change({ body: currentTarget.value })}
      />
      <Attached files={uploads.files} removeFile={uploads.removeFile} sending={uploads.sending} />
      <div class="row between">
        <AttachButton label={texts.demo.attach} take={uploads.sending.take} />
        <Button submits tone="primary" isBusy={creation.isBusy || uploads.isUploading}>
          {text.send}
        </Button>
      </div>
    </form>
  )
}
