import { type Clock, retryAfterMilliseconds } from '../../lib/clock.ts'
import { RetryLater } from '../../lib/errors.ts'
import { type Answer, exchange, within } from '../exchange.ts'
import { PushRefused } from './pusher.ts'

const usualTimeoutMilliseconds = 10_000
const longestAnswer = 65_536
const longestReason = 200

type Post = {
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer>
  timeoutMilliseconds?: number | undefined
  signal?: AbortSignal | undefined
}

export type PushAnswer = Answer & { host: string }

/** @throws RetryLater when no response came in time */
export async function post(url: string, request: Post): Promise<PushAnswer> {
  const { headers, body, timeoutMilliseconds = usualTimeoutMilliseconds, signal } = request
  const { host } = new URL(url)
  try {
    const answer = await within(timeoutMilliseconds, signal, (signal) =>
      exchange(url, { method: 'POST', headers, body, signal }, longestAnswer),
    )
    return { host, ...answer }
  } catch (error) {
    throw new RetryLater(`${host}: ${(error as Error).message}`, 0, { cause: error })
  }
}

/** @throws RetryLater when the service is busy or broken · PushRefused for every other failure */
export function outcomeOf(answer: PushAnswer, clock: Clock): 'delivered' | 'gone' {
  const { status, retryAfter } = answer
  if (status >= 200 && status < 300) return 'delivered'
  if (status === 404 || status === 410) return 'gone'
  const reason = reasonOf(answer)
  if (status < 500 && status !== 429 && status !== 408) throw new PushRefused(reason)
  throw new RetryLater(reason, retryAfterMilliseconds(retryAfter, clock.now()))
}

export function reasonOf({ host, status, text }: PushAnswer): string {
  return `${host} answered ${status} ${text.slice(0, longestReason)}`.trimEnd()
}
