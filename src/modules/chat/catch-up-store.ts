import type { Orm } from '../../db/open.ts'
import { messages } from '../../db/schema.ts'
import { selectList } from '../../db/statements.ts'
import type { MessageRow } from './store.ts'

export type MessageKey = { id: string; conversationId: string; seq: number }
export type CatchUpStore = ReturnType<typeof createCatchUpStore>

/** SQL over what somebody missed. Nothing is kept for it: ids rise in commit order, in each conversation too. */
export function createCatchUpStore({ $client: sqlite }: Orm) {
  const moved = sqlite.prepare<{ id: string; lastSeq: number }, [string, string, number]>(
    `SELECT p.conversation_id AS id, c.last_seq AS lastSeq FROM participants p
     JOIN conversations c ON c.id = p.conversation_id
     WHERE p.user_id = ? AND p.last_activity_id > ? LIMIT ?`,
  )
  const known = sqlite.prepare<{ seq: number }, [string, number, string]>(
    'SELECT seq FROM messages WHERE conversation_id = ? AND seq > ? AND id <= ? ORDER BY seq DESC LIMIT 1',
  )
  // The copies of a broadcast are not told to the one who sent it.
  const keys = sqlite.prepare<MessageKey, [string, number, string]>(
    `SELECT id, conversation_id AS conversationId, seq FROM messages
     WHERE conversation_id = ? AND seq > ? AND NOT (sender_id = ? AND broadcast_id IS NOT NULL)`,
  )
  const one = sqlite.prepare<MessageRow, [string, number]>(
    `SELECT ${selectList(messages)} FROM messages WHERE conversation_id = ? AND seq = ?`,
  )
  const newest = sqlite.prepare<{ id: string | null }, []>('SELECT max(id) AS id FROM messages')

  return {
    /** Conversations of a user with something newer than a message. */
    listMoved: (userId: string, since: string, limit: number) => moved.all(userId, since, limit),
    /** The `seq` of the newest message up to `since`, read backwards down to `floor`, which is the answer when there is
     *  none above it. */
    findKnownSeq: (conversationId: string, since: string, floor: number): number =>
      known.get(conversationId, floor, since)?.seq ?? Math.max(0, floor),
    /** Messages with `seq` > `after` that are told to a user. */
    listKeys: (userId: string, conversationId: string, after: number): MessageKey[] =>
      keys.all(conversationId, after, userId),
    listMessages: (wanted: readonly MessageKey[]): MessageRow[] =>
      wanted.flatMap(({ conversationId, seq }) => one.get(conversationId, seq) ?? []),
    /** The id of the newest message of all, empty when there is none. */
    findNewestId: (): string => newest.get()?.id ?? '',
  }
}
