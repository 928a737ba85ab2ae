import { ApiError, SessionEndedError } from '../../../client/src/errors.ts'
import { fill, uiTexts } from './texts.ts'

export type ErrorText = {
  title: string
  text: string
  retryAfterSeconds?: number | undefined
  requestId?: string | undefined
}

/** The interval of retries while the network is down. */
const offlineSeconds = 5

/** The text of an error for the user. */
export function errorText(error: unknown): ErrorText {
  const texts = uiTexts.value
  if (error instanceof SessionEndedError) return { title: texts.failedTitle, text: texts.ended }
  if (!(error instanceof ApiError)) {
    return { title: texts.offlineTitle, text: texts.offline, retryAfterSeconds: offlineSeconds }
  }
  const { retryAfterSeconds, requestId } = error
  if (error.code === 'rate_limited') {
    const text = fill(texts.limited, { seconds: retryAfterSeconds ?? 1 })
    return { title: texts.limitedTitle, text, retryAfterSeconds }
  }
  const details = Object.values(error.details ?? {}).join(', ')
  const text = details === '' ? error.message : `${error.message} (${details})`
  return { title: texts.failedTitle, text, requestId }
}

/** Error messages by field; empty when the error is not about a field. */
export function fieldProblems(error: unknown): Record<string, string> {
  return (error instanceof ApiError && error.details) || {}
}
