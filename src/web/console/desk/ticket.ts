import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Body, DeskTicket, DeskTicketListItem } from '../../../../client/src/client.ts'
import { fill, texts } from '../../kit/texts.tsx'
import { toast, toastError } from '../../kit/toast.tsx'
import {
  dataOf,
  forget,
  markStale,
  mutate,
  patch,
  patchItem,
  prefetch,
  refreshSoon,
  useList,
  useQuery,
} from '../data.ts'
import { beforeLeaving, client, request, user } from '../session.ts'
import { mergeTicket, readAgain, withOlder } from './timeline.ts'
import { priorityNames, statusNames } from './views.ts'

const words = texts.console.desk

export type Change = Body<'PATCH /v1/admin/support/tickets/{id}'>

const detailRoute = 'GET /v1/admin/support/tickets/{id}'
export const listRoute = 'GET /v1/admin/support/tickets'
const countsRoute = 'GET /v1/admin/support/counts'
const inputOf = (id: string) => ({ params: { id } })
const live = { isLive: true, merge: readAgain }

/** The open ticket, kept up to date by frames. */
export function useTicket(id: string) {
  const query = useQuery(detailRoute, inputOf(id), live)
  return {
    ...query,
    data: query.data && withPending(query.data),
    async loadOlder() {
      const input = {
        ...inputOf(id),
        query: { limit: 50, cursor: query.data?.messages_before ?? '' },
      }
      const route = 'GET /v1/admin/support/tickets/{id}/messages'
      const { data: older, pagination } = await request(route, input)
      const before = 'cursor' in pagination ? pagination.cursor : null
      patchTicket(id, (ticket) => withOlder(ticket, older, before))
    },
  }
}

export const refreshTicket = (id: string) => refreshSoon(detailRoute, inputOf(id))

export const prefetchTicket = (id: string) => prefetch(detailRoute, inputOf(id), live)

type Pending = { turn: number; id: string; change: Change }

/** Changes that are shown and not yet answered. */
const pending = signal<Pending[]>([])
let lastTurn = 0

/** Shows a change before the service has it.
 *  @returns a function that takes it back */
function show(id: string, change: Change) {
  const turn = ++lastTurn
  pending.value = [...pending.value, { turn, id, change }]
  return () => {
    pending.value = pending.value.filter((other) => other.turn !== turn)
  }
}

export function withPending<T extends DeskTicketListItem>(ticket: T): T {
  const own = pending.value.filter(({ id }) => id === ticket.id)
  return own.length === 0
    ? ticket
    : Object.assign({}, ticket, ...own.map(({ change }) => optimisticFields(change)))
}

function optimisticFields(change: Change): Partial<DeskTicketListItem> {
  const { status, priority, category, assignee_id } = change
  const isSettled = status === 'resolved' || status === 'closed'
  return {
    ...(status && { status, ...(isSettled && { waiting_since: null }) }),
    ...(priority && { priority }),
    ...(category && { category }),
    ...(assignee_id !== undefined && { assignee: assigneeOf(assignee_id) }),
  }
}

function assigneeOf(id: string | null) {
  if (id === null) return null
  return admins.value.find((admin) => admin.id === id) ?? { id, display_name: words.you }
}

/** Changes a ticket, shown at once.
 *  @throws ApiError, after the change was taken back */
export async function changeTicket(id: string, change: Change): Promise<DeskTicket> {
  await sendHeld(id)
  return send(id, change)
}

/** The last change of each ticket that is under way. */
const sending = new Map<string, Promise<DeskTicket>>()

/** Sends a change after those before it: a slow one must not undo a later one. */
function send(id: string, change: Change, takeBack = show(id, change)): Promise<DeskTicket> {
  const work = () => sendNow(id, change, takeBack)
  const sent = sending.get(id)?.then(work, work) ?? work()
  sending.set(id, sent)
  return sent.finally(() => sending.get(id) === sent && sending.delete(id))
}

async function sendNow(id: string, change: Change, takeBack: () => void) {
  const route = 'PATCH /v1/admin/support/tickets/{id}'
  // A held change may be sent while the page is left.
  const input = { ...inputOf(id), body: change, outlivesPage: true }
  const changed = await mutate(route, input, { optimistic: () => takeBack })
  accept(changed)
  return changed
}

/** Changes a ticket locally, until it is read again. */
export const patchTicket = (id: string, change: (ticket: DeskTicket) => DeskTicket): void =>
  patch(detailRoute, inputOf(id), change)

function accept(ticket: DeskTicket) {
  patchTicket(ticket.id, (before) => mergeTicket(before, ticket))
  const { messages, notes, history, messages_before, ...item } = ticket
  patchItem(listRoute, ticket.id, item)
  refreshSoon(countsRoute, {})
}

type Held = { sendNow: () => Promise<unknown>; follow: (ticket: DeskTicketListItem) => void }
const held = new Map<string, Held>()

/** Sends a held change of a ticket now, so that what follows comes after it. */
export const sendHeld = async (id: string): Promise<void> => {
  await held.get(id)?.sendNow()
}

/** Resolves a ticket once its undo is no longer offered: the owner's notice cannot be taken back. */
function resolveHeld({ id, subject, status: before, message_count: seen }: DeskTicketListItem) {
  const takeBack = show(id, { status: 'resolved' })
  const forget = () => {
    held.delete(id)
    beforeLeaving.delete(sendHeldNow)
  }
  let sent: Promise<unknown> | undefined
  function sendHeldNow() {
    sent ??= send(id, { status: 'resolved' }, takeBack).catch(toastError).finally(forget)
    endOffer()
    return sent
  }
  /** A message of the owner reopens a resolved ticket. Resolving it afterwards would hide the message, so it stays open. A
   *  ticket that its owner or a colleague closes meanwhile stays closed. */
  function follow({ status, message_count, last_message, user }: DeskTicketListItem) {
    const isAnswered = !last_message.is_admin && message_count > seen
    const isClosed = status === 'closed' && before !== 'closed'
    if (sent || !(isAnswered || isClosed)) return
    sent = Promise.resolve()
    undo.work()
    endOffer()
    if (isAnswered) toast(fill(words.composer.wrote, { names: user.display_name }))
  }
  const undo = {
    label: words.undo,
    work() {
      forget()
      takeBack()
    },
  }
  held.set(id, { sendNow: sendHeldNow, follow })
  beforeLeaving.add(sendHeldNow)
  const endOffer = toast(changedText({ status: 'resolved' }, subject), {
    undo,
    onEnd: () => void sendHeldNow(),
  })
}

/** Changes a ticket and offers an undo.
 *  @returns false when nothing was changed */
export async function changeWithUndo(item: DeskTicketListItem, change: Change): Promise<boolean> {
  const before = undoOf(item, change)
  const isMade = (ticket: DeskTicketListItem) =>
    JSON.stringify(undoOf(ticket, change)) === JSON.stringify(change)
  if (isMade(item)) return false
  if (change.status === 'resolved') {
    resolveHeld(item)
    return true
  }
  try {
    await changeTicket(item.id, change)
  } catch (error) {
    toastError(error)
    return false
  }
  function takeBack() {
    const present = dataOf(detailRoute, inputOf(item.id))
    // A colleague's later value stays.
    if (present && !isMade(present)) toast(changedText(undoOf(present, change), item.subject))
    else void changeTicket(item.id, before).catch(toastError)
  }
  toast(changedText(change, item.subject), { undo: { label: words.undo, work: takeBack } })
  return true
}

/** The change that takes a change back. */
export const undoOf = (
  { status, priority, assignee }: DeskTicketListItem,
  change: Change,
): Change => ({
  ...(change.status && { status }),
  ...(change.priority && { priority }),
  ...(change.assignee_id !== undefined && { assignee_id: assignee?.id ?? null }),
})

function changedText({ status, priority }: Change, subject: string): string {
  const { done } = words
  const assigned = priority
    ? fill(done.priority, { value: priorityNames[priority] })
    : done.assigned
  return `${status ? statusNames[status] : assigned} · ${subject}`
}

// Frames for the owner of a ticket have no `user` field; admins get one that has.
const isOfDesk = (ticket: object): ticket is DeskTicketListItem => 'user' in ticket

for (const event of ['ticket_created', 'ticket_updated'] as const) {
  client.on(event, ({ ticket }) => {
    if (!isOfDesk(ticket)) return
    held.get(ticket.id)?.follow(ticket)
    patchItem(listRoute, ticket.id, ticket)
    forget(listRoute)
    patchTicket(ticket.id, (before) => ({ ...before, ...ticket }))
    refreshTicket(ticket.id)
    refreshSoon(countsRoute, {})
    // The tickets of a removed owner may be purged.
    if (ticket.user.email === undefined) markStale(listRoute, ticket.id)
  })
}

/** Calls `work` with each ticket that is created, changed or replied to. */
export function useTicketFrames(work: (ticket: DeskTicketListItem) => void): void {
  const latest = useRef(work)
  latest.current = work
  useEffect(() => {
    const pass = ({ ticket }: { ticket: object }) => isOfDesk(ticket) && latest.current(ticket)
    const ends = [client.on('ticket_created', pass), client.on('ticket_updated', pass)]
    return () => {
      for (const end of ends) end()
    }
  }, [])
}

type Admin = { id: string; display_name: string }

/** The possible assignees of a ticket; empty until they are loaded. */
export const admins = signal<Admin[]>([])

export function useAdmins(): void {
  const query = { role: 'admin', disabled: false } as const
  // No frame tells of a new colleague.
  const list = useList('GET /v1/admin/users', { query }, { limit: 100, every: 60 })
  useEffect(() => {
    admins.value = list.items
    if (list.hasMore) list.loadMore()
  }, [list.data])
}

export function nameOfAdmin(id: string): string {
  if (id === user.value?.id) return user.value.display_name
  return admins.value.find((admin) => admin.id === id)?.display_name ?? words.somebody
}

/** Assignees for a menu, oneself first.
 *  @param current included, even when they are no longer an admin */
export function assignable(current: Admin | null): [string, string][] {
  const me = user.value?.id
  const isKnown = !current || admins.value.some(({ id }) => id === current.id)
  const all = isKnown ? admins.value : [current, ...admins.value]
  const named = all.map(({ id, display_name }): [string, string] => [
    id,
    id === me ? fill(words.oneself, { name: display_name }) : display_name,
  ])
  return named.sort(([a], [b]) => Number(b === me) - Number(a === me))
}
