import { type Clock, retryAfterMilliseconds } from '../lib/clock.ts'
import { RetryLater } from '../lib/errors.ts'
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

/** A push service's response; `text` is the start of the body. */
export type Answer = { host: string; status: number; retryAfter: string | null; text: string }

/** Posts once and does not follow redirects.
 *  @throws RetryLater when no response came in time */
export async function post(url: string, request: Post): Promise<Answer> {
  const { headers, body, timeoutMilliseconds = usualTimeoutMilliseconds, signal } = request
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
    throw new RetryLater(`${host}: ${reason}`, 0, { cause: error })
  }
}

/** Derives the outcome of a message from the response.
 *  @throws RetryLater when the service is busy or broken · PushRefused for every other failure */
export function outcomeOf(answer: Answer, clock: Clock): 'delivered' | 'gone' {
  const { status, retryAfter } = answer
  if (status >= 200 && status < 300) return 'delivered'
  if (status === 404 || status === 410) return 'gone'
  const reason = reasonOf(answer)
  if (status < 500 && status !== 429 && status !== 408) throw new PushRefused(reason)
  throw new RetryLater(reason, retryAfterMilliseconds(retryAfter, clock.now()))
}

export function reasonOf({ host, status, text }: Answer): string {
  return `${host} answered ${status} ${text.slice(0, longestReason)}`.trimEnd()
}

// Reads only the start, because a server may send without end. The status already determines the outcome, so a truncated
// body is accepted.
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
