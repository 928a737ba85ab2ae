/** The time, injected so that tests can move it. */
export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
  every(milliseconds: number, work: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  every(milliseconds, work) {
    const timer = setInterval(work, milliseconds)
    return () => clearInterval(timer)
  },
}

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

/** The rest of a time that began at `start`; 0 if it did not begin, is over, or if `start` is from before the clock was set
 *  back.
 *  @returns milliseconds */
export function timeLeft(start: number | null | undefined, duration: number, now: number): number {
  const since = now - (start ?? 0)
  return since < 0 ? 0 : Math.max(duration - since, 0)
}

const isoPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/

/** Parses an ISO 8601 time with a time zone.
 *  @returns milliseconds since the epoch; undefined for any other text */
export function parseTime(text: string): number | undefined {
  const time = isoPattern.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) || !isInMonth(text.slice(0, 10)) ? undefined : time
}

/** `Date.parse` reads 30 February as a day in March. */
const isInMonth = (date: string) => new Date(date).getUTCDate() === Number(date.slice(8))

/** Parses a `Retry-After` header: seconds or a date (RFC 9110, 10.2.3).
 *  @returns milliseconds, at most a day; 0 for any other text */
export function retryAfterMilliseconds(header: string | null, now: number): number {
  if (header === null) return 0
  const milliseconds = /^\d+$/.test(header)
    ? Number(header) * 1_000
    : Date.parse(header.endsWith(' GMT') ? header : '') - now
  if (Number.isNaN(milliseconds)) return 0
  return Math.min(Math.max(milliseconds, 0), day)
}

/** ISO 8601 UTC with milliseconds: the form of every timestamp in the API. */
export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

export const timeOrNull = (milliseconds: number | null | undefined): string | null =>
  milliseconds === null || milliseconds === undefined ? null : isoTime(milliseconds)
