import type { Timers } from './platform.ts'

/** @throws the signal's reason when it is aborted before the time is over */
export function sleep(timers: Timers, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel()
      reject(reasonOf(signal))
    }
    const cancel = timers.after(milliseconds, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
  })
}

/** Resolves like `work`, but rejects as soon as the signal is aborted. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(reasonOf(signal))
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** A signal that is aborted with any of the others, or when the time is over.
 *  Choice: `AbortSignal.any` and `timeout` are too recent for three-year-old browsers, and missing in React Native. */
export function linkSignals(signals: (AbortSignal | undefined)[], milliseconds?: number) {
  const controller = new AbortController()
  const abort = () => controller.abort(reasonOf(signals.find((signal) => signal?.aborted)))
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const start = () => {
    clearTimeout(timer)
    if (milliseconds === undefined) return
    timer = setTimeout(() => {
      isOver = true
      controller.abort()
    }, milliseconds)
  }
  start()
  for (const signal of signals) signal?.addEventListener('abort', abort)
  if (signals.some((signal) => signal?.aborted)) abort()

  return {
    signal: controller.signal,
    /** Whether the time is over. */
    isOver: () => isOver,
    /** Starts the time again. */
    start,
    release() {
      clearTimeout(timer)
      for (const signal of signals) signal?.removeEventListener('abort', abort)
    },
  }
}

/** React Native's signals have no reason. */
export function reasonOf(signal: AbortSignal | undefined): unknown {
  return signal?.reason ?? new Error('aborted')
}

/** A promise that is settled from outside. */
export type Deferred<T> = {
  promise: Promise<T>
  resolve: (value: T) => void
  reject: (error: unknown) => void
}

export function deferred<T>(): Deferred<T> {
  const settle = {} as Deferred<T>
  const promise = new Promise<T>((resolve, reject) => Object.assign(settle, { resolve, reject }))
  return Object.assign(settle, { promise })
}

const firstPause = 1_000
const longestPause = 30_000

/** Milliseconds between tries: exponential with full jitter, so that clients that lost a server together do not return
 *  together. */
export function createBackoff(random: () => number) {
  let tries = 0

  return {
    next: (): number => random() * Math.min(longestPause, firstPause * 2 ** tries++),
    reset() {
      tries = 0
    },
  }
}
