import { minute } from './clock.ts'
import { createLru } from './lru.ts'

/** Wall-clock times `HH:MM` in an IANA time zone; `to` may be on the next day. */
export type QuietHours = { from: string; to: string; time_zone: string }

const minutesPerDay = 1_440
/** At the beginning or end of summer time. */
const longestChangeMinutes = 120
// Making a format takes as long as many uses of it. Names differ in case, so there may be more than time zones.
const formats = createLru<Intl.DateTimeFormat>(1_000, makeFormat)

/** Whether it names a time zone. Offsets such as `+01:00` do not: they know no summer time. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(name)) return false
  try {
    formats.memo(name)
    return true
  } catch {
    return false
  }
}

/** @param now ms since the epoch
 *  @returns milliseconds until the quiet hours end; 0 outside of them */
export function quietFor(hours: QuietHours | null | undefined, now: number): number {
  if (!hours) return 0
  const [from, to] = [minutesOf(hours.from), minutesOf(hours.to)]
  const localAt = (time: number) => minutesOf(formats.memo(hours.time_zone).format(time))
  const isQuiet = (time: number) => minutesFrom(from, localAt(time)) < minutesFrom(from, to)
  if (!isQuiet(now)) return 0
  let end = now - (now % minute)
  while (isQuiet(end)) {
    const left = minutesFrom(localAt(end), to)
    // Not when summer time begins or ends meanwhile: the clock then shows `to` sooner, later or never.
    const isRegular = localAt(end + left * minute) === to
    end += (isRegular ? left : Math.max(left - longestChangeMinutes, 1)) * minute
  }
  return end - now
}

const minutesFrom = (from: number, to: number) => (to - from + minutesPerDay) % minutesPerDay

function minutesOf(time: string) {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return 60 * hours + minutes
}

function makeFormat(timeZone: string) {
  const options = { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
  return new Intl.DateTimeFormat('en-GB', options)
}
