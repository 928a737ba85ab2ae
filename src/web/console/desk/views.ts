import { computed, signal } from '@preact/signals'
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
import { query } from '../../kit/router.ts'
import { texts } from '../../kit/texts.tsx'

export type Status = DeskTicketListItem['status']
export type Priority = DeskTicketListItem['priority']
export type Category = DeskTicketListItem['category']

export const {
  statuses: statusNames,
  priorities: priorityNames,
  categories: categoryNames,
} = texts.tickets

export const statuses: Status[] = ['open', 'in_progress', 'resolved', 'closed']
export const priorities: Priority[] = ['low', 'normal', 'high', 'urgent']
export const categories: Category[] = ['billing', 'technical', 'account', 'other']

type TicketQuery = Query<'GET /v1/admin/support/tickets'>

export type Order = NonNullable<TicketQuery['order']>

const notClosed = 'open,in_progress,resolved'

type View = { name: keyof typeof viewTexts; icon: typeof Inbox; query: TicketQuery }

/** By view: its title, and two texts for an empty list. */
export const viewTexts = texts.console.desk.views

export const views: readonly [View, ...View[]] = [
  { name: 'waiting', icon: CircleDot, query: { waiting: true } },
  { name: 'mine', icon: UserRound, query: { assignee_id: 'me', status: notClosed } },
  { name: 'unassigned', icon: CircleDashed, query: { assignee_id: 'none', status: notClosed } },
  { name: 'in_progress', icon: Clock, query: { status: 'in_progress' } },
  { name: 'resolved', icon: CheckCheck, query: { status: 'resolved' } },
  { name: 'closed', icon: Lock, query: { status: 'closed' } },
  { name: 'all', icon: Layers, query: {} },
]

const [firstView] = views
export const defaultView = firstView.name

export type Filter = {
  view: View
  q: string
  priority: Priority | undefined
  category: Category | undefined
  /** An admin's id, `me` or `none`. */
  assignee: string | undefined
  order: Order
}

const orders: Order[] = ['longest_waiting', 'shortest_waiting']
const orderKey = 'hostline ticket order'

/** Chosen before in this browser. */
const usualOrder = signal(
  orders.find((order) => order === localStorage.getItem(orderKey)) ?? 'longest_waiting',
)

export function rememberOrder(order: Order): void {
  usualOrder.value = order
  localStorage.setItem(orderKey, order)
}

const oneOf = <T extends string>(known: readonly T[], name: string) =>
  known.find((value) => value === query.value.get(name))

/** The filter in the URL. */
export const filter = computed<Filter>(() => ({
  view: views.find(({ name }) => name === query.value.get('view')) ?? firstView,
  q: query.value.get('q') ?? '',
  priority: oneOf(priorities, 'priority'),
  category: oneOf(categories, 'category'),
  assignee: query.value.get('assignee') ?? undefined,
  order: oneOf(orders, 'order') ?? usualOrder.value,
}))

/** A search has its own order, and no settled ticket waits. */
export const hasOrder = ({ q, view: { query } }: Filter) =>
  q === '' && query.status !== 'resolved' && query.status !== 'closed'

/** A view with a fixed assignee ignores the assignee filter. */
export const asksForAssignee = ({ view }: Filter) => view.query.assignee_id === undefined

export const hasFilters = ({ q, priority, category, assignee }: Filter) =>
  Boolean(q || priority || category || assignee)

export function ticketQuery(given: Filter): TicketQuery {
  const { view, q, priority, category, assignee, order } = given
  return {
    ...view.query,
    ...(q && { q }),
    ...(priority && { priority }),
    ...(category && { category }),
    ...(assignee && asksForAssignee(given) && { assignee_id: assignee }),
    ...(order === 'shortest_waiting' && hasOrder(given) && { order }),
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
