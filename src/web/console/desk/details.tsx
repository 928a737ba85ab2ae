import { ChevronRight, X } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { duration } from '../../ui/format.ts'
import { useResource } from '../../ui/resource.ts'
import { Time } from '../../ui/time.tsx'
import { request, user } from '../session.ts'
import { admins } from './admins.ts'
import type { Change } from './change.ts'
import { ChoiceField } from './choice-field.tsx'
import { StatusMark } from './marks.tsx'
import { categoryNames, priorities, priorityNames, statuses, statusNames } from './words.ts'

type DetailsProps = {
  ticket: DeskTicketListItem
  /** On a narrow screen the details are an overlay. */
  isShown: boolean
  hide: () => void
  change: (change: Change) => Promise<boolean>
}

export function Details({ ticket, isShown, hide, change }: DetailsProps) {
  const hideButton = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    if (isShown) hideButton.current?.focus()
  }, [isShown])
  return (
    <aside class={`details-pane${isShown ? ' shown' : ''}`} aria-label="Details">
      <button
        type="button"
        ref={hideButton}
        class="button ghost icon hide"
        aria-label="Hide the details"
        onClick={hide}
      >
        <X />
      </button>
      <Owner ticket={ticket} />
      <Choices ticket={ticket} change={change} />
      <Facts ticket={ticket} />
      <OtherTickets ticket={ticket} />
    </aside>
  )
}

function Owner({ ticket: { user: owner } }: { ticket: DeskTicketListItem }) {
  return (
    <section class="stack tight" aria-label="Opened by">
      <h3>{owner.display_name}</h3>
      <p class="small soft address">{owner.email ?? 'The account was removed.'}</p>
      {owner.email !== undefined && (
        <a class="small row" href={`/console/people/${owner.id}`}>
          Show the person
          <ChevronRight />
        </a>
      )}
    </section>
  )
}

function Choices({ ticket, change }: Pick<DetailsProps, 'ticket' | 'change'>) {
  const { status, priority, assignee } = ticket
  return (
    <section class="stack" aria-label="State">
      <ChoiceField
        label="Status"
        value={status}
        options={statuses.map((value) => [value, statusNames[value]])}
        choose={(value) => change({ status: value })}
      />
      <ChoiceField
        label="Priority"
        value={priority}
        options={priorities.map((value) => [value, priorityNames[value]])}
        choose={(value) => change({ priority: value })}
      />
      <ChoiceField
        label="Assignee"
        value={assignee?.id ?? ''}
        options={[['', 'Nobody'], ...assignable(assignee)]}
        choose={(value) => change({ assignee_id: value === '' ? null : value })}
      />
    </section>
  )
}

/** Oneself first. The current assignee is included, even when they are no longer an admin. */
function assignable(assignee: DeskTicketListItem['assignee']): [string, string][] {
  const me = user.value?.id
  const known = admins.value.some(({ id }) => id === assignee?.id) || !assignee
  const all = known ? admins.value : [assignee, ...admins.value]
  const named = all.map(({ id, display_name }): [string, string] => [
    id,
    id === me ? `${display_name} (you)` : display_name,
  ])
  return named.sort(([a], [b]) => Number(b === me) - Number(a === me))
}

function Facts({ ticket }: { ticket: DeskTicketListItem }) {
  const { created_at, updated_at, waiting_since, first_response_at } = ticket
  return (
    <dl class="facts small">
      <Fact name="Category">{categoryNames[ticket.category]}</Fact>
      <Fact name="Opened">
        <Time at={created_at} />
      </Fact>
      <Fact name="Last change">
        <Time at={updated_at} />
      </Fact>
      <Fact name="Waiting">{waiting_since ? <Time at={waiting_since} /> : 'No'}</Fact>
      <Fact name="First response">
        {first_response_at ? after(created_at, first_response_at) : 'None yet'}
      </Fact>
      <Fact name="Messages">{ticket.message_count}</Fact>
    </dl>
  )
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="row between">
      <dt class="soft">{name}</dt>
      <dd class="number">{children}</dd>
    </div>
  )
}

const after = (from: string, to: string) =>
  `after ${duration(Math.max(1, (Date.parse(to) - Date.parse(from)) / 1_000))}`

const shownTickets = 5

/** Newest tickets of the owner. */
function OtherTickets({ ticket: { id, user: owner } }: { ticket: DeskTicketListItem }) {
  const { data } = useResource(owner.id, (signal) =>
    request('GET /v1/admin/support/tickets', {
      query: { user_id: owner.id, per_page: shownTickets + 1 },
      signal,
    }),
  )
  const others = data?.data.filter((other) => other.id !== id).slice(0, shownTickets) ?? []
  if (others.length === 0) return null
  return (
    <section class="stack tight" aria-label="Other tickets">
      <h3>Other tickets</h3>
      <ul class="stack tight">
        {others.map((other) => (
          <li key={other.id}>
            <a class="other row between" href={`/console/desk/${other.id}?view=all`}>
              <span class="truncate">{other.subject}</span>
              <StatusMark status={other.status} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}
