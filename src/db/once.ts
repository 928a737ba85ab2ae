import { eq } from 'drizzle-orm'
import type { Core } from '../core.ts'
import { AppError } from '../lib/errors.ts'
import { sha256 } from '../lib/hash.ts'
import type { By } from './audit-trail.ts'
import { idempotencyKeys } from './schema.ts'

/** A request that creates something, with its idempotency key, which counts for this client and kind of thing. */
type Creation = { by: By; kind: string; key: string | undefined; content: object }

/** Inside a `write`: returns what the same request has created within a day, else what `make` creates. For things that are
 *  not stored with a key of their own.
 *  @throws idempotency_mismatch (same key, and other content or what was created has been deleted) */
export function once<Row extends { id: string }>(
  { orm, clock }: Pick<Core, 'orm' | 'clock'>,
  { by, kind, key, content }: Creation,
  { find, make }: { find: (id: string) => Row | undefined; make: () => Row },
): { row: Row; replayed: boolean } {
  if (key === undefined) return { row: make(), replayed: false }
  const hash = sha256(JSON.stringify([by.actor, kind, key]))
  const contentHash = sha256(JSON.stringify(content))
  const known = orm.select().from(idempotencyKeys).where(eq(idempotencyKeys.hash, hash)).get()
  if (known) {
    const earlier = known.contentHash === contentHash ? find(known.targetId) : undefined
    if (!earlier) throw new AppError('idempotency_mismatch')
    return { row: earlier, replayed: true }
  }
  const row = make()
  const created = { targetId: row.id, createdAt: clock.now() }
  orm
    .insert(idempotencyKeys)
    .values({ hash, contentHash, ...created })
    .run()
  return { row, replayed: false }
}
