import type { DeskTicket } from '../../../../client/src/client.ts'

type StaleProps = {
  ticket: DeskTicket
  /** The newest message that the author has seen. */
  since: string
  isBusy: boolean
  sendAnyway: () => void
}

/** Names the authors of newer messages; nothing is sent before the admin has decided. */
export function StaleNotice({ ticket, since, isBusy, sendAnyway }: StaleProps) {
  const newer = ticket.messages.filter(({ id }) => id > since)
  const names = new Set(newer.map(({ author }) => author.display_name))
  const who = names.size > 0 ? new Intl.ListFormat('en').format(names) : 'Somebody'
  return (
    <div class="notice warning" role="alert">
      <p class="grow">
        <strong>{who} wrote meanwhile.</strong> Your reply is not sent. Read what is new first.
      </p>
      <button type="button" class="button" disabled={isBusy} onClick={sendAnyway}>
        Send anyway
      </button>
    </div>
  )
}
