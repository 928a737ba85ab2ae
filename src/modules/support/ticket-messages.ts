import { cutAtLimit, type Listing, type ListRange, listByNumber } from '../../lib/list-range.ts'
import type { MessagesShown } from './model.ts'
import type { AuthoredMessage, TicketRow, TicketStore } from './store.ts'

/** Limits of one answer. */
const maxShown = 200
const maxShownBytes = 600_000
const maxNotesBytes = 250_000

/** Pages of a ticket's messages. One answer holds a bounded number of messages and of bytes. */
export function createTicketMessages(store: TicketStore) {
  return {
    /** The newest ones. */
    newest({ id, messageCount }: TicketRow): MessagesShown {
      const rows = store.listMessages(id, messageCount - maxShown - 1, messageCount)
      const { length } = fitting(rows.slice(0, maxShown), maxShownBytes)
      const cut = cutAtLimit(rows, length, ({ seq }) => [id, seq])
      return { messages: cut.rows.reverse(), before: cut.form === 'cursor' ? cut.cursor : null }
    },

    /** Newest first. */
    list: ({ id, messageCount }: TicketRow, range: ListRange): Listing<AuthoredMessage> =>
      listByNumber(range, {
        name: id,
        total: messageCount,
        list: (after, until) => store.listMessages(id, after, until),
        numberOf: ({ seq }) => seq,
      }),
  }
}

export type TicketMessages = ReturnType<typeof createTicketMessages>

/** The newest notes that fit into an answer; both lists are oldest first. */
export const shownNotes = <T extends { body: string }>(notes: T[]): T[] =>
  fitting(notes.toReversed(), maxNotesBytes).reverse()

/** The first rows whose texts and attachments fit together. */
function fitting<T extends { body: string; attachments?: unknown }>(
  rows: T[],
  maxBytes: number,
): T[] {
  let bytes = 0
  const end = rows.findIndex(({ body, attachments }) => {
    bytes += Buffer.byteLength(JSON.stringify([body, attachments]))
    return bytes > maxBytes
  })
  return end < 0 ? rows : rows.slice(0, end)
}
