import { createHash, timingSafeEqual } from 'node:crypto'

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Compares texts in a time that reveals nothing of the right one. */
export const isSameSecret = (given: string, right: string): boolean =>
  timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(right)))
