import { join } from 'node:path'
import { startServer } from '../test/support/process.ts'
import { type Bucket, startBucket } from './bucket.ts'

const latency = 20
const settleMilliseconds = 15_000
const [secondsOfDay, daysOfMonth] = [86_400, 30]
const methods = ['PUT', 'LIST', 'GET', 'DELETE'] as const
/** List prices of Amazon S3, us-east-1, in dollars a million. */
const prices = { PUT: 5, LIST: 5, GET: 0.4, DELETE: 0 }

/** The requests that idle nodes send to the bucket. */
export async function measureRequests(workshop: string, seconds: number): Promise<void> {
  console.log(`\n| idle, a day | ${methods.join(' | ')} | $ a month |\n|---|---|---|---|---|---|`)
  const pair = { REPLICA_PAIR: 'true' }
  await Promise.all([measure('one machine', {}, false), measure('a pair', pair, true)])

  async function measure(name: string, settings: Record<string, string>, hasStandby: boolean) {
    await using bucket = await startBucket(latency)
    const environment = { ...settings, REPLICA_S3_URL: bucket.url }
    const directory = (node: string) => join(workshop, `${name}, ${node}`)
    await using _leader = await startServer({ dataDir: directory('leader'), environment })
    using _standby = hasStandby ? startStandby(directory('standby'), environment) : undefined
    await Bun.sleep(settleMilliseconds)
    const before = await countsOf(bucket)
    console.log(`${name}, its start: ${JSON.stringify(before)}`)
    await Bun.sleep(seconds * 1_000)
    const after = await countsOf(bucket)
    const daily = methods.map(
      (method) => ((after[method] - before[method]) / seconds) * secondsOfDay,
    )
    const dollars = methods.reduce((sum, method, n) => sum + (daily[n] ?? 0) * prices[method], 0)
    const cells = daily.map((count) => count.toFixed())
    console.log(`| ${[name, ...cells, ((dollars * daysOfMonth) / 1e6).toFixed(2)].join(' | ')} |`)
  }
}

function startStandby(dataDir: string, environment: Record<string, string>) {
  const child = Bun.spawn(['bun', join(import.meta.dir, '../src/main.ts'), 'standby'], {
    env: { PATH: process.env['PATH'] ?? '', DATA_DIR: dataDir, PORT: '0', ...environment },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  return { [Symbol.dispose]: () => child.kill() }
}

async function countsOf(bucket: Bucket) {
  const { counts } = await bucket.report()
  const sum = (method: string) =>
    Object.entries(counts)
      .filter(([name]) => name.startsWith(method))
      .reduce((total, [, count]) => total + count, 0)
  return { PUT: sum('PUT'), LIST: sum('LIST'), GET: sum('GET'), DELETE: sum('DELETE') }
}
