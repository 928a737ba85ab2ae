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

/** In ms; 0 also when `start` is from before the clock was set back. */
export function timeLeft(start: number | null | undefined, duration: number, now: number): number {
  const since = now - (start ?? 0)
  return since < 0 ? 0 : Math.max(duration - since, 0)
}

const isoPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/

/** An ISO 8601 time with a time zone, in ms since the epoch; undefined for any other text. */
export function parseTime(text: string): number | undefined {
  const time = isoPattern.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) || !isInMonth(text.slice(0, 10)) ? undefined : time
}

/** `Date.parse` reads 30 February as a day in March. */
const isInMonth = (date: string) => new Date(date).getUTCDate() === Number(date.slice(8))

/** Seconds or a date (RFC 9110, 10.2.3), in ms and at most a day; 0 for any other text. */
export function retryAfterMilliseconds(header: string | null, now: number): number {
  if (header === null) return 0
  const milliseconds = /^\d+$/.test(header)
    ? Number(header) * 1_000
    : Date.parse(header.endsWith(' GMT') ? header : '') - now
  if (Number.isNaN(milliseconds)) return 0
  return Math.min(Math.max(milliseconds, 0), day)
}

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

export const timeOrNull = (milliseconds: number | null | undefined): string | null =>
  milliseconds === null || milliseconds === undefined ? null : isoTime(milliseconds)
