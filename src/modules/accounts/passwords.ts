import { availableParallelism } from 'node:os'
import { createSemaphore } from '../../lib/concurrency.ts'
import { AppError } from '../../lib/errors.ts'

export type Argon2Cost = { memoryKibibytes: number; iterations: number }

const contractCost: Argon2Cost = { memoryKibibytes: 19_456, iterations: 2 }
const maxAtOnce = 4
const maxWaiting = 500
const retryAfterSeconds = 5

export type Passwords = {
  hash(password: string): Promise<string>
  /** Compares with `hash`, or with a stand-in that takes as long when there is none, and is then false.
   *  @throws unavailable (503) when too many others wait */
  matches(password: string, hash: string | undefined): Promise<boolean>
  /** True for a hash that was made with other parameters. */
  isOutdated(hash: string): boolean
}

/** argon2id on the runtime's threads (decisions 3). Choice: one core stays free: a storm of logins must not starve the
 *  event loop, nor the syncs that share those threads. */
export function createPasswords(cost: Argon2Cost = contractCost): Passwords {
  const width = Math.max(1, Math.min(maxAtOnce, availableParallelism() - 1))
  const gate = createSemaphore(
    width,
    maxWaiting,
    () => new AppError('unavailable', { retryAfterSeconds }),
  )
  const options = {
    algorithm: 'argon2id',
    memoryCost: cost.memoryKibibytes,
    timeCost: cost.iterations,
  } as const
  const parameters = `$argon2id$v=19$m=${cost.memoryKibibytes},t=${cost.iterations},p=1$`
  // Nobody's password: a salt and a digest of the usual lengths.
  const standIn = `${parameters}${'A'.repeat(43)}$${'A'.repeat(43)}`

  return {
    hash: (password) => gate(() => Bun.password.hash(password, options)),
    async matches(password, hash) {
      const isHash = hash?.startsWith('$') === true // a deleted account has none
      const matched = await gate(() => compare(password, isHash ? hash : standIn))
      return isHash && matched
    },
    isOutdated: (hash) => !hash.startsWith(parameters),
  }
}

async function compare(password: string, hash: string) {
  // Bun refuses an empty password before it works: give it one that no hash of ours can have.
  return Bun.password.verify(password === '' ? '\0' : password, hash)
}
