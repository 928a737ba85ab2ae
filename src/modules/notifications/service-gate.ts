/** Of the places that the jobs of a kind have. */
const placesPerService = 24
const placesOfSlowService = 2
const againMilliseconds = 500
const againForSlowMilliseconds = 5_000

type Entry = { leave(isWell: boolean): void } | { againAfterMilliseconds: number }

/** Shares the places of a kind of pushes among the push services: one may take most of them, but one that fails or hangs
 *  only two until it is well again, so that it holds up nobody else. */
export function createServiceGate() {
  const inside = new Map<string, number>()
  const slow = new Set<string>()

  return {
    /** @returns how to leave, telling whether the service was well; or when to come again */
    enter(service: string): Entry {
      const before = inside.get(service) ?? 0
      const isSlow = slow.has(service)
      if (before >= (isSlow ? placesOfSlowService : placesPerService)) {
        return { againAfterMilliseconds: isSlow ? againForSlowMilliseconds : againMilliseconds }
      }
      inside.set(service, before + 1)
      return {
        leave(isWell) {
          const left = (inside.get(service) ?? 1) - 1
          if (left > 0) inside.set(service, left)
          else inside.delete(service)
          if (isWell) slow.delete(service)
          else slow.add(service)
        },
      }
    },
  }
}
