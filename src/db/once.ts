import { eq } from 'drizzle-orm'
import type { Core } from '../core.ts'
import { AppError } from '../lib/errors.ts'
import { sha256 } from '../lib/hash.ts'
import type { By } from './audit-trail.ts'
import { idempotencyKeys } from './schema.ts'

/** A request that creates something, with its idempotency key, which counts for this client and kind of thing. */
export type Creation = { by: By; kind: string; key: string | undefined; content: object }

export type Once = ReturnType<typeof createOnce>

/** Idempotency keys of things that are not kept with a key of their own. A key is kept for a day. */
export function createOnce({ orm, clock }: Pick<Core, 'orm' | 'clock'>) {
  /** Inside a `write`: returns what the same request has created before, else what `make` creates.
   *  @throws idempotency_mismatch (same key, other content) */
  return function once<Row extends { id: string }>(
    { by, kind, key, content }: Creation,
    { find, make }: { find: (id: string) => Row | undefined; make: () => Row },
  ): { row: Row; replayed: boolean } {
    if (key === undefined) return { row: make(), replayed: false }
    const hash = sha256(JSON.stringify([by.actor, kind, key]))
    const contentHash = sha256(JSON.stringify(content))
    const known = orm.select().from(idempotencyKeys).where(eq(idempotencyKeys.hash, hash)).get()
    if (known && known.contentHash !== contentHash) throw new AppError('idempotency_mismatch')
    const earlier = known && find(known.targetId)
    if (earlier) return { row: earlier, replayed: true }
    const row = make()
    const set = { targetId: row.id, createdAt: clock.now() }
    orm
      .insert(idempotencyKeys)
      .values({ hash, contentHash, ...set })
      .onConflictDoUpdate({ target: idempotencyKeys.hash, set })
      .run()
    return { row, replayed: false }
  }
}
