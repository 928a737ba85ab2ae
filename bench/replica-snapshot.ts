import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFile } from '../src/db/open.ts'
import type { ServerProcess } from '../test/support/process.ts'
import { waitFor } from '../test/support/wait.ts'
import { type Bucket, startBucket } from './bucket.ts'
import { peopleFill } from './growth/account-fill.ts'
import { messagesFill } from './growth/chat-fill.ts'
import { fillDatabase } from './growth/generate.ts'
import { type Figure, percentile, runLoad, startPinned } from './measure.ts'

const latency = 20
const load = { target: 'hostline', transport: 'socket', senders: 32, perSecond: 500 } as const
const loadSeconds = 45
const quietSeconds = 12
const wantedObjects = 200
const patienceMilliseconds = 120_000
const delays = join(import.meta.dir, 'loop-delay.ts')

/** Measures how long the event loop stops during a snapshot under load, and how long the snapshot and a restore
 *  take. */
export async function measureSnapshot(workshop: string, megabytes: number): Promise<Figure[]> {
  const dataDir = join(workshop, 'filled')
  await fillDatabase(dataDir, megabytes / 2_750, [peopleFill(100_000), messagesFill(10_000_000)])
  const size = statSync(join(dataDir, databaseFile)).size / 1_048_576
  console.log(`\na database of ${size.toFixed()} MiB, ${latency} ms a request`)
  await using bucket = await startBucket(latency)
  const taken = await underLoad(dataDir, bucket)
  await shipObjects(dataDir, bucket)
  return [...taken, await restore(join(workshop, 'restored'), bucket)]
}

async function underLoad(dataDir: string, bucket: Bucket): Promise<Figure[]> {
  const environment = { REPLICA_S3_URL: bucket.url, BUN_OPTIONS: `--preload=${delays}` }
  await using server = await startPinned('hostline', { dataDir, environment })
  await untilManifest(bucket)
  const loading = runLoad({
    ...load,
    base: server.base,
    serverPid: server.pid,
    seconds: loadSeconds,
  })
  await Bun.sleep(quietSeconds * 1_000)
  const quiet = await watch(server, () => Bun.sleep(quietSeconds * 1_000))
  const during = await watch(server, () => hostline(['replica', 'snapshot'], dataDir, bucket))
  await loading
  // After a SIGKILL the log may continue from another snapshot.
  await server.kill('SIGTERM')
  return [
    { what: 'a snapshot under load, s', value: during.seconds },
    ...figuresOf('before a snapshot', quiet),
    ...figuresOf('while it is taken', during),
  ]
}

const untilManifest = (bucket: Bucket) =>
  waitFor(
    async () => (await bucket.report()).stored.some(({ key }) => key.endsWith('/manifest')),
    'a snapshot',
    patienceMilliseconds,
  )

type Watched = { seconds: number; delays: number[]; turns: number[] }

/** Records the delays of the server's event loop while `work` runs. */
async function watch(server: ServerProcess, work: () => Promise<void>): Promise<Watched> {
  const from = server.output().length
  const startedAt = performance.now()
  await work()
  const seconds = (performance.now() - startedAt) / 1_000
  // A second is reported at its end.
  await Bun.sleep(1_000)
  const output = server.output().slice(from)
  const numbers = (pattern: RegExp) =>
    [...output.matchAll(pattern)].flatMap(([, list = '']) => list.split(' ').map(Number))
  const delays = numbers(/longest delay: ([\d.]+)/g)
  return { seconds, delays, turns: numbers(/turns: ([\d. ]+)/g) }
}

/** The turns that a snapshot adds show how long it blocks the event loop. */
function figuresOf(when: string, { delays, turns }: Watched): Figure[] {
  return [
    { what: `longest delay of the loop ${when}, ms`, value: Math.max(...delays) },
    { what: `p99 of CPU between two looks ${when}, ms`, value: percentile(turns, 0.99) },
    { what: `most CPU between two looks ${when}, ms`, value: Math.max(...turns) },
  ]
}

/** Ships so many objects after the snapshot. */
async function shipObjects(dataDir: string, bucket: Bucket) {
  const environment = { REPLICA_S3_URL: bucket.url, REPLICA_ACK: 'bucket', REPLICA_PUTS: '100' }
  await using server = await startPinned('hostline', { dataDir, environment })
  await bucket.report()
  const seconds = wantedObjects / 20
  await runLoad({ ...load, prefix: 'more-', base: server.base, serverPid: server.pid, seconds })
  const { stored } = await bucket.report()
  const count = stored.filter(({ key }) => key.startsWith('log/')).length
  console.log(`${count} objects of the log`)
}

async function restore(directory: string, bucket: Bucket): Promise<Figure> {
  mkdirSync(directory)
  const startedAt = performance.now()
  await hostline(['restore', 's3'], directory, bucket)
  return { what: 'restore s3, s', value: (performance.now() - startedAt) / 1_000 }
}

async function hostline(args: string[], dataDir: string, { url }: Bucket): Promise<void> {
  const child = Bun.spawn(['bun', join(import.meta.dir, '../src/main.ts'), ...args], {
    env: { PATH: process.env['PATH'] ?? '', DATA_DIR: dataDir, REPLICA_S3_URL: url },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  if ((await child.exited) !== 0) throw new Error(`hostline ${args.join(' ')} failed`)
}
