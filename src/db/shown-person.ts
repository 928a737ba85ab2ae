import { and, eq, type SQLWrapper, sql } from 'drizzle-orm'
import { blocks, users } from './schema.ts'

/** A person as another user sees them: after a block between the two, the name at the time of the block and no picture.
 *  The query must join `blocks` on `isBlockedFrom`. */
export const shownPerson = {
  id: users.id,
  externalId: users.externalId,
  displayName: sql<string>`coalesce(${blocks.otherName}, ${users.displayName})`,
  avatarUrl: sql<string | null>`CASE WHEN ${blocks.userId} IS NULL THEN ${users.avatarUrl} END`,
}

export const isBlockedFrom = (viewerId: SQLWrapper | string) =>
  and(sql`${blocks.userId} = ${viewerId}`, eq(blocks.otherUserId, users.id))
