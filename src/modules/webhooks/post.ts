import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'

const usualTimeoutMilliseconds = 15_000
const readBytes = 1_024
const idleMilliseconds = 15_000
/** Connections that are kept for the next delivery to an address. */
const keptConnections = 4

/** Every address of a host. */
export type ResolveHost = (host: string) => Promise<readonly LookupAddress[]>
export const resolveHost: ResolveHost = (host) => lookup(host, { all: true })

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

/** Posts to addresses that were checked. Names are resolved for each request and the connection goes to what was found, so
 *  that a name server cannot answer otherwise in between. Redirects are answers like others; proxies of the environment
 *  are passed over: they would resolve the name once more.
 *  @throws Error that says why no answer came */
export function createPost(options: Options): Post {
  const { timeoutMilliseconds = usualTimeoutMilliseconds } = options
  const clientOf = createClients(options.ca)

  async function post(url: string, { headers, body }: Posted, signal: AbortSignal) {
    const { protocol, hostname, host, port, pathname, search } = new URL(url)
    const bareHost = hostname.replace(/^\[(.*)\]$/, '$1')
    const addresses = await before(signal, findAllowed(bareHost, options))
    const { request, agent } = clientOf(protocol)
    const order = {
      ...pinned(addresses),
      agent,
      host: bareHost,
      port,
      path: pathname + search,
      headers: { ...headers, Host: host, 'Content-Length': Buffer.byteLength(body) },
      method: 'POST',
      signal,
    }
    return exchange(request, order, body)
  }

  return async (url, posted) => {
    const timeout = AbortSignal.timeout(timeoutMilliseconds)
    const signal = posted.signal ? AbortSignal.any([timeout, posted.signal]) : timeout
    try {
      return await post(url, posted, signal)
    } catch (error) {
      if (!timeout.aborted) throw error
      throw new Error(`no answer within ${timeoutMilliseconds / 1_000} s`, { cause: error })
    }
  }
}

/** For each protocol how to ask, over connections that are kept for a while. */
function createClients(ca: string | undefined) {
  const kept = { keepAlive: true, maxFreeSockets: keptConnections, timeout: idleMilliseconds }
  const trust = { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }
  const plain = { request: http.request, agent: new http.Agent(kept) }
  const secure = { request: https.request, agent: new https.Agent({ ...kept, ...trust }) }
  separateByAddresses(plain.agent)
  separateByAddresses(secure.agent)
  return (protocol: string) => (protocol === 'http:' ? plain : secure)
}

/** What connects to these addresses and no others. */
function pinned(addresses: readonly LookupAddress[]) {
  const known: LookupAddress[] = [...addresses]
  const find: NonNullable<http.RequestOptions['lookup']> = (_host, { all }, found) => {
    const [first] = known
    if (all) found(null, known)
    else if (first) found(null, first.address, first.family)
  }
  return { lookup: find, addresses: known.map(({ address }) => address).join() }
}

// A connection that was kept serves those requests alone that would go to the same addresses.
function separateByAddresses(agent: http.Agent) {
  const nameOf = agent.getName.bind(agent)
  agent.getName = (options) =>
    `${nameOf(options)}:${(options as { addresses?: string } | undefined)?.addresses}`
}

async function findAllowed(host: string, { resolve, isAllowed }: Options) {
  const family = isIP(host)
  const addresses = family === 0 ? await resolve(host) : [{ address: host, family }]
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

async function exchange(request: typeof http.request, order: http.RequestOptions, body: string) {
  const response = await send(request, order, body)
  const { statusCode: status = 0, headers } = response
  const retryAfter = headers['retry-after'] ?? null
  return { status, retryAfter, text: await readStart(response) }
}

// A kept connection that the other side has closed meanwhile says nothing about this request.
function send(request: typeof http.request, order: http.RequestOptions, body: string) {
  return new Promise<http.IncomingMessage>((resolve, reject) => {
    let isAnswered = false
    const sent = request(order, (response) => {
      isAnswered = true
      resolve(response)
    })
    sent.on('error', (error: Error & { code?: string }) => {
      const isStale = sent.reusedSocket && error.code === 'ECONNRESET' && !isAnswered
      if (isStale) resolve(send(request, order, body))
      else reject(error)
    })
    sent.end(body)
  })
}

// The status already says what became of it, so a body that breaks off is taken as it is.
async function readStart(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= readBytes) break
    }
  } catch {}
  const start = Buffer.concat(chunks).subarray(0, readBytes)
  return new TextDecoder().decode(start).replaceAll('\0', '')
}
