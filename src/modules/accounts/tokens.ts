import { jwt } from '@elysiajs/jwt'
import { type Static, Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../lib/clock.ts'
import { parseId } from '../../lib/ids.ts'
import type { Keyring } from './keys.ts'
import { OneOfRoles } from './model.ts'
import type { UserRow } from './store.ts'

/** Seconds that an access token lives (spec 2.2). */
export const accessTokenSeconds = 900
const clockToleranceSeconds = 5
const rememberedTokens = 20_000

const AccessClaims = Type.Object({
  sub: Type.String(),
  email: Type.String(),
  role: OneOfRoles,
  iat: Type.Integer(),
  exp: Type.Integer(),
  iss: Type.String(),
  sid: Type.String(),
  jti: Type.String(),
})
const claims = TypeCompiler.Compile(AccessClaims)

/** What a valid access token says; `expiresAt` in ms since the epoch. */
export type VerifiedToken = { userId: string; sessionId: string; expiresAt: number }

export type AccessTokens = {
  /** Signs a token for a session of the user (spec 2.3). */
  mint(user: UserRow, sessionId: string): Promise<string>
  /** Undefined for anything but a token that a published key of ours signed and that has not expired. */
  verify(token: string): Promise<VerifiedToken | undefined>
}

type AccessTokenOptions = { keyring: Keyring; issuer: string; clock: Clock; newId: () => string }

export function createAccessTokens({
  keyring,
  issuer,
  clock,
  newId,
}: AccessTokenOptions): AccessTokens {
  // Checking a signature costs more than most requests: a token is checked once.
  const remembered = new LRUCache<string, VerifiedToken>({ max: rememberedTokens })

  let signing: { kid: string; sign: ReturnType<typeof createSigner> } | undefined

  // The plugin binds one key: a new signer for each key that becomes active.
  function signer() {
    const { kid, privateKey } = keyring.active()
    if (signing?.kid !== kid) signing = { kid, sign: createSigner(kid, privateKey, issuer) }
    return { sign: signing.sign }
  }

  async function mint(user: UserRow, sessionId: string) {
    return signer().sign({
      sub: user.id,
      email: user.email,
      role: user.role,
      sid: sessionId,
      jti: newId(),
      exp: Math.floor(clock.now() / 1_000) + accessTokenSeconds,
    })
  }

  async function verify(token: string) {
    const known = remembered.get(token)
    if (known) return isOver(known) ? undefined : known
    const checked = await check(token)
    if (checked) remembered.set(token, checked)
    return checked
  }

  function isOver({ expiresAt }: VerifiedToken) {
    return expiresAt + clockToleranceSeconds * 1_000 <= clock.now()
  }

  async function check(token: string): Promise<VerifiedToken | undefined> {
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
      return readClaims(payload)
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

  return { mint, verify }
}

function createSigner(kid: string, secret: CryptoKey, iss: string) {
  return jwt({ name: 'accessToken', alg: 'RS256', secret, kid, iss }).decorator.accessToken.sign
}

function readClaims(payload: JWTPayload): VerifiedToken | undefined {
  if (!claims.Check(payload)) return undefined
  const { sub, sid, exp }: Static<typeof AccessClaims> = payload
  if (parseId(sub) !== sub || parseId(sid) !== sid) return undefined
  return { userId: sub, sessionId: sid, expiresAt: exp * 1_000 }
}
