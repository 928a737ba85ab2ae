import { join } from 'node:path'
import { startServer } from '../test/support/process.ts'
import { type Figure, median, rssMegabytes } from './measure.ts'

const starts = 10
const settleMilliseconds = 3_000
const idleSeconds = 10

/** The executable beside an empty program compiled the same way: the time from start to first response on an
 *  existing database, and the memory and CPU time of an idle server. */
export async function measureStart(workshop: string): Promise<Figure[]> {
  const [hostline, empty] = [join(workshop, 'hostline'), join(workshop, 'empty')]
  const dataDir = join(workshop, 'data')
  await build(hostline, empty)
  await timeStart(hostline, dataDir)
  const times: number[] = []
  const emptyTimes: number[] = []
  for (let n = 0; n < starts; n++) {
    emptyTimes.push(await timeStart(empty, dataDir))
    times.push(await timeStart(hostline, dataDir))
  }
  const [time, emptyTime] = [median(times), median(emptyTimes)]
  return [
    { what: 'start, ms', value: time, goal: ['≤', 80] },
    { what: 'start of an empty program, ms', value: emptyTime },
    ...(await measureIdle(hostline, dataDir)),
  ]
}

async function build(hostline: string, empty: string) {
  const script = join(import.meta.dir, '../scripts/build.ts')
  const built = Bun.spawnSync(['bun', script, hostline], { stdout: 'ignore', stderr: 'inherit' })
  if (!built.success) throw new Error('the executable was not built')
  await Bun.write(
    `${empty}.ts`,
    `const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') })
console.log('listens on 127.0.0.1:' + server.port)`,
  )
  // Same options as scripts/build.ts.
  await Bun.build({
    entrypoints: [`${empty}.ts`],
    compile: { outfile: empty, autoloadDotenv: false, autoloadBunfig: false },
    bytecode: true,
    format: 'esm',
    sourcemap: 'linked',
  })
}

async function timeStart(executable: string, dataDir: string): Promise<number> {
  const startedAt = performance.now()
  await using server = await start(executable, dataDir)
  const milliseconds = performance.now() - startedAt
  await server.kill('SIGTERM')
  return milliseconds
}

/** Resolves with the first response. */
async function start(executable: string, dataDir: string, preload?: string) {
  const environment = preload ? { BUN_OPTIONS: `--preload=${preload}` } : {}
  const server = await startServer({ command: [executable], dataDir, environment })
  await fetch(`${server.base}/healthz`)
  return server
}

async function measureIdle(executable: string, dataDir: string): Promise<Figure[]> {
  await using server = await start(executable, dataDir)
  await Bun.sleep(settleMilliseconds)
  const rss = rssMegabytes(server.pid)
  await server.kill('SIGTERM')

  const counter = join(import.meta.dir, 'count-statements.ts')
  await using counted = await start(executable, dataDir, counter)
  await Bun.sleep(settleMilliseconds + idleSeconds * 1_000)
  const seconds = [...counted.output().matchAll(/statements: (\d+)/g)].slice(-idleSeconds)
  const statements = seconds.reduce((sum, [, count]) => sum + Number(count), 0) / seconds.length
  return [
    { what: 'RSS idle, MB', value: rss, goal: ['≤', 75] },
    { what: 'statements a second idle', value: statements, goal: ['≤', 2] },
  ]
}
