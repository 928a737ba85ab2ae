import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicket, DeskTicketListItem } from '../../../../client/src/client.ts'
import { useResource } from '../../ui/resource.ts'
import { toastError } from '../../ui/toast.tsx'
import { request } from '../session.ts'
import { throttle } from '../throttle.ts'
import { useReconnect } from '../use-reconnect.ts'
import { admins } from './admins.ts'
import { type Change, changeTicket } from './change.ts'
import { useTicketFrames } from './live.ts'
import { mergeTicket, withOlder } from './timeline.ts'

const pauseMilliseconds = 1_000

export type OpenTicket = {
  /** From the row of the list, until the detail has loaded. */
  item: DeskTicketListItem | undefined
  detail: DeskTicket | undefined
  error: unknown
  refresh: () => void
  update: (change: (ticket: DeskTicket) => DeskTicket) => void
  /** Changes the ticket optimistically, and reverts it when the service refuses.
   *  @returns whether it was changed */
  change: (change: Change) => Promise<boolean>
  loadOlder: () => Promise<void>
}

type Pending = { turn: number; change: Change }

/** The open ticket, kept up to date by frames.
 *  @param row of the list, if it is there
 *  @param onChanged called after each change made here */
export function useTicket(
  id: string,
  row: DeskTicketListItem | undefined,
  onChanged: (ticket: DeskTicketListItem) => void,
): OpenTicket {
  const params = { id }
  const shown = useRef<DeskTicket>(undefined)
  const resource = useResource(id, async (signal) => {
    const route = 'GET /v1/admin/support/tickets/{id}'
    return mergeTicket(shown.current, await request(route, { params, signal }))
  })
  const { data, update, reload } = resource
  shown.current = data
  const refresh = useRefresh(id, reload)
  useTicketFrames((ticket) => {
    if (ticket.id !== id) return
    update((before) => ({ ...before, ...ticket }))
    refresh()
  })
  useReconnect(refresh)

  const { pending, change } = useChanges(id, (fresh) => {
    update((before) => mergeTicket(before, fresh))
    onChanged(fresh)
  })
  const withPending = <T extends DeskTicketListItem>(ticket: T): T =>
    Object.assign({}, ticket, ...pending.map(({ change }) => optimisticFields(change)))
  const known = data ?? row

  return {
    item: known && withPending(known),
    detail: data && withPending(data),
    error: data ? undefined : resource.error,
    refresh,
    update,
    change,
    async loadOlder() {
      const query = { limit: 50, cursor: data?.messages_before ?? '' }
      const route = 'GET /v1/admin/support/tickets/{id}/messages'
      const { data: older, pagination } = await request(route, { params, query })
      const before = 'cursor' in pagination ? pagination.cursor : null
      update((ticket) => withOlder(ticket, older, before))
    },
  }
}

/** At most one request a second, however often the ticket changes. */
function useRefresh(id: string, reload: () => void): () => void {
  const throttled = useRef({ schedule: reload, cancel: () => {} })
  useEffect(() => {
    throttled.current = throttle(reload, pauseMilliseconds)
    return throttled.current.cancel
  }, [id, reload])
  return () => throttled.current.schedule()
}

function useChanges(id: string, accept: (ticket: DeskTicket) => void) {
  const [changes, setChanges] = useState<(Pending & { id: string })[]>([])
  const turns = useRef(0)

  async function change(given: Change): Promise<boolean> {
    const turn = ++turns.current
    setChanges((before) => [...before, { id, turn, change: given }])
    try {
      accept(await changeTicket(id, given))
      return true
    } catch (error) {
      toastError(error)
      return false
    } finally {
      setChanges((before) => before.filter((other) => other.turn !== turn))
    }
  }

  return { pending: changes.filter((other) => other.id === id), change }
}

/** The optimistic fields of a change. */
function optimisticFields({ status, priority, assignee_id }: Change): Partial<DeskTicketListItem> {
  return {
    ...(status && { status }),
    ...(priority && { priority }),
    ...(assignee_id !== undefined && { assignee: assigneeOf(assignee_id) }),
  }
}

function assigneeOf(id: string | null) {
  if (id === null) return null
  return admins.value.find((admin) => admin.id === id) ?? { id, display_name: 'You' }
}
