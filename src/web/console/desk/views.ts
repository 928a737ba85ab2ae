import { computed } from '@preact/signals'
import {
  CheckCheck,
  CircleDashed,
  CircleDot,
  Clock,
  type Inbox,
  Layers,
  Lock,
  UserRound,
} from 'lucide-preact'
import type { DeskTicketListItem, Query } from '../../../../client/src/client.ts'
import { query } from '../../ui/router.ts'
import { type Category, categories, type Priority, priorities } from './words.ts'

type TicketQuery = Query<'GET /v1/admin/support/tickets'>

const notClosed = 'open,in_progress,resolved'

type View = {
  name: 'waiting' | 'mine' | 'unassigned' | 'in_progress' | 'resolved' | 'closed' | 'all'
  title: string
  icon: typeof Inbox
  query: TicketQuery
  /** Shown when the list is empty. */
  empty: [title: string, text: string]
}

export const views: readonly View[] = [
  {
    name: 'waiting',
    title: 'Needs an answer',
    icon: CircleDot,
    query: { waiting: true },
    empty: ['Nobody is waiting', 'Tickets that wait for an answer are here, the oldest first.'],
  },
  {
    name: 'mine',
    title: 'Mine',
    icon: UserRound,
    query: { assignee_id: 'me', status: notClosed },
    empty: ['Nothing is yours', 'Tickets that are assigned to you are here until they are closed.'],
  },
  {
    name: 'unassigned',
    title: 'Unassigned',
    icon: CircleDashed,
    query: { assignee_id: 'none', status: notClosed },
    empty: ['Everything is assigned', 'Tickets that nobody has taken on are here.'],
  },
  {
    name: 'in_progress',
    title: 'In progress',
    icon: Clock,
    query: { status: 'in_progress' },
    empty: ['Nothing is in progress', 'Tickets that somebody works on are here.'],
  },
  {
    name: 'resolved',
    title: 'Resolved',
    icon: CheckCheck,
    query: { status: 'resolved' },
    empty: ['Nothing is resolved', 'Resolved tickets are here until they close after a silence.'],
  },
  {
    name: 'closed',
    title: 'Closed',
    icon: Lock,
    query: { status: 'closed' },
    empty: ['Nothing is closed', 'Closed tickets are here.'],
  },
  {
    name: 'all',
    title: 'All',
    icon: Layers,
    query: {},
    empty: ['No tickets yet', 'Whatever people ask the desk is here.'],
  },
]

const [firstView] = views
export const defaultView = firstView?.name

export type Filter = {
  view: View
  q: string
  priority: Priority | undefined
  category: Category | undefined
  /** An admin's id, `me` or `none`. */
  assignee: string | undefined
}

const oneOf = <T extends string>(known: readonly T[], name: string) =>
  known.find((value) => value === query.value.get(name))

/** The filter in the URL. */
export const filter = computed<Filter>(() => ({
  view: views.find(({ name }) => name === query.value.get('view')) ?? (views[0] as View), // the list is not empty
  q: query.value.get('q') ?? '',
  priority: oneOf(priorities, 'priority'),
  category: oneOf(categories, 'category'),
  assignee: query.value.get('assignee') ?? undefined,
}))

/** A view with a fixed assignee ignores the assignee filter. */
export const asksForAssignee = ({ view }: Filter) => view.query.assignee_id === undefined

export const hasFilters = ({ q, priority, category, assignee }: Filter) =>
  Boolean(q || priority || category || assignee)

export function ticketQuery(given: Filter): TicketQuery {
  const { view, q, priority, category, assignee } = given
  return {
    ...view.query,
    ...(q && { q }),
    ...(priority && { priority }),
    ...(category && { category }),
    ...(assignee && asksForAssignee(given) && { assignee_id: assignee }),
  }
}

/** True if a ticket matches a query. Full-text search cannot be checked here.
 *  @param me id of the admin, for `assignee_id=me` */
export function isListed(ticket: DeskTicketListItem, query: TicketQuery, me: string): boolean {
  const { status, waiting, priority, category, assignee_id } = query
  if (status && !status.split(',').includes(ticket.status)) return false
  if (waiting && ticket.waiting_since === null) return false
  if (priority && ticket.priority !== priority) return false
  if (category && ticket.category !== category) return false
  return isAssigned(ticket, assignee_id, me)
}

function isAssigned({ assignee }: DeskTicketListItem, assigneeId: string | undefined, me: string) {
  if (assigneeId === undefined) return true
  if (assigneeId === 'none') return assignee === null
  return assignee?.id === (assigneeId === 'me' ? me : assigneeId)
}
