import { jwt } from '@elysiajs/jwt'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { jwtVerify } from 'jose'
import type { Core } from '../../../core.ts'
import { systemClock } from '../../../lib/clock.ts'
import { createLru } from '../../../lib/lru.ts'
import type { AccessClaims } from '../../../lib/principal.ts'
import type { UserRow } from '../store.ts'
import type { Keyring } from './keys.ts'

export const accessTokenSeconds = 900
const clockToleranceSeconds = 5
const rememberedTokens = 20_000

const typ = 'at+jwt'

const Payload = Type.Object({
  sub: Type.String(),
  sid: Type.String(),
  iat: Type.Integer(),
  exp: Type.Integer(),
})
type Checked = { claims: AccessClaims; keyId: string; issuedAt: number }

export type AccessTokens = ReturnType<typeof createAccessTokens>

/** Access tokens: JWTs signed with RS256 (RFC 7519, RFC 9068). */
export function createAccessTokens({ clock, newId, config }: Core, keyring: Keyring) {
  const { issuer } = config
  // Other services that verify these tokens must require this audience.
  const audience = issuer
  // Verifying a signature costs more than most requests, so each token is verified once.
  const remembered = createLru<Checked>(rememberedTokens)

  function signer() {
    const { kid, privateKey: secret } = keyring.active()
    const options = { kid, secret, iss: issuer, aud: audience }
    return jwt({ name: 'accessToken', alg: 'RS256', typ, ...options }).decorator.accessToken
  }

  async function check(token: string): Promise<AccessClaims | undefined> {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keyOf, {
        algorithms: ['RS256'],
        typ,
        issuer,
        audience,
        clockTolerance: clockToleranceSeconds,
        currentDate: new Date(clock.now()),
      })
      if (!Value.Check(Payload, payload)) return undefined
      const { sub: userId, sid: sessionId, iat: issuedAt, exp } = payload
      const expiresAt = Math.min(exp, Math.floor(clock.now() / 1_000) + accessTokenSeconds) * 1_000
      const keyId = protectedHeader.kid ?? ''
      const checked = { claims: { userId, sessionId, expiresAt }, keyId, issuedAt }
      // The key may have been withdrawn since the check began.
      if (!isFresh(checked) || !keyring.find(keyId)) return undefined
      remembered.set(token, checked)
      return checked.claims
    } catch {
      return undefined // not a valid token of this server
    }
  }

  function keyOf({ kid = '' }: { kid?: string }) {
    const key = keyring.find(kid)
    if (!key) throw new Error('the key is not published')
    return key
  }

  return {
    mint: async (user: UserRow, sessionId: string): Promise<string> =>
      signer().sign({
        sub: user.id,
        email: user.email,
        role: user.role,
        sid: sessionId,
        jti: newId(),
        exp: Math.floor(clock.now() / 1_000) + accessTokenSeconds,
      }),

    /** Returns no promise for a token that was verified before. */
    verify(token: string): AccessClaims | undefined | Promise<AccessClaims | undefined> {
      const known = remembered.get(token)
      if (!known) return check(token)
      const { claims, keyId } = known
      // The key may have been withdrawn since.
      const isOver = claims.expiresAt + clockToleranceSeconds * 1_000 <= clock.now()
      return isOver || !isFresh(known) || !keyring.find(keyId) ? undefined : claims
    },
  }
}

// Uses the system clock, by which the plugin sets `iat`. Limits the lifetime even if a stolen key signed a later `exp`.
function isFresh({ issuedAt }: Checked) {
  const age = systemClock.now() / 1_000 - issuedAt
  return age >= -clockToleranceSeconds && age <= accessTokenSeconds + clockToleranceSeconds
}
