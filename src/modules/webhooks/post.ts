import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'

const usualTimeoutMilliseconds = 15_000
const readBytes = 1_024
/** Connections that are kept for the next delivery, for so many seconds. */
const keepAlive = { idleTimeout: 15, maxIdleSockets: 64 }

/** Every address of a host, in the order in which they are tried. */
export type ResolveHost = (host: string) => Promise<readonly LookupAddress[]>
export const resolveHost: ResolveHost = (host) => lookup(host, { all: true, order: 'ipv4first' })

type Options = {
  resolve: ResolveHost
  /** Asked for each address of a host, right before each request. */
  isAllowed: (address: string) => boolean
  timeoutMilliseconds?: number
  /** Certificates that are trusted in the place of the usual ones. */
  ca?: string
}
type Posted = { headers: Record<string, string>; body: string; signal?: AbortSignal | undefined }

/** `text` is the beginning of the body. */
export type Answer = { status: number; retryAfter: string | null; text: string }

export type Post = (url: string, posted: Posted) => Promise<Answer>

/** Posts to addresses that were checked. A name is resolved for each request and the connection goes to what was found, so
 *  that a name server cannot answer otherwise in between. Redirects are answers like others; proxies of the environment
 *  are passed over: they would resolve the name once more.
 *  @throws Error that says why no answer came */
export function createPost(options: Options): Post {
  const { timeoutMilliseconds = usualTimeoutMilliseconds, ca } = options
  const session = new Bun.FetchSession({ proxy: false, keepAlive })

  async function post(url: URL, { headers, body }: Posted, signal: AbortSignal) {
    const addresses = await findAllowed(url.hostname, options, signal)
    const request = {
      method: 'POST',
      headers: { ...headers, Host: url.host },
      body,
      redirect: 'manual',
      decompress: false,
      session,
      tls: { ...tlsOf(url), ...(ca !== undefined && { ca }) },
      signal,
    } as const
    return exchange(url, addresses, request)
  }

  return async (url, posted) => {
    const timeout = AbortSignal.timeout(timeoutMilliseconds)
    const signal = posted.signal ? AbortSignal.any([timeout, posted.signal]) : timeout
    try {
      return await post(new URL(url), posted, signal)
    } catch (error) {
      if (!timeout.aborted) throw error
      throw new Error(`no answer within ${timeoutMilliseconds / 1_000} s`, { cause: error })
    }
  }
}

const withoutBrackets = (hostname: string) => hostname.replace(/^\[(.*)\]$/, '$1')

/** The certificate is that of the name, not of the address to which the connection goes. */
function tlsOf({ hostname }: URL) {
  const isName = isIP(withoutBrackets(hostname)) === 0
  return { rejectUnauthorized: true, ...(isName && { serverName: hostname }) }
}

async function findAllowed(hostname: string, { resolve, isAllowed }: Options, signal: AbortSignal) {
  const host = withoutBrackets(hostname)
  const family = isIP(host)
  const addresses = family === 0 ? await before(signal, resolve(host)) : [{ address: host, family }]
  if (addresses.length === 0) throw new Error('the host has no address')
  if (addresses.every(({ address }) => isAllowed(address))) return addresses
  throw new Error('the host has an address that is not public')
}

/** A promise, or the failure of `signal`: name servers cannot be told to stop. */
function before<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    work.then(resolve, reject)
  })
}

/** @throws Error when none of the addresses answers */
async function exchange(
  url: URL,
  addresses: readonly LookupAddress[],
  request: BunFetchRequestInit,
) {
  const [first, ...others] = addresses
  const direct = new URL(url)
  if (first) direct.hostname = first.family === 6 ? `[${first.address}]` : first.address
  try {
    const response = await fetch(direct, request)
    const retryAfter = response.headers.get('retry-after')
    return { status: response.status, retryAfter, text: await readStart(response) }
  } catch (error) {
    if (others.length > 0 && !isConnected(error)) return exchange(url, others, request)
    throw new Error(reasonOf(error), { cause: error })
  }
}

// The message of the runtime names the address, and tells programmers what to do.
const reasonOf = (error: unknown) => (error as { code?: string }).code ?? (error as Error).message

const refused = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'FailedToOpenSocket'])
const isConnected = (error: unknown) => !refused.has((error as { code?: string }).code ?? '')

// The status already says what became of it, so a body that breaks off is taken as it is.
async function readStart({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length >= readBytes) break
    }
  } catch {}
  return text.slice(0, readBytes).replaceAll('\0', '').toWellFormed()
}
