import type { FileMessage, User } from 'hostline-client'
import { useStore } from 'hostline-client/react'
import { openInbox, openThread } from 'hostline-client/state'
import { useEffect, useState } from 'react'
import { Button, client, ignore, Line, More, showError } from './parts.tsx'

export function Chat({ user }: { user: User }) {
  const [id, setId] = useState<string>()
  const inbox = useStore(() => openInbox(client), [])
  if (!inbox) return null
  const write = (given: FormData) => inbox.open(String(given.get('id'))).then(setId, showError)
  return (
    <div className="columns">
      <nav>
        <form action={write}>
          <input name="id" aria-label="User ID" placeholder="Write to a user ID" required />
        </form>
        {inbox.items.map(({ id, participant, last_message, unread_count }) => (
          <Button key={id} act={() => setId(id)}>
            <b>{participant.display_name}</b> {last_message?.body} {unread_count || ''}
          </Button>
        ))}
        <More list={inbox} load={inbox.loadMore} />
      </nav>
      {id && <Thread key={id} id={id} user={user} />}
    </div>
  )
}

function Thread({ id, user }: { id: string; user: User }) {
  const thread = useStore(() => openThread(client, id), [id])
  const [newest, markRead] = [thread?.items.at(-1)?.id, thread?.markRead]
  useEffect(() => {
    const mark = () => {
      if (newest && document.visibilityState === 'visible') markRead?.(newest).catch(ignore)
    }
    mark()
    document.addEventListener('visibilitychange', mark)
    return () => document.removeEventListener('visibilitychange', mark)
  }, [newest, markRead])
  if (!thread) return null
  const { conversation, items, waiting, isTyping, send, sendFile, loadEarlier } = thread
  const { participant, may_send_reason } = conversation ?? {}
  const readUpTo = conversation?.participant_read_up_to ?? ''
  function submit(given: FormData) {
    const [body, file] = [String(given.get('body')), given.get('file')]
    if (file instanceof File && file.size > 0) sendFile(file, { body }).catch(ignore)
    else if (body) send({ body }).catch(ignore)
  }
  return (
    <section>
      <ol role="log">
        <More list={thread} load={loadEarlier} />
        {items.map((message) => (
          <Line key={message.id} isOwn={message.sender_id === user.id}>
            {message.type === 'file' && <Attachment message={message} />}
            {message.deleted_at ? <i>removed</i> : message.body}
            {message.sender_id === user.id && (message.id <= readUpTo ? ' ✓✓' : ' ✓')}
          </Line>
        ))}
        {waiting.map(({ client_id, message: { file_name = '', body } }) => (
          <Line key={client_id} isOwn text={`${file_name} ${body} …`} />
        ))}
      </ol>
      <p>{isTyping && `${participant?.display_name} is typing`}</p>
      {may_send_reason && <p>You cannot write here: {may_send_reason}</p>}
      <form className="composer" action={submit} hidden={Boolean(may_send_reason)}>
        <input name="body" aria-label="Message" onInput={() => client.typing(id)} />
        <input name="file" type="file" aria-label="File" />
        <button type="submit">Send</button>
      </form>
    </section>
  )
}

function Attachment({ message: { file_url, file_name, file_type } }: { message: FileMessage }) {
  const isPicture = file_type?.startsWith('image/')
  return (
    <a href={file_url}>
      {isPicture ? <img src={`${file_url}?w=320`} alt={file_name ?? ''} /> : file_name}
    </a>
  )
}
