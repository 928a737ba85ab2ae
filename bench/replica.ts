import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startServer } from '../test/support/process.ts'
import { type Bucket, startBucket } from './bucket.ts'
import type { Load, Series } from './load.ts'
import { type Figure, judge, median, pin, runLoad, startPinned } from './measure.ts'
import { measureRequests } from './replica-requests.ts'
import { measureSnapshot } from './replica-snapshot.ts'

/** `bun run bench:replica`: the cost of replication to a bucket. The server has a core of its own; the bucket, a
 *  process with a configured latency, shares the other core with the load. Compared cases alternate, and each run
 *  has a new database. Exits with 1 when a goal is missed. */

const { values } = parseArgs({
  options: {
    /** One of `before`, `disk`, `bucket`, `snapshot`, `requests`. */
    only: { type: 'string', default: '' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    /** Executables of two versions, to compare the cost without a bucket. */
    before: { type: 'string' },
    now: { type: 'string' },
    megabytes: { type: 'string', default: '200' },
    'idle-seconds': { type: 'string', default: '120' },
  },
})
const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)]
const workshop = mkdtempSync(join(tmpdir(), 'hostline-replica-'))
const socket = { transport: 'socket', senders: 32 } as const
const steady = { ...socket, perSecond: 1_000 }

/** The result of one run; bytes and requests of the log in the bucket during the measurement. */
type Sample = Series & { bytes: number; puts: number }
type Setup = Load & { bucket?: Bucket; environment?: Record<string, string>; executable?: string }

const parts: Record<string, () => Promise<Figure[]>> = {
  before: measureBefore,
  disk: measureDisk,
  bucket: measureBucket,
  snapshot: () => measureSnapshot(workshop, Number(values.megabytes)),
  requests: async () => {
    await measureRequests(workshop, Number(values['idle-seconds']))
    return []
  },
}
const figures: Figure[] = []
try {
  for (const [name, measurePart] of Object.entries(parts)) {
    if (name.includes(values.only)) figures.push(...(await measurePart()))
  }
} finally {
  rmSync(workshop, { recursive: true })
}
process.exit(judge('replication', figures))

async function measureBefore(): Promise<Figure[]> {
  const { before, now } = values
  if (before === undefined || now === undefined) return []
  const run = (executable: string, load: Load) => () => measure({ ...load, executable })
  const compared: Figure[] = []
  for (const [name, load] of Object.entries({ 'full load': socket, '1,000/s': steady })) {
    const of = { before: run(before, load), now: run(now, load) }
    const { ratio, more } = await alternate(name, of)
    compared.push(
      { what: `no bucket, ${name}: messages/s, now : before`, value: ratio('rate') },
      { what: `no bucket, ${name}: p99, now : before`, value: ratio('p99') },
      { what: `no bucket, ${name}: CPU µs more`, value: more('cpu') },
    )
  }
  return compared
}

async function measureDisk(): Promise<Figure[]> {
  const compared: Figure[] = []
  for (const [name, load] of Object.entries({ 'full load': socket, '1,000/s': steady })) {
    const { ratio, more } = await alternate(`disk, ${name}`, {
      without: () => measure(load),
      with: () => withBucket(20, (bucket) => measure({ ...load, bucket })),
    })
    const isSteady = 'perSecond' in load
    compared.push(
      { what: `disk, ${name}: messages/s, with : without`, value: ratio('rate') },
      {
        what: `disk, ${name}: p99, with : without`,
        value: ratio('p99'),
        goal: isSteady ? ['≤', 1.2] : undefined,
      },
      { what: `disk, ${name}: CPU µs more`, value: more('cpu'), goal: ['≤', 15] },
    )
  }
  return compared
}

/** Runs two cases in turns; each round gives a pair. */
async function alternate(what: string, of: Record<string, () => Promise<Sample>>) {
  console.log(`\n| ${what} | messages/s | p50 / p99 ms | CPU µs each | bytes each | objects/s |`)
  console.log('|---|---|---|---|---|---|')
  const pairs: Sample[][] = []
  for (let round = 0; round < rounds; round++) {
    const pair: Sample[] = []
    for (const [name, run] of Object.entries(of)) pair.push(print(name, await run()))
    pairs.push(pair)
  }
  const over = (join: (first: number, second: number) => number) => (of: 'rate' | 'p99' | 'cpu') =>
    median(pairs.map(([a, b]) => join(a?.[of] ?? Number.NaN, b?.[of] ?? Number.NaN)))
  return { ratio: over((first, second) => second / first), more: over((a, b) => b - a) }
}

async function measureBucket(): Promise<Figure[]> {
  console.log('\n| bucket | messages/s | p50 / p99 ms | CPU µs each | bytes each | objects/s |')
  console.log('|---|---|---|---|---|---|')
  for (const latency of [5, 20, 50]) {
    for (const puts of [10, 1_000]) {
      for (const senders of [1, 32, 256]) {
        const environment = { REPLICA_ACK: 'bucket', REPLICA_PUTS: String(puts) }
        const load = { ...socket, senders, environment }
        const sample = await withBucket(latency, (bucket) => measure({ ...load, bucket }))
        print(`${latency} ms, REPLICA_PUTS=${puts}, ${senders} senders`, sample)
      }
    }
  }
  return []
}

function print(name: string, sample: Sample): Sample {
  const { rate, p50, p99, cpu, bytes, puts } = sample
  const times = `${p50.toFixed(2)} / ${p99.toFixed(2)}`
  const cells = [rate.toFixed(), times, (cpu ?? Number.NaN).toFixed(1)]
  const shipped = puts > 0 ? [(bytes / rate).toFixed(), puts.toFixed(1)] : ['', '']
  console.log(`| ${[name, ...cells, ...shipped].join(' | ')} |`)
  return sample
}

async function withBucket<T>(latency: number, work: (bucket: Bucket) => Promise<T>): Promise<T> {
  await using bucket = await startBucket(latency)
  return await work(bucket)
}

async function measure({ bucket, executable, ...setup }: Setup): Promise<Sample> {
  const dataDir = mkdtempSync(join(workshop, 'data-'))
  const environment = { ...setup.environment, ...(bucket && { REPLICA_S3_URL: bucket.url }) }
  const options = { dataDir, environment }
  await using server = executable
    ? await startServer({ ...options, command: [...pin(0), executable] })
    : await startPinned('hostline', options)
  const { pid: serverPid, base } = server
  const { sends } = await runLoad({ ...setup, target: 'hostline', base, serverPid, seconds })
  if (!sends) throw new Error('nothing was sent')
  const stored = bucket ? (await bucket.report()).stored : []
  // The load ends when it has measured.
  const isMeasured = ({ at }: { at: number }) => at > Date.now() - seconds * 1_000
  const shipped = stored.filter((one) => one.key.startsWith('log/') && isMeasured(one))
  const bytes = shipped.reduce((sum, one) => sum + one.bytes, 0)
  return { ...sends, bytes: bytes / seconds, puts: shipped.length / seconds }
}
