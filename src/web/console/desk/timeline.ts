import type { DeskTicket } from '../../../../client/src/client.ts'

export type Message = DeskTicket['messages'][number]
export type Note = DeskTicket['notes'][number]
export type Change = DeskTicket['history'][number]

export type Entry =
  | { kind: 'message'; id: string; at: string; message: Message }
  | { kind: 'note'; id: string; at: string; note: Note }
  | { kind: 'change'; id: string; at: string; change: Change }

/** Messages, notes and changes in the order of time. Notes and changes older than the first loaded message are left
 *  out until the earlier messages are loaded. */
export function timelineOf({ messages, notes, history, messages_before }: DeskTicket): Entry[] {
  const entries: Entry[] = [
    ...messages.map((message) => ({
      kind: 'message' as const,
      id: message.id,
      at: message.created_at,
      message,
    })),
    ...notes.map((note) => ({ kind: 'note' as const, id: note.id, at: note.created_at, note })),
    ...history.map((change) => ({ kind: 'change' as const, id: change.id, at: change.at, change })),
  ]
  const start = messages_before === undefined ? '' : (messages[0]?.created_at ?? '')
  return entries
    .filter(({ at }) => at >= start)
    .sort((a, b) => compare(a.at, b.at) || compare(a.id, b.id))
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Replaces the shown ticket with what was read again. The response has the newest messages alone: earlier ones stay if
 *  none is missing between. */
export function readAgain(before: DeskTicket, fresh: DeskTicket): DeskTicket {
  const [first] = fresh.messages
  const start = before.messages.findIndex(({ id }) => id === first?.id)
  if (start <= 0) return fresh
  return withOlder(fresh, before.messages.slice(0, start), before.messages_before ?? null)
}

/** Merges the response to a change into the shown ticket. Earlier messages, which the response does not include, and newer
 *  messages and changes stay. Notes do not: one that is missing has been deleted. */
export function mergeTicket(before: DeskTicket | undefined, fresh: DeskTicket): DeskTicket {
  if (before?.id !== fresh.id) return fresh
  const { messages_before, ...rest } = fresh
  const oldest = before.messages_before
  return {
    ...rest,
    messages: mergedById(before.messages, fresh.messages),
    history: mergedById(before.history, fresh.history),
    ...(oldest !== undefined && { messages_before: oldest }),
  }
}

/** @param older a page of messages, newest first */
export function withOlder(ticket: DeskTicket, older: Message[], before: string | null): DeskTicket {
  const { messages_before, ...rest } = ticket
  return {
    ...rest,
    messages: mergedById(older, ticket.messages),
    ...(before !== null && { messages_before: before }),
  }
}

export const withMessage = (ticket: DeskTicket, message: Message): DeskTicket => ({
  ...ticket,
  messages: mergedById(ticket.messages, [message]),
})

export const withNote = (ticket: DeskTicket, note: Note): DeskTicket => ({
  ...ticket,
  notes: mergedById(ticket.notes, [note]),
})

export const withoutNote = (ticket: DeskTicket, noteId: string): DeskTicket => ({
  ...ticket,
  notes: ticket.notes.filter(({ id }) => id !== noteId),
})

/** Sorts by id: ULIDs are in the order of time. */
function mergedById<T extends { id: string }>(...lists: T[][]): T[] {
  const byId = new Map(lists.flat().map((item) => [item.id, item]))
  return [...byId.values()].sort((a, b) => compare(a.id, b.id))
}
