import { jwt } from '@elysiajs/jwt'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import type { Core } from '../../core.ts'
import { createLru } from '../../lib/lru.ts'
import type { AccessClaims } from '../../lib/principal.ts'
import type { Keyring } from './keys.ts'
import type { UserRow } from './store.ts'

/** Seconds that an access token lives. */
export const accessTokenSeconds = 900
const clockToleranceSeconds = 5
const rememberedTokens = 20_000

const Payload = Type.Object({ sub: Type.String(), sid: Type.String(), exp: Type.Integer() })

export type AccessTokens = ReturnType<typeof createAccessTokens>

/** Access tokens: JWTs (RFC 7519) signed with RS256. */
export function createAccessTokens({ clock, newId, config }: Core, keyring: Keyring) {
  const { issuer } = config
  // Checking a signature costs more than most requests: a token is checked once.
  const remembered = createLru<AccessClaims>(rememberedTokens)
  let signer: { kid: string; sign: ReturnType<typeof createSigner> } | undefined

  // The plugin binds one key: a new signer for each key that becomes active.
  function activeSigner() {
    const { kid, privateKey } = keyring.active()
    if (signer?.kid !== kid) signer = { kid, sign: createSigner(kid, privateKey, issuer) }
    return signer
  }

  async function check(token: string): Promise<AccessClaims | undefined> {
    const key = publicKeyOf(token)
    if (!key) return undefined
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: ['RS256'],
        typ: 'JWT',
        issuer,
        clockTolerance: clockToleranceSeconds,
        currentDate: new Date(clock.now()),
      })
      if (!Value.Check(Payload, payload)) return undefined
      const { sub: userId, sid: sessionId, exp } = payload
      const claims = { userId, sessionId, expiresAt: exp * 1_000 }
      remembered.set(token, claims)
      return claims
    } catch {
      return undefined // whatever is wrong with it: it is no token of ours
    }
  }

  // Before any cryptography: a key id of ours, the one algorithm, or nothing.
  function publicKeyOf(token: string) {
    try {
      const { alg, kid } = decodeProtectedHeader(token)
      return alg === 'RS256' && typeof kid === 'string' ? keyring.find(kid) : undefined
    } catch {
      return undefined
    }
  }

  return {
    /** Signs a token for a session of the user. */
    mint: async (user: UserRow, sessionId: string): Promise<string> =>
      activeSigner().sign({
        sub: user.id,
        email: user.email,
        role: user.role,
        sid: sessionId,
        jti: newId(),
        exp: Math.floor(clock.now() / 1_000) + accessTokenSeconds,
      }),

    /** The claims of a token that one of our published keys signed and that has not expired. No promise for a token
     *  that has been checked before. */
    verify(token: string): AccessClaims | undefined | Promise<AccessClaims | undefined> {
      const known = remembered.get(token)
      if (!known) return check(token)
      const isOver = known.expiresAt + clockToleranceSeconds * 1_000 <= clock.now()
      return isOver ? undefined : known
    },
  }
}

function createSigner(kid: string, secret: CryptoKey, iss: string) {
  return jwt({ name: 'accessToken', alg: 'RS256', secret, kid, iss }).decorator.accessToken.sign
}
