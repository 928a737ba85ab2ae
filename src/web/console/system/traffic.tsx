import type { Minute, System } from '../../../../client/src/contract.ts'
import { Chart } from './chart.tsx'

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
  return (
    <section class="stack" aria-labelledby="traffic">
      <h2 id="traffic">The last hour</h2>
      <div class="charts">
        <Chart
          title="Requests a minute"
          times={shown}
          series={[{ label: 'requests', values: counts('requests') }]}
          shape="bars"
        />
        <Chart
          title="Latency"
          times={shown}
          series={[
            { label: 'p50', values: latency('p50_ms'), tone: 'faint' },
            { label: 'p99', values: latency('p99_ms') },
          ]}
          shape="line"
          show={milliseconds}
        />
        <Chart
          title="Failed a minute"
          times={shown}
          series={[{ label: 'failed', values: counts('failed'), tone: 'danger' }]}
          shape="bars"
        />
        <Chart
          title="Frames a minute"
          times={shown}
          series={[{ label: 'frames', values: counts('frames') }]}
          shape="bars"
        />
      </div>
    </section>
  )
}

/** Start times of the sixty minutes before the current one, by the clock of the service. */
function timesOf({ started_at, uptime_seconds }: System): number[] {
  const now = Date.parse(started_at) + uptime_seconds * 1_000
  const current = Math.floor(now / minute) * minute
  return Array.from({ length: 60 }, (_, index) => current - (60 - index) * minute)
}

const milliseconds = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
