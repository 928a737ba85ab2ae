import { apiErrorOf } from './api-error.ts'

const deadlineMilliseconds = 30_000

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type Call = {
  method: string
  path: string
  body?: unknown
  query?: Record<string, string | number | undefined> | undefined
  signal?: AbortSignal | undefined
  token?: string | undefined
}

export type Exchange = (call: Call) => Promise<unknown>

/** One HTTP request and its answer, JSON both.
 *  @throws ApiError for a refusal; what `fetch` throws for a network that is not there or an answer that does not come */
export function createExchange(
  baseUrl: string,
  fetch: Fetch,
  language: string | undefined,
): Exchange {
  return async ({ method, path, body, query, signal, token }) => {
    const deadline = AbortSignal.timeout(deadlineMilliseconds)
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

function queryString(query: Call['query'] = {}) {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) given.set(name, String(value))
  }
  return given.size === 0 ? '' : `?${given}`
}
