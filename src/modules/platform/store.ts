import { and, asc, eq, gt, isNull, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { audiences, calls, follows, serviceKeys, type users } from '../../db/schema.ts'
import { countRows, deleteSome, eachOf, listById, rowsOf } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import { type Listing, type ListRange, listByPosition } from '../../lib/list-range.ts'

type UserRow = typeof users.$inferSelect
export type FollowRow = typeof follows.$inferSelect
export type CallRow = typeof calls.$inferSelect
export type FeedStore = ReturnType<typeof createFeedStore>
export type ServiceKeyRow = typeof serviceKeys.$inferSelect

/** The queries for imports, for broadcasts and for each message are prepared. */
export function createFeedStore(orm: Orm) {
  const sqlite = orm.$client
  type User = Pick<UserRow, 'displayName' | 'role' | 'externalId' | 'deletedAt'>
  const user = sqlite.prepare<User, [string]>(
    `SELECT display_name AS displayName, role, external_id AS externalId, deleted_at AS deletedAt
     FROM users WHERE id = ?`,
  )
  const insertFollow = sqlite.prepare<unknown, [string, string, number]>(
    'INSERT INTO follows (host_id, follower_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  )
  const followersAfter = sqlite.prepare<{ id: string }, [string, string, number]>(
    `SELECT follower_id AS id FROM follows WHERE host_id = ? AND follower_id > ?
       AND (SELECT disabled_at IS NULL FROM users WHERE id = follower_id)
     ORDER BY follower_id LIMIT ?`,
  )
  const countReachable = sqlite.prepare<{ n: number }, [string, string]>(
    `SELECT count(*) AS n FROM json_each(?) CROSS JOIN follows ON host_id = ? AND follower_id = value
     WHERE (SELECT disabled_at IS NULL FROM users WHERE id = follower_id)`,
  )
  // `state` must be a literal: the partial index holds only active calls.
  const activeCall = sqlite.prepare<unknown, [string, string, number]>(
    "SELECT 1 FROM calls WHERE host_id = ? AND guest_id = ? AND state = 'active' AND active_at > ? LIMIT 1",
  )

  return {
    findUser: (id: string) => user.get(id) ?? undefined,
    /** Admins count as hosts, because they may broadcast too. */
    isHost(id: string): boolean {
      const role = user.get(id)?.role
      return role === 'host' || role === 'admin'
    },
    isPresent: (id: string): boolean => user.get(id)?.deletedAt === null,
    insertFollow(hostId: string, followerId: string, now: number): boolean {
      return insertFollow.run(hostId, followerId, now).changes > 0
    },
    deleteFollow(hostId: string, followerId: string) {
      const one = and(eq(follows.hostId, hostId), eq(follows.followerId, followerId))
      orm.delete(follows).where(one).run()
    },
    deleteFollowsBy: (followerId: string, limit: number): string | undefined =>
      deleteSome(orm, follows.hostId, eq(follows.followerId, followerId), limit).at(-1),
    eachFollowed: (followerId: string) =>
      eachOf(orm, follows, 'hostId', eq(follows.followerId, followerId)),
    eachFollower: (hostId: string) =>
      eachOf(orm, follows, 'followerId', eq(follows.hostId, hostId)),
    /** Scans all calls, because no index finds those of a user; yields undefined for the calls of others. */
    eachCall: (userId: string) =>
      eachOf(orm, calls, 'id').map((row) =>
        row.hostId === userId || row.guestId === userId ? row : undefined,
      ),
    deleteAudience(hostId: string) {
      orm.delete(audiences).where(eq(audiences.hostId, hostId)).run()
    },
    deleteFollowers: (hostId: string, limit: number): string | undefined =>
      deleteSome(orm, follows.followerId, eq(follows.hostId, hostId), limit).at(-1),
    /** Counts enabled followers. A trigger maintains `follower_count` without disabled users. */
    countFollowers(hostId: string, except: readonly string[]): number {
      const ofHost = eq(audiences.hostId, hostId)
      const all = orm.select({ n: audiences.followerCount }).from(audiences).where(ofHost).get()
      return (all?.n ?? 0) - (countReachable.get(JSON.stringify(except), hostId)?.n ?? 0)
    },
    listFollowers: (hostId: string, after: string, limit: number): string[] =>
      followersAfter.all(hostId, after, limit).map(({ id }) => id),
    /** @param since when a call that is active was answered at the earliest; earlier ones count as ended */
    listCalls: (state: CallRow['state'] | undefined, since: number, range: ListRange) =>
      listById<CallRow>(orm, range, {
        name: state === undefined ? 'calls' : `${state}_calls`,
        id: calls.id,
        order: 'oldest',
        which: state && isInState(state, since),
      }),
    listFollows: (hostId: string, range: ListRange): Listing<FollowRow> => {
      const ofHost = eq(follows.hostId, hostId)
      return listByPosition(range, {
        name: `follows ${hostId}`,
        position: ({ followerId }) => followerId,
        list: ({ limit, offset, before = '' }) =>
          orm
            .select()
            .from(follows)
            .where(and(ofHost, gt(follows.followerId, before)))
            .orderBy(asc(follows.followerId))
            .limit(limit)
            .offset(offset)
            .all(),
        count: () => countRows(orm, follows, ofHost),
      })
    },
    findCall: rowsOf(orm, calls).find,
    upsertCall(row: CallRow) {
      const { state, activeAt, updatedAt } = row
      const set = { state, activeAt, updatedAt }
      orm.insert(calls).values(row).onConflictDoUpdate({ target: calls.id, set }).run()
    },
    /** Only calls that became active after `since` (ms since the epoch). */
    hasActiveCall: (hostId: string, guestId: string, since: number): boolean =>
      activeCall.get(hostId, guestId, since) !== null,
  }
}

function isInState(state: CallRow['state'], since: number): SQL | undefined {
  // An OR would make SQLite sort all calls for each page.
  if (state === 'ended')
    return sql`iif(${calls.state} = 'active' AND ${calls.activeAt} <= ${since}, 'ended', ${calls.state}) = 'ended'`
  return and(eq(calls.state, state), state === 'active' ? gt(calls.activeAt, since) : undefined)
}

export function createServiceKeyStore(orm: Orm) {
  const isLive = isNull(serviceKeys.revokedAt)

  return {
    ...rowsOf(orm, serviceKeys),
    listLive: (): ServiceKeyRow[] => orm.select().from(serviceKeys).where(isLive).all(),
    list: (range: ListRange): Listing<ServiceKeyRow> =>
      listById(orm, range, { id: serviceKeys.id }),
  }
}

export const platformRetention: readonly RetentionRule[] = [
  // The platform may report the state of a call this late.
  { key: [calls.id], time: calls.updatedAt, days: 30 },
]
