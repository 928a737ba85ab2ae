import { Histogram, type Registry } from 'prom-client'
import type { Clock } from '../lib/clock.ts'

const periodMilliseconds = 50
/** A standstill of minutes is told by its first part as well. */
const maxSamples = 1_000

/** Measures how late the event loop comes to what is due, with a timer of its own.
 *  Choice: a histogram, as the runtime's own measure gives quantiles that each reader would reset for the others.
 *  @returns what ends it */
export function watchEventLoop(registry: Registry, clock: Clock): () => void {
  const delay = new Histogram({
    name: 'hostline_event_loop_delay_seconds',
    help: 'How long what is due waits for the event loop.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [registry],
  })
  let last = performance.now()

  return clock.every(periodMilliseconds, () => {
    const now = performance.now()
    const late = Math.max(0, now - last - periodMilliseconds)
    last = now
    delay.observe(late / 1_000)
    // What would have been due meanwhile has waited too: a long standstill is as many samples as fell into it.
    for (let n = 1; n < maxSamples && n * periodMilliseconds < late; n++) {
      delay.observe((late - n * periodMilliseconds) / 1_000)
    }
  })
}
