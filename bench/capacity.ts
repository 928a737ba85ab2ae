import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { databaseFile } from '../src/db/open.ts'
import { startServer } from '../test/support/process.ts'
import { peopleFill, refreshTokenOf, sessionsFill } from './growth/account-fill.ts'
import { messagesFill } from './growth/chat-fill.ts'
import { chatOperations } from './growth/chat-operations.ts'
import type { Fill } from './growth/dataset.ts'
import { fillDatabase } from './growth/generate.ts'
import type { Operation } from './growth/operation.ts'
import { type Subject, startSubject } from './growth/subject.ts'
import { ticketsFill } from './growth/support-fill.ts'
import { supportOperations } from './growth/support-operations.ts'
import { percentile, rssMegabytes } from './measure.ts'

/** `bun run bench:capacity`: the capacity of one machine, as a table. At scale 1 the database has 100,000 people,
 *  10,000,000 messages and 1,000,000 tickets. */

const { values } = parseArgs({
  options: {
    /** 0.01 for a trial run. */
    scale: { type: 'string', default: '1' },
    sockets: { type: 'string', default: '10000' },
    samples: { type: 'string', default: '500' },
  },
})
const scale = Number(values.scale)
const samples = Number(values.samples)
const people = peopleFill(100_000)
const fills: readonly Fill[] = [people, messagesFill(10_000_000), ticketsFill(1_000_000)]
const measured = [
  'messages by cursor, first part',
  'messages by cursor, as deep as page 3,000',
  'inbox by cursor, first part',
  'catching up after 100 missed',
  'send, small conversation',
  'queue, page 1',
  'queue by cursor, halfway',
  'search: a rare word',
  'search: a word of every seventh',
  'answer as an admin',
]
const warmUps = 50
const settleMilliseconds = 3_000
const spareFiles = 1_000
const socketsAtOnce = 50
const [senders, paceMilliseconds, quietSeconds] = [16, 20, 10]
const mebibyte = 2 ** 20

const workshop = mkdtempSync(join(tmpdir(), 'hostline-capacity-'))
try {
  console.log('| | |\n|---|---|')
  await measureSockets(Number(values.sockets))
  await measureDatabase()
} finally {
  rmSync(workshop, { recursive: true })
}
process.exit()

function printRow(what: string, value: string) {
  console.log(`| ${what} | ${value} |`)
}

async function measureSockets(wanted: number) {
  const dataDir = join(workshop, 'sockets')
  const landmarks = await fillDatabase(dataDir, wanted / 100_000, [people, sessionsFill])
  await using server = await startServer({ dataDir })
  const metrics = await (await fetch(`${server.base}/metrics`)).text()
  const maxFiles = Number(/^process_max_fds (.+)$/m.exec(metrics)?.[1])
  const count = Math.min(wanted, landmarks.people.length, maxFiles - spareFiles)
  const tokens = new Array<string>(count)
  await atOnce(count, async (n) => {
    tokens[n] = await refresh(server.base, n)
  })
  await Bun.sleep(settleMilliseconds)
  const before = rssMegabytes(server.pid)
  const startedAt = performance.now()
  const url = `${server.base.replace('http', 'ws')}/v1/chat/ws?token=`
  const sockets: WebSocket[] = []
  await atOnce(count, async (n) => {
    sockets.push(await open(url + tokens[n]))
  })
  const seconds = (performance.now() - startedAt) / 1_000
  await Bun.sleep(settleMilliseconds)
  const bytes = ((rssMegabytes(server.pid) - before) * mebibyte) / count
  printRow(`idle sockets (\`ulimit -n\` ${maxFiles})`, count.toLocaleString('en'))
  printRow('opening them', `${seconds.toFixed(1)} s`)
  printRow('memory for each', `${(bytes / 1_024).toFixed(1)} KiB`)
  for (const socket of sockets) socket.terminate()
}

async function atOnce(count: number, work: (n: number) => Promise<void>) {
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: socketsAtOnce }, lane))
}

async function refresh(base: string, n: number): Promise<string> {
  const body = JSON.stringify({ refresh_token: refreshTokenOf(n) })
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${base}/v1/auth/refresh`, { method: 'POST', headers, body })
  return ((await answer.json()) as { access_token: string }).access_token
}

function open(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url)
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(socket)
    socket.onerror = () => reject(new Error('a socket was refused'))
  })
}

async function measureDatabase() {
  const dataDir = join(workshop, 'database')
  const startedAt = performance.now()
  const landmarks = await fillDatabase(dataDir, scale, fills)
  const seconds = (performance.now() - startedAt) / 1_000
  const path = join(dataDir, databaseFile)
  printSizes(path)
  console.error(`filled and checked in ${seconds.toFixed()} s`)
  printRow('start until the first answer', `${(await timeStart(dataDir)).toFixed()} ms`)
  const subject = await startSubject(dataDir, landmarks)
  try {
    await subject.logIn()
    const operations: readonly Operation[] = [...chatOperations, ...supportOperations]
    for (const name of measured) {
      const operation = operations.find((one) => one.name === name)
      if (!operation) throw new Error(`there is no operation ${name}`)
      printRow(`${name}, p50 / p99`, await time(operation, subject))
    }
    await measureBackup(subject, dataDir)
  } finally {
    await subject.stop()
  }
}

function printSizes(path: string) {
  using sqlite = new Database(path, { readonly: true })
  const count = (table: string) =>
    Number(sqlite.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0])
  const [messages, tickets] = [count('messages'), count('tickets')]
  const [bytes] = sqlite
    .query<[number], []>(
      `SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'messages')`,
    )
    .values()[0] as [number]
  printRow('messages, tickets', `${messages.toLocaleString('en')}, ${tickets.toLocaleString('en')}`)
  printRow('size of the database', `${(statSync(path).size / mebibyte).toFixed()} MiB`)
  printRow('a message on the disk', `${(bytes / messages).toFixed()} bytes`)
}

async function timeStart(dataDir: string): Promise<number> {
  const startedAt = performance.now()
  const server = await startServer({ dataDir })
  await fetch(`${server.base}/healthz`)
  const milliseconds = performance.now() - startedAt
  await server.kill('SIGTERM')
  return milliseconds
}

async function time(operation: Operation, subject: Subject): Promise<string> {
  const { before, request } = await operation.prepare(subject)
  const times: number[] = []
  for (let n = -warmUps; n < samples; n++) {
    await before?.(n + warmUps)
    const askedAt = performance.now()
    await subject.ask(request(n + warmUps))
    if (n >= 0) times.push(performance.now() - askedAt)
  }
  return latency(times)
}

function latency(times: number[]): string {
  return `${[0.5, 0.99].map((share) => percentile(times, share).toFixed(1)).join(' / ')} ms`
}

/** Sends at a steady rate, before a backup and during it. */
async function measureBackup(subject: Subject, dataDir: string) {
  const path = `/v1/chat/conversations/${subject.landmarks.smallConversation}/messages`
  let times: number[] = []
  let wal = 0
  let isOver = false
  const send = async () => {
    while (!isOver) {
      const sentAt = performance.now()
      const body = { body: 'a message of the usual length, as people write' }
      await subject.ask({ as: 'ada', method: 'POST', path, body, status: 201 })
      times.push(performance.now() - sentAt)
      wal = Math.max(wal, statSync(join(dataDir, `${databaseFile}-wal`)).size)
      await Bun.sleep(paceMilliseconds)
    }
  }
  const loops = Array.from({ length: senders }, send)
  await Bun.sleep(quietSeconds * 1_000)
  printRow('sends before a backup, p50 / p99', latency(times))
  times = []
  const startedAt = performance.now()
  const copy = join(workshop, 'copy.db')
  const child = Bun.spawn(['bun', join(import.meta.dir, '../src/main.ts'), 'backup', copy], {
    env: { PATH: process.env['PATH'] ?? '', DATA_DIR: dataDir },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  if ((await child.exited) !== 0) throw new Error('the backup failed')
  printRow('a backup', `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
  printRow('sends during it, p50 / p99', latency(times))
  printRow('wal at most', `${(wal / mebibyte).toFixed()} MiB`)
  isOver = true
  await Promise.all(loops)
}
