import { asc, eq, lt } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { signingKeys } from '../../db/schema.ts'

export type SigningKeyRow = typeof signingKeys.$inferSelect
export type KeyStore = ReturnType<typeof createKeyStore>

/** SQL over signing keys. */
export function createKeyStore(orm: Orm) {
  return {
    list: (): SigningKeyRow[] =>
      orm
        .select()
        .from(signingKeys)
        .orderBy(asc(signingKeys.createdAt), asc(signingKeys.kid))
        .all(),
    update(kid: string, changes: Partial<SigningKeyRow>) {
      orm.update(signingKeys).set(changes).where(eq(signingKeys.kid, kid)).run()
    },
    deleteRetiredBefore(time: number) {
      orm.delete(signingKeys).where(lt(signingKeys.retiredAt, time)).run()
    },
    insert(keys: SigningKeyRow[]) {
      orm.insert(signingKeys).values(keys).run()
    },
  }
}
