import type { Clock } from './clock.ts'

export type DeliveryState = ReturnType<typeof createDeliveryState>

/** How sending went lately, since the start; times in ms since the epoch. */
export function createDeliveryState(clock: Clock) {
  let sentAt: number | undefined
  let failure: { at: number; reason: string } | undefined

  return {
    sent(): void {
      sentAt = clock.now()
    },
    /** @param reason without addresses */
    failed(reason: string): void {
      failure = { at: clock.now(), reason }
    },
    read: () => ({ sentAt, failure }),
  }
}
