import { and, eq, lt } from 'drizzle-orm'
import type { Orm } from '../../../db/open.ts'
import { recoveryCodes, totpFactors } from '../../../db/schema.ts'

export type FactorRow = typeof totpFactors.$inferSelect
export type FactorStore = ReturnType<typeof createFactorStore>

export function createFactorStore(orm: Orm) {
  const sqlite = orm.$client
  const own = (userId: string) => eq(totpFactors.userId, userId)

  return {
    find: (userId: string): FactorRow | undefined =>
      orm.select().from(totpFactors).where(own(userId)).get(),
    isOn: (userId: string): boolean =>
      sqlite
        .query('SELECT 1 FROM totp_factors WHERE user_id = ? AND confirmed_at IS NOT NULL')
        .get(userId) !== null,
    upsert(userId: string, secret: string, now: number): void {
      const row = { secret, confirmedAt: null, lastStep: 0, createdAt: now, isProvisional: false }
      orm
        .insert(totpFactors)
        .values({ userId, ...row })
        .onConflictDoUpdate({ target: totpFactors.userId, set: row })
        .run()
    },
    updateConfirmed(userId: string, now: number, isProvisional: boolean): void {
      orm.update(totpFactors).set({ confirmedAt: now, isProvisional }).where(own(userId)).run()
    },
    /** Consumes all earlier steps, too; other secrets of the factor are void. */
    useStep(userId: string, { secret, step: lastStep }: { secret: string; step: number }): boolean {
      const fresh = and(own(userId), lt(totpFactors.lastStep, lastStep))
      const used = orm.update(totpFactors).set({ secret, lastStep }).where(fresh).returning().all()
      return used.length > 0
    },
    replaceCodes(userId: string, hashes: readonly string[]): void {
      orm.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId)).run()
      orm
        .insert(recoveryCodes)
        .values(hashes.map((hash) => ({ userId, hash })))
        .run()
    },
    useCode(userId: string, hash: string): boolean {
      const code = and(eq(recoveryCodes.userId, userId), eq(recoveryCodes.hash, hash))
      return orm.delete(recoveryCodes).where(code).returning().all().length > 0
    },
    deleteOfUser(userId: string): void {
      orm.delete(totpFactors).where(own(userId)).run()
      orm.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId)).run()
    },
    countAdminsWithout: (): number =>
      sqlite
        .query<{ n: number }, []>(
          `SELECT count(*) AS n FROM users
           WHERE role = 'admin' AND disabled_at IS NULL AND deleted_at IS NULL AND NOT EXISTS (
             SELECT 1 FROM totp_factors WHERE user_id = users.id AND confirmed_at IS NOT NULL)`,
        )
        .get()?.n ?? 0,
  }
}
