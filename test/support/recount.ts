import type { Database } from 'bun:sqlite'

/** Queries for rows whose counter differs from a count. */
const recounts = {
  'messages of a conversation': `SELECT 1 FROM conversations c WHERE last_seq <>
    (SELECT count(*) FROM messages WHERE conversation_id = c.id)`,
  'unread messages of a conversation': `SELECT 1 FROM participants p WHERE unread_count <>
    (SELECT count(*) FROM messages WHERE conversation_id = p.conversation_id
      AND seq > p.last_read_seq AND sender_id <> p.user_id)`,
  'newest message of a conversation': `SELECT 1 FROM participants p WHERE last_activity_id <>
    coalesce((SELECT max(id) FROM messages WHERE conversation_id = p.conversation_id), conversation_id)`,
  'conversations and unread messages of a person': `SELECT 1 FROM inboxes i
    WHERE (conversation_count, unread_count) <> (SELECT count(*), sum(unread_count)
      FROM participants WHERE user_id = i.user_id)`,
  'notifications of a person': `SELECT 1 FROM notification_counts c
    WHERE (total_count, unread_count) <> (SELECT count(*), count(*) - count(read_at)
      FROM notifications WHERE user_id = c.user_id AND in_app)`,
  'messages of a ticket': `SELECT 1 FROM tickets t
    WHERE (message_count, owner_message_count, owner_characters) <>
    (SELECT count(*), sum(author_id = t.user_id), sum(iif(author_id = t.user_id, length(body), 0))
      FROM ticket_messages WHERE ticket_id = t.id)`,
  'tickets of a person': `SELECT 1 FROM tickets GROUP BY user_id HAVING count(*) <> max(user_seq)`,
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
