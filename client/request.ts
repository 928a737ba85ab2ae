import { ApiError, askedPause } from './api-error.ts'
import type { Call, Exchange } from './exchange.ts'
import type { Session } from './session.ts'
import { sleep, type Timers } from './timers.ts'

/** A caller waits no longer than this for a service that asks for time. */
const patienceMilliseconds = 30_000

export type RequestOptions = Pick<Call, 'body' | 'query' | 'signal'>
export type Request = ReturnType<typeof createRequest>

type RequesterOptions = { exchange: Exchange; session: Session; timers: Timers }

/** Requests as whoever is logged in; what may be repeated without harm is, when the service says after what time. */
export function createRequest({ exchange, session, timers }: RequesterOptions) {
  /** @param T what the service answers to it
   *  @throws ApiError for a refusal */
  return async function request<T>(
    method: string,
    path: string,
    options: RequestOptions = {},
  ): Promise<T> {
    const call = { method, path, ...options }
    const ask = () => askAsUser(exchange, session, call)
    const answer = isRepeatable(call) ? patiently(ask, timers, call.signal) : ask()
    return (await answer) as T // the contract's word for it, as with every typed client
  }
}

/** A token that the service no longer takes is renewed, once: a refusal then means what it says. */
async function askAsUser(exchange: Exchange, session: Session, call: Call): Promise<unknown> {
  const token = await session.token()
  try {
    return await exchange({ ...call, token })
  } catch (error) {
    if (token === undefined || !isUnauthorized(error)) throw error
    const renewed = await session.renew(token)
    if (renewed === undefined) throw error
    return exchange({ ...call, token: renewed })
  }
}

async function patiently(ask: () => Promise<unknown>, timers: Timers, signal?: AbortSignal) {
  const deadline = timers.now() + patienceMilliseconds
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const pause = askedPause(error)
      if (pause === undefined || timers.now() + pause > deadline) throw error
      await sleep(timers, pause, signal)
    }
  }
}

function isUnauthorized(error: unknown) {
  return error instanceof ApiError && error.code === 'unauthorized'
}

/** Reading changes nothing; a `client_id` makes a second sending the same as the first. */
function isRepeatable({ method, body }: Call) {
  if (method === 'GET') return true
  return typeof body === 'object' && body !== null && 'client_id' in body && !!body.client_id
}
