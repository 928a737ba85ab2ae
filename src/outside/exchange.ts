import { hostnameOf, mustBeAnswered } from './names.ts'

export type Answer = { status: number; retryAfter: string | null; text: string }

export type Limited = BunFetchRequestInit & { signal: AbortSignal }

export async function exchange(url: string | URL, request: Limited, bytes: number) {
  const response = await fetchNamed(url, { ...request, redirect: 'manual' })
  const retryAfter = response.headers.get('retry-after')
  const text = await readStart(response, bytes)
  return { status: response.status, retryAfter, text } satisfies Answer
}

/** The runtime sends through this proxy, which resolves the names. */
const isProxied = Object.keys(Bun.env).some((name) => /^https?_proxy$/i.test(name))

/** Like `fetch`, but silent name servers block no thread. */
export async function fetchNamed(url: string | URL, request: Limited): Promise<Response> {
  if (!isProxied) await unlessAborted(request.signal, mustBeAnswered(hostnameOf(url)))
  return fetch(url, request).catch((error: Error) => {
    // The runtime adds advice for programmers, which operators would read.
    const [message = ''] = error.message.split(' For more information, pass ')
    if (message !== error.message) error.message = message
    throw error
  })
}

/** @throws Error `no answer within …`, or the error of `work` */
export async function within<T>(
  milliseconds: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = AbortSignal.timeout(milliseconds)
  try {
    return await work(signal ? AbortSignal.any([timeout, signal]) : timeout)
  } catch (error) {
    if (!timeout.aborted) throw error
    throw new Error(`no answer within ${milliseconds / 1_000} s`, { cause: error })
  }
}

/** Rejects when `signal` aborts, for work that cannot be cancelled. The signal may last as long as the process. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const end = () => reject(signal.reason)
  signal.addEventListener('abort', end)
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', end)
  }
}

// A server may send an endless body. Only the status matters, so a truncated body is accepted.
async function readStart({ body }: Response, bytes: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length >= bytes) break
    }
  } catch {}
  return text.slice(0, bytes)
}
