import { and, asc, eq, inArray, isNull, lte, ne, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import {
  bans,
  oneTimeTokens,
  refreshTokens,
  sentMails,
  sessions,
  signingKeys,
  totpFactors,
  users,
} from '../../db/schema.ts'
import { countRows, listById, rowsOf } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import { AppError } from '../../lib/errors.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import type { BanKind } from '../../lib/vocabulary.ts'

export type UserRow = typeof users.$inferSelect
export type NewUser = typeof users.$inferInsert
/** Undefined fields keep their value. */
export type UserChanges = { [K in Exclude<keyof UserRow, 'id'>]?: UserRow[K] | undefined }
export type BanRow = typeof bans.$inferSelect
export type SigningKeyRow = typeof signingKeys.$inferSelect

const present = isNull(users.deletedAt)
// No deleted user is an admin, but `present` lets SQLite use a partial index.
const enabledAdmin = and(eq(users.role, 'admin'), isNull(users.disabledAt), present)

export function createAccountStore(orm: Orm) {
  const prepareFind = (column: SQLiteColumn) =>
    orm
      .select()
      .from(users)
      .where(eq(column, sql.placeholder('value')))
      .prepare()
  const byId = prepareFind(users.id)
  const byEmail = prepareFind(users.email)
  const byExternalId = prepareFind(users.externalId)
  const find = (id: string | null): UserRow | undefined => byId.get({ value: id })

  return {
    insert(user: NewUser): UserRow {
      try {
        return orm.insert(users).values(user).returning().get()
      } catch (cause) {
        const { code } = cause as { code?: string }
        throw code === 'SQLITE_CONSTRAINT_UNIQUE' ? new AppError('email_taken', { cause }) : cause
      }
    },
    find,
    /** @throws session_ended when it was deleted */
    own(id: string): UserRow {
      const user = find(id)
      if (user?.deletedAt !== null) throw new AppError('session_ended')
      return user
    },
    /** Unknown and deleted users are missing. */
    namesOf(ids: readonly string[]): ReadonlyMap<string, string> {
      if (ids.length === 0) return new Map()
      return new Map(
        orm
          .select({ id: users.id, name: users.displayName })
          .from(users)
          .where(and(inArray(users.id, [...new Set(ids)]), isNull(users.deletedAt)))
          .all()
          .map(({ id, name }) => [id, name]),
      )
    },
    findByEmail: (email: string | undefined): UserRow | undefined =>
      byEmail.get({ value: email ?? null }),
    findByExternalId: (externalId: string): UserRow | undefined =>
      byExternalId.get({ value: externalId }),
    hasAdmin: () => countRows(orm, users, enabledAdmin) > 0,
    listAdmins: (): UserRow[] => orm.select().from(users).where(enabledAdmin).all(),
    isOnlyAdmin: (id: string) => countRows(orm, users, and(enabledAdmin, ne(users.id, id))) === 0,
    update(id: string, changes: UserChanges): void {
      if (Object.values(changes).every((change) => change === undefined)) return
      orm.update(users).set(changes).where(eq(users.id, id)).run()
    },
  }
}

export const noPassword = 'none'

/** No personal data stays in the row. */
export const erased = (id: string, now: number): UserChanges => ({
  email: `deleted:${id}`, // no valid address, so nobody can register it
  displayName: 'Deleted user',
  avatarUrl: null,
  locale: 'en',
  role: 'guest',
  emailVerified: false,
  isProvisional: false,
  externalId: null,
  emailBouncedAt: null,
  quietHours: null,
  passwordHash: noPassword,
  disabledAt: now,
  deletedAt: now,
})

export function createKeyStore(orm: Orm) {
  return {
    /** Oldest first. */
    list: (): SigningKeyRow[] =>
      orm
        .select()
        .from(signingKeys)
        .orderBy(asc(signingKeys.createdAt), asc(signingKeys.kid))
        .all(),
    insert(keys: SigningKeyRow[]) {
      orm.insert(signingKeys).values(keys).run()
    },
    update(kid: string, changes: Partial<SigningKeyRow>) {
      orm.update(signingKeys).set(changes).where(eq(signingKeys.kid, kid)).run()
    },
    /** Deletes keys retired at or before `time` (ms since the epoch). */
    deleteRetired(time: number) {
      orm.delete(signingKeys).where(lte(signingKeys.retiredAt, time)).run()
    },
  }
}

export function createBanStore(orm: Orm) {
  return {
    listAll: (): BanRow[] => orm.select().from(bans).all(),
    find: (kind: BanKind, value: string): BanRow | undefined =>
      orm
        .select()
        .from(bans)
        .where(and(eq(bans.kind, kind), eq(bans.value, value)))
        .get(),
    upsert(row: BanRow): BanRow {
      const { reason, until } = row
      return orm
        .insert(bans)
        .values(row)
        .onConflictDoUpdate({ target: [bans.kind, bans.value], set: { reason, until } })
        .returning()
        .get()
    },
    delete: rowsOf(orm, bans).delete,
    list(kind: BanKind | undefined, value: string | undefined, range: ListRange): Listing<BanRow> {
      const isOfValue = value === undefined ? undefined : eq(bans.value, value)
      return listById(orm, range, {
        id: bans.id,
        which: and(kind && eq(bans.kind, kind), isOfValue),
      })
    },
  }
}

export const accountRetention: readonly RetentionRule[] = [
  { key: [refreshTokens.hash], time: refreshTokens.expiresAt, days: 0 },
  { key: [oneTimeTokens.hash], time: oneTimeTokens.expiresAt, days: 0 },
  // Longer than the lifetime of any token of an unused session.
  { key: [sessions.id], time: sessions.lastUsedAt, days: 31 },
  { key: [bans.id], time: bans.until, days: 30 },
  { key: [sentMails.addressHash, sentMails.kind, sentMails.at], time: sentMails.at, days: 1 },
  {
    key: [totpFactors.userId],
    time: totpFactors.createdAt,
    days: 1,
    which: 'confirmed_at IS NULL',
  },
]
