import { and, asc, eq, gt, inArray, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { audiences, follows, users } from '../../db/schema.ts'

export type FollowStore = ReturnType<typeof createFollowStore>

const value = sql.placeholder

/** SQL over follows. */
export function createFollowStore(orm: Orm) {
  const insert = orm
    .insert(follows)
    .values({ hostId: value('hostId'), followerId: value('followerId'), createdAt: value('now') })
    .onConflictDoNothing()
    .returning({ followerId: follows.followerId })
    .prepare()
  const addToAudience = orm
    .insert(audiences)
    .values({ hostId: value('hostId'), followerCount: 1 })
    .onConflictDoUpdate({
      target: audiences.hostId,
      set: { followerCount: sql`${audiences.followerCount} + 1` },
    })
    .prepare()
  const followersAfter = orm
    .select({ id: follows.followerId })
    .from(follows)
    .where(and(eq(follows.hostId, value('hostId')), gt(follows.followerId, value('after'))))
    .orderBy(asc(follows.followerId))
    .limit(value('limit'))
    .prepare()
  const user = orm
    .select({ displayName: users.displayName, deletedAt: users.deletedAt })
    .from(users)
    .where(eq(users.id, value('id')))
    .prepare()

  return {
    /** A user as far as it matters here; undefined when there was never one. */
    findUser: (id: string) => user.get({ id }),
    /** @returns whether the follow is new */
    insert(hostId: string, followerId: string, now: number): boolean {
      const isNew = insert.all({ hostId, followerId, now }).length > 0
      if (isNew) addToAudience.run({ hostId })
      return isNew
    },
    delete(hostId: string, followerId: string) {
      const one = and(eq(follows.hostId, hostId), eq(follows.followerId, followerId))
      const gone = orm.delete(follows).where(one).returning().all()
      if (gone.length > 0) shrink(orm, [hostId])
    },
    /** Whom a user follows ends with them. */
    deleteOfFollower(followerId: string) {
      const gone = orm.delete(follows).where(eq(follows.followerId, followerId)).returning().all()
      shrink(
        orm,
        gone.map(({ hostId }) => hostId),
      )
    },
    count: (hostId: string): number =>
      orm
        .select({ n: audiences.followerCount })
        .from(audiences)
        .where(eq(audiences.hostId, hostId))
        .get()?.n ?? 0,
    /** The next followers in the order of their ids. */
    listAfter: (hostId: string, after: string, limit: number): string[] =>
      followersAfter.all({ hostId, after, limit }).map(({ id }) => id),
  }
}

function shrink(orm: Orm, hostIds: string[]) {
  orm
    .update(audiences)
    .set({ followerCount: sql`${audiences.followerCount} - 1` })
    .where(inArray(audiences.hostId, hostIds))
    .run()
}
