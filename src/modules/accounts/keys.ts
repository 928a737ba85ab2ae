import {
  calculateJwkThumbprint,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  importJWK,
  importPKCS8,
  type JWK,
} from 'jose'
import type { Actor, AuditTrail } from '../../db/audit-trail.ts'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { KeyStore, SigningKeyRow } from './key-store.ts'
import type { Jwks } from './model.ts'

/** How long a retired key stays published: longer than any token that it signed can live. */
const retiredPublishedMilliseconds = 75 * 60_000
const modulusLength = 2_048

type VerificationKey = { publicKey: CryptoKey; jwk: Jwks['keys'][number]; publishedUntil: number }
type SigningKey = { kid: string; privateKey: CryptoKey }

export type Keyring = {
  /** The key that signs at present. */
  active(): SigningKey
  /** The public key of a published key id. */
  find(kid: string): CryptoKey | undefined
  /** Public members of every published key (RFC 7517). */
  jwks(): Jwks
  /** Reads the keys again, after a rotation beside this process. */
  reload(): Promise<void>
}

type KeyringOptions = { keys: KeyStore; write: Write; clock: Clock }

/** The RSA keys that access tokens are signed with, next → active → retired (decisions 3). The first start makes an
 *  active and a next one. */
export async function openKeyring({ keys, write, clock }: KeyringOptions): Promise<Keyring> {
  let verification = new Map<string, VerificationKey>()
  let signing: SigningKey | undefined

  if (keys.list().length === 0) {
    const now = clock.now()
    const made = await Promise.all([makeKey('active', now), makeKey('next', now)])
    await write(() => keys.insert(made))
  }
  await reload()

  async function reload() {
    const rows = keys.list()
    const opened = await Promise.all(rows.map(openKey))
    verification = new Map(opened)
    const active = rows.find((row) => row.state === 'active')
    if (!active) throw new Error('the database holds no active signing key')
    signing = { kid: active.kid, privateKey: await importPKCS8(active.privateKey, 'RS256') }
  }

  function published() {
    const now = clock.now()
    return [...verification].filter(([, key]) => key.publishedUntil > now)
  }

  return {
    active() {
      if (!signing) throw new Error('the keyring is not open')
      return signing
    },
    find(kid) {
      const key = verification.get(kid)
      return key && key.publishedUntil > clock.now() ? key.publicKey : undefined
    },
    jwks: () => ({ keys: published().map(([, { jwk }]) => jwk) }),
    reload,
  }
}

const leastPublishedMilliseconds = 60 * 60_000

type RotationOptions = KeyringOptions & { audit: AuditTrail; actor: Actor; isUrgent: boolean }

/** Next becomes active, active is retired, a new next is made; a running server notices. Nobody is logged out.
 *  @returns undefined when done, else when the next key will have been published for an hour (ms since the epoch) */
export async function rotateKeys(options: RotationOptions): Promise<number | undefined> {
  const { keys, write, clock, audit, actor, isUrgent } = options
  const made = await makeKey('next', clock.now())
  return write(() => {
    const now = clock.now()
    const next = keys.list().find(({ state }) => state === 'next')
    const active = keys.list().find(({ state }) => state === 'active')
    if (!next || !active) throw new Error('the database holds no pair of signing keys')
    const ready = next.createdAt + leastPublishedMilliseconds
    if (!isUrgent && ready > now) return ready
    keys.deleteRetiredBefore(now - retiredPublishedMilliseconds)
    // Only the public half is of use from here on.
    keys.update(active.kid, { state: 'retired', retiredAt: now, privateKey: '' })
    keys.update(next.kid, { state: 'active', activatedAt: now })
    keys.insert([made])
    audit.record({ action: 'keys_rotated', actor, target: { type: 'key', id: next.kid } })
    return undefined
  })
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
  const publicKey = (await importJWK(jwk, 'RS256')) as CryptoKey // symmetric keys alone give bytes
  const publishedUntil =
    retiredAt === null ? Number.POSITIVE_INFINITY : retiredAt + retiredPublishedMilliseconds
  return [kid, { publicKey, jwk, publishedUntil }] as const
}
