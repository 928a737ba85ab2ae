import { availableParallelism } from 'node:os'
import type { Core } from '../../core.ts'
import { createSemaphore, type Urgency } from '../../lib/concurrency.ts'
import { AppError, quotaExceeded } from '../../lib/errors.ts'
import { ipGroup } from '../../lib/ip-network.ts'
import { type Limit, SlidingWindow } from '../../lib/limits.ts'
import { createLru } from '../../lib/lru.ts'
import { storedEmail } from '../../lib/text.ts'
import commonPasswords from './common-passwords.txt' with { type: 'text' }

export type Argon2Cost = {
  memoryKibibytes: number
  iterations: number
  /** In the place of the runtime's. */
  hasher?: Pick<typeof Bun.password, 'hash' | 'verify'>
}

const contractCost: Argon2Cost = { memoryKibibytes: 19_456, iterations: 2 }
const maxAtOnce = 4
const maxWaiting = 500
const retryAfterSeconds = 5

/** argon2id on the runtime's threads. Choice: one core stays free: a storm of logins must not starve the event loop, nor
 *  the syncs that share those threads. */
export function createPasswords(cost: Argon2Cost = contractCost) {
  const { memoryKibibytes: memoryCost, iterations: timeCost, hasher = Bun.password } = cost
  const permits = Math.max(1, Math.min(maxAtOnce, availableParallelism() - 1))
  const refused = () => new AppError('unavailable', { retryAfterSeconds })
  const limited = createSemaphore(permits, { maxWaiting, refused })
  const parameters = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$`
  // Matches no password: a salt and a digest of the usual lengths.
  const standIn = `${parameters}${'A'.repeat(43)}$${'A'.repeat(43)}`

  return {
    /** @param urgency `low` inside a session: nobody is kept out by it
     *  @throws unavailable (503) when too many others wait */
    hash: (password: string, urgency?: Urgency): Promise<string> =>
      limited(
        () => hasher.hash(password, { algorithm: 'argon2id', memoryCost, timeCost }),
        urgency,
      ),
    /** Compares with `hash`, or with a stand-in that takes as long when there is none, and is then false.
     *  @throws unavailable (503) when too many others wait */
    async matches(password: string, hash: string | undefined, urgency?: Urgency): Promise<boolean> {
      const isHash = hash?.startsWith('$') === true // not every account has one
      // Bun refuses an empty password before it works: give it one that no hash of ours can have.
      const tried = password === '' ? '\0' : password
      const matched = await limited(() => hasher.verify(tried, isHash ? hash : standIn), urgency)
      return isHash && matched
    },
    /** Whether a hash was made with other parameters. */
    isOutdated: (hash: string): boolean => !hash.startsWith(parameters),
  }
}

// The first 3,000 of at least 8 printable ASCII characters in Django 5.2.17, django/contrib/auth/common-passwords.txt.gz
// (BSD 3-Clause, Django Software Foundation and contributors; counted in breaches by Royce Williams), commonest first.
let common: Set<string> | undefined

/** Whether a password is among the first that are tried: one of the commonest, or the address of its owner, the local part
 *  of that or their name, all of them in any case. */
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

const failures: Limit = { count: 20, windowMilliseconds: 15 * 60_000 }
const pauseMilliseconds = 60_000
/** Per user or code. Right ones count too: each costs a hash. */
const confirmations: Limit = { count: 10, windowMilliseconds: 60_000 }
const rememberedNames = 50_000

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

type Try = { at: number; network: string }

/** Slows guessing under one name (an address, known or not, or a session) down to one try a minute. */
export function createLoginThrottle({ clock, config }: Core) {
  const triesByName = createLru<Try[]>(rememberedNames)
  const confirmed = createLru<SlidingWindow>(rememberedNames)
  const isOn = config.limits.login !== 'off'

  /** The last tries under a name, oldest first. After a clock that was set back none lies ahead of it. */
  function recent(name: string, now: number): Try[] {
    const tries = triesByName.get(name) ?? []
    return tries
      .filter(({ at }) => at > now - failures.windowMilliseconds)
      .map(({ at, network }) => ({ at: Math.min(at, now), network }))
  }

  /** Counts a try before it is known how it ends: many at once must not slip through. Asked only when the try would be
   *  refused, `isKnown` lets it pass: strangers hold up nobody where they usually log in.
   *  @throws login_throttled, for at most 60 s, after 20 failures in 15 minutes */
  function admit(name: string, ip: string, isKnown = () => false): void {
    if (!isOn) return
    const now = clock.now()
    const tries = recent(name, now)
    const wait = (tries.at(-1)?.at ?? 0) + pauseMilliseconds - now
    if (tries.length >= failures.count && wait > 0) {
      if (isKnown()) return
      throw new AppError('login_throttled', { retryAfterSeconds: Math.ceil(wait / 1_000) })
    }
    triesByName.set(name, [...tries, { at: now, network: ipGroup(ip) }].slice(-failures.count))
  }

  return {
    admit,
    /** The same for a password or a code within a session.
     *  @param per who is counted
     *  @throws login_throttled · quota_exceeded (10 a minute) */
    admitConfirmation(name: string, ip: string, per = name): void {
      const now = clock.now()
      const window = confirmed.get(per) ?? new SlidingWindow()
      if (window.isFull(confirmations, now)) {
        throw quotaExceeded(window.freeAt(confirmations, now) - now)
      }
      admit(name, ip)
      window.take(confirmations, now)
      confirmed.set(per, window)
    },
    /** Forgets the tries of one network under a name: the last one was right. Those of others may be somebody else's. */
    succeeded(name: string, ip: string): void {
      const network = ipGroup(ip)
      const others = recent(name, clock.now()).filter((tried) => tried.network !== network)
      if (others.length > 0) triesByName.set(name, others)
      else triesByName.delete(name)
    },
  }
}
