import type { Timers } from './platform.ts'

/** @throws the signal's reason when it is aborted before the time is over */
export function sleep(timers: Timers, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel()
      reject(reasonOf(signal))
    }
    const cancel = timers.after(milliseconds, () => {
      forget()
      resolve()
    })
    const forget = onAbort(signal, abort)
  })
}

/** Resolves like `work`, but rejects as soon as the signal is aborted. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onAbort(signal, () => reject(reasonOf(signal)))
    work.then(resolve, reject).finally(forget)
  })
}

/** A signal that is aborted with any of the others, or when the time is over.
 *  Choice: `AbortSignal.any` and `timeout` are too recent for three-year-old browsers, and missing in React Native. */
export function linkSignals(signals: (AbortSignal | undefined)[], milliseconds?: number) {
  const controller = new AbortController()
  let isOver = false
  let isReleased = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const start = () => {
    clearTimeout(timer)
    if (isReleased || milliseconds === undefined) return
    timer = setTimeout(() => {
      isOver = true
      controller.abort()
    }, milliseconds)
  }
  start()
  const forgets = signals.map((signal) => onAbort(signal, () => controller.abort(reasonOf(signal))))

  return {
    signal: controller.signal,
    /** Whether the time is over. */
    isOver: () => isOver,
    /** Starts the time again, unless it is released: the last progress of an upload may come later. */
    start,
    release() {
      clearTimeout(timer)
      isReleased = true
      for (const forget of forgets) forget()
    },
  }
}

const listenersOf = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls `listener` when the signal is aborted. The signal has one listener for all: Node 20 takes more than ten for a leak.
 *  @returns a function that removes the listener */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => {}
  if (signal.aborted) listener()
  const all = listenersOf.get(signal) ?? new Set()
  const callAll = () => {
    for (const call of all) call()
  }
  if (!listenersOf.has(signal)) signal.addEventListener('abort', callAll)
  listenersOf.set(signal, all.add(listener))
  return () => all.delete(listener)
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
