import { randomBytes } from 'node:crypto'
import type { Core } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import { once } from '../../db/once.ts'
import { minute, parseTime, timeLeft } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { sha256 } from '../../lib/hash.ts'
import { getById } from '../../lib/ids.ts'
import type { ServicePrincipal } from '../../lib/principal.ts'
import { actingScopes, allScopes, serviceScopes } from '../../lib/vocabulary.ts'
import { type NewServiceKey, serviceKeyView } from './model.ts'
import { createServiceKeyStore, type ServiceKeyRow } from './store.ts'

type LiveKey = ServicePrincipal & { lastUsedAt: number; expiresAt: number }

export type ServiceKeys = ReturnType<typeof createServiceKeys>

const prefix = 'sk_'
const useIntervalMilliseconds = minute

/** 256 random bits, of which only the hash is stored. Live keys are in memory, so that a wrong key costs no query. */
export function createServiceKeys(core: Core) {
  const { write, afterCommit, audit, newId, clock } = core
  const store = createServiceKeyStore(core.orm)
  let live = new Map<string, LiveKey>()
  reload()

  function reload() {
    const entries = store.listLive().map((row) => {
      const { hash, id, scopes, lastUsedAt, expiresAt } = row
      const end = expiresAt ?? Number.POSITIVE_INFINITY
      return [hash, { id, scopes, lastUsedAt: lastUsedAt ?? 0, expiresAt: end }] as const
    })
    live = new Map(entries)
  }

  /** Records the use. Does not read the database. */
  function find(text: string): ServicePrincipal | undefined {
    const key = live.get(sha256(text))
    if (!key || key.expiresAt <= clock.now()) return undefined
    recordUse(key)
    return key
  }

  function recordUse(key: LiveKey) {
    const { id, lastUsedAt } = key
    const now = clock.now()
    if (timeLeft(lastUsedAt, useIntervalMilliseconds, now) > 0) return
    key.lastUsedAt = now
    // Not awaited: after a failure the next use writes again.
    write(() => store.update(id, { lastUsedAt: now })).catch(() => {
      key.lastUsedAt = lastUsedAt
    })
  }

  function replaceUnused({ id, lastUsedAt, revokedAt }: ServiceKeyRow, hash: string) {
    if (lastUsedAt !== null || revokedAt !== null) throw new AppError('idempotency_mismatch')
    store.update(id, { hash })
  }

  return {
    find,

    /** @param idempotencyKey a repeated call gives the service key another secret while the first is unused
     *  @throws idempotency_mismatch (also when the first secret was used) · validation_error (`expires_at`: in the past) */
    async create(body: NewServiceKey, by: By, idempotencyKey: string | undefined) {
      const { scopes, expires_at } = body
      const name = body.name.trim()
      const key = prefix + randomBytes(32).toString('base64url')
      const hash = sha256(key)
      const acting: readonly string[] = actingScopes
      const granted = serviceScopes.filter(
        (scope) =>
          scopes.includes(scope) || (!acting.includes(scope) && scopes.includes(allScopes)),
      )
      const expiresAt = parseTime(expires_at ?? '') ?? null
      const content = { name, scopes: granted, expiresAt }
      const make = () => {
        if (expiresAt !== null && expiresAt <= clock.now())
          throw invalidField('expires_at', 'in_the_past')
        const id = newId()
        const target = { type: 'service_key', id } as const
        const details = { name, scopes: granted.join(' ') }
        audit.record({ action: 'service_key_created', ...by, target, details })
        return store.insert({ id, hash, ...content, createdAt: clock.now() })
      }
      const { row, replayed } = await write(() => {
        const creation = { by, kind: 'service_key', key: idempotencyKey, content }
        const made = once(core, creation, { find: store.find, make })
        if (made.replayed) replaceUnused(made.row, hash)
        afterCommit(reload)
        return made
      })
      return { created: { ...serviceKeyView(row), key }, replayed }
    },

    /** Idempotent.
     *  @throws not_found */
    revoke: (idText: string, by: By): Promise<void> =>
      write(() => {
        const row = getById(idText, store.find)
        if (row.revokedAt !== null) return
        const target = { type: 'service_key', id: row.id } as const
        store.update(row.id, { revokedAt: clock.now() })
        audit.record({ action: 'service_key_revoked', ...by, target })
        afterCommit(reload)
      }),

    list: store.list,
  }
}
