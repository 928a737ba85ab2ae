import { Secret, TOTP } from 'otpauth'
import type { Core } from '../../core.ts'
import { onOneself } from '../../db/audit-trail.ts'
import { AppError } from '../../lib/errors.ts'
import { sha256 } from '../../lib/hash.ts'
import type { UserPrincipal } from '../../lib/principal.ts'
import type { AccountParts } from './account-parts.ts'
import type { FactorRemoval, OwnerProof } from './credential-model.ts'
import type { FactorRow, FactorStore } from './factor-store.ts'
import type { LoginThrottle } from './passwords.ts'
import type { GivenPassword, Recovery } from './recovery.ts'

/** The length that RFC 4226 recommends and every authenticator supports. */
const secretBytes = 20
const recoveryCodeCount = 10
/** Enough that a plain hash keeps them: nobody tries 2^120 of them. */
const recoveryCodeBytes = 15
/** Steps of 30 seconds by which the clock of an authenticator may differ. */
const tolerance = 1

export type Totp = ReturnType<typeof createTotp>

/** Uses up a code of somebody's authenticator or a recovery code, inside a `write`.
 *  @returns false when it is wrong, or was used before */
export function useCode(core: Core, factors: FactorStore, userId: string, text: string): boolean {
  const code = text.replace(/[\s-]/g, '').toLowerCase()
  return isStepCode(code)
    ? useStep(core, factors, userId, code)
    : factors.useCode(userId, sha256(code))
}

/** The same for a factor that is switched on, without the recovery codes: those are for a lost device. */
function useShownCode(core: Core, factors: FactorStore, userId: string, text: string): boolean {
  const code = text.replace(/[\s-]/g, '')
  return isStepCode(code) && factors.isOn(userId) && useStep(core, factors, userId, code)
}

const isStepCode = (code: string) => /^\d{6}$/.test(code)

function useStep({ clock }: Core, factors: FactorStore, userId: string, code: string): boolean {
  const factor = factors.find(userId)
  const step = factor && stepOf(factor, code, clock.now())
  return step !== undefined && factors.useStep(userId, step)
}

/** The time step that a code is for, if it is one of those around now. */
function stepOf({ secret }: FactorRow, code: string, timestamp: number): number | undefined {
  const totp = new TOTP({ secret: Secret.fromBase32(secret) })
  const delta = totp.validate({ token: code, timestamp, window: tolerance })
  return delta === null ? undefined : totp.counter({ timestamp }) + delta
}

type Parts = AccountParts & { recovery: Recovery; throttle: LoginThrottle }

type CodeUse<T> = { ip: string; act: () => T; use?: typeof useCode }

/** The second factor: time-based one-time passwords (RFC 6238). */
export function createTotp(core: Core, parts: Parts) {
  const { write, audit, clock, config } = core
  const { store, sessionStore, factors, recovery, throttle } = parts

  /** Uses a code up, in a session; those of all sessions are counted together.
   *  @param by.act what follows in the same write, when the code was right
   *  @throws totp_invalid · login_throttled */
  async function withCode<T>(userId: string, code: string, by: CodeUse<T>) {
    const { ip, act, use = useCode } = by
    const name = `totp:${userId}`
    throttle.admitConfirmation(name, ip)
    const done = await write(() => {
      if (use(core, factors, userId, code)) return { result: act() }
      audit.record({ action: 'totp_refused', ...onOneself(userId, ip) })
      return undefined
    })
    if (!done) throw new AppError('totp_invalid')
    throttle.succeeded(name, ip)
    return done.result
  }

  /** @returns the recovery codes, of which only the hashes are kept */
  function switchOn(userId: string, ip: string): string[] {
    const user = store.find(userId)
    if (!user) throw new AppError('unauthorized')
    const codes = Array.from({ length: recoveryCodeCount }, () =>
      new Secret({ size: recoveryCodeBytes }).base32.toLowerCase(),
    )
    factors.updateConfirmed(userId, clock.now(), user.isProvisional)
    factors.insertCodes(userId, codes.map(sha256))
    parts.factorChanged(user, 'totp_enabled', onOneself(userId, ip))
    return codes.map((code) => code.replace(/(.{4})(?=.)/g, '$1-'))
  }

  return {
    /** Makes a secret for an authenticator. Until a code confirms it nothing asks for it, and another call replaces it.
     *  @throws totp_exists · invalid_credentials (the password is wrong) · login_throttled · quota_exceeded */
    async begin(principal: UserPrincipal, password: GivenPassword, ip: string) {
      const { userId } = principal
      const user = await recovery.confirm(principal, password, ip)
      return write(() => {
        recovery.mustStillBeConfirmed(user, principal)
        if (factors.isOn(userId)) throw new AppError('totp_exists')
        const secret = new Secret({ size: secretBytes })
        factors.upsert(userId, secret.base32, clock.now())
        const totp = new TOTP({ issuer: config.issuer, label: user.email, secret })
        return { secret: secret.base32, otpauth_url: totp.toString() }
      })
    },

    /** Switches the factor on.
     *  @throws not_found (no secret was made) · totp_exists · totp_invalid · login_throttled */
    async confirm({ userId }: UserPrincipal, code: string, ip: string): Promise<string[]> {
      const factor = factors.find(userId)
      if (!factor) throw new AppError('not_found')
      if (factor.confirmedAt !== null) throw new AppError('totp_exists')
      return withCode(userId, code, {
        ip,
        act() {
          if (factors.find(userId)?.secret !== factor.secret || factors.isOn(userId)) {
            throw new AppError('totp_exists')
          }
          return switchOn(userId, ip)
        },
      })
    },

    /** Switches the factor off.
     *  @throws not_found (there is none) · invalid_credentials (the password is wrong) · totp_invalid · login_throttled */
    async remove(principal: UserPrincipal, { password, code }: FactorRemoval, ip: string) {
      const { userId } = principal
      if (!factors.isOn(userId)) throw new AppError('not_found')
      const user = await recovery.confirm(principal, password, ip)
      await withCode(userId, code, {
        ip,
        act() {
          recovery.mustStillBeConfirmed(user, principal)
          parts.removeFactor(user, onOneself(userId, ip))
        },
      })
    },

    /** Stamps the session when the person who asks is its owner, by what they know or have.
     *  @throws invalid_credentials (the password is wrong) · totp_invalid (also where there is no factor) · login_throttled */
    async proveOwner(principal: UserPrincipal, { password, code }: OwnerProof, ip: string) {
      const { userId, sessionId } = principal
      const stamp = () => sessionStore.updateConfirmed(sessionId, clock.now())
      if (typeof code === 'string') {
        await withCode(userId, code, { ip, act: stamp, use: useShownCode })
        return
      }
      const user = await recovery.confirm(principal, password, ip)
      await write(() => {
        recovery.mustStillBeConfirmed(user, principal)
        stamp()
      })
    },
  }
}
