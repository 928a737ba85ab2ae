import type {
  Answer,
  CursorPageOf,
  Input,
  ListRoute,
  PageOf,
  PageRoute,
  Route,
} from './contract.ts'
import {
  AbortError,
  ApiError,
  ClosedError,
  errorOf,
  NetworkError,
  retryAfterMilliseconds,
  SessionEndedError,
  TimeoutError,
} from './errors.ts'
import type { Platform } from './platform.ts'
import { type FileBody, sendFile, uploadMilliseconds } from './upload.ts'
import { linkSignals, reasonOf, sleep, unlessAborted } from './waiting.ts'

const requestMilliseconds = 30_000
const longestWait = 30_000

export type RequestOptions = {
  /** For example `x-idempotency-key`, with which a repeated call has no further effect. */
  headers?: Record<string, string> | undefined
  signal?: AbortSignal | undefined
  /** Milliseconds until a `TimeoutError`: 30,000 by default, for an upload without any progress. */
  timeout?: number | undefined
  /** False to fail at once where the service asks for a pause; by default the client waits for up to 30 seconds. */
  retry?: boolean | undefined
}

type QueryValues = Record<string, string | number | boolean | null | undefined>
export type HttpRequest = RequestOptions & {
  /** Method and path; `params` replace the names in braces. */
  route: string
  params?: Record<string, string> | undefined
  query?: QueryValues | undefined
  body?: unknown
  file?: FileBody | undefined
  token?: string | undefined
  /** A browser completes the request even when the page is left. */
  outlivesPage?: boolean
}

/** Sends one request and reads its response, both as JSON.
 *  @throws ApiError · NetworkError · TimeoutError · AbortError */
export type HttpTransport = (request: HttpRequest) => Promise<unknown>

export function createHttpTransport(
  platform: Platform,
  baseUrl: string,
  language: string | (() => string) | undefined,
): HttpTransport {
  function initOf({ method, request, signal }: Init) {
    const { body, headers, token, outlivesPage } = request
    const own: Record<string, string> = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(language !== undefined && {
        'accept-language': typeof language === 'string' ? language : language(),
      }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    return {
      method,
      signal,
      headers: { ...own, ...headers },
      ...(outlivesPage && { keepalive: true }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
  }

  return async (request) => {
    const { route, params, query, file, signal } = request
    if (signal?.aborted) throw new AbortError(reasonOf(signal))
    const [method = '', path = ''] = route.split(' ')
    const url = baseUrl + pathOf(path, params) + queryString(query)
    const deadline = linkSignals([signal], request.timeout ?? timeoutOf(platform, file))
    const init = initOf({ method, request, signal: deadline.signal })
    try {
      const answer = await (file
        ? sendFile(platform, url, { ...init, ...file, onMoved: deadline.start })
        : platform.fetch(url, init))
      return await read(answer)
    } catch (error) {
      throw failureOf(error, deadline.isOver(), signal)
    } finally {
      deadline.release()
    }
  }
}

type Init = { method: string; request: HttpRequest; signal: AbortSignal }

function failureOf(error: unknown, isOver: boolean, signal: AbortSignal | undefined) {
  if (error instanceof ApiError || error instanceof NetworkError) return error
  if (isOver) return new TimeoutError()
  if (signal?.aborted) return new AbortError(reasonOf(signal))
  return new NetworkError('the service could not be reached', { cause: error })
}

async function read(answer: Response): Promise<unknown> {
  if (!answer.ok) throw await errorOf(answer)
  const text = await answer.text()
  return text === '' ? undefined : JSON.parse(text)
}

const timeoutOf = (platform: Platform, file: FileBody | undefined) =>
  file ? uploadMilliseconds(platform, file, requestMilliseconds) : requestMilliseconds

function pathOf(path: string, params: Record<string, string> = {}) {
  return path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(params[name] ?? ''))
}

// React Native's URLSearchParams is read-only.
function queryString(query: QueryValues = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const pairs = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

type Options<R extends Route> = Input<R> & RequestOptions
/** The options of `request` after the route, optional when an operation needs none. */
export type RequestArguments<R extends Route> =
  Record<string, never> extends Input<R> ? [options?: Options<R>] : [options: Options<R>]

/** Sends the request of an operation: `request('GET /v1/users/me')`.
 *  @throws ApiError for a refusal */
export type Request = {
  <R extends ListRoute>(route: R, options: Options<R> & CursorForm): Promise<CursorPageOf<R>>
  <R extends PageRoute>(
    route: R,
    ...[options]: Record<string, never> extends Input<R>
      ? [options?: Options<R> & PageForm]
      : [options: Options<R> & PageForm]
  ): Promise<PageOf<R>>
  <R extends Route>(route: R, ...[options]: RequestArguments<R>): Promise<Answer<R>>
  /** For functions that take any route. */
  <R extends Route>(route: R, options: Options<R>): Promise<Answer<R>>
}
type CursorForm = { query: { limit: number } | { cursor: string } }
type PageForm = { query?: { limit?: undefined; cursor?: undefined } }

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
    const mayRepeat = request.retry !== false && isRepeatable(request)
    const pause = mayRepeat ? retryAfterMilliseconds(error) : undefined
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
        if (login.aborted) throw new SessionEndedError()
        throw request.signal?.aborted ? new AbortError(reasonOf(request.signal)) : error
      })
      .finally(release)
  }
}

/** With a key the service recognises the repetition. */
function isRepeatable({ route, body, headers = {} }: HttpRequest) {
  const { client_id } = (body ?? {}) as { client_id?: unknown }
  const names = Object.keys(headers).join()
  return Boolean(client_id) || /^(GET|PUT|DELETE)|x-idempotency-key/i.test(route + names)
}
