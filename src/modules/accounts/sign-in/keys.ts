import {
  calculateJwkThumbprint,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  importJWK,
  importPKCS8,
  type JWK,
} from 'jose'
import type { Core } from '../../../core.ts'
import type { By } from '../../../db/audit-trail.ts'
import { hour, minute } from '../../../lib/clock.ts'
import { closeCodes } from '../../../realtime/hub.ts'
import type { Jwks } from '../model.ts'
import { createKeyStore, type SigningKeyRow } from '../store.ts'

/** A retired key stays published for longer than the lifetime of its tokens. */
const retiredPublishedMilliseconds = 75 * minute
const leastPublishedMilliseconds = hour
const modulusLength = 2_048

export type Keyring = Awaited<ReturnType<typeof openKeyring>>

/** A key is first `next`, then `active`, then `retired`. */
export async function openKeyring({ orm, write, clock, audit, hub }: Core) {
  const store = createKeyStore(orm)
  if (store.list().length === 0) {
    const now = clock.now()
    const made = await Promise.all([makeKey('active', now), makeKey('next', now)])
    await write(() => store.insert(made))
  }
  let keys = await read()

  async function read() {
    const rows = store.list()
    const active = rows.find((row) => row.state === 'active')
    if (!active) throw new Error('the database has no active signing key')
    return {
      verification: new Map(await Promise.all(rows.map(openKey))),
      signing: { kid: active.kid, privateKey: await importPKCS8(active.privateKey, 'RS256') },
    }
  }

  return {
    active: () => keys.signing,
    find(kid: string): CryptoKey | undefined {
      const key = keys.verification.get(kid)
      return key && key.publishedUntil > clock.now() ? key.publicKey : undefined
    },
    jwks(): Jwks {
      const now = clock.now()
      const published = [...keys.verification.values()].filter((key) => key.publishedUntil > now)
      return { keys: published.map(({ jwk }) => jwk) }
    },
    list: store.list,

    /** Activates the next key, retires the active one and creates a new next one. Sessions continue. An urgent rotation
     *  (after a leak) withdraws the former keys and the access tokens that they signed.
     *  @returns undefined when done, else the time (ms since the epoch) when the next key has been published for an hour */
    async rotate({ isUrgent, ...by }: By & { isUrgent: boolean }): Promise<number | undefined> {
      const made = await makeKey('next', clock.now())
      const readyAt = await write((): number | undefined => {
        const now = clock.now()
        const next = store.list().find(({ state }) => state === 'next')
        const active = store.list().find(({ state }) => state === 'active')
        if (!next || !active) throw new Error('the database has no active and next signing key')
        const readyAt = next.createdAt + leastPublishedMilliseconds
        if (!isUrgent && readyAt > now) return readyAt
        // Only the public half of a retired key is needed.
        store.update(active.kid, { state: 'retired', retiredAt: now, privateKey: '' })
        store.deleteRetired(isUrgent ? now : now - retiredPublishedMilliseconds)
        store.update(next.kid, { state: 'active', activatedAt: now })
        store.insert([made])
        audit.record({ action: 'keys_rotated', ...by, target: { type: 'key', id: next.kid } })
        return undefined
      })
      if (readyAt !== undefined) return readyAt
      keys = await read()
      // The access tokens of all sockets are withdrawn: clients refresh them and reconnect.
      if (isUrgent) hub.closeAll(closeCodes.tokenExpired)
      return undefined
    },
  }
}

async function makeKey(state: 'active' | 'next', now: number): Promise<SigningKeyRow> {
  const pair = await generateKeyPair('RS256', { modulusLength, extractable: true })
  const publicJwk = await exportJWK(pair.publicKey)
  return {
    kid: await calculateJwkThumbprint(publicJwk),
    state,
    privateKey: await exportPKCS8(pair.privateKey),
    publicJwk,
    createdAt: now,
    activatedAt: state === 'active' ? now : null,
    retiredAt: null,
  }
}

async function openKey({ kid, publicJwk, retiredAt }: SigningKeyRow) {
  const { kty = '', n = '', e = '' } = publicJwk as JWK
  const jwk = { kty, n, e, kid, alg: 'RS256', use: 'sig' }
  const publicKey = (await importJWK(jwk, 'RS256')) as CryptoKey // only symmetric keys are bytes
  const publishedUntil =
    retiredAt === null ? Number.POSITIVE_INFINITY : retiredAt + retiredPublishedMilliseconds
  return [kid, { publicKey, jwk, publishedUntil }] as const
}
