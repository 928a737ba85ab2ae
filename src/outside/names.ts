import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { createLru } from '../lib/lru.ts'

const rememberedMilliseconds = 5_000
const answeredUntil = createLru<number>(1_000)

/** The host name of a URL, an IPv6 address without brackets. */
export const hostnameOf = (url: string | URL): string =>
  new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')

/** Rejects when the name servers are silent. The system's resolver would then block a thread of the runtime until it gives
 *  up; there are as many as cores, at least two, and each sync of the database needs one.
 *  @param resolver by default one that reads the name servers of this moment
 *  @throws Error with the code ETIMEOUT */
export async function mustBeAnswered(host: string, resolver?: Resolver): Promise<void> {
  if (isIP(host) !== 0 || (answeredUntil.get(host) ?? 0) > performance.now()) return
  // `c-ares` knows the hosts of this machine, but reads the list of name servers only once.
  const known = Bun.dns.lookup(host, { backend: 'c-ares' })
  const answered = (resolver ?? new Resolver()).resolve4(host).catch(unlessSilent)
  await Promise.any([known, answered]).catch(({ errors }: AggregateError) => {
    throw errors[1]
  })
  answeredUntil.set(host, performance.now() + rememberedMilliseconds)
}

/** Any other failure is an answer, with which the system's resolver does not wait either. */
function unlessSilent(error: { code?: string }) {
  if (error.code === 'ETIMEOUT') throw error
}
