import { computed, signal } from '@preact/signals'
import { fill, language, texts } from './texts.tsx'

/** The current time, updated every half minute. */
export const now = signal(Date.now())
setInterval(() => {
  now.value = Date.now()
}, 30_000)

const weekSeconds = 604_800
const daySeconds = 86_400
const units = [
  ['hour', 3_600],
  ['minute', 60],
] as const

/** The language of the page with the region of the browser. The texts of `pt` are European, Intl's `pt` is Brazilian. */
export const locale = computed(() => {
  const tag =
    navigator.languages.find((tag) => tag.split('-')[0] === language.value) ?? language.value
  return tag === 'pt' ? 'pt-PT' : tag
})

// Formatters are expensive to create, and a list uses two in each row.
const relative = computed(
  () => new Intl.RelativeTimeFormat(locale.value, { numeric: 'auto', style: 'short' }),
)
const absolute = computed(
  () => new Intl.DateTimeFormat(locale.value, { dateStyle: 'full', timeStyle: 'medium' }),
)

/** Relative time within a week, `3 min. ago`; then the day. */
export function relativeTime(at: string): string {
  const seconds = (Date.parse(at) - now.value) / 1_000
  if (Math.abs(seconds) > weekSeconds) return dayText(at)
  if (Math.abs(seconds) >= daySeconds)
    return relative.value.format(daysUntil(Date.parse(at)), 'day')
  const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1]
  return unit === 'second'
    ? relative.value.format(0, 'second')
    : relative.value.format(Math.trunc(seconds / length), unit)
}

/** In days of the calendar: yesterday ends at midnight. */
const daysUntil = (at: number) =>
  Math.round((startOfDay(at) - startOfDay(now.value)) / (daySeconds * 1_000))

const dayOfYear = computed(
  () => new Intl.DateTimeFormat(locale.value, { day: 'numeric', month: 'short' }),
)
const day = computed(() => new Intl.DateTimeFormat(locale.value, { dateStyle: 'medium' }))

/** `3 May`, with the year unless it is this one. */
function dayText(at: string): string {
  const date = new Date(at)
  const isThisYear = date.getFullYear() === new Date(now.value).getFullYear()
  return (isThisYear ? dayOfYear : day).value.format(date)
}

/** The name of a day for a heading: `Yesterday`, `Monday, 3 May`. */
export function dayHeading(day: string): string {
  const date = new Date(day)
  const days = daysUntil(date.getTime())
  if (days > -2) {
    const relativeDay = new Intl.RelativeTimeFormat(locale.value, { numeric: 'auto' })
    const text = relativeDay.format(days, 'day')
    return text.charAt(0).toUpperCase() + text.slice(1)
  }
  const isThisYear = date.getFullYear() === new Date(now.value).getFullYear()
  return new Intl.DateTimeFormat(locale.value, {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    ...(!isThisYear && { year: 'numeric' }),
  }).format(date)
}

const startOfDay = (at: number) => new Date(at).setHours(0, 0, 0, 0)

export function absoluteTime(at: string): string {
  return absolute.value.format(new Date(at))
}

/** The time of day: `14:05`. */
export function clockTime(at: string): string {
  const style = { hour: '2-digit', minute: '2-digit' } as const
  return new Intl.DateTimeFormat(locale.value, style).format(new Date(at))
}

/** In local time without an offset, the format of inputs for dates and times; empty when it is no time. */
export function localTime(at: number): string {
  if (Number.isNaN(at)) return ''
  const offset = new Date(at).getTimezoneOffset() * 60_000
  return new Date(at - offset).toISOString().slice(0, 16)
}

export function count(value: number): string {
  return new Intl.NumberFormat(locale.value).format(value)
}

const sizes = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']

/** `3 d`, `1,4 Mo`: in the language of the page. */
export function inUnit(value: number, unit: string, digits = 0): string {
  const style = {
    style: 'unit',
    unit,
    unitDisplay: 'short',
    maximumFractionDigits: digits,
  } as const
  return new Intl.NumberFormat(locale.value, style).format(value)
}

/** `48 kB`; a kB has 1,000 bytes. */
export function bytes(value: number): string {
  const step = Math.min(sizes.length - 1, Math.floor(Math.log10(Math.max(value, 1)) / 3))
  const amount = value / 1_000 ** step
  return inUnit(amount, sizes[step] ?? 'byte', amount < 10 && step > 0 ? 1 : 0)
}

/** `3 d 4 h`: the two largest units. */
export function duration(seconds: number): string {
  const parts = [
    ['day', Math.floor(seconds / 86_400)],
    ['hour', Math.floor(seconds / 3_600) % 24],
    ['minute', Math.floor(seconds / 60) % 60],
    ['second', Math.floor(seconds) % 60],
  ] as const
  const first = Math.max(
    0,
    parts.findIndex(([, amount]) => amount > 0),
  )
  const shown = parts
    .slice(first, first + 2)
    .filter(([, amount], index) => index === 0 || amount > 0)
  return shown.map(([unit, amount]) => inUnit(amount, unit)).join(' ')
}

const plurals = computed(() => new Intl.PluralRules(locale.value))

/** The form of a text for an amount, `{count}`: `1 ticket`, `3 tickets`. */
export function plural(
  forms: { one: string; other: string },
  amount: number,
  values: Record<string, string | number> = {},
): string {
  const form = plurals.value.select(amount) === 'one' ? forms.one : forms.other
  return fill(form, { ...values, count: count(amount) })
}

const browsers = { Edge: /Edg/, Firefox: /Firefox/, Chrome: /Chrome|CriOS/, Safari: /Safari/ }
const systems = {
  iOS: /iPhone|iPad/,
  Android: /Android/,
  Windows: /Windows/,
  macOS: /Mac OS/,
  Linux: /Linux/,
}

/** `Firefox on Linux`; an unknown user agent is shown unchanged. */
export function deviceOf(agent: string | null): string {
  if (!agent) return texts.kit.unknownDevice
  const nameIn = (known: Record<string, RegExp>) =>
    Object.entries(known).find(([, sign]) => sign.test(agent))?.[0]
  const [browser, system] = [nameIn(browsers), nameIn(systems)]
  return browser && system ? fill(texts.kit.device, { browser, system }) : agent.slice(0, 60)
}
