import { statfsSync } from 'node:fs'
import type { Clock } from './clock.ts'

const rememberedMilliseconds = 1_000

/** How much room the disk under a path has for us, in bytes. */
export function freeBytesAt(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** Whether less than `minBytes` are free; the disk is asked once a second at most. */
export function createDiskWatch(clock: Clock, minBytes: number, freeBytes: () => number) {
  let isShort = false
  let askedAt = Number.NEGATIVE_INFINITY
  return (): boolean => {
    if (minBytes === 0 || clock.now() - askedAt < rememberedMilliseconds) return isShort
    askedAt = clock.now()
    isShort = freeBytes() < minBytes
    return isShort
  }
}
