import { useState } from 'preact/hooks'
import { clockTime, count } from '../../ui/format.ts'
import { height, pathOf, type Shape, type Values } from './chart-path.ts'

type Series = { label: string; values: Values; tone?: 'danger' | 'faint' }
type ChartProps = {
  title: string
  /** Time of each value; every series has as many values. */
  times: string[]
  series: Series[]
  shape: Shape
  show?: (value: number) => string
}

/** Values over time. Hover or the arrow keys announce a value with its time. */
export function Chart({ title, times, series, shape, show = count }: ChartProps) {
  const [chosen, setChosen] = useState<number>()
  const known = series.flatMap(({ values }) => values.filter((value) => value !== null))
  const top = Math.max(...known, 1)
  const index = chosen ?? times.length - 1
  const parts = series.flatMap(({ label, values }) => {
    const value = values[index] ?? null
    return value === null ? [] : [`${show(value)} ${label}`]
  })
  const time = times[index] && clockTime(times[index])
  const sentence = `${time}: ${parts.join(', ') || 'no data'}`
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
          {series.map(({ label, values, tone = '' }) => (
            <path key={label} class={`${shape} ${tone}`} d={pathOf(values, top, shape)} />
          ))}
          <path class="pointer" d={`M${index + 0.5} 0V${height}`} />
        </svg>
        <input
          type="range"
          aria-label={`${title}, minute by minute; at most ${show(Math.max(...known, 0))}`}
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
      <p class="axis soft small number" aria-hidden="true">
        <span>{times[0] && clockTime(times[0])}</span>
        <span>{known.length > 0 ? `at most ${show(Math.max(...known))}` : 'Nothing yet'}</span>
      </p>
    </figure>
  )
}
