import { useRef } from 'preact/hooks'
import type { ManagedUser } from '../../../../client/src/contract.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { useResource } from '../../ui/resource.ts'
import { navigate, withQuery } from '../../ui/router.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { BackLink } from '../panes.tsx'
import { useRefresh } from '../refresh.ts'
import { request, user } from '../session.ts'
import { useTitle } from '../title.ts'
import { PersonAccess } from './person-access.tsx'
import { PersonData } from './person-data.tsx'
import { PersonFacts } from './person-facts.tsx'
import { PersonMarks } from './person-marks.tsx'
import { PersonSessions } from './person-sessions.tsx'
import { PersonTickets } from './person-tickets.tsx'

type PersonDetailsProps = {
  id: string
  onChange: (person: ManagedUser) => void
  onRemove: (id: string) => void
}

export function PersonDetails({ id, onChange, onRemove }: PersonDetailsProps) {
  const found = useResource(id, (signal) =>
    request('GET /v1/admin/users/{id}', { params: { id }, signal }),
  )
  useRefresh(found.reload, { seconds: 30 })
  const isOnlyAdmin = useIsOnlyAdmin(id)
  const heading = useRef<HTMLHeadingElement>(null)
  const person = found.data

  function change(changed: ManagedUser) {
    found.update(() => changed)
    onChange(changed)
    // The pressed button may be gone.
    heading.current?.focus()
  }

  function leave() {
    onRemove(id)
    navigate(withQuery({}, '/console/people'), 'replace')
  }

  return (
    <article>
      <BackLink area="people" title="People" />
      {person ? (
        <>
          <Head person={person} heading={heading} />
          <PersonFacts person={person} />
          <PersonAccess person={person} isOnlyAdmin={isOnlyAdmin} onChange={change} />
          <PersonSessions person={person} />
          <PersonTickets person={person} />
          <PersonData person={person} isOnlyAdmin={isOnlyAdmin} onRemove={leave} />
        </>
      ) : (
        <Missing error={found.error} retry={found.reload} />
      )}
    </article>
  )
}

/** True if the person is the signed-in admin and no other admin exists who could undo a lock-out. */
function useIsOnlyAdmin(id: string): boolean {
  const isOneself = id === user.value?.id
  const { data } = useResource(isOneself ? 'admins' : undefined, async (signal) => {
    const query = { role: 'admin', disabled: false, per_page: 1 } as const
    const { pagination } = await request('GET /v1/admin/users', { query, signal })
    return 'total' in pagination ? pagination.total : undefined
  })
  return isOneself && data === 1
}

function Missing({ error, retry }: { error: unknown; retry: () => void }) {
  return error === undefined ? <Loading rows={8} /> : <Failure error={error} retry={retry} />
}

type HeadProps = { person: ManagedUser; heading: { current: HTMLHeadingElement | null } }

function Head({ person, heading }: HeadProps) {
  const { display_name, email } = person
  useTitle(display_name)
  return (
    <header class="person-head">
      <Avatar name={display_name} />
      <div class="entry-lines">
        <div class="row wrap">
          <h2 ref={heading} tabIndex={-1}>
            {display_name}
          </h2>
          <PersonMarks person={person} />
        </div>
        <span class="soft">{email}</span>
      </div>
    </header>
  )
}
