import { minute } from './clock.ts'
import { createLru } from './lru.ts'

/** Wall-clock times `HH:MM` in an IANA time zone; `to` may be on the next day. */
export type QuietHours = { from: string; to: string; time_zone: string }

const minutesPerDay = 1_440
// Making a format takes as long as many uses of it. Names differ in case, so there may be more than time zones.
const formats = createLru<Intl.DateTimeFormat>(1_000)

/** Whether it names a time zone. Offsets such as `+01:00` do not: they know no summer time. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(name)) return false
  try {
    return formatOf(name) !== undefined
  } catch {
    return false
  }
}

/** @param now ms since the epoch
 *  @returns milliseconds until the quiet hours end; 0 outside of them */
export function quietFor(hours: QuietHours | null | undefined, now: number): number {
  if (!hours) return 0
  const [from, to] = [minutesOf(hours.from), minutesOf(hours.to)]
  const local = minutesAt(now, hours.time_zone)
  if (minutesFrom(from, local) >= minutesFrom(from, to)) return 0
  const end = now - (now % minute) + minutesFrom(local, to) * minute
  // Summer time may begin or end in between.
  const late = minutesFrom(to, minutesAt(end, hours.time_zone))
  return end - (late < minutesPerDay / 2 ? late : late - minutesPerDay) * minute - now
}

const minutesFrom = (from: number, to: number) => (to - from + minutesPerDay) % minutesPerDay

function minutesOf(time: string) {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return 60 * hours + minutes
}

const minutesAt = (now: number, timeZone: string) => minutesOf(formatOf(timeZone).format(now))

function formatOf(timeZone: string) {
  const known = formats.get(timeZone)
  if (known) return known
  const options = { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
  const format = new Intl.DateTimeFormat('en-GB', options)
  formats.set(timeZone, format)
  return format
}
