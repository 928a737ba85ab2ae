import { and, asc, count, desc, eq, gt, isNull, lt, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { audiences, calls, follows, serviceKeys } from '../../db/schema.ts'
import type { RowRange } from '../../lib/list-range.ts'

const exportChunk = 200

export type FollowRow = typeof follows.$inferSelect
export type CallRow = typeof calls.$inferSelect
export type FeedStore = ReturnType<typeof createFeedStore>
export type ServiceKeyRow = typeof serviceKeys.$inferSelect

/** SQL over follows and calls. What an import repeats a thousand times, a broadcast for each chunk and a message for its
 *  right to be sent is prepared. */
export function createFeedStore(orm: Orm) {
  const sqlite = orm.$client
  const user = sqlite.prepare<{ displayName: string; deletedAt: number | null }, [string]>(
    'SELECT display_name AS displayName, deleted_at AS deletedAt FROM users WHERE id = ?',
  )
  const insertFollow = sqlite.prepare<unknown, [string, string, number]>(
    'INSERT INTO follows (host_id, follower_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  )
  const followersAfter = sqlite.prepare<{ id: string }, [string, string, number]>(
    `SELECT follower_id AS id FROM follows WHERE host_id = ? AND follower_id > ?
       AND (SELECT disabled_at IS NULL FROM users WHERE id = follower_id)
     ORDER BY follower_id LIMIT ?`,
  )
  const followersOf = sqlite.prepare<unknown, [string]>(
    'SELECT 1 FROM follows WHERE host_id = ? LIMIT 1',
  )
  // `state` is written out: the index holds active calls alone.
  const activeCall = sqlite.prepare<unknown, [string, string, number]>(
    "SELECT 1 FROM calls WHERE host_id = ? AND guest_id = ? AND state = 'active' AND active_at > ? LIMIT 1",
  )

  return {
    /** Also a person who is gone; undefined for an id that nobody ever had. */
    findUser: (id: string) => user.get(id) ?? undefined,
    isPresent: (id: string): boolean => user.get(id)?.deletedAt === null,
    /** @returns whether the follow is new */
    insertFollow(hostId: string, followerId: string, now: number): boolean {
      return insertFollow.run(hostId, followerId, now).changes > 0
    },
    deleteFollow(hostId: string, followerId: string) {
      const one = and(eq(follows.hostId, hostId), eq(follows.followerId, followerId))
      orm.delete(follows).where(one).run()
    },
    deleteFollowsBy(followerId: string) {
      orm.delete(follows).where(eq(follows.followerId, followerId)).run()
    },
    /** Whom a person follows, or by whom a host is followed, read in small chunks. */
    *eachFollow(as: 'followerId' | 'hostId', userId: string): Generator<FollowRow> {
      const other = as === 'hostId' ? follows.followerId : follows.hostId
      let chunk: FollowRow[] = []
      let after = ''
      do {
        const next = and(eq(follows[as], userId), gt(other, after))
        chunk = orm.select().from(follows).where(next).orderBy(asc(other)).limit(exportChunk).all()
        after = chunk.at(-1)?.[as === 'hostId' ? 'followerId' : 'hostId'] ?? ''
        yield* chunk
      } while (chunk.length === exportChunk)
    },
    /** The calls of a person. No index tells them: all that are kept are passed over, with a pause after each chunk. */
    *eachCall(userId: string): Generator<CallRow | undefined> {
      let chunk: CallRow[] = []
      do {
        const next = gt(calls.id, chunk.at(-1)?.id ?? '')
        chunk = orm.select().from(calls).where(next).orderBy(asc(calls.id)).limit(exportChunk).all()
        yield* chunk.filter(({ hostId, guestId }) => hostId === userId || guestId === userId)
        yield undefined
      } while (chunk.length === exportChunk)
    },
    hasFollowers: (hostId: string): boolean => followersOf.get(hostId) !== null,
    deleteAudience(hostId: string) {
      orm.delete(audiences).where(eq(audiences.hostId, hostId)).run()
    },
    deleteSomeFollowers(hostId: string) {
      orm.run(sql`DELETE FROM ${follows} WHERE host_id = ${hostId} AND follower_id IN (
        SELECT follower_id FROM ${follows} WHERE host_id = ${hostId} LIMIT ${exportChunk})`)
    },
    /** Those who can be reached: a trigger leaves out who is disabled. */
    countFollowers(hostId: string): number {
      const ofHost = eq(audiences.hostId, hostId)
      return orm.select({ n: audiences.followerCount }).from(audiences).where(ofHost).get()?.n ?? 0
    },
    /** The next followers who can be reached, in the order of their ids. */
    listFollowers: (hostId: string, after: string, limit: number): string[] =>
      followersAfter.all(hostId, after, limit).map(({ id }) => id),
    findCall: (id: string): CallRow | undefined =>
      orm.select().from(calls).where(eq(calls.id, id)).get(),
    upsertCall(row: CallRow) {
      const { state, activeAt, updatedAt } = row
      const set = { state, activeAt, updatedAt }
      orm.insert(calls).values(row).onConflictDoUpdate({ target: calls.id, set }).run()
    },
    /** Whether they are in a call that became active after `since`. */
    hasActiveCall: (hostId: string, guestId: string, since: number): boolean =>
      activeCall.get(hostId, guestId, since) !== null,
  }
}

/** SQL over service keys. */
export function createServiceKeyStore(orm: Orm) {
  const isLive = isNull(serviceKeys.revokedAt)

  return {
    insert: (row: typeof serviceKeys.$inferInsert): ServiceKeyRow =>
      orm.insert(serviceKeys).values(row).returning().get(),
    find: (id: string): ServiceKeyRow | undefined =>
      orm.select().from(serviceKeys).where(eq(serviceKeys.id, id)).get(),
    hasLive: (hash: string): boolean =>
      orm
        .select({ id: serviceKeys.id })
        .from(serviceKeys)
        .where(and(eq(serviceKeys.hash, hash), isLive))
        .get() !== undefined,
    listLive: (): ServiceKeyRow[] => orm.select().from(serviceKeys).where(isLive).all(),
    /** Revoked ones too, newest first. */
    list: ({ limit, offset, before }: RowRange): ServiceKeyRow[] =>
      orm
        .select()
        .from(serviceKeys)
        .where(before === undefined ? undefined : lt(serviceKeys.id, before))
        .orderBy(desc(serviceKeys.id))
        .limit(limit)
        .offset(offset)
        .all(),
    count: (): number => orm.select({ n: count() }).from(serviceKeys).get()?.n ?? 0,
    update(id: string, changes: Partial<ServiceKeyRow>) {
      orm.update(serviceKeys).set(changes).where(eq(serviceKeys.id, id)).run()
    },
  }
}
