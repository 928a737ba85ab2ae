import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import {
  type Answer,
  exchange,
  type Limited,
  unlessAborted,
  within,
} from '../../outside/exchange.ts'
import { hostnameOf, mustBeAnswered } from '../../outside/names.ts'

const usualTimeoutMilliseconds = 15_000
const readBytes = 1_024
/** `idleTimeout` is in seconds. */
const keepAlive = { idleTimeout: 15, maxIdleSockets: 64 }

export type ResolveHost = (host: string) => Promise<readonly LookupAddress[]>
export const resolveHost: ResolveHost = async (host) => {
  await mustBeAnswered(host)
  return lookup(host, { all: true, order: 'ipv4first' })
}

type Options = {
  resolve: ResolveHost
  /** Called for each address of the host right before each request. */
  isAllowed: (address: string) => boolean
  timeoutMilliseconds?: number
  ca?: string
}
type Posted = { headers: Record<string, string>; body: string; signal?: AbortSignal | undefined }

export type Post = (url: string, posted: Posted) => Promise<Answer>

/** Posts only to allowed addresses. Each request resolves the name once and connects to the resolved address, so a name
 *  server cannot return another address after the check (DNS rebinding). Ignores redirects, and proxies of the
 *  environment, which would resolve the name again.
 *  @throws Error with the reason when there is no response */
export function createPost(options: Options): Post {
  const { timeoutMilliseconds = usualTimeoutMilliseconds, ca } = options
  const session = new Bun.FetchSession({ proxy: false, keepAlive })

  return (text, { headers, body, signal: stopped }) =>
    within(timeoutMilliseconds, stopped, async (signal) => {
      const url = new URL(text)
      const addresses = await findAllowed(hostnameOf(url), options, signal)
      return postToFirst(url, addresses, {
        method: 'POST',
        headers: { ...headers, Host: url.host },
        body,
        decompress: false,
        session,
        tls: { ...tlsOf(url), ...(ca !== undefined && { ca }) },
        signal,
      })
    })
}

/** The certificate must match the host name, although the connection goes to an address. */
function tlsOf(url: URL) {
  const serverName = hostnameOf(url)
  return { rejectUnauthorized: true, ...(isIP(serverName) === 0 && { serverName }) }
}

async function findAllowed(host: string, { resolve, isAllowed }: Options, signal: AbortSignal) {
  const family = isIP(host)
  const addresses =
    family === 0 ? await unlessAborted(signal, resolve(host)) : [{ address: host, family }]
  if (addresses.every(({ address }) => isAllowed(address))) return addresses
  throw new Error('the host has an address that is not public')
}

/** Posts to the first address that accepts a connection.
 *  @throws Error when none does, or there is no response */
async function postToFirst(
  url: URL,
  addresses: readonly LookupAddress[],
  request: Limited,
): Promise<Answer> {
  const [first, ...others] = addresses
  if (!first) throw new Error('the host has no address')
  const direct = new URL(url)
  direct.hostname = first.family === 6 ? `[${first.address}]` : first.address
  try {
    const answer = await exchange(direct, request, readBytes)
    return { ...answer, text: answer.text.replaceAll('\0', '').toWellFormed() }
  } catch (error) {
    if (others.length > 0 && !isConnected(error)) return postToFirst(url, others, request)
    throw new Error(reasonOf(error), { cause: error })
  }
}

// Bun's messages contain the address and hints for developers, so prefer the code.
const reasonOf = (error: unknown) => (error as { code?: string }).code ?? (error as Error).message

const refused = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'FailedToOpenSocket'])
const isConnected = (error: unknown) => !refused.has((error as { code?: string }).code ?? '')
