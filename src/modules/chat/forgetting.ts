import type { Orm } from '../../db/open.ts'
import type { Aging } from '../../jobs/forgetting.ts'
import { firstIdAt } from '../../lib/ids.ts'
import type { ChatService } from './service.ts'
import { type ChatStore, type ConversationRow, type MessageRow, readersOf } from './store.ts'

type OldMessage = Pick<
  MessageRow,
  'id' | 'conversationId' | 'seq' | 'senderId' | 'isSilent' | 'deletedAt' | 'fileUrl'
>

type Parts = { store: ChatStore; chat: ChatService; detach: (messageId: string) => void }

const surveyedAtOnce = 5_000

const isHeld = `EXISTS (SELECT 1 FROM reports
  WHERE message_id = messages.id AND status = 'open' AND message_id IS NOT NULL)`

/** Deletes old messages, in the order of their ids. Choice: the messages of a conversation are numbered without gaps, so a
 *  message named by an open report also keeps the later ones of its conversation. */
export function createMessageAging(orm: Orm, { store, chat, detach }: Parts): Aging {
  const sqlite = orm.$client
  const old = sqlite.prepare<OldMessage, [string, string, number]>(
    `SELECT id, conversation_id AS conversationId, seq, sender_id AS senderId, is_silent AS isSilent,
       deleted_at AS deletedAt, file_url AS fileUrl
     FROM messages WHERE id > ? AND id < ? ORDER BY id LIMIT ?`,
  )
  const firstHeld = sqlite.prepare<{ seq: number }, [string, number, number]>(
    `SELECT seq FROM messages WHERE conversation_id = ? AND seq >= ? AND seq <= ? AND ${isHeld} ORDER BY seq LIMIT 1`,
  )
  const deleteMessages = sqlite.prepare<unknown, [string, number]>(
    'DELETE FROM messages WHERE conversation_id = ? AND seq <= ?',
  )
  const setFirstSeq = sqlite.prepare<unknown, [number, string]>(
    'UPDATE conversations SET first_seq = ? WHERE id = ?',
  )
  const deleteBroadcasts = sqlite.prepare<unknown, [string, number]>(
    `DELETE FROM broadcasts WHERE id IN (SELECT id FROM broadcasts WHERE id < ?
       AND NOT EXISTS (SELECT 1 FROM messages WHERE broadcast_id = broadcasts.id) LIMIT ?)`,
  )
  const countOld = sqlite.prepare<{ n: number; last: string | null }, [string, string, number]>(
    `SELECT count(*) AS n, max(id) AS last
     FROM (SELECT id FROM messages WHERE id > ? AND id < ? ORDER BY id LIMIT ?)`,
  )
  const heldIn = sqlite.prepare<{ id: string; seq: number }, [string]>(
    `SELECT conversation_id AS id, min(seq) AS seq FROM messages
     WHERE id < ? AND id IN
       (SELECT message_id FROM reports WHERE status = 'open' AND message_id IS NOT NULL)
     GROUP BY 1`,
  )
  const countHeld = sqlite.prepare<{ n: number }, [string, number, string]>(
    'SELECT count(*) AS n FROM messages WHERE conversation_id = ? AND seq >= ? AND id < ?',
  )

  function forgettable({ id, firstSeq }: ConversationRow, rows: readonly OldMessage[]) {
    const [oldest, newest] = [rows[0]?.seq ?? 0, rows.at(-1)?.seq ?? 0]
    // An earlier part has met a message that is held.
    if (firstSeq < oldest) return []
    const held = firstHeld.get(id, oldest, newest)?.seq ?? newest + 1
    return rows.filter(({ seq }) => seq < held)
  }

  function forgetIn(conversation: ConversationRow, rows: readonly OldMessage[]): number {
    const gone = forgettable(conversation, rows)
    const through = gone.at(-1)?.seq
    if (through === undefined) return 0
    const { id, userA, userB, lastSeq } = conversation
    const both = [userA, userB]
    const readers = both.filter((userId) => discount(userId, conversation, gone))
    for (const message of gone) {
      if (message.fileUrl !== null || message.deletedAt !== null) detach(message.id)
    }
    deleteMessages.run(id, through)
    setFirstSeq.run(through + 1, id)
    chat.publishUpdate(id, through === lastSeq ? both : readers)
    return gone.length
  }

  function discount(userId: string, conversation: ConversationRow, gone: readonly OldMessage[]) {
    const participant = store.findParticipant(userId, conversation.id)
    if (!participant) return false
    const unread = gone.filter(
      (row) =>
        row.seq > participant.lastReadSeq &&
        row.deletedAt === null &&
        readersOf(row, conversation).includes(userId),
    ).length
    if (unread === 0) return false
    store.updateRead(participant, participant.lastReadSeq, participant.unreadCount - unread)
    return true
  }

  return {
    forget(before, limit, { count, last }) {
      const until = firstIdAt(before)
      const rows = old.all(last, until, limit)
      const newest = rows.at(-1)
      if (!newest) {
        const { changes } = deleteBroadcasts.run(until, limit)
        return changes === 0 ? undefined : { count, last }
      }
      const parts = Map.groupBy(rows, ({ conversationId }) => conversationId)
      let forgotten = 0
      for (const [id, part] of parts) {
        const conversation = store.find(id)
        if (conversation) forgotten += forgetIn(conversation, part)
      }
      return { count: count + forgotten, last: newest.id }
    },
    *survey(before) {
      const until = firstIdAt(before)
      for (let after: string | null = ''; after !== null; ) {
        const part = countOld.get(after, until, surveyedAtOnce)
        yield { due: part?.n ?? 0, held: 0 }
        after = part?.last ?? null
      }
      for (const { id, seq } of heldIn.all(until)) {
        const held = countHeld.get(id, seq, until)?.n ?? 0
        yield { due: -held, held }
      }
    },
  }
}
