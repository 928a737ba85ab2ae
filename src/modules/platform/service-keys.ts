import { createHash, randomBytes } from 'node:crypto'
import type { Actor, AuditTrail } from '../../db/audit-trail.ts'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import { type ServiceScope, serviceScopes } from '../../lib/vocabulary.ts'
import type { ServiceKeyRow, ServiceKeyStore } from './service-key-store.ts'

type LiveKey = { id: string; scopes: readonly ServiceScope[]; lastUsedAt: number }

type ServiceKeysOptions = {
  store: ServiceKeyStore
  audit: AuditTrail
  write: Write
  newId: NewId
  clock: Clock
}

export type ServiceKeys = ReturnType<typeof createServiceKeys>

const prefix = 'sk_'
/** A use is noted at most this often. */
const noteEveryMilliseconds = 60_000

/** What other parts of the platform call us with (decisions 9): 256 random bits, of which only the hash is kept.
 *  Live keys are held in memory, so that a stranger's guess costs no query. */
export function createServiceKeys(options: ServiceKeysOptions) {
  const { store, audit, write, newId, clock } = options
  let live = new Map<string, LiveKey>()
  reload()

  function reload() {
    live = new Map(
      store.listLive().map(({ id, hash, scopes, lastUsedAt }) => {
        return [hash, { id, scopes, lastUsedAt: lastUsedAt ?? 0 }]
      }),
    )
  }

  function noteUse(key: LiveKey) {
    const { lastUsedAt } = key
    const now = clock.now()
    if (now - lastUsedAt < noteEveryMilliseconds) return
    key.lastUsedAt = now
    // Nobody waits for it; the next use tries again.
    write(() => store.updateLastUsed(key.id, now)).catch(() => {
      key.lastUsedAt = lastUsedAt
    })
  }

  return {
    /** Makes a key; without scopes it may do everything.
     *  @returns the key itself too, which is nowhere else */
    async create(
      { name, scopes = [] }: { name: string; scopes?: readonly ServiceScope[] | undefined },
      by: { actor: Actor; ip?: string },
    ): Promise<{ row: ServiceKeyRow; key: string }> {
      const key = prefix + randomBytes(32).toString('base64url')
      const granted = serviceScopes.filter((scope) => scopes.length === 0 || scopes.includes(scope))
      const row = await write(() => {
        const id = newId()
        const target = { type: 'service_key', id } as const
        const details = { name, scopes: granted.join(' ') }
        audit.record({ action: 'service_key_created', ...by, target, details })
        const createdAt = clock.now()
        return store.insert({ id, name, hash: hashOf(key), scopes: granted, createdAt })
      })
      reload()
      return { row, key }
    },

    /** Ends a key; again does nothing.
     *  @throws not_found */
    async revoke(idText: string, by: { actor: Actor; ip?: string }): Promise<void> {
      const id = parseId(idText) ?? ''
      await write(() => {
        const row = store.find(id)
        if (!row) throw new AppError('not_found')
        if (row.revokedAt !== null) return
        store.updateRevoked(id, clock.now())
        audit.record({ action: 'service_key_revoked', ...by, target: { type: 'service_key', id } })
      })
      reload()
    },

    /** The live key of that text, whose use is noted. Does not read the database. */
    find(text: string): LiveKey | undefined {
      const key = live.get(hashOf(text))
      if (key) noteUse(key)
      return key
    },

    /** The same for a key that a command may have made a moment ago. */
    findFresh(text: string): LiveKey | undefined {
      if (!live.has(hashOf(text)) && store.findLiveByHash(hashOf(text))) reload()
      return this.find(text)
    },

    /** Newest first, revoked ones too. */
    listAll: () => store.list({ limit: -1, offset: 0 }),
    list: (range: ListRange): Listing<ServiceKeyRow> => listById(range, store.list, store.count),
    /** Reads the keys again, after a command beside this process. */
    reload,
  }
}

function hashOf(key: string) {
  return createHash('sha256').update(key).digest('hex')
}
