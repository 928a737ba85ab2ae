import { ApiError, apiErrorOf, retryAfterMilliseconds } from './errors.ts'
import { type Platform, sleep } from './platform.ts'
import type { Session } from './session.ts'

const answerMilliseconds = 30_000
const longestWait = 30_000

type HttpRequest = {
  method: string
  path: string
  body?: unknown
  query?: Record<string, string | number | undefined> | undefined
  signal?: AbortSignal | undefined
  token?: string | undefined
}

/** Sends one request and reads its answer, both as JSON.
 *  @throws ApiError for a refusal; what `fetch` throws when there is no network or no answer */
export type HttpTransport = (request: HttpRequest) => Promise<unknown>

export function createHttpTransport(
  fetch: Platform['fetch'],
  baseUrl: string,
  language: string | undefined,
): HttpTransport {
  return async ({ method, path, body, query, signal, token }) => {
    const deadline = AbortSignal.timeout(answerMilliseconds)
    const answer = await fetch(baseUrl + path + queryString(query), {
      method,
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(language !== undefined && { 'accept-language': language }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw await apiErrorOf(answer)
    const text = await answer.text()
    return text === '' ? undefined : JSON.parse(text)
  }
}

function queryString(query: HttpRequest['query'] = {}) {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) given.set(name, String(value))
  }
  return given.size === 0 ? '' : `?${given}`
}

export type RequestOptions = Pick<HttpRequest, 'body' | 'query' | 'signal'>
export type Request = ReturnType<typeof createRequest>

/** Sends requests as whoever is logged in. What is safe to repeat is sent again when the service says how long to wait. */
export function createRequest({ timers }: Platform, http: HttpTransport, session: Session) {
  // A refused token is renewed once: a second refusal means what it says.
  async function sendAsUser(request: HttpRequest): Promise<unknown> {
    const token = await session.token()
    try {
      return await http({ ...request, token })
    } catch (error) {
      const isRefused = error instanceof ApiError && error.code === 'unauthorized'
      const renewed = isRefused && token !== undefined ? await session.renew(token) : undefined
      if (renewed === undefined) throw error
      return http({ ...request, token: renewed })
    }
  }

  async function retryWhenAsked(request: HttpRequest): Promise<unknown> {
    const deadline = timers.now() + longestWait
    for (;;) {
      try {
        return await sendAsUser(request)
      } catch (error) {
        const pause = retryAfterMilliseconds(error)
        if (pause === undefined || timers.now() + pause > deadline) throw error
        await sleep(timers, pause, request.signal)
      }
    }
  }

  /** @param T what the service answers to it
   *  @throws ApiError for a refusal */
  return async function request<T>(method: string, path: string, options: RequestOptions = {}) {
    const sent = { method, path, ...options }
    const answer = await (isRepeatable(sent) ? retryWhenAsked(sent) : sendAsUser(sent))
    return answer as T // the contract's word for it, as with every typed client
  }
}

/** Reading changes nothing; with a `client_id` the second sending is the same as the first. */
function isRepeatable({ method, body }: HttpRequest) {
  if (method === 'GET') return true
  return typeof body === 'object' && body !== null && 'client_id' in body && !!body.client_id
}
