import { Type } from '@sinclair/typebox'
import { cutAtLimit, decodeCursor, type Listing, type ListRange } from '../../lib/list-range.ts'
import type { MessagesShown } from './model.ts'
import type { AuthoredMessage, TicketRow, TicketStore } from './store.ts'

/** What a ticket shows at once. */
const maxShown = 200
const maxShownBytes = 600_000
const maxNotesBytes = 250_000

/** Messages of a ticket in parts, as one may hold more than one answer should. */
export function createTicketMessages(store: TicketStore) {
  const positionOf = ({ ticketId, seq }: AuthoredMessage) => [ticketId, seq] as const

  return {
    /** The newest ones. */
    newest({ id, messageCount }: TicketRow): MessagesShown {
      const rows = store.listMessages(id, messageCount - maxShown - 1, messageCount)
      const { length } = fitting(rows.slice(0, maxShown), maxShownBytes)
      const cut = cutAtLimit(rows, length, positionOf)
      return { messages: cut.rows.reverse(), before: cut.form === 'cursor' ? cut.cursor : null }
    },

    /** Newest first. */
    list({ id, messageCount }: TicketRow, range: ListRange): Listing<AuthoredMessage> {
      if (range.form === 'page') {
        const until = messageCount - range.offset
        const rows = until > 0 ? store.listMessages(id, until - range.perPage, until) : []
        return { form: 'page', rows, total: messageCount }
      }
      const { cursor, limit } = range
      const place = Type.Tuple([Type.Literal(id), Type.Integer({ minimum: 1 })])
      const until = cursor === undefined ? messageCount : decodeCursor(cursor, place)[1] - 1
      return cutAtLimit(store.listMessages(id, until - limit - 1, until), limit, positionOf)
    },
  }
}

export type TicketMessages = ReturnType<typeof createTicketMessages>

/** The newest notes that an answer has room for; both lists are oldest first. */
export const shownNotes = <T extends { body: string }>(notes: T[]): T[] =>
  fitting(notes.toReversed(), maxNotesBytes).reverse()

/** The first rows whose texts fit together. */
function fitting<T extends { body: string }>(rows: T[], maxBytes: number): T[] {
  let bytes = 0
  const end = rows.findIndex(({ body }) => {
    bytes += Buffer.byteLength(JSON.stringify(body))
    return bytes > maxBytes
  })
  return end < 0 ? rows : rows.slice(0, end)
}
