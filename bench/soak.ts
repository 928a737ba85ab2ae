import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startServer } from '../test/support/process.ts'
import { peopleFill, sessionsFill } from './growth/account-fill.ts'
import { messagesFill } from './growth/chat-fill.ts'
import { fillDatabase } from './growth/generate.ts'
import { ticketsFill } from './growth/support-fill.ts'
import { type Figure, judge, median, percentile, rssMegabytes } from './measure.ts'
import { createMix, type Mix, UnexpectedAnswer } from './mix.ts'

/** `bun run bench:soak`: finds the maximum mixed load of this machine, then runs one server at 70 % of it for a long
 *  time, at a fixed rate that does not wait for responses. Latency counts from the time an operation was due. Exits
 *  with 1 when a goal is missed. */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '15' },
    /** Operations a second, instead of 70 % of the maximum. */
    rate: { type: 'string' },
    /** Share of the people, messages and tickets of bench:growth. */
    scale: { type: 'string', default: '0.04' },
  },
})
const minutes = Number(values.minutes)
const intervalSeconds = minutes > 10 ? 60 : minutes > 2 ? 15 : 5
const [closedLoops, closedSeconds, warmUpSeconds] = [64, 90, 30]
const share = 0.7
const maxRunning = 10_000
const settleSeconds = 5

/** Results of an interval: milliseconds by kind of operation, and errors. */
type Times = Map<string, number[]>
type Interval = {
  operations: number
  errors: Map<string, number>
  all: number[]
  rss: number
  databaseMegabytes: number
  walMegabytes: number
  /** The longest of each second, in ms. */
  delays: number[]
  /** The CPU time of the longest turn of the loop in each second, in ms. */
  turns: number[]
  /** The share of the machine's time that the host gave to other machines. */
  stolen: number
  files: number
}

const directory = mkdtempSync(join(tmpdir(), 'hostline-soak-'))
let times: Times = new Map()
let errors = new Map<string, number>()
let running = 0
try {
  const fills = [peopleFill(100_000), sessionsFill, messagesFill(1_000_000), ticketsFill(200_000)]
  const landmarks = await fillDatabase(directory, Number(values.scale), fills)
  await using server = await startServer({
    dataDir: directory,
    environment: {
      RATE_LIMIT_SERVICE: 'off',
      BUN_OPTIONS: `--preload=${join(import.meta.dir, 'loop-delay.ts')}`,
    },
  })
  const mix = await createMix(server.base, landmarks)
  const rate = values.rate ? Number(values.rate) : share * (await findMaximum(mix))
  const stop = startPaced(mix, rate)
  await Bun.sleep(settleSeconds * 1_000)
  const intervals = await watch(server, mix)
  stop()
  while (running > 0) await Bun.sleep(10)
  process.exitCode = judge('', figuresOf(intervals))
} finally {
  rmSync(directory, { recursive: true })
}
process.exit()

/** @returns operations a second */
async function findMaximum(mix: Mix): Promise<number> {
  let isOver = false
  const loop = async () => {
    while (!isOver) await perform(mix, performance.now())
  }
  const loops = Array.from({ length: closedLoops }, loop)
  await Bun.sleep(warmUpSeconds * 1_000)
  times.clear()
  await Bun.sleep((closedSeconds - warmUpSeconds) * 1_000)
  const maximum = [...times.values()].flat().length / (closedSeconds - warmUpSeconds)
  isOver = true
  await Promise.all(loops)
  console.log(`at most ${maximum.toFixed()} operations/s with ${closedLoops} at once`)
  return maximum
}

async function perform(mix: Mix, dueAt: number) {
  const { kind, run } = mix.next()
  try {
    await run()
    const known = times.get(kind) ?? []
    times.set(kind, known)
    known.push(performance.now() - dueAt)
  } catch (error) {
    if (!(error instanceof UnexpectedAnswer)) console.error(kind, error)
    count(error instanceof UnexpectedAnswer ? error.message.slice(0, 60) : String(error))
  }
}

function count(error: string) {
  errors.set(error, (errors.get(error) ?? 0) + 1)
}

/** @returns a function that stops the load */
function startPaced(mix: Mix, rate: number): () => void {
  console.log(`${rate.toFixed()} operations/s for ${minutes} minutes`)
  const startedAt = performance.now()
  let started = 0
  const timer = setInterval(() => {
    for (; started < ((performance.now() - startedAt) / 1_000) * rate; started++) {
      if (running >= maxRunning) count('not started: too many are running')
      else {
        running++
        void perform(mix, startedAt + (started / rate) * 1_000).finally(() => running--)
      }
    }
  }, 1)
  return () => clearInterval(timer)
}

type Server = Awaited<ReturnType<typeof startServer>>

async function watch(server: Server, { kinds }: Mix): Promise<Interval[]> {
  const intervals: Interval[] = []
  const everything: Times = new Map(kinds.map((kind) => [kind, []]))
  console.log(
    '| s | operations/s | p50 / p99 ms | RSS | database | wal, MB | delay ms | files | stolen % |',
  )
  console.log('|---|---|---|---|---|---|---|---|---|')
  for (let n = 1; n <= Math.ceil((minutes * 60) / intervalSeconds); n++) {
    times = new Map()
    errors = new Map()
    const outputBefore = server.output().length
    const before = readTimes()
    await Bun.sleep(intervalSeconds * 1_000)
    const all = [...times.values()].flat()
    const output = server.output().slice(outputBefore)
    const interval = {
      ...(await sampleServer(server, output)),
      operations: all.length,
      errors,
      all,
      stolen: stolenSince(before),
    }
    for (const [kind, own] of times) everything.get(kind)?.push(...own)
    intervals.push(interval)
    console.log(`| ${n * intervalSeconds} | ${cellsOf(interval).join(' | ')} |`)
    for (const [error, count] of errors) console.log(`${count} × ${error}`)
  }
  console.log('\n| operation | each second | p50 / p99 ms |\n|---|---|---|')
  for (const [kind, own] of everything) {
    const rate = (own.length / intervals.length / intervalSeconds).toFixed(1)
    console.log(`| ${[kind, rate, latency(own)].join(' | ')} |`)
  }
  return intervals
}

async function sampleServer(server: Server, output: string) {
  const text = await (await fetch(`${server.base}/metrics`)).text()
  const metric = (name: string) => Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1])
  const numbers = (line: RegExp) =>
    [...output.matchAll(line)].map(([, found = '']) => Math.max(...found.split(' ').map(Number)))
  return {
    rss: rssMegabytes(server.pid),
    databaseMegabytes: metric('hostline_database_bytes') / 1_048_576,
    walMegabytes: metric('hostline_database_wal_bytes') / 1_048_576,
    delays: numbers(/longest delay: ([\d.]+)/g),
    turns: numbers(/turns: ([\d. ]+)/g),
    files: metric('process_open_fds'),
  }
}

/** Ticks of the machine since its start: https://www.kernel.org/doc/html/latest/filesystems/proc.html, 1.7 */
function readTimes() {
  const [, ...ticks] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)
    .join()
    .split(/ +/)
    .map(Number)
  return { all: ticks.slice(0, 8).reduce((sum, one) => sum + one, 0), stolen: ticks[7] ?? 0 }
}

function stolenSince(before: ReturnType<typeof readTimes>): number {
  const now = readTimes()
  return (now.stolen - before.stolen) / (now.all - before.all)
}

function cellsOf({ operations, all, delays, files, stolen, ...sizes }: Interval): string[] {
  const longestDelay = Math.max(...delays)
  const { rss, databaseMegabytes, walMegabytes } = sizes
  return [
    (operations / intervalSeconds).toFixed(),
    latency(all),
    ...[rss, databaseMegabytes, walMegabytes, longestDelay, files, 100 * stolen].map((value) =>
      value.toFixed(),
    ),
  ]
}

function latency(own: number[]): string {
  return [0.5, 0.99].map((share) => percentile(own, share).toFixed(2)).join(' / ')
}

function figuresOf(intervals: Interval[]): Figure[] {
  const quarter = Math.ceil(intervals.length / 4)
  const [second, last] = [intervals.slice(quarter, 2 * quarter), intervals.slice(-quarter)]
  const growth = (of: (interval: Interval) => number) =>
    median(last.map(of)) / median(second.map(of))
  const most = (of: (interval: Interval) => number) => Math.max(...intervals.map(of))
  const nearlyLongest = (of: (interval: Interval) => number[]) =>
    percentile(intervals.flatMap(of), 0.99)
  const failed = intervals.flatMap((interval) => [...interval.errors.values()])
  return [
    { what: 'errors', value: failed.reduce((sum, count) => sum + count, 0), goal: ['≤', 0] },
    {
      what: 'RSS, last quarter : second quarter',
      value: growth(({ rss }) => rss),
      goal: ['≤', 1.1],
    },
    {
      what: 'p99, last quarter : second quarter',
      value: growth(({ all }) => percentile(all, 0.99)),
      goal: ['≤', 1.5],
    },
    {
      what: 'p99 of the longest stop of the loop in each second, ms',
      value: nearlyLongest(({ delays }) => delays),
      goal: ['≤', 50],
    },
    {
      what: 'the same in CPU time, without what the host or other programs took, ms',
      value: nearlyLongest(({ turns }) => turns),
    },
    {
      what: 'longest stop of the loop, ms',
      value: most(({ delays }) => Math.max(...delays)),
      goal: ['≤', 50],
    },
    { what: 'wal at most, MB', value: most(({ walMegabytes }) => walMegabytes), goal: ['≤', 32] },
  ]
}
