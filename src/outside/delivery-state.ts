import { type Clock, hour } from '../lib/clock.ts'

export type DeliveryState = ReturnType<typeof createDeliveryState>

/** The last success and the last failure of a delivery channel since the start; times in ms since the epoch. */
export function createDeliveryState(clock: Clock) {
  let sentAt: number | undefined
  let failure: { at: number; reason: string } | undefined

  return {
    sent(): void {
      sentAt = clock.now()
    },
    /** @param reason must not contain addresses
     *  @returns whether the last failure had another reason or is an hour old */
    failed(reason: string): boolean {
      const last = failure
      failure = { at: clock.now(), reason }
      return last?.reason !== reason || failure.at - last.at > hour
    },
    read: () => ({ sentAt, failure }),
  }
}
