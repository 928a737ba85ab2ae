import { and, eq } from 'drizzle-orm'
import type { Core, MayTalk, UnreadMessage } from '../../core.ts'
import { inboxes, participants } from '../../db/schema.ts'

export type Unread = ReturnType<typeof createUnread>

export const maxPerMail = 20
export const maxExcerpts = 10
const maxConversations = 1_000
/** `senderId` is null when only notices are mailed, because one of the two blocks the other. */
type Mailable = {
  conversationId: string
  senderId: string | null
  senderName: string
  oldestSeq: number
  oldestAt: number
  newestId: string
}
type Excerpt = { isNotice: number; text: string }

/** The text of a message; of a file message its caption, else the names of its files. Empty when there are none. */
const shownText = `CASE type WHEN 'file' THEN coalesce(nullif(trim(body), ''),
  (SELECT group_concat(value ->> 'file_name', ', ') FROM json_each(attachments)), file_name, '') ELSE body END`

/** @param senderId the SQL of the other user's id; its value is null when only notices count */
const isCounted = (senderId: string) =>
  `(sender_id IS NULL OR sender_id = ${senderId}) AND is_silent = 0 AND deleted_at IS NULL`

const isMailable = (senderId: string) => `${isCounted(senderId)} AND broadcast_id IS NULL`

/** Unread messages for pushes, except those of muted and archived conversations. Of blocked ones only notices are left. */
export function createUnread({ orm, clock }: Core, mayTalk: MayTalk) {
  const sqlite = orm.$client
  // One statement, because one for each conversation takes ten times as long.
  const mailable = sqlite.prepare<Mailable, [string, string, number, number]>(
    `SELECT p.conversation_id AS conversationId, p.sender_id AS senderId,
       (SELECT display_name FROM users WHERE id = p.other_user_id) AS senderName,
       oldest.seq AS oldestSeq, oldest.created_at AS oldestAt,
       (SELECT id FROM messages WHERE conversation_id = p.conversation_id AND seq >= oldest.seq
         AND ${isMailable('p.sender_id')} ORDER BY seq DESC LIMIT 1) AS newestId
     FROM (
       SELECT *, CASE WHEN NOT EXISTS (SELECT 1 FROM blocks b
         WHERE b.user_id = ?1 AND b.other_user_id = participants.other_user_id) THEN other_user_id END AS sender_id
       FROM participants WHERE user_id = ?1 AND is_archived = 0 AND last_activity_id > ?2
       ORDER BY last_activity_id DESC LIMIT ?4) p
     CROSS JOIN messages oldest ON oldest.conversation_id = p.conversation_id AND oldest.seq = (
       SELECT seq FROM messages WHERE conversation_id = p.conversation_id AND seq > p.last_read_seq AND id > ?2
         AND ${isMailable('p.sender_id')} ORDER BY seq LIMIT 1)
     WHERE p.unread_count > 0 AND coalesce(p.muted_until, 0) <= ?3`,
  )
  const excerpts = sqlite.prepare<Excerpt, [string, number, string | null, number]>(
    `SELECT sender_id IS NULL AS isNotice, ${shownText} AS text
     FROM messages WHERE conversation_id = ?1 AND seq >= ?2 AND ${isMailable('?3')} ORDER BY seq DESC LIMIT ?4`,
  )
  const isUnread = `conversation_id = ?1 AND seq > ?2 AND ${isCounted('?3')}`
  const newest = sqlite.prepare<UnreadMessage, [string, number, string | null]>(
    `SELECT seq, id, sender_id AS senderId, (SELECT display_name FROM users WHERE id = sender_id) AS senderName,
       ${shownText} AS text, created_at AS createdAt,
       (SELECT created_at FROM messages WHERE ${isUnread} ORDER BY seq LIMIT 1) AS since
     FROM messages WHERE ${isUnread} ORDER BY seq DESC LIMIT 1`,
  )
  const isMailed = sqlite.prepare<unknown, [string]>(
    'SELECT 1 FROM inboxes WHERE user_id = ? AND is_mailed',
  )
  const ofInbox = (userId: string) => eq(inboxes.userId, userId)
  const findInbox = (userId: string) => orm.select().from(inboxes).where(ofInbox(userId)).get()

  function find(userId: string, conversationId: string): UnreadMessage | undefined {
    const ofUser = eq(participants.userId, userId)
    const one = and(ofUser, eq(participants.conversationId, conversationId))
    const participant = orm.select().from(participants).where(one).get()
    if (!participant || (participant.mutedUntil ?? 0) > clock.now()) return undefined
    const { isArchived, otherUserId, lastReadSeq } = participant
    if (isArchived === 1) return undefined
    const senderId = mayTalk(userId, otherUserId) ? otherUserId : null
    return newest.get(conversationId, lastReadSeq, senderId) ?? undefined
  }

  /** Covers the conversations that are neither archived nor muted, the most recent first. */
  function findMailable(userId: string) {
    const inbox = findInbox(userId)
    if (!inbox || inbox.unreadCount === 0) return undefined
    const through = inbox.mailedThrough ?? ''
    const found = mailable.all(userId, through, clock.now(), maxConversations)
    if (found.length === 0) return undefined
    const newestIds = found.map(({ newestId }) => newestId)
    return {
      since: Math.min(...found.map(({ oldestAt }) => oldestAt)),
      newestId: newestIds.sort().at(-1) ?? '',
      conversations: found.slice(0, maxPerMail).map((row) => ({
        id: row.conversationId,
        messages: newestOf(row),
      })),
    }
  }

  /** Oldest first. */
  function newestOf({ conversationId, oldestSeq, senderId, senderName }: Mailable) {
    const found = excerpts.all(conversationId, oldestSeq, senderId, maxExcerpts).reverse()
    return found.map(({ isNotice, text }) => ({
      senderName: isNotice === 1 ? null : senderName,
      text,
    }))
  }

  return {
    find,
    findMailable,
    isMailed: (userId: string): boolean => isMailed.get(userId) !== null,
    updateMailed(userId: string, change: { isMailed?: boolean; mailedThrough?: string }) {
      orm.update(inboxes).set(change).where(ofInbox(userId)).run()
    },
    count: (userId: string): number => findInbox(userId)?.unreadCount ?? 0,
  }
}
