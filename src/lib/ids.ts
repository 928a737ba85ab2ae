import { decodeTime, encodeTime, incrementBase32, ulid, uuidToULID } from 'ulid'
import type { Clock } from './clock.ts'
import { AppError } from './errors.ts'
import { textProblem } from './text.ts'

/** Creates the next id: a ULID in upper case, greater than every earlier one. */
export type NewId = () => string

/** @param newest a known id of an earlier process: new ids stay above it even if the clock was set back */
export function createIds(clock: Clock, newest?: string): NewId {
  // A random id, because the earlier process may have used the ids right after its newest known one.
  let lastAt = newest === undefined ? -1 : decodeTime(newest) + 1
  let last = newest === undefined ? '' : ulid(lastAt)
  return () => {
    const now = clock.now()
    if (now > lastAt) {
      lastAt = now
      last = ulid(now)
    } else last = incrementBase32(last)
    return last
  }
}

/** The smallest id of a time (ms since the epoch). */
export function firstIdAt(time: number): string {
  return `${encodeTime(Math.max(time, 0), 10)}${'0'.repeat(16)}`
}

export const timeOfId = (id: string): number => decodeTime(id)

const ulidPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The stored form of an id given as a ULID or as the UUID of the same 128 bits, in either case; else undefined. */
export function parseId(text: string): string | undefined {
  if (ulidPattern.test(text)) return text.toUpperCase()
  return uuidPattern.test(text) ? uuidToULID(text) : undefined
}

export function findById<T>(text: string, find: (id: string) => T | undefined): T | undefined {
  const id = parseId(text)
  return id === undefined ? undefined : find(id)
}

/** @throws not_found for an unknown or invalid id */
export function getById<T>(text: string, find: (id: string) => T | undefined): T {
  const found = findById(text, find)
  if (found === undefined) throw new AppError('not_found')
  return found
}

export const externalIdRule = { min: 1, max: 128, noControlCharacters: true }

/** Parses `ext:…`, the form in which the service feed names a person by external id; undefined for any other text. */
export function parseExternalId(text: string): string | undefined {
  const externalId = /^ext:(.+)$/s.exec(text)?.[1]
  return externalId === undefined || textProblem(externalId, externalIdRule)
    ? undefined
    : externalId
}
