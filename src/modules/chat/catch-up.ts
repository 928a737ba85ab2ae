import { Type } from '@sinclair/typebox'
import { chunksOf } from '../../lib/chunks.ts'
import { AppError } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { type CursorRange, cutAtLimit, decodeCursor } from '../../lib/list-range.ts'
import type { Replay } from '../../realtime/channel.ts'
import type { ReplayPart } from '../../realtime/connection.ts'
import type { InboxStore, MessageKey, MessageRange } from './inbox-store.ts'
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
const keysPerRead = 20
const lowestId = '0'.repeat(26)
const missedPosition = Type.Tuple([Type.Literal('missed'), Type.String()])

/** From `seq` on; `keys` are read before it, and no message is older than `id`. */
type Part = MessageRange & { id: string; keys: MessageKey[] }

export type CatchUp = ReturnType<typeof createCatchUp>

/** Messages of all conversations, oldest first, without copies of the user's own broadcasts. Those that are not delivered
 *  yet come later, after the frames of earlier commits. */
export function createCatchUp(store: InboxStore, isDelivered: (id: string) => boolean) {
  /** @throws resync (too many newer conversations or messages) */
  function listParts(userId: string, since: string): Part[] {
    const bounds = { depth: maxMessages, limit: maxConversations + 1 }
    const parts: Part[] = []
    let [conversations, messages] = [0, 0]
    for (const { id, seq, ...range } of store.eachMoved(userId, since, bounds)) {
      conversations++
      if (id !== null && seq !== null) {
        messages += range.lastSeq - seq + 1
        parts.push({ ...range, seq, id, keys: [] })
      }
      if (conversations > maxConversations || messages > maxMessages) throw new AppError('resync')
    }
    return parts.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** The missed messages, oldest first. Of each conversation only those are read that the caller takes.
   *  @throws resync (too many newer conversations or messages) */
  function* eachMissed(userId: string, since: string): Generator<MessageKey> {
    const parts = listParts(userId, since)
    for (let part = parts.shift(); part; part = parts.shift()) {
      const key = part.keys.shift()
      if (key) yield key
      if (part.keys.length === 0 && part.seq <= part.lastSeq) readKeys(userId, part)
      const [next] = part.keys
      if (next) insertPart(parts, part, next.id)
    }
  }

  function* eachDelivered(userId: string, since: string): Generator<MessageKey> {
    for (const key of eachMissed(userId, since)) {
      if (!isDelivered(key.id)) return
      yield key
    }
  }

  function readKeys(userId: string, part: Part) {
    part.keys = store.listKeys(userId, part, keysPerRead)
    part.seq = (part.keys.at(-1)?.seq ?? part.lastSeq) + 1
  }

  // A message that a restore has undone, or that was forgotten or purged, is replaced by the newest one before it. An empty
  // read ends the replay: later messages arrive live.
  function* readParts(reader: MessageReader, since: string): Generator<ReplayPart> {
    let after = store.findKnownId(since) || lowestId
    if (after !== since) {
      yield [{ id: after, frame: { type: 'resync', newest_message_id: after } }]
    }
    for (;;) {
      let last: string | undefined
      for (const keys of chunksOf(eachDelivered(reader.userId, after), replayChunk)) {
        const rows = store.listMessages(keys)
        yield rows.map((row) => ({ id: row.id, frame: frameFor(row, reader) }))
        last = keys.at(-1)?.id
      }
      if (last === undefined) return
      after = last
    }
  }

  const replay: Replay = {
    read: readParts,
    position: (userId) => store.findKnownId(store.findPosition(userId)) || lowestId,
  }

  return {
    replay,
    /** @throws validation_error (`cursor`) · resync (too many newer conversations or messages) */
    list(userId: string, since = '', { limit, cursor }: CursorRange) {
      const after =
        cursor === undefined ? (parseId(since) ?? '') : decodeCursor(cursor, missedPosition)[1]
      const keys = eachDelivered(userId, after)
        .take(limit + 1)
        .toArray()
      return cutAtLimit(store.listMessages(keys), limit, ({ id }) => ['missed', id])
    },
  }
}

function insertPart(parts: Part[], part: Part, id: string) {
  let [low, high] = [0, parts.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((parts[middle]?.id ?? '') < id) low = middle + 1
    else high = middle
  }
  part.id = id
  parts.splice(low, 0, part)
}

function frameFor(row: MessageRow, reader: MessageReader): NewMessageFrame {
  const frame = newMessageFrame(row)
  const variant = senderVariant(row, frame)
  return variant?.isFor(reader) ? variant.frame : frame
}
