import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { createLru } from '../lib/lru.ts'

const rememberedMilliseconds = 5_000
const answeredUntil = createLru<number>(1_000)

/** Rejects when no name server answers for this host. The system's resolver would block a thread of the runtime until it gives
 *  up; there are as many as cores, and each sync of the database needs one.
 *  @param resolver reads the name servers of this moment
 *  @throws Error with the code of the failure */
export async function mustBeAnswered(host: string, resolver = new Resolver()): Promise<void> {
  if (isIP(host) !== 0 || (answeredUntil.get(host) ?? 0) > performance.now()) return
  // The first knows the hosts of this machine, but reads the name servers once.
  const known = Bun.dns.lookup(host, { backend: 'c-ares' })
  const answered = resolver.resolve4(host).catch(unlessUnknown)
  await Promise.any([known, answered]).catch(({ errors }: AggregateError) => {
    throw errors[1]
  })
  answeredUntil.set(host, performance.now() + rememberedMilliseconds)
}

/** That there is no such host, or none with IPv4, is an answer. */
function unlessUnknown(error: { code?: string }) {
  if (!['ENOTFOUND', 'ENODATA'].includes(error.code ?? '')) throw error
}
