import { ApiError, SessionEndedError } from '../../../client/src/errors.ts'
import { fill, words } from './words.ts'

export type ErrorText = {
  title: string
  text: string
  retryAfterSeconds?: number | undefined
  requestId?: string | undefined
}

/** What cannot be reached is tried again this often. */
const offlineSeconds = 5

/** An error in words for the person at the screen. */
export function errorText(error: unknown): ErrorText {
  const say = words.value
  if (error instanceof SessionEndedError) return { title: say.failedTitle, text: say.ended }
  if (!(error instanceof ApiError)) {
    return { title: say.offlineTitle, text: say.offline, retryAfterSeconds: offlineSeconds }
  }
  const { retryAfterSeconds, requestId } = error
  if (error.code === 'rate_limited') {
    const text = fill(say.limited, { seconds: retryAfterSeconds ?? 1 })
    return { title: say.limitedTitle, text, retryAfterSeconds }
  }
  const details = Object.values(error.details ?? {}).join(', ')
  const text = details === '' ? error.message : `${error.message} (${details})`
  return { title: say.failedTitle, text, requestId }
}

/** What is wrong with single fields of a form; empty when no field is to blame. */
export function fieldProblems(error: unknown): Record<string, string> {
  return (error instanceof ApiError && error.details) || {}
}
