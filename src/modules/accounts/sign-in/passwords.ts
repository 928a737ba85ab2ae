import { availableParallelism } from 'node:os'
import type { Core } from '../../../core.ts'
import { minute } from '../../../lib/clock.ts'
import { createSemaphore, type Urgency } from '../../../lib/concurrency.ts'
import { AppError, throttled } from '../../../lib/errors.ts'
import { ipGroup } from '../../../lib/ip-network.ts'
import { type Limit, SlidingWindow } from '../../../lib/limits.ts'
import { createLru } from '../../../lib/lru.ts'
import { storedEmail } from '../../../lib/text.ts'
import commonPasswords from '../common-passwords.txt' with { type: 'text' }

export type Argon2Cost = {
  memoryKibibytes: number
  iterations: number
  hasher?: Pick<typeof Bun.password, 'hash' | 'verify'>
}

const contractCost: Argon2Cost = { memoryKibibytes: 19_456, iterations: 2 }
const maxAtOnce = 4
const maxWaiting = 500
const retryAfterSeconds = 5

/** argon2id on the runtime's threads. Choice: one core stays free, so that many logins starve neither the event loop nor
 *  the syncs on those threads. */
export function createPasswords(cost: Argon2Cost = contractCost) {
  const { memoryKibibytes: memoryCost, iterations: timeCost, hasher = Bun.password } = cost
  const permits = Math.max(1, Math.min(maxAtOnce, availableParallelism() - 1))
  const refused = () => new AppError('unavailable', { retryAfterSeconds })
  const limited = createSemaphore(permits, { maxWaiting, refused })
  const parameters = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$`
  // Matches no password; its salt and digest have the usual lengths.
  const dummyHash = `${parameters}${'A'.repeat(43)}$${'A'.repeat(43)}`

  return {
    /** @param urgency `low` for users who are logged in already
     *  @throws unavailable (503) when too many others wait */
    hash: (password: string, urgency?: Urgency): Promise<string> =>
      limited(
        () => hasher.hash(password, { algorithm: 'argon2id', memoryCost, timeCost }),
        urgency,
      ),
    /** Compares a password with a hash. Without one it takes as long and returns false.
     *  @throws unavailable (503) when too many others wait */
    matches(password: string, hash: string | undefined, urgency?: Urgency): Promise<boolean> {
      const isHash = hash?.startsWith('$') === true // an account may have no password
      // Bun refuses an empty password at once, which would reveal it by the time; no account has this one.
      const tried = password === '' ? '\0' : password
      return limited(() => hasher.verify(tried, isHash ? hash : dummyHash), urgency)
    },
    isOutdated: (hash: string): boolean => !hash.startsWith(parameters),
  }
}

// The first 3,000 of at least 8 printable ASCII characters in Django 5.2.17, django/contrib/auth/common-passwords.txt.gz
// (BSD 3-Clause, Django Software Foundation and contributors; counted in breaches by Royce Williams), commonest first.
let common: Set<string> | undefined

/** Ignores case. */
export function isGuessable(
  password: string,
  { email, displayName }: { email: string; displayName?: string },
): boolean {
  common ??= new Set(commonPasswords.split('\n'))
  const guess = password.toLowerCase()
  const address = storedEmail(email)
  if (common.has(guess) || displayName?.toLowerCase() === guess) return true
  return address === guess || address.startsWith(`${guess}@`)
}

const failures: Limit = { count: 20, windowMilliseconds: 15 * minute }
const pauseMilliseconds = minute
/** Limits the confirmations of a user. Successful ones count too, because each costs a hash. */
const confirmations: Limit = { count: 10, windowMilliseconds: minute }
const rememberedNames = 50_000

type Attempt = { at: number; network: string }

/** Slows guessing for one name (an address, known or not, or a session) down to one attempt a minute. */
export function createLoginThrottle({ clock, config }: Core) {
  const attemptsByName = createLru<Attempt[]>(rememberedNames)
  const confirmed = createLru<SlidingWindow>(rememberedNames)
  const isOn = config.limits.login !== 'off'

  /** The recent attempts for a name, oldest first. If the clock was set back, later times count as now. */
  function recent(name: string, now: number): Attempt[] {
    const attempts = attemptsByName.get(name) ?? []
    return attempts
      .filter(({ at }) => at > now - failures.windowMilliseconds)
      .map(({ at, network }) => ({ at: Math.min(at, now), network }))
  }

  /** Counts an attempt before its result is known, because attempts may be concurrent. `isKnown` is called only when the
   *  attempt would be refused and may admit it, so that strangers cannot lock users out on their usual networks.
   *  @throws login_throttled, for at most 60 s, after 20 failures in 15 minutes */
  function admit(name: string, ip: string, isKnown = () => false): void {
    if (!isOn) return
    const now = clock.now()
    const attempts = recent(name, now)
    const wait = (attempts.at(-1)?.at ?? 0) + pauseMilliseconds - now
    if (attempts.length >= failures.count && wait > 0) {
      if (isKnown()) return
      // If the clock was set back, the pause begins now.
      attemptsByName.set(name, attempts)
      throw throttled('login_throttled', wait)
    }
    attemptsByName.set(
      name,
      [...attempts, { at: now, network: ipGroup(ip) }].slice(-failures.count),
    )
  }

  return {
    admit,
    /** Like `admit`, for a password or a code within a session.
     *  @param per the key of the limit of confirmations
     *  @throws login_throttled · quota_exceeded (10 a minute) */
    admitConfirmation(name: string, ip: string, per = name): void {
      const now = clock.now()
      const window = confirmed.get(per) ?? new SlidingWindow()
      if (window.isFull(confirmations, now)) {
        throw throttled('quota_exceeded', window.freeAt(confirmations, now) - now)
      }
      admit(name, ip)
      window.take(confirmations, now)
      confirmed.set(per, window)
    },
    /** The attempts of other networks may be an attacker's. */
    succeeded(name: string, ip: string): void {
      const network = ipGroup(ip)
      const others = recent(name, clock.now()).filter((tried) => tried.network !== network)
      if (others.length > 0) attemptsByName.set(name, others)
      else attemptsByName.delete(name)
    },
  }
}
