import { ArrowLeft, SendHorizontal } from 'lucide-preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Client, Ticket, TicketMessage } from '../../../client/src/client.ts'
import { useAction } from '../ui/action.ts'
import { confirmAction } from '../ui/dialog.tsx'
import { FileLink } from '../ui/file-link.tsx'
import { useResource } from '../ui/resource.ts'
import { Failure, Loading } from '../ui/states.tsx'
import { uiTexts } from '../ui/texts.ts'
import { Time } from '../ui/time.tsx'
import { AttachButton, mostAttachments, UploadList, useUploads } from './attachments.tsx'
import { sendDraft, useDraft } from './drafts.ts'
import { texts } from './language.tsx'
import { cursorPages } from './lists.ts'
import { useMe } from './me.ts'
import { linkTo } from './place.ts'
import { listen } from './session.ts'
import { StatusBadge } from './ticket-list.tsx'

/** A ticket with its messages. Frames only announce a change, so the messages are loaded again. */
function useTicket(client: Client, id: string) {
  const latest = useRef<Ticket>(undefined)
  const resource = useResource(id, async () =>
    withEarlier(await client.tickets.get(id), latest.current),
  )
  latest.current = resource.data
  useEffect(
    () =>
      listen(client, {
        status: ({ status }) => status === 'open' && resource.reload(),
        ticket_updated: ({ ticket }) => ticket.id === id && resource.reload(),
      }),
    [client, id],
  )
  const loadPage = cursorPages(client, 'GET /v1/support/tickets/{id}/messages', { id })
  async function loadEarlier() {
    const cursor = resource.data?.messages_before
    const { data, pagination } = await loadPage(cursor)
    resource.update((before) =>
      before.messages_before === cursor ? withPart(before, data, pagination.cursor) : before,
    )
  }
  return { ...resource, loadEarlier }
}

/** A response contains the newest messages only. Known earlier messages stay, unless there is a gap. */
function withEarlier(response: Ticket, known: Ticket | undefined): Ticket {
  const newest = new Set(response.messages.map(({ id }) => id))
  if (!known?.messages.some(({ id }) => newest.has(id))) return response
  return withPart(response, known.messages, known.messages_before ?? null)
}

/** Messages come from the ticket, the list and the response to a reply, so they are merged by id. Ids rise. */
function withPart(ticket: Ticket, some: TicketMessage[], before: string | null): Ticket {
  const { messages_before: _, ...rest } = ticket
  const byId = new Map([...some, ...ticket.messages].map((message) => [message.id, message]))
  const messages = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  return { ...rest, messages, ...(before !== null && { messages_before: before }) }
}

export function TicketView({ id }: { id: string }) {
  const { client, side } = useMe()
  const back = texts.value.back
  const { data: ticket, error, reload, update, loadEarlier } = useTicket(client, id)
  return (
    <div class="thread">
      <header class="thread-head">
        <a class="button ghost icon" href={linkTo(side, 'tickets')} aria-label={back} title={back}>
          <ArrowLeft />
        </a>
        {ticket && <h3 class="truncate">{ticket.subject}</h3>}
        {ticket && <StatusBadge status={ticket.status} />}
      </header>
      {!ticket && error !== undefined && <Failure error={error} retry={reload} />}
      {!ticket && error === undefined && <Loading />}
      {ticket && <Said ticket={ticket} loadEarlier={loadEarlier} />}
      {ticket && (
        <ReplyForm
          ticket={ticket}
          onReply={(message) =>
            update((before) => withPart(before, [message], before.messages_before ?? null))
          }
          onClose={(closed) => update((before) => withEarlier(closed, before))}
        />
      )}
    </div>
  )
}

type SaidProps = { ticket: Ticket; loadEarlier: () => Promise<void> }

function Said({ ticket, loadEarlier }: SaidProps) {
  const { tickets: text, chat } = texts.value
  const loading = useAction(loadEarlier)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus
    <div class="scroll from-end" tabIndex={0} role="log" aria-label={ticket.subject}>
      <div class="messages">
        {ticket.messages_before && (
          <button
            type="button"
            class="button ghost more"
            disabled={loading.isBusy}
            onClick={() => loading.run()}
          >
            {loading.isBusy ? uiTexts.value.loading : chat.earlier}
          </button>
        )}
        {ticket.messages.map(({ id, is_admin, body, attachments, created_at }) => (
          <div key={id} class={`bubble ${is_admin ? 'others' : 'own'} stored`}>
            {is_admin && <p class="small author">{text.desk}</p>}
            <p class="prose" dir="auto">
              {body}
            </p>
            {attachments?.map((file) => (
              <FileLink key={file.id} file={file} />
            ))}
            <p class="mark">
              <Time at={created_at} />
            </p>
          </div>
        ))}
        {ticket.status === 'open' && (
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

type ReplyFormProps = {
  ticket: Ticket
  onReply: (message: TicketMessage) => void
  onClose: (ticket: Ticket) => void
}

/** A refused reply, such as one to a ticket that was closed long ago, stays in the form. */
function ReplyForm({ ticket, onReply, onClose }: ReplyFormProps) {
  const { client } = useMe()
  const { tickets: text, chat } = texts.value
  const uploads = useUploads(mostAttachments)
  const draft = useDraft(`tickets ${ticket.id}`)
  const body = draft.value['body'] ?? ''
  const reply = useAction(async () => {
    const content = { body, attachments: uploads.files }
    const send = (message: typeof content) => client.tickets.reply(ticket.id, message)
    onReply(await sendDraft(draft, content, send))
    uploads.clear()
  })
  const close = useAction(async () => onClose(await client.tickets.close(ticket.id)))
  async function askToClose() {
    const question = { title: text.closeTitle, text: text.closeText, action: text.close }
    if (await confirmAction(question)) await close.run()
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        if (!uploads.isUploading) void reply.run()
      }}
    >
      <UploadList uploads={uploads} />
      <div class="row">
        <AttachButton uploads={uploads} isBusy={reply.isBusy} />
        <textarea
          name="body"
          rows={1}
          dir="auto"
          aria-label={text.reply}
          placeholder={ticket.status === 'closed' ? text.reopen : text.reply}
          maxLength={10_000}
          required
          value={body}
          readOnly={reply.isBusy}
          onInput={({ currentTarget }) => {
            draft.value = { body: currentTarget.value }
          }}
        />
        <button
          type="submit"
          class="button primary icon"
          aria-label={chat.send}
          title={chat.send}
          disabled={reply.isBusy}
        >
          <SendHorizontal />
        </button>
      </div>
      {ticket.status !== 'closed' && (
        <button
          type="button"
          class="button ghost close"
          disabled={close.isBusy}
          onClick={askToClose}
        >
          {text.close}
        </button>
      )}
    </form>
  )
}
