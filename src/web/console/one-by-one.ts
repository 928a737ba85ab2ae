import { ApiError } from '../../../client/src/errors.ts'

/** Sends a request of a series: when there were too many, waits as long as the service asks.
 *  @param signal ends the wait
 *  @throws any other error of the request · the last one after an abort */
export async function oneByOne<T>(send: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await send()
    } catch (error) {
      const isLimited = error instanceof ApiError && error.code === 'rate_limited'
      if (!isLimited || signal?.aborted) throw error
      await pause(error.retryAfterSeconds ?? 1, signal)
    }
  }
}

const pause = (seconds: number, signal: AbortSignal | undefined) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, seconds * 1_000)
    signal?.addEventListener('abort', () => resolve(), { once: true })
  })
