import { useStore } from 'hostline-client/react'
import { type openNotifications, openTicket, openTickets, type Used } from 'hostline-client/state'
import { useState } from 'react'
import { Button, client, ignore, Line, More, showError } from './parts.tsx'

export function Tickets() {
  const [id, setId] = useState<string>()
  const tickets = useStore(() => openTickets(client), [])
  if (!tickets) return null
  const { items, create, loadMore } = tickets
  async function ask(given: FormData) {
    const ticket = { subject: String(given.get('subject')), body: String(given.get('body')) }
    await create(ticket).then((created) => setId(created.id), showError)
  }
  return (
    <div className="columns">
      <nav>
        <form action={ask}>
          <input name="subject" aria-label="Subject" placeholder="Subject" required />
          <input name="body" aria-label="Question" placeholder="Question" required />
          <button type="submit">Ask support</button>
        </form>
        {items.map(({ id, subject, status }) => (
          <Button key={id} act={() => setId(id)}>
            <b>{subject}</b> {status}
          </Button>
        ))}
        <More list={tickets} load={loadMore} />
      </nav>
      {id && <Ticket key={id} id={id} />}
    </div>
  )
}

function Ticket({ id }: { id: string }) {
  const ticket = useStore(() => openTicket(client, id), [id])
  if (!ticket) return null
  const { items, waiting, reply, loadEarlier } = ticket
  const submit = (given: FormData) => void reply({ body: String(given.get('body')) }).catch(ignore)
  return (
    <section>
      <ol role="log">
        <More list={ticket} load={loadEarlier} />
        {items.map(({ id, is_admin, body }) => (
          <Line key={id} isOwn={!is_admin} text={body} />
        ))}
        {waiting.map(({ client_id, reply }) => (
          <Line key={client_id} isOwn text={`${reply.body} …`} />
        ))}
      </ol>
      <form className="composer" action={submit}>
        <input name="body" aria-label="Reply" required />
        <button type="submit">Reply</button>
      </form>
    </section>
  )
}

export function Notifications({ list }: { list: Used<typeof openNotifications> }) {
  return (
    <section>
      <Button act={() => list.markAllRead().catch(showError)}>Mark all as read</Button>
      {list.items.map(({ id, title, body, read }) => (
        <Line key={id} isOwn={!read}>
          <b>{title}</b> {body}
        </Line>
      ))}
      <More list={list} load={list.loadMore} />
    </section>
  )
}
