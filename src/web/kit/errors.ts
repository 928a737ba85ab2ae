import { ApiError, SessionEndedError } from '../../../client/src/errors.ts'
import { duration } from './format.ts'
import { fill, texts } from './texts.tsx'

export type ErrorText = {
  title: string
  text: string
  retryAfterSeconds?: number | undefined
  requestId?: string | undefined
}

/** The interval of retries while the network is down. */
const offlineSeconds = 5

export function errorText(error: unknown): ErrorText {
  const words = texts.kit
  if (error instanceof SessionEndedError) return { title: words.failedTitle, text: words.ended }
  if (!(error instanceof ApiError)) {
    if (!isOfNetwork(error)) return { title: words.faultTitle, text: words.fault }
    return { title: words.offlineTitle, text: words.offline, retryAfterSeconds: offlineSeconds }
  }
  const { retryAfterSeconds, requestId } = error
  if (error.code === 'rate_limited') {
    const text = fill(words.limited, { duration: duration(retryAfterSeconds ?? 1) })
    return { title: words.limitedTitle, text, retryAfterSeconds }
  }
  const title = error.code === 'not_found' ? words.missingTitle : words.failedTitle
  const details = Object.values(error.details ?? {}).join(', ')
  const text = details === '' ? error.message : `${error.message} (${details})`
  return { title, text, requestId }
}

/** Anything else is a mistake of the page itself. */
export function isOfNetwork(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { name, message } = error
  if (name === 'NetworkError' || name === 'TimeoutError' || name === 'AbortError') return true
  // A part of the page that could not be loaded: browsers name it by its text only.
  if (name === 'TypeError') return /dynamically imported module|module script failed/i.test(message)
  return /not from the service$/.test(message)
}

/** Error messages by field; empty when the error is not about a field. */
export function fieldProblems(error: unknown): Record<string, string> {
  return (error instanceof ApiError && error.details) || {}
}
