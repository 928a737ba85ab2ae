import { MonitorSmartphone } from 'lucide-preact'
import type { CursorPage, Session } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction } from '../../ui/dialog.tsx'
import { useList } from '../../ui/resource.ts'
import { Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { pageQuery } from '../page-query.ts'
import { useRefresh } from '../refresh.ts'
import { RowList } from '../row-list.tsx'
import { request } from '../session.ts'

export function OwnSessions() {
  const list = useList(
    'sessions',
    (cursor, signal) =>
      request('GET /v1/auth/sessions', { query: pageQuery(cursor), signal }) as Promise<
        CursorPage<Session>
      >, // with `limit` the response has a cursor
  )
  useRefresh(list.reload)
  const end = useAction(async (session: Session) => {
    const isMeant = await confirmAction({
      title: 'End this session?',
      text: `${deviceOf(session.user_agent)} has to log in again.`,
      action: 'End the session',
      isDangerous: true,
    })
    if (!isMeant) return
    await request('DELETE /v1/auth/sessions/{id}', { params: { id: session.id } })
    toast('The session has ended.')
    list.reload()
  })
  return (
    <section class="stack tight" aria-labelledby="sessions">
      <h2 id="sessions">Sessions</h2>
      <RowList
        label="Sessions"
        list={list}
        empty={<Empty icon={MonitorSmartphone} title="No sessions" />}
        render={(session) => <SessionRow session={session} end={end.run} />}
      />
    </section>
  )
}

type RowProps = { session: Session; end: (session: Session) => Promise<unknown> }

function SessionRow({ session, end }: RowProps) {
  const { user_agent: agent, ip, current, created_at: createdAt, last_used_at: usedAt } = session
  const device = deviceOf(agent)
  return (
    <>
      <div class="main">
        <h3 class="row" title={agent ?? undefined}>
          {device} {current && <span class="badge good">This one</span>}
        </h3>
        <p class="soft small">
          Last used <Time at={usedAt} />, logged in <Time at={createdAt} />
          {ip && <span class="mono"> · {ip}</span>}
        </p>
      </div>
      {!current && (
        <button
          type="button"
          class="button"
          aria-label={`End the session of ${device}`}
          onClick={() => end(session)}
        >
          End
        </button>
      )}
    </>
  )
}

const browsers = { Edge: /Edg/, Firefox: /Firefox/, Chrome: /Chrome|CriOS/, Safari: /Safari/ }
const systems = {
  iOS: /iPhone|iPad/,
  Android: /Android/,
  Windows: /Windows/,
  macOS: /Mac OS/,
  Linux: /Linux/,
}

/** `Firefox on Linux`; an unknown user agent is shown unchanged. */
function deviceOf(agent: string | null): string {
  if (!agent) return 'An unknown device'
  const nameIn = (known: Record<string, RegExp>) =>
    Object.entries(known).find(([, sign]) => sign.test(agent))?.[0]
  const [browser, system] = [nameIn(browsers), nameIn(systems)]
  return browser && system ? `${browser} on ${system}` : agent.slice(0, 60)
}
