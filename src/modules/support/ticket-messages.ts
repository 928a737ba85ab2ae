import { cutAtLimit, type Listing, type ListRange, listByNumber } from '../../lib/list-range.ts'
import type { MessagesShown } from './model.ts'
import type { AuthoredMessage, TicketRow, TicketStore } from './store.ts'

const maxShown = 200

/** Lists of a ticket's messages. */
export function createTicketMessages(store: TicketStore) {
  return {
    /** The newest messages. */
    newest({ id, messageCount }: TicketRow): MessagesShown {
      const rows = store.listMessages(id, messageCount - maxShown - 1, messageCount)
      const cut = cutAtLimit(rows, maxShown, ({ seq }) => [id, seq])
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
