import { useRef, useState } from 'preact/hooks'
import type { ManagedUser, Session } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction } from '../../ui/dialog.tsx'
import { useResource } from '../../ui/resource.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { request, user } from '../session.ts'

/** Loaded on request only, because each look is recorded in the audit log. */
export function PersonSessions({ person }: { person: ManagedUser }) {
  const { id } = person
  const [isAsked, setAsked] = useState(false)
  const heading = useRef<HTMLHeadingElement>(null)
  const { run, isBusy } = useAction(endAll)
  const sessions = useResource(isAsked ? id : undefined, async (signal) => {
    const query = { per_page: 100 }
    const options = { params: { id }, query, signal }
    return (await request('GET /v1/admin/users/{id}/sessions', options)).data
  })

  function show() {
    setAsked(true)
    heading.current?.focus()
  }

  async function endAll() {
    if (!(await askToEnd(person))) return
    await request('DELETE /v1/admin/users/{id}/sessions', { params: { id } })
    sessions.update(() => [])
    toast('All sessions are ended.')
  }

  return (
    <section class="stack tight" aria-label="Sessions">
      <h3 ref={heading} tabIndex={-1}>
        Sessions
      </h3>
      {isAsked ? (
        <Sessions {...sessions} />
      ) : (
        <p class="soft small">Opening them is recorded in the audit log.</p>
      )}
      <div class="row wrap">
        {!isAsked && (
          <button type="button" class="button" onClick={show}>
            Show the sessions
          </button>
        )}
        <button type="button" class="button danger" aria-disabled={isBusy} onClick={() => run()}>
          End all sessions…
        </button>
      </div>
    </section>
  )
}

type SessionsProps = { data: Session[] | undefined; error: unknown; reload: () => void }

function Sessions({ data, error, reload }: SessionsProps) {
  if (!data && error !== undefined) return <Failure error={error} retry={reload} />
  if (!data) return <Loading rows={2} />
  if (data.length === 0) return <p class="soft">No sessions.</p>
  return (
    <ul class="lines">
      {data.map(({ id, user_agent, ip, created_at, last_used_at }) => (
        <li key={id} class="entry-lines">
          <span class="truncate" title={user_agent ?? undefined}>
            {user_agent ?? 'Unknown device'}
          </span>
          <span class="small soft">
            {ip ?? 'Unknown address'} · used <Time at={last_used_at} />, since{' '}
            <Time at={created_at} />
          </span>
        </li>
      ))}
    </ul>
  )
}

function askToEnd({ id, display_name: name }: ManagedUser) {
  const isOneself = id === user.value?.id
  return confirmAction({
    title: `End all sessions of ${name}?`,
    text: isOneself
      ? 'This is you: this console is logged out, too.'
      : 'They are logged out on every device and can log in again.',
    action: 'End all sessions',
    isDangerous: true,
  })
}
