import { useState } from 'preact/hooks'
import type { Minute, System } from '../../../../client/src/contract.ts'
import { clockTime, count, inUnit } from '../../kit/format.ts'
import { Section } from '../../kit/list.tsx'
import { fill, texts } from '../../kit/texts.tsx'

const words = texts.console.system.traffic
const minute = 60_000

/** Requests, failures and frames of the last hour, by minute. */
export function Traffic({ system }: { system: System }) {
  const times = timesOf(system)
  const rows = new Map(system.last_hour.map((row) => [Date.parse(row.at), row]))
  const started = Date.parse(system.started_at)
  // Minutes without a row had no requests; minutes before the start of the service are unknown.
  const counts = (field: 'requests' | 'failed' | 'frames') =>
    times.map((at) => (at + minute <= started ? null : (rows.get(at)?.[field] ?? 0)))
  const latency = (field: keyof Minute & `p${string}`) =>
    times.map((at) => rows.get(at)?.[field] ?? null)
  const shown = times.map((at) => new Date(at).toISOString())
  const { units } = words
  const bars = (field: 'requests' | 'failed' | 'frames', tone?: 'danger') => (
    <Chart
      title={words[field]}
      times={shown}
      series={[{ text: units[field], values: counts(field), tone }]}
      shape="bars"
    />
  )
  return (
    <Section title={words.title} level={2}>
      <div class="charts">
        {bars('requests')}
        <Chart
          title={words.latency}
          times={shown}
          series={[
            { text: units.p50, values: latency('p50_ms'), tone: 'faint' },
            { text: units.p99, values: latency('p99_ms') },
          ]}
          shape="line"
          show={milliseconds}
        />
        {bars('failed', 'danger')}
        {bars('frames')}
      </div>
    </Section>
  )
}

/** Start times of the sixty minutes before the current one, by the clock of the service. */
function timesOf({ started_at, uptime_seconds }: System): number[] {
  const now = Date.parse(started_at) + uptime_seconds * 1_000
  const current = Math.floor(now / minute) * minute
  return Array.from({ length: 60 }, (_, index) => current - (60 - index) * minute)
}

const milliseconds = (value: number) => inUnit(value, 'millisecond', value < 10 ? 1 : 0)

/** `text` has a place for the value, which is null where there is no data. */
type Series = { text: string; values: Values; tone?: 'danger' | 'faint' | undefined }
type ChartProps = {
  title: string
  /** Time of each value; every series has as many values. */
  times: string[]
  series: Series[]
  shape: Shape
  show?: (value: number) => string
}

/** Values over time. Hover or the arrow keys announce a value with its time. */
function Chart({ title, times, series, shape, show = count }: ChartProps) {
  const [chosen, setChosen] = useState<number>()
  const known = series.flatMap(({ values }) => values.filter((value) => value !== null))
  const top = Math.max(...known, 1)
  const index = chosen ?? times.length - 1
  const parts = series.flatMap(({ text, values }) => {
    const value = values[index] ?? null
    return value === null ? [] : [fill(text, { value: show(value) })]
  })
  const time = times[index] && clockTime(times[index])
  const sentence = `${time}: ${parts.join(', ') || words.noData}`
  const most = show(Math.max(...known, 0))
  return (
    <figure class="chart card">
      <figcaption>
        <h3>{title}</h3>
        <span class="soft small number">{sentence}</span>
      </figcaption>
      <div class={`plot ${chosen === undefined ? '' : 'chosen'}`}>
        <svg
          viewBox={`0 0 ${times.length} ${height}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          {series.map(({ text, values, tone = '' }) => (
            <path key={text} class={`${shape} ${tone}`} d={pathOf(values, top, shape)} />
          ))}
          <path class="pointer" d={`M${index + 0.5} 0V${height}`} />
        </svg>
        <input
          type="range"
          aria-label={fill(words.label, { title, value: most })}
          aria-valuetext={sentence}
          max={times.length - 1}
          value={index}
          onInput={(event) => setChosen(Number(event.currentTarget.value))}
          onPointerMove={({ offsetX, currentTarget }) =>
            setChosen(Math.floor((offsetX / (currentTarget.offsetWidth + 1)) * times.length))
          }
          onPointerLeave={() => setChosen(undefined)}
          onBlur={() => setChosen(undefined)}
        />
      </div>
      <p class="axis row between soft small number" aria-hidden="true">
        <span>{times[0] && clockTime(times[0])}</span>
        <span>{known.length > 0 ? fill(words.atMost, { value: most }) : words.nothing}</span>
      </p>
    </figure>
  )
}

type Values = (number | null)[]
type Shape = 'bars' | 'line'

/** Height of a chart in path units; each value is one unit wide. */
const height = 24

/** @param top the value at the upper edge */
function pathOf(values: Values, top: number, shape: Shape): string {
  const levels = values.map((value) => value && height - (value / top) * (height - 1))
  if (shape === 'bars')
    return levels.map((level, x) => (level ? `M${x + 0.5} ${height}V${level}` : '')).join('')
  const start = (x: number) => (levels[x - 1] == null ? 'M' : 'L')
  // A single point is drawn as a line of length zero.
  return levels.map((y, x) => (y == null ? '' : `${start(x)}${x + 0.5} ${y}h0`)).join('')
}
