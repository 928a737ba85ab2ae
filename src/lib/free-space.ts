import { statfsSync } from 'node:fs'
import type { Clock } from './clock.ts'

const rememberedMilliseconds = 1_000

export function freeBytesAt(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** Whether less than `minBytes` are free; checks the disk at most once a second. */
export function createDiskWatch(clock: Clock, minBytes: number, freeBytes: () => number) {
  let isShort = false
  let askedAt = Number.NEGATIVE_INFINITY
  return (): boolean => {
    const now = clock.now()
    // The clock may have been set back.
    if (minBytes === 0 || Math.abs(now - askedAt) < rememberedMilliseconds) return isShort
    askedAt = now
    isShort = freeBytes() < minBytes
    return isShort
  }
}
