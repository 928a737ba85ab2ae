import { and, asc, eq, gt, isNull, max, or, sql } from 'drizzle-orm'
import type { Orm } from '../../db/client.ts'
import { messages, timelineMark, timelines } from '../../db/schema.ts'
import type { MessageRow } from './store.ts'

export type TimelineStore = ReturnType<typeof createTimelineStore>

const value = sql.placeholder

/** SQL over what each user got and sent, in commit order. Timelines are written some time after the messages; what they
 *  do not know yet is read from the messages themselves, so that nobody sees the difference. */
export function createTimelineStore(orm: Orm) {
  const mark = orm.select({ id: timelineMark.messageId }).from(timelineMark).prepare()
  const known = orm
    .select({ message: messages })
    .from(timelines)
    .innerJoin(
      messages,
      and(eq(messages.conversationId, timelines.conversationId), eq(messages.seq, timelines.seq)),
    )
    .where(and(eq(timelines.userId, value('userId')), gt(timelines.messageId, value('after'))))
    .orderBy(asc(timelines.messageId))
    .limit(value('limit'))
    .prepare()
  const received = eq(messages.recipientId, value('userId'))
  // The copies of a broadcast are not told to the one who sent it.
  const sent = and(eq(messages.senderId, value('userId')), isNull(messages.broadcastId))
  // Cut from the index first; only its rows meet the table.
  const recent = orm
    .select({ conversationId: messages.conversationId, seq: messages.seq })
    .from(messages)
    .where(and(gt(messages.id, value('after')), or(received, sent)))
    .orderBy(asc(messages.id))
    .limit(value('limit'))
    .as('recent')
  const recentMessages = orm
    .select({ message: messages })
    .from(recent)
    .innerJoin(
      messages,
      and(eq(messages.conversationId, recent.conversationId), eq(messages.seq, recent.seq)),
    )
    .orderBy(asc(messages.id))
    .prepare()
  const ids = orm
    .select({ id: messages.id })
    .from(messages)
    .where(gt(messages.id, value('after')))
    .orderBy(asc(messages.id))
    .limit(value('limit'))
    .prepare()
  const newest = orm
    .select({ id: max(messages.id) })
    .from(messages)
    .prepare()

  const markNow = () => mark.get()?.id ?? ''
  const findNewestId = () => newest.get()?.id ?? ''

  return {
    /** The id of the newest message of all, empty when there is none. */
    findNewestId,
    /** What a user got and sent after an id, oldest first. */
    listAfter(userId: string, after: string, limit: number): MessageRow[] {
      const found = known.all({ userId, after, limit })
      const left = limit - found.length
      const rest = { userId, after: [after, markNow()].sort()[1], limit: left }
      if (left > 0) found.push(...recentMessages.all(rest))
      return found.map(({ message }) => message)
    },
    /** Whether there are messages that the timelines do not know. */
    isBehind: () => findNewestId() > markNow(),
    /** Tells the timelines of the next messages.
     *  @returns how many those were */
    update(limit: number): number {
      const after = markNow()
      const next = ids.all({ after, limit })
      const last = next.at(-1)?.id
      if (last === undefined) return 0
      const part = sql`${messages.id} > ${after} AND ${messages.id} <= ${last}`
      // User by user: neighbouring rows share their pages.
      orm.run(sql`INSERT INTO ${timelines}
        SELECT recipient_id, id, conversation_id, seq FROM ${messages} WHERE ${part}
        UNION ALL
        SELECT sender_id, id, conversation_id, seq FROM ${messages} WHERE ${part} AND broadcast_id IS NULL
        ORDER BY 1, 2`)
      orm.update(timelineMark).set({ messageId: last }).run()
      return next.length
    },
  }
}
