import { Type } from '@sinclair/typebox'
import { AppError } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { type CursorRange, cutAtLimit, decodeCursor } from '../../lib/list-range.ts'
import type { Replay } from '../../realtime/channel.ts'
import type { ReplayPart } from '../../realtime/connection.ts'
import type { InboxStore, MessageKey } from './inbox-store.ts'
import {
  type MessageReader,
  type NewMessageFrame,
  newMessageFrame,
  senderVariant,
} from './model.ts'
import type { MessageRow } from './store.ts'

/** Above these bounds the client must resync, because loading the lists again is cheaper for both sides. */
const maxConversations = 1_000
const maxMessages = 10_000
const replayChunk = 100
const lowestId = '0'.repeat(26)
const missedPosition = Type.Tuple([Type.Literal('missed'), Type.String()])

export type CatchUp = ReturnType<typeof createCatchUp>

/** Lists the messages after a given one in all conversations of a user, oldest first, for REST and the socket. Omits
 *  copies of the user's own broadcasts. */
export function createCatchUp(store: InboxStore) {
  /** @throws resync (too many newer conversations or messages) */
  function listMissed(userId: string, since: string): MessageKey[] {
    const moved = store.listMoved(userId, since, maxConversations + 1)
    if (moved.length > maxConversations) throw new AppError('resync')
    let count = 0
    const missed = moved.flatMap(({ id, firstSeq, lastSeq }) => {
      const floor = Math.max(firstSeq - 1, lastSeq - maxMessages - 1)
      const known = store.findKnownSeq(id, since, floor)
      count += lastSeq - known
      if (count > maxMessages) throw new AppError('resync')
      return store.listKeys(userId, id, known)
    })
    return missed.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  // A message that a restore has undone, or that was forgotten or purged, is replaced by the newest one before it. An empty
  // read ends the replay: later messages arrive live.
  function* readParts(reader: MessageReader, since: string): Generator<ReplayPart> {
    let after = store.findKnownId(since) || lowestId
    if (after !== since) {
      yield [{ id: after, frame: { type: 'resync', newest_message_id: after } }]
    }
    for (;;) {
      const missed = listMissed(reader.userId, after)
      if (missed.length === 0) return
      for (let from = 0; from < missed.length; from += replayChunk) {
        const rows = store.listMessages(missed.slice(from, from + replayChunk))
        yield rows.map((row) => ({ id: row.id, frame: frameFor(row, reader) }))
      }
      after = missed.at(-1)?.id ?? after
    }
  }

  const replay: Replay = {
    read: readParts,
    position: (userId) => store.findPosition(userId) || lowestId,
  }

  return {
    replay,
    /** @throws validation_error (`cursor`) · resync (too many newer conversations or messages) */
    list(userId: string, since: string | undefined, { limit, cursor }: CursorRange) {
      const after = cursor === undefined ? idIn(since) : decodeCursor(cursor, missedPosition)[1]
      const keys = listMissed(userId, after).slice(0, limit + 1)
      return cutAtLimit(store.listMessages(keys), limit, ({ id }) => ['missed', id])
    },
  }
}

// The schema of the query has checked it.
const idIn = (since = '') => parseId(since) ?? ''

function frameFor(row: MessageRow, reader: MessageReader): NewMessageFrame {
  const frame = newMessageFrame(row)
  const variant = senderVariant(row, frame)
  return variant?.isFor(reader) ? variant.frame : frame
}
