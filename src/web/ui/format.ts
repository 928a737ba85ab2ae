import { computed, signal } from '@preact/signals'
import { uiTexts } from './texts.ts'

/** The current time, updated every half minute. */
export const now = signal(Date.now())
setInterval(() => {
  now.value = Date.now()
}, 30_000)

const units = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** The language of the page with the region of the browser. */
export const locale = computed(
  () =>
    navigator.languages.find((tag) => tag.split('-')[0] === uiTexts.value.locale) ??
    uiTexts.value.locale,
)

// Formatters are expensive to create, and a list uses two in each row.
const relative = computed(
  () => new Intl.RelativeTimeFormat(locale.value, { numeric: 'auto', style: 'short' }),
)
const absolute = computed(
  () => new Intl.DateTimeFormat(locale.value, { dateStyle: 'full', timeStyle: 'medium' }),
)

/** Relative time: `3 min. ago`. */
export function relativeTime(at: string): string {
  const seconds = (Date.parse(at) - now.value) / 1_000
  const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1]
  return unit === 'second'
    ? relative.value.format(0, 'second')
    : relative.value.format(Math.trunc(seconds / length), unit)
}

export function absoluteTime(at: string): string {
  return absolute.value.format(new Date(at))
}

/** The time of day: `14:05`. */
export function clockTime(at: string): string {
  const style = { hour: '2-digit', minute: '2-digit' } as const
  return new Intl.DateTimeFormat(locale.value, style).format(new Date(at))
}

export function count(value: number): string {
  return new Intl.NumberFormat(locale.value).format(value)
}

const sizes = ['B', 'kB', 'MB', 'GB', 'TB']

/** `48 kB`; a kB has 1,000 bytes. */
export function bytes(value: number): string {
  const step = Math.min(sizes.length - 1, Math.floor(Math.log10(Math.max(value, 1)) / 3))
  const amount = value / 1_000 ** step
  const digits = { maximumFractionDigits: amount < 10 && step > 0 ? 1 : 0 }
  return `${new Intl.NumberFormat(locale.value, digits).format(amount)} ${sizes[step]}`
}

/** `3 d 4 h`: the two largest units. */
export function duration(seconds: number): string {
  const parts = [
    ['d', Math.floor(seconds / 86_400)],
    ['h', Math.floor(seconds / 3_600) % 24],
    ['min', Math.floor(seconds / 60) % 60],
    ['s', Math.floor(seconds) % 60],
  ] as const
  const first = Math.max(
    0,
    parts.findIndex(([, amount]) => amount > 0),
  )
  const shown = parts
    .slice(first, first + 2)
    .filter(([, amount], index) => index === 0 || amount > 0)
  return shown.map(([unit, amount]) => `${amount} ${unit}`).join(' ')
}
