import { useEffect, useState } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { type List, useList } from '../../ui/resource.ts'
import { request, user } from '../session.ts'
import { useReconnect } from '../use-reconnect.ts'
import { useTicketFrames } from './live.ts'
import { filter, isListed, ticketQuery } from './views.ts'

const pageSize = 100

export type TicketList = List<DeskTicketListItem> & {
  /** Describes tickets that came or went since the list was loaded. */
  news: string | undefined
  /** True after the first response. */
  isLoaded: boolean
  /** Updates the ticket in its row. */
  replace: (ticket: DeskTicketListItem) => void
}

/** The tickets that match the URL. Rows change in place; additions and removals wait for `reload`, so that nothing
 *  moves under the pointer. */
export function useTicketList(): TicketList {
  const filterQuery = ticketQuery(filter.value)
  const me = user.value?.id ?? ''
  const key = JSON.stringify(filterQuery)
  const list = useList<DeskTicketListItem>(key, async (cursor, signal) => {
    const query = { ...filterQuery, limit: pageSize, ...(cursor && { cursor }) }
    const { data, pagination } = await request('GET /v1/admin/support/tickets', { query, signal })
    return { data, pagination: { cursor: 'cursor' in pagination ? pagination.cursor : null } }
  })
  const fresh = { key, arrived: new Set<string>(), isStale: false }
  const [loadedKey, setLoadedKey] = useState<string>()
  useEffect(() => {
    if (!list.isLoading) setLoadedKey(key)
  }, [list.isLoading, key])
  const [changes, setChanges] = useState(fresh)
  const current = changes.key === key ? changes : fresh

  function replace(ticket: DeskTicketListItem) {
    list.update((items) => items.map((item) => (item.id === ticket.id ? ticket : item)))
  }

  useTicketFrames((ticket) => {
    if (list.items.some(({ id }) => id === ticket.id)) return replace(ticket)
    if (filterQuery.q) return
    const arrived = new Set(current.arrived)
    if (isListed(ticket, filterQuery, me)) arrived.add(ticket.id)
    else arrived.delete(ticket.id)
    setChanges({ ...current, arrived })
  })

  function reload() {
    setChanges(fresh)
    list.reload()
  }
  // A reload shows only the first page, which would move a list that was scrolled.
  useReconnect(() => {
    if (list.items.length > pageSize) setChanges({ ...current, isStale: true })
    else reload()
  })

  const known = list.items.filter(({ id }) => current.arrived.has(id)).length
  const gone = list.items.filter((ticket) => !isListed(ticket, filterQuery, me)).length
  return {
    ...list,
    reload,
    replace,
    isLoaded: loadedKey === key,
    news: newsText(current.isStale, current.arrived.size - known, gone),
  }
}

function newsText(isStale: boolean, arrived: number, gone: number): string | undefined {
  if (isStale) return 'Changed'
  const parts = [arrived > 0 && `${arrived} new`, gone > 0 && `${gone} gone`]
  return parts.filter(Boolean).join(', ') || undefined
}
