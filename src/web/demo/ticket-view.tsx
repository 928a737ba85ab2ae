import { ArrowLeft, SendHorizontal } from 'lucide-preact'
import { useEffect } from 'preact/hooks'
import type { Client, Ticket, TicketMessage } from '../../../client/src/client.ts'
import { useAction } from '../ui/action.ts'
import { confirmAction } from '../ui/dialog.tsx'
import { FileLink } from '../ui/file-link.tsx'
import { useResource } from '../ui/resource.ts'
import { Failure, Loading } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { AttachButton, mostAttachments, UploadList, useUploads } from './attachments.tsx'
import { say } from './language.tsx'
import { useMe } from './me.ts'
import { linkTo } from './place.ts'
import { listen } from './session.ts'
import { StatusBadge } from './ticket-list.tsx'

/** A ticket with everything that was said. A frame tells that it has changed; what was said is then asked for. */
function useTicket(client: Client, id: string) {
  const resource = useResource(id, () => client.tickets.get(id))
  useEffect(
    () =>
      listen(client, {
        status: ({ status }) => status === 'open' && resource.reload(),
        ticket_updated: ({ ticket }) => ticket.id === id && resource.reload(),
      }),
    [client, id],
  )
  return resource
}

export function TicketView({ id }: { id: string }) {
  const { client, side } = useMe()
  const back = say.value.back
  const { data: ticket, error, reload, update } = useTicket(client, id)
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
      {ticket && <Said ticket={ticket} />}
      {ticket && (
        <ReplyForm
          ticket={ticket}
          onReply={(message) =>
            update((before) => ({ ...before, messages: withMessage(before.messages, message) }))
          }
          onClose={(closed) => update(() => closed)}
        />
      )}
    </div>
  )
}

/** The frame about a reply may have come before its answer. */
const withMessage = (messages: TicketMessage[], message: TicketMessage) => [
  ...messages.filter(({ id }) => id !== message.id),
  message,
]

function Said({ ticket }: { ticket: Ticket }) {
  const text = say.value.tickets
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus
    <div class="scroll from-end" tabIndex={0} role="log" aria-label={ticket.subject}>
      <div class="messages">
        {ticket.messages_before && <p class="day small soft">{text.older}</p>}
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

/** What is refused, such as a reply to a ticket that has been closed for long, keeps what was typed. */
function ReplyForm({ ticket, onReply, onClose }: ReplyFormProps) {
  const { client } = useMe()
  const { tickets: text, chat } = say.value
  const uploads = useUploads(mostAttachments)
  const reply = useAction(async (form: HTMLFormElement) => {
    const body = String(new FormData(form).get('body'))
    onReply(await client.tickets.reply(ticket.id, { body, attachments: uploads.files }))
    form.reset()
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
        if (!uploads.isUploading) void reply.run(event.currentTarget)
      }}
    >
      <UploadList uploads={uploads} />
      <div class="row">
        <AttachButton uploads={uploads} />
        <textarea
          name="body"
          rows={1}
          dir="auto"
          aria-label={text.reply}
          placeholder={ticket.status === 'closed' ? text.reopen : text.reply}
          maxLength={10_000}
          required
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
