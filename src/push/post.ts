import type { Clock } from '../lib/clock.ts'
import { PushPostponed, PushRefused } from './pusher.ts'

export const usualTimeoutMilliseconds = 10_000
const longestRetryAfterMilliseconds = 24 * 3_600_000
const longestAnswer = 65_536
const longestReason = 200

type Post = {
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer>
  timeoutMilliseconds: number
  signal?: AbortSignal | undefined
}

/** What was answered; `text` is the start of the body. */
export type Answer = { host: string; status: number; retryAfter: string | null; text: string }

/** Posts once, to exactly this address: a redirect is an answer like others.
 *  @throws PushPostponed when no answer came in time */
export async function post(url: string, request: Post): Promise<Answer> {
  const { headers, body, timeoutMilliseconds, signal } = request
  const { host } = new URL(url)
  const timeout = AbortSignal.timeout(timeoutMilliseconds)
  const signals = signal ? [timeout, signal] : [timeout]
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body,
      redirect: 'manual',
      signal: AbortSignal.any(signals),
    })
    const retryAfter = response.headers.get('retry-after')
    return { host, status: response.status, retryAfter, text: await readStart(response) }
  } catch (error) {
    const reason = timeout.aborted
      ? `no answer within ${timeoutMilliseconds} ms`
      : (error as Error).message
    throw new PushPostponed(`${host}: ${reason}`, { cause: error })
  }
}

/** The error that an unsuccessful answer amounts to: to be tried again when the service is busy or broken. */
export function failureOf(answer: Answer, clock: Clock): PushPostponed | PushRefused {
  const { host, status, retryAfter, text } = answer
  const reason = `${host} answered ${status} ${text.slice(0, longestReason)}`.trimEnd()
  if (status < 500 && status !== 429 && status !== 408) return new PushRefused(reason)
  const milliseconds = retryAfter === null ? undefined : retryAfterOf(retryAfter, clock)
  return new PushPostponed(
    reason,
    milliseconds === undefined ? {} : { retryAfterMilliseconds: milliseconds },
  )
}

// Seconds or a date (RFC 9110, 10.2.3).
function retryAfterOf(text: string, clock: Clock) {
  const milliseconds = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : Date.parse(text.endsWith(' GMT') ? text : '') - clock.now()
  if (Number.isNaN(milliseconds)) return undefined
  return Math.min(Math.max(milliseconds, 0), longestRetryAfterMilliseconds)
}

// Nobody needs more than the start, and a server may send without end. The status has said by now what became of the
// message, so what breaks off is taken as it is.
async function readStart({ body }: Response) {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length >= longestAnswer) break
    }
  } catch {}
  return text
}
