import { hash, timingSafeEqual } from 'node:crypto'

export const sha256 = (text: string): string => hash('sha256', text)

/** Compares texts in a time that reveals nothing of the right one. */
export const isSameSecret = (given: string, right: string): boolean =>
  timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(right)))
