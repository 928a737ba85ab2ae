import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addFollowers } from '../test/support/audience.ts'
import { startBenchServer } from './server.ts'
import { hostlinePairs, type Pair } from './targets.ts'

/** `bun run bench:broadcast`: what others notice while a broadcast goes out. Senders talk at a steady pace over their
 *  sockets; a prober asks for /healthz without pause, so that its longest wait bounds the longest stop of the loop. */

const { values } = parseArgs({
  options: {
    followers: { type: 'string', default: '100000' },
    senders: { type: 'string', default: '32' },
    // Milliseconds between two messages of a sender; 0 sends as fast as answers come.
    pace: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '6' },
  },
})
const [followers, count] = [Number(values.followers), Number(values.senders)]
const [pace, seconds] = [Number(values.pace), Number(values.seconds)]
const patienceMilliseconds = 180_000

const directory = mkdtempSync(join(tmpdir(), 'hostline-broadcast-'))
try {
  const host = await prepare()
  const server = await startBenchServer(directory)
  try {
    await measure(server.base, host)
  } finally {
    await server.stop()
  }
} finally {
  rmSync(directory, { recursive: true })
}

async function prepare() {
  const server = await startBenchServer(directory)
  const [pair] = await hostlinePairs(server.base, count)
  await server.stop()
  const headers = pair?.sender.headers ?? {}
  const claims = headers['authorization']?.split('.')[1] ?? ''
  const { sub } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sub: string }
  using sqlite = new Database(join(directory, 'hostline.db'))
  sqlite.run("UPDATE users SET role = 'host', email_verified = 1 WHERE id = ?", [sub])
  addFollowers(sqlite, sub, followers)
  return headers
}

async function measure(base: string, headers: Record<string, string>) {
  const pairs = await hostlinePairs(base, count, 'q')
  const sends: number[] = []
  const probes: number[] = []
  let isOver = false
  const loops = [...pairs.map((pair) => talk(pair, sends, () => isOver)), probe()]

  async function probe() {
    while (!isOver) {
      const askedAt = performance.now()
      await (await fetch(`${base}/healthz`)).arrayBuffer()
      probes.push(performance.now() - askedAt)
    }
  }

  await Bun.sleep(1_500)
  sends.length = probes.length = 0
  await Bun.sleep(seconds * 1_000)
  const quiet = summary(sends, probes)
  sends.length = probes.length = 0

  const startedAt = performance.now()
  const body = JSON.stringify({ body: 'Live at nine tonight: see you there' })
  const answer = await fetch(`${base}/v1/chat/broadcast`, { method: 'POST', headers, body })
  const { id } = (await answer.json()) as { id: string }
  await completed(`${base}/v1/chat/broadcasts/${id}`, headers)
  const took = (performance.now() - startedAt) / 1_000
  const busy = summary(sends, probes)
  isOver = true
  await Promise.race([Promise.all(loops), Bun.sleep(1_000)])

  console.log('| | sends: p50 / p99 ms | longest wait of a probe, ms |')
  console.log('|---|---|---|')
  console.log(`| before | ${quiet.p50} / ${quiet.p99} | ${quiet.longest} |`)
  console.log(`| during | ${busy.p50} / ${busy.p99} | ${busy.longest} |`)
  console.log(
    `\n${followers} followers in ${took.toFixed(1)} s; p99 of others × ${(busy.p99 / quiet.p99).toFixed(2)}`,
  )
  process.exitCode = busy.p99 <= 2 * quiet.p99 && busy.longest <= 30 ? 0 : 1
}

async function talk({ sender, recipient }: Pair, sends: number[], isOver: () => boolean) {
  let wake = () => {}
  const [own, theirs] = [new WebSocket(sender.socketUrl), new WebSocket(recipient.socketUrl)]
  await Promise.all([own, theirs].map((it) => new Promise((resolve) => (it.onopen = resolve))))
  theirs.onmessage = () => wake()
  await Bun.sleep(Math.random() * pace)
  while (!isOver()) {
    const sentAt = performance.now()
    const arrived = new Promise<void>((resolve) => (wake = resolve))
    own.send(sender.frame('a message of the usual length, as people write them all day'))
    await arrived
    sends.push(performance.now() - sentAt)
    if (pace > 0) await Bun.sleep(pace)
  }
  own.close()
  theirs.close()
}

async function completed(url: string, headers: Record<string, string>) {
  const deadline = performance.now() + patienceMilliseconds
  while (performance.now() < deadline) {
    const { status } = (await (await fetch(url, { headers })).json()) as { status: string }
    if (status === 'completed') return
    await Bun.sleep(100)
  }
  throw new Error('the broadcast did not end')
}

function summary(sends: number[], probes: number[]) {
  const sorted = sends.toSorted((a, b) => a - b)
  const at = (share: number) =>
    Number((sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(2))
  return { p50: at(0.5), p99: at(0.99), longest: Number(Math.max(...probes).toFixed(1)) }
}
