import { useRef, useState } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'

export type Selection = {
  tickets: DeskTicketListItem[]
  has: (id: string) => boolean
  /** @param isRange selects all tickets between the last selected one and this */
  toggle: (id: string, isRange?: boolean) => void
  keepOnly: (ids: string[]) => void
}

/** The selected tickets of a list. A ticket that leaves the list is no longer selected. */
export function useSelection(items: DeskTicketListItem[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const last = useRef<string>(undefined)

  function rangeTo(id: string): string[] {
    const ends = [last.current, id].map((end) => items.findIndex((item) => item.id === end))
    const [from = -1, to = -1] = ends.sort((a, b) => a - b)
    return from < 0 ? [id] : items.slice(from, to + 1).map((item) => item.id)
  }

  function toggle(id: string, isRange = false) {
    const changed = new Set(ids)
    if (isRange) for (const one of rangeTo(id)) changed.add(one)
    else if (!changed.delete(id)) changed.add(id)
    last.current = id
    setIds(changed)
  }

  return {
    tickets: items.filter(({ id }) => ids.has(id)),
    has: (id) => ids.has(id),
    toggle,
    keepOnly: (kept) => setIds(new Set(kept)),
  }
}
