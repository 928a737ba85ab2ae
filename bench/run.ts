import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Load, Result, Series } from './load.ts'
import {
  type Figure,
  type Goal,
  judge,
  median,
  runLoad,
  startPinned,
  type Target,
} from './measure.ts'
import { measureStart } from './start.ts'

/** `bun run bench`: Hostline beside the floor, alternating, each server on the same core, the load on another. Exits
 *  with 1 when a goal is missed. */

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    /** Seconds of load before those. The compiler of the runtime works for about eight. */
    'warm-up': { type: 'string', default: '1' },
    senders: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '2' },
    /** Only the cases whose name contains this. */
    only: { type: 'string', default: '' },
  },
})
const senders = Number(values.senders)

const measures = ['rate', 'cpu', 'p99'] as const
type Measure = (typeof measures)[number]
type Case = Load & {
  name: string
  /** Delay added to each sync. */
  syncMs?: number
  /** Goals for the ratio Hostline : floor; a case without them runs without the floor. */
  goals?: { [measure in Measure]?: Goal }
  /** A goal for Hostline alone. */
  own?: { what: string; of: (result: Result) => number | undefined; goal: Goal }
}

const socket = { transport: 'socket', senders } as const
const cases: Case[] = [
  {
    name: `socket, ${senders} senders`,
    ...socket,
    goals: { rate: ['≥', 0.85], cpu: ['≤', 1.35], p99: ['≤', 2] },
    own: { what: 'RSS, MB', of: ({ rssMegabytes }) => rssMegabytes, goal: ['≤', 130] },
  },
  {
    name: `rest, ${senders} senders`,
    senders,
    goals: { rate: ['≥', 0.7], cpu: ['≤', 1.6], p99: ['≤', 2] },
  },
  { name: 'pages of 50, 16 readers', readers: 16, goals: { rate: ['≥', 0.6] } },
  { ...socket, name: 'socket, sync + 2 ms', syncMs: 2, goals: { rate: ['≥', 0.9] } },
  {
    name: 'socket + 1 reader, sync 20 ms',
    ...socket,
    readers: 1,
    syncMs: 20,
    own: { what: 'p99 of reads, ms', of: ({ reads }) => reads?.p99, goal: ['≤', 3] },
  },
  { name: '200 logins at once + 4 readers', readers: 4, logins: 200 },
]

const workshop = mkdtempSync(join(tmpdir(), 'hostline-bench-'))
const slowSync = join(workshop, 'slow-sync.so')
const source = join(import.meta.dir, 'slow-sync.c')
const canSlow =
  Bun.which('gcc') !== null &&
  Bun.spawnSync(['gcc', '-shared', '-fPIC', '-O2', '-o', slowSync, source]).success
if (!canSlow) console.log('no C compiler here: the cases with a slow disk are left out\n')
try {
  const figures = await measureCases()
  if ('start'.includes(values.only)) figures.push(...(await measureStart(workshop)))
  process.exitCode = judge('Hostline : floor, unless a unit is named', figures)
} finally {
  rmSync(workshop, { recursive: true })
}

/** @returns the medians of all rounds */
async function measureCases(): Promise<Figure[]> {
  const measured = cases
    .filter(({ name, syncMs = 0 }) => name.includes(values.only) && (canSlow || syncMs === 0))
    .map((one) => ({ one, floor: [] as Result[], hostline: [] as Result[] }))
  const columns = ['messages/s', 'pages/s'].map((rate) => `${rate} | p50 / p99 ms | CPU µs each`)
  console.log(`| case | server | ${columns.join(' | ')} | RSS MB | WAL MB |`)
  console.log('|---|---|---|---|---|---|---|---|---|---|')
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const { one, floor, hostline } of measured) {
      if (one.goals) floor.push(await measure(one, 'floor'))
      hostline.push(await measure(one, 'hostline'))
    }
  }
  return measured.flatMap(({ one, floor, hostline }) => compare(one, floor, hostline))
}

async function measure(one: Case, target: Target): Promise<Result> {
  const dataDir = mkdtempSync(join(workshop, `${target}-`))
  const { name, syncMs = 0, goals, own, ...load } = one
  const slow = syncMs > 0 && { LD_PRELOAD: slowSync, SLOW_SYNC_MS: String(syncMs) }
  await using server = await startPinned(target, { dataDir, environment: { ...slow } })
  const result = await runLoad({
    ...load,
    target,
    base: server.base,
    serverPid: server.pid,
    seconds: Number(values.seconds),
    warmUp: Number(values['warm-up']),
  })
  // The WAL never shrinks while it is in use: its size at the end is the largest.
  const walMegabytes = statSync(join(dataDir, `${target}.db-wal`)).size / 1_048_576
  const cells = [...cellsOf(result.sends), ...cellsOf(result.reads)]
  const sizes = [result.rssMegabytes, walMegabytes].map((size) => size.toFixed())
  console.log(`| ${[name, target, ...cells, ...sizes].join(' | ')} |`)
  return result
}

function cellsOf(series: Series | null): string[] {
  if (!series) return ['', '', '']
  const { rate, p50, p99, cpu } = series
  return [rate.toFixed(), `${p50.toFixed(2)} / ${p99.toFixed(2)}`, cpu?.toFixed() ?? '']
}

function compare({ name, goals, own }: Case, floor: Result[], hostline: Result[]): Figure[] {
  const middle = (results: Result[], measure: Measure) =>
    median(results.map(({ sends, reads }) => (sends ?? reads)?.[measure] ?? Number.NaN))
  const figures = (goals ? measures : []).map((measure): Figure => {
    const value = middle(hostline, measure) / middle(floor, measure)
    return { what: `${name}: ${measure}`, value, goal: goals?.[measure] }
  })
  if (!own) return figures
  const value = median(hostline.map((result) => own.of(result) ?? Number.NaN))
  return [...figures, { what: `${name}: ${own.what}`, value, goal: own.goal }]
}
