import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../test/support/process.ts'
import type { Order, Result } from './load.ts'

/** Shared by the benchmarks: servers on a core of their own, and figures. */

const programs = {
  floor: join(import.meta.dir, 'floor.ts'),
  hostline: join(import.meta.dir, '../src/main.ts'),
}
export type Target = keyof typeof programs

/** Pins a command to one core where the system can. */
export function pin(core: number): string[] {
  const canPin = availableParallelism() > 1 && Bun.which('taskset') !== null
  return canPin ? ['taskset', '-c', String(core)] : []
}

/** Starts a server on the first core, on a free port, without rate limits. */
export function startPinned(target: Target, options: Parameters<typeof startServer>[0]) {
  return startServer({ ...options, command: [...pin(0), 'bun', programs[target]] })
}

/** Runs the load generator on the second core. */
export async function runLoad(order: Order): Promise<Result> {
  const program = join(import.meta.dir, 'load.ts')
  const load = Bun.spawn([...pin(1), 'bun', program, JSON.stringify(order)], {
    // Bun's own limit on parallel requests would make readers wait in the client.
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '4096' },
    stderr: 'inherit',
  })
  const text = await load.stdout.text()
  if ((await load.exited) !== 0) throw new Error('the load generator failed')
  return JSON.parse(text) as Result
}

/** A measured value and its goal. */
export type Figure = { what: string; value: number; goal?: Goal | undefined }
export type Goal = ['≥' | '≤', number]

/** Prints the figures beside their goals.
 *  @returns the exit code: 1 when a goal is missed */
export function judge(title: string, figures: Figure[]): 0 | 1 {
  console.log(`\n| ${title} | | goal | |\n|---|---|---|---|`)
  for (const figure of figures) console.log(row(figure))
  return figures.some(isMissed) ? 1 : 0
}

function row(figure: Figure): string {
  const { what, value, goal } = figure
  const cells = goal ? [goal.join(' '), isMissed(figure) ? 'MISSED' : 'ok'] : ['', '']
  return `| ${[what, value.toFixed(2), ...cells].join(' | ')} |`
}

function isMissed({ value, goal }: Figure): boolean {
  if (!goal) return false
  const [direction, bound] = goal
  return !(direction === '≥' ? value >= bound : value <= bound)
}

/** Interpolates between values, so the median of an even number of values is the mean of the middle two. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const position = share * (sorted.length - 1)
  const [below, above] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]]
  if (below === undefined || above === undefined) return Number.NaN
  return below + (above - below) * (position % 1)
}

export const median = (values: number[]) => percentile(values, 0.5)

/** For tests in `bench/bounds`: other load on the machine causes single failures, a defect fails each time. */
export const measured = { retry: 4, timeout: 60_000 }

/** CPU time of a process so far, user and kernel. */
export function cpuMicroseconds(pid: number): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const fields = rest.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000 // clock ticks of 10 ms
}

export function rssMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024
}
