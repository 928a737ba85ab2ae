import type { User } from 'hostline-client'
import { useStatus, useStore } from 'hostline-client/react'
import { openNotifications, openOutbox } from 'hostline-client/state'
import { useActionState, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Chat } from './chat.tsx'
import { Button, client, ignore, messageOf } from './parts.tsx'
import { Notifications, Tickets } from './support.tsx'

function App() {
  const [user, setUser] = useState(() => client.restore())
  // Another tab may have logged out, or logged in as somebody else.
  useEffect(() => client.on('session_ended', () => setUser(client.restore())), [])
  function leave() {
    setUser(undefined)
    client.logout().catch(ignore)
  }
  return user ? <Home key={user.id} user={user} leave={leave} /> : <Login enter={setUser} />
}

function Login({ enter }: { enter: (user: User) => void }) {
  const [problem, submit, isBusy] = useActionState(async (_: string, given: FormData) => {
    const [email, password] = [String(given.get('email')), String(given.get('password'))]
    const begin = given.has('isNew') ? client.register : client.login
    return begin({ email, password })
      .then(enter)
      .then(() => '', messageOf)
  }, '')
  return (
    <form className="login" action={submit}>
      <input name="email" type="email" aria-label="E-mail address" required />
      <input name="password" type="password" aria-label="Password" required />
      <input type="submit" value="Log in" disabled={isBusy} />
      <input type="submit" value="Register" name="isNew" disabled={isBusy} />
      <p role="alert">{problem}</p>
    </form>
  )
}

const tabs = ['chat', 'tickets', 'notifications'] as const

function Home({ user, leave }: { user: User; leave: () => void }) {
  const [tab, setTab] = useState<(typeof tabs)[number]>('chat')
  const status = useStatus(client)
  const outbox = useStore(() => openOutbox(client), [])
  const notifications = useStore(() => openNotifications(client), [])
  useEffect(() => void client.connect().catch(ignore), []) // `session_ended` tells the end
  if (!outbox || !notifications) return null
  return (
    <main>
      <header>
        {tabs.map((name) => (
          <Button key={name} isOn={name === tab} act={() => setTab(name)}>
            {name} {name === 'notifications' && (notifications.unread || '')}
          </Button>
        ))}
        <span role="status">{status === 'open' ? 'live' : 'offline'}</span>
        <code>{user.id}</code>
        <Button act={leave}>Log out</Button>
      </header>
      {outbox.refused.map((one) => (
        <p key={one.queued.client_id} role="alert">
          Not sent: {messageOf(one.error)}
          <Button act={() => outbox.retry(one).catch(ignore)}>Send again</Button>
          <Button act={() => outbox.dismiss(one)}>Dismiss</Button>
        </p>
      ))}
      {tab === 'chat' && <Chat user={user} />}
      {tab === 'tickets' && <Tickets />}
      {tab === 'notifications' && <Notifications list={notifications} />}
    </main>
  )
}

const root = document.getElementById('app')
if (root) createRoot(root).render(<App />)
