import { and, asc, count, eq, gte, isNull, ne, sql } from 'drizzle-orm'
import type { Orm } from '../../db/client.ts'
import { sessions, users } from '../../db/schema.ts'
import type { Locale } from '../../lib/messages.ts'
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

export type AccountStore = ReturnType<typeof createAccountStore>

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
    .select({ role: users.role })
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
    /** The user's role, if the session is alive and the user enabled. */
    findAccess: (userId: string, sessionId: string) => access.get({ userId, sessionId }),
    list: (): UserRow[] => orm.select().from(users).orderBy(asc(users.id)).all(),
    updatePasswordHash(id: string, passwordHash: string) {
      orm.update(users).set({ passwordHash }).where(eq(users.id, id)).run()
    },
    updateRole(id: string, role: Role, now: number) {
      orm.update(users).set({ role, accessChangedAt: now }).where(eq(users.id, id)).run()
    },
    updateVerified(id: string) {
      orm.update(users).set({ emailVerified: true }).where(eq(users.id, id)).run()
    },
    updateDisabled(id: string, now: number) {
      orm.update(users).set({ disabledAt: now, accessChangedAt: now }).where(eq(users.id, id)).run()
    },
    /** Enabled admins besides `id`. */
    countOtherAdmins(id: string): number {
      const others = and(eq(users.role, 'admin'), isNull(users.disabledAt), ne(users.id, id))
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
