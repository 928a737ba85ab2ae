import { and, asc, count, eq, gt, gte, isNull, like, ne, or, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { sessions, users } from '../../db/schema.ts'
import type { Locale } from '../../lib/i18n.ts'
import type { RowRange } from '../../lib/list-range.ts'
import type { Role } from '../../lib/vocabulary.ts'

export type UserRow = typeof users.$inferSelect
export type NewUser = {
  id: string
  email: string
  displayName: string
  locale: Locale
  role: Role
  emailVerified: boolean
  passwordHash: string
  createdAt: number
}

/** What is undefined stays as it is. */
export type ProfileChanges = {
  [K in 'displayName' | 'avatarUrl' | 'locale']?: UserRow[K] | undefined
}

export type AccountStore = ReturnType<typeof createAccountStore>

/** What a deleted person is called where their messages are. */
const deletedName = 'Deleted user'
const enabledAdmin = and(eq(users.role, 'admin'), isNull(users.disabledAt))

/** SQL over users. */
export function createAccountStore(orm: Orm) {
  const byId = orm
    .select()
    .from(users)
    .where(eq(users.id, sql.placeholder('id')))
    .prepare()
  const byEmail = orm
    .select()
    .from(users)
    .where(eq(users.email, sql.placeholder('email')))
    .prepare()
  const access = orm
    .select({ role: users.role, isVerified: users.emailVerified })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.userId))
    .where(
      and(
        eq(sessions.id, sql.placeholder('sessionId')),
        eq(sessions.userId, sql.placeholder('userId')),
        isNull(sessions.revokedAt),
        isNull(users.disabledAt),
      ),
    )
    .prepare()

  return {
    /** @throws SQLITE_CONSTRAINT_UNIQUE when the address is taken */
    insert(user: NewUser): UserRow {
      return orm.insert(users).values(user).returning().get()
    },
    find: (id: string): UserRow | undefined => byId.get({ id }),
    findByEmail: (email: string): UserRow | undefined => byEmail.get({ email }),
    /** The user's role and whether their address is verified, if the session is alive and the user enabled. */
    findAccess: (userId: string, sessionId: string) => access.get({ userId, sessionId }),
    list: (): UserRow[] => orm.select().from(users).orderBy(asc(users.id)).all(),
    updatePasswordHash(id: string, passwordHash: string) {
      orm.update(users).set({ passwordHash }).where(eq(users.id, id)).run()
    },
    updateRole(id: string, role: Role, now: number) {
      orm.update(users).set({ role, accessChangedAt: now }).where(eq(users.id, id)).run()
    },
    updateProfile(id: string, changes: ProfileChanges) {
      if (Object.values(changes).every((change) => change === undefined)) return
      orm.update(users).set(changes).where(eq(users.id, id)).run()
    },
    /** Takes everything of the person's out of their row. */
    erase(id: string, now: number) {
      orm
        .update(users)
        .set({
          email: `deleted:${id}`, // nothing that anybody could register
          displayName: deletedName,
          avatarUrl: null,
          locale: 'en',
          role: 'guest',
          emailVerified: false,
          passwordHash: 'none',
          disabledAt: now,
          deletedAt: now,
          accessChangedAt: now,
        })
        .where(eq(users.id, id))
        .run()
    },
    /** People who are not deleted, oldest first; `q` is an id or the beginning of an address or a name. */
    search(q: string | undefined, { limit, offset, before: after }: RowRange): UserRow[] {
      return orm
        .select()
        .from(users)
        .where(and(matching(q), after === undefined ? undefined : gt(users.id, after)))
        .orderBy(asc(users.id))
        .limit(limit)
        .offset(offset)
        .all()
    },
    countMatching: (q: string | undefined): number =>
      orm.select({ n: count() }).from(users).where(matching(q)).get()?.n ?? 0,
    hasAdmin: (): boolean =>
      orm.select({ id: users.id }).from(users).where(enabledAdmin).limit(1).get() !== undefined,
    updateVerified(id: string, emailVerified: boolean) {
      orm.update(users).set({ emailVerified }).where(eq(users.id, id)).run()
    },
    updateDisabled(id: string, disabledAt: number | null, now: number) {
      const changes = { disabledAt, accessChangedAt: now }
      orm.update(users).set(changes).where(eq(users.id, id)).run()
    },
    /** Enabled admins besides `id`. */
    countOtherAdmins(id: string): number {
      const others = and(enabledAdmin, ne(users.id, id))
      return orm.select({ n: count() }).from(users).where(others).get()?.n ?? 0
    },
    /** Users whose role changed or who were disabled at or after `since` (ms since the epoch). */
    listAccessChangedSince: (since: number) =>
      orm
        .select({ id: users.id, at: users.accessChangedAt })
        .from(users)
        .where(gte(users.accessChangedAt, since))
        .all(),
  }
}

function matching(q: string | undefined) {
  if (q === undefined || q === '') return isNull(users.deletedAt)
  const beginning = `${q.replace(/[\\%_]/g, '\\$&')}%`
  const escaped = sql`${beginning} ESCAPE '\\'`
  return and(
    isNull(users.deletedAt),
    or(eq(users.id, q.toUpperCase()), like(users.email, escaped), like(users.displayName, escaped)),
  )
}
