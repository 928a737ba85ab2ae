import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { hostlineCommand, pin, startProcess } from './server.ts'

/** `bun run bench`: Hostline beside the floor, alternating, each server on the same core, the load on another. */

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    senders: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '2' },
  },
})
const seconds = Number(values.seconds)
const senders = Number(values.senders)
const shim = await buildShim()

type Target = 'floor' | 'hostline'
type Case = {
  name: string
  target: Target
  transport: 'socket' | 'rest'
  senders: number
  readers: number
  logins?: number
  syncMs: number
}
type Result = Record<
  | 'messagesPerSecond'
  | 'p50'
  | 'p99'
  | 'cpuPerMessage'
  | 'pagesPerSecond'
  | 'readP50'
  | 'readP99'
  | 'cpuPerPage'
  | 'rssMegabytes'
  // The log never shrinks while it is in use: its size at the end is the largest.
  | 'logMegabytes',
  number
>

const cases: Case[] = []
for (let round = 0; round < Number(values.rounds); round++) {
  for (const transport of ['socket', 'rest'] as const) {
    for (const target of ['floor', 'hostline'] as const) {
      cases.push({
        name: `${transport}, ${senders} senders`,
        target,
        transport,
        senders,
        readers: 0,
        syncMs: 0,
      })
    }
  }
}
for (const target of ['floor', 'hostline'] as const) {
  cases.push({
    name: 'socket, sync + 2 ms',
    target,
    transport: 'socket',
    senders,
    readers: 0,
    syncMs: 2,
  })
}
cases.push({
  name: 'socket + 1 reader, sync 20 ms',
  target: 'hostline',
  transport: 'socket',
  senders,
  readers: 1,
  syncMs: 20,
})
cases.push({
  name: 'pages of 50, 16 readers',
  target: 'hostline',
  transport: 'rest',
  senders: 0,
  readers: 16,
  syncMs: 0,
})
cases.push({
  name: '200 logins at once + 4 readers',
  target: 'hostline',
  transport: 'rest',
  senders: 0,
  readers: 4,
  logins: 200,
  syncMs: 0,
})

console.log(
  '| case | server | messages/s | p50 / p99 ms | CPU µs/message | pages/s | p50 / p99 ms | RSS MB | log MB |',
)
console.log('|---|---|---|---|---|---|---|---|---|')
for (const one of cases) {
  if (one.syncMs > 0 && !shim) continue
  console.log(row(one, await measure(one)))
}
if (shim) rmSync(dirname(shim), { recursive: true })
else console.log('no C compiler here: the cases with a slow disk were left out')

function row({ name, target, senders, readers }: Case, r: Result) {
  const sent =
    senders > 0 ? [r.messagesPerSecond, `${r.p50} / ${r.p99}`, r.cpuPerMessage] : ['', '', '']
  const read = readers > 0 ? [r.pagesPerSecond, `${r.readP50} / ${r.readP99}`] : ['', '']
  return `| ${[name, target, ...sent, ...read, r.rssMegabytes, r.logMegabytes].join(' | ')} |`
}

async function measure(one: Case): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), 'hostline-bench-'))
  const server = await startProcess(command(one.target, directory), {
    DATA_DIR: directory,
    ...(one.syncMs > 0 && { LD_PRELOAD: shim ?? '', SLOW_SYNC_MS: String(one.syncMs) }),
  })
  try {
    const order = {
      logins: 0,
      ...one,
      base: server.base,
      serverPid: server.pid,
      seconds,
    }
    const load = Bun.spawn(
      [...pin(1), 'bun', join(import.meta.dir, 'load.ts'), JSON.stringify(order)],
      {
        // The runtime's own bound on requests at once would make readers wait in the client.
        env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '4096' },
        stdout: 'pipe',
        stderr: 'inherit',
      },
    )
    const result = JSON.parse(await new Response(load.stdout).text()) as Omit<
      Result,
      'logMegabytes'
    >
    const log = join(directory, one.target === 'floor' ? 'floor.db-wal' : 'hostline.db-wal')
    return { ...result, logMegabytes: Math.round(statSync(log).size / 1_048_576) }
  } finally {
    await server.stop()
    rmSync(directory, { recursive: true })
  }
}

function command(target: Target, directory: string) {
  return target === 'floor'
    ? ['bun', join(import.meta.dir, 'floor.ts'), directory]
    : hostlineCommand
}

async function buildShim(): Promise<string | undefined> {
  if (!Bun.which('gcc')) return undefined
  const path = join(mkdtempSync(join(tmpdir(), 'hostline-shim-')), 'slow-sync.so')
  const source = join(import.meta.dir, 'slow-sync.c')
  const { exitCode } = Bun.spawnSync(['gcc', '-shared', '-fPIC', '-O2', '-o', path, source])
  return exitCode === 0 ? path : undefined
}
