import type { Answer, Input, Route } from './contract.ts'
import {
  ApiError,
  ClosedError,
  errorOf,
  retryAfterMilliseconds,
  SessionEndedError,
} from './errors.ts'
import type { Platform } from './platform.ts'
import { type Progress, sendFile } from './upload.ts'
import { linkSignals, reasonOf, sleep, unlessAborted } from './waiting.ts'

const requestMilliseconds = 30_000
const longestWait = 30_000

type QueryValues = Record<string, string | number | boolean | null | undefined>
export type HttpRequest = {
  /** Method and path; `params` replace the names in braces. */
  route: string
  params?: Record<string, string> | undefined
  query?: QueryValues | undefined
  body?: unknown
  /** Timeout of the response; unlimited for a file. */
  milliseconds?: number

  file?: { bytes: Blob; onProgress?: Progress | undefined } | undefined
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
  token?: string | undefined
  /** A browser completes the request even when the page is left. */
  outlivesPage?: boolean
}

/** Sends one request and reads its response, both as JSON.
 *  @throws ApiError for a refusal; the error of `fetch` when there is no network or no response */
export type HttpTransport = (request: HttpRequest) => Promise<unknown>

export function createHttpTransport(
  { fetch }: Platform,
  baseUrl: string,
  language: string | undefined,
): HttpTransport {
  function headersOf({ body, headers, token }: HttpRequest): Record<string, string> {
    return {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(language !== undefined && { 'accept-language': language }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    }
  }

  return async (request) => {
    const { route, params, query, body, file, signal, outlivesPage } = request
    if (signal?.aborted) throw reasonOf(signal)
    const [method = '', path = ''] = route.split(' ')
    const url = baseUrl + pathOf(path, params) + queryString(query)
    const milliseconds = file ? undefined : (request.milliseconds ?? requestMilliseconds)
    const deadline = linkSignals([signal], milliseconds)
    const sent = {
      method,
      signal: deadline.signal,
      headers: headersOf(request),
      ...(outlivesPage && { keepalive: true }),
    }
    try {
      const answer = await (file
        ? sendFile(fetch, url, { ...sent, ...file })
        : fetch(url, { ...sent, ...(body !== undefined && { body: JSON.stringify(body) }) }))
      return await read(answer)
    } finally {
      deadline.release()
    }
  }
}

async function read(answer: Response): Promise<unknown> {
  if (!answer.ok) throw await errorOf(answer)
  const text = await answer.text()
  return text === '' ? undefined : JSON.parse(text)
}

function pathOf(path: string, params: Record<string, string> = {}) {
  return path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(params[name] ?? ''))
}

// React Native's URLSearchParams is read-only.
function queryString(query: QueryValues = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const pairs = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

type Options<R extends Route> = Input<R> & { signal?: AbortSignal | undefined }
/** The options of `request` after the route, optional when an operation needs none. */
export type RequestArguments<R extends Route> =
  Record<string, never> extends Input<R> ? [options?: Options<R>] : [options: Options<R>]

/** Sends the request of an operation: `request('GET /v1/users/me')`.
 *  @throws ApiError for a refusal */
export type Request = <R extends Route>(
  route: R,
  ...[options]: RequestArguments<R>
) => Promise<Answer<R>>

type Bounded = HttpRequest & { signal: AbortSignal }
type Sender = {
  /** Returns a valid access token, and a new one after a refusal. */
  token: () => Promise<string | undefined>
  renew: (refused: string) => Promise<string | undefined>
  signal: () => AbortSignal
  closing: AbortSignal
}

/** Sends requests as the logged-in user. Repeatable requests are retried when the service says how long to wait. */
export function createRequest({ timers }: Platform, http: HttpTransport, sender: Sender) {
  // A refused token is renewed once; a second refusal is final.
  async function sendAsUser(request: Bounded): Promise<unknown> {
    const { signal } = request
    const token = await unlessAborted(sender.token(), signal)
    try {
      return await http({ ...request, token })
    } catch (error) {
      const isRefused = error instanceof ApiError && error.code === 'unauthorized'
      const isRenewable = isRefused && token !== undefined
      const renewed = isRenewable ? await unlessAborted(sender.renew(token), signal) : undefined
      if (renewed === undefined) throw error
      return http({ ...request, token: renewed })
    }
  }

  /** @throws the error when a retry cannot help, or would come too late */
  async function waitBeforeRetry(error: unknown, request: Bounded, deadline: number) {
    const pause = isRepeatable(request) ? retryAfterMilliseconds(error) : undefined
    if (pause === undefined || timers.now() + pause > deadline) throw error
    await sleep(timers, pause, request.signal)
  }

  async function retryWhenAsked(request: Bounded): Promise<unknown> {
    const deadline = timers.now() + longestWait
    for (;;) {
      try {
        return await sendAsUser(request)
      } catch (error) {
        await waitBeforeRetry(error, request, deadline)
      }
    }
  }

  return async (request: HttpRequest): Promise<unknown> => {
    const login = sender.signal()
    const { signal, release } = linkSignals([request.signal, login, sender.closing])
    return retryWhenAsked({ ...request, signal })
      .catch((error) => {
        // React Native's signals have no reason.
        if (sender.closing.aborted) throw new ClosedError()
        throw login.aborted ? new SessionEndedError() : error
      })
      .finally(release)
  }
}

/** With a `client_id` the service recognises the repetition. */
function isRepeatable({ route, body }: HttpRequest) {
  if (/^(GET|PUT|DELETE)/.test(route)) return true
  return typeof body === 'object' && body !== null && 'client_id' in body && !!body.client_id
}
