import type { Clock } from '../lib/clock.ts'

export type DeliveryState = ReturnType<typeof createDeliveryState>

/** The last success and the last failure of a delivery channel since the start; times in ms since the epoch. */
export function createDeliveryState(clock: Clock) {
  let sentAt: number | undefined
  let failure: { at: number; reason: string } | undefined

  return {
    sent(): void {
      sentAt = clock.now()
    },
    /** @param reason must not contain addresses */
    failed(reason: string): void {
      failure = { at: clock.now(), reason }
    },
    read: () => ({ sentAt, failure }),
  }
}
