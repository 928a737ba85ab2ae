import type { Database } from 'bun:sqlite'

/** Queries for rows whose counter differs from a count. */
const recounts = {
  'messages of a conversation': `SELECT 1 FROM conversations c WHERE (last_seq - first_seq + 1, first_seq) <>
    (SELECT count(*), coalesce(min(seq), last_seq + 1) FROM messages WHERE conversation_id = c.id)`,
  'unread messages of a conversation': `SELECT 1 FROM participants p WHERE unread_count <>
    (SELECT count(*) FROM messages WHERE conversation_id = p.conversation_id
      AND seq > p.last_read_seq AND sender_id IS NOT p.user_id AND is_silent = 0 AND deleted_at IS NULL)`,
  'newest message of a conversation': `SELECT 1 FROM participants p WHERE last_activity_id <>
    coalesce((SELECT max(id) FROM messages WHERE conversation_id = p.conversation_id), iif(
      (SELECT first_seq FROM conversations WHERE id = conversation_id) > 1, last_activity_id, conversation_id))`,
  'conversations and unread messages of a person': `SELECT 1 FROM inboxes i
    WHERE (conversation_count, archived_count, unread_count) <> (SELECT count(*) - sum(is_archived),
      sum(is_archived), sum(iif(is_archived, 0, unread_count)) FROM participants WHERE user_id = i.user_id)`,
  'notifications of a person': `SELECT 1 FROM notification_counts c
    WHERE (total_count, unread_count) <> (SELECT count(*), count(*) - count(read_at)
      FROM notifications WHERE user_id = c.user_id AND in_app)`,
  'messages of a ticket': `SELECT 1 FROM tickets t
    WHERE (message_count, owner_message_count, owner_characters) <>
    (SELECT count(*), sum(NOT is_admin), sum(iif(is_admin, 0, length(body)))
      FROM ticket_messages WHERE ticket_id = t.id)`,
}

/** The defects of a database: pages, references, counters. */
export function damageOf(sqlite: Database): string[] {
  const found = Object.entries(recounts).filter(([, query]) => sqlite.query(query).get() !== null)
  const integrity = sqlite.query('PRAGMA integrity_check').values().flat().map(String)
  return [
    ...found.map(([name]) => `miscounted: ${name}`),
    ...integrity.filter((line) => line !== 'ok'),
    ...sqlite
      .query('PRAGMA foreign_key_check')
      .all()
      .map((row) => JSON.stringify(row)),
  ]
}
