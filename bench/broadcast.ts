import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Client, createClient } from '../client/src/client.ts'
import { addFollowers } from '../test/support/audience.ts'
import { percentile, startPinned } from './measure.ts'

/** `bun run bench:broadcast`: the effect of a broadcast on other users. Pairs of people send messages at a steady
 *  rate over their sockets; a prober requests /healthz without pause: its longest wait bounds the longest stop of
 *  the event loop. */

const { values } = parseArgs({
  options: {
    followers: { type: 'string', default: '100000' },
    senders: { type: 'string', default: '32' },
    pace: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '10' },
  },
})
const [followers, count] = [Number(values.followers), Number(values.senders)]
const [pace, seconds] = [Number(values.pace), Number(values.seconds)]
const patienceMilliseconds = 180_000
const password = 'correct horse battery'

const directory = mkdtempSync(join(tmpdir(), 'hostline-broadcast-'))
try {
  await makeHost()
  await using server = await startPinned('hostline', { dataDir: directory })
  await measure(server.base)
} finally {
  rmSync(directory, { recursive: true })
}

async function makeHost() {
  const server = await startPinned('hostline', { dataDir: directory })
  const { id } = await enter(server.base, 'host').registered
  await server.kill('SIGTERM')
  using sqlite = new Database(join(directory, 'hostline.db'))
  sqlite.run("UPDATE users SET role = 'host', email_verified = 1 WHERE id = ?", [id])
  addFollowers(sqlite, id, followers)
}

function enter(baseUrl: string, name: string) {
  const client = createClient({ baseUrl })
  const email = `${name}@bench.example`
  return { client, registered: client.register({ email, password }) }
}

async function measure(base: string) {
  const host = createClient({ baseUrl: base })
  await host.login({ email: 'host@bench.example', password })
  const sends: number[] = []
  const probes: number[] = []
  let isOver = false

  async function talk({ client, conversationId }: Talker) {
    await Bun.sleep(Math.random() * pace)
    while (!isOver) {
      const sentAt = performance.now()
      await client.send(conversationId, { body: 'a message of the usual length, as people write' })
      sends.push(performance.now() - sentAt)
      await Bun.sleep(pace)
    }
  }

  async function probe() {
    while (!isOver) {
      const askedAt = performance.now()
      await (await fetch(`${base}/healthz`)).arrayBuffer()
      probes.push(performance.now() - askedAt)
    }
  }

  const talkers = await Promise.all(Array.from({ length: count }, (_, n) => meet(base, n)))
  const loops = [...talkers.map(talk), probe()]
  await Bun.sleep(2_000)
  sends.length = probes.length = 0
  await Bun.sleep(seconds * 1_000)
  const before = summary(sends, probes)
  sends.length = probes.length = 0

  const startedAt = performance.now()
  const { id } = await host.broadcasts.send({ body: 'Live at nine tonight: see you there' })
  await completed(host, id)
  const took = (performance.now() - startedAt) / 1_000
  const during = summary(sends, probes)
  isOver = true
  await Promise.all(loops)
  for (const { client } of talkers) client.disconnect()
  print(before, during, took)
  process.exitCode = during.p99 <= 2 * before.p99 && during.longest <= 30 ? 0 : 1
}

type Talker = { client: Client; conversationId: string }

async function meet(base: string, n: number): Promise<Talker> {
  const { client, registered } = enter(base, `a${n}`)
  await registered
  const other = await enter(base, `b${n}`).registered
  const { id: conversationId } = await client.conversations.open(other.id)
  await client.connect()
  return { client, conversationId }
}

async function completed(host: Client, id: string) {
  const deadline = performance.now() + patienceMilliseconds
  while ((await host.broadcasts.get(id)).status !== 'completed') {
    if (performance.now() > deadline) throw new Error('the broadcast did not end')
    await Bun.sleep(100)
  }
}

type Summary = ReturnType<typeof summary>

function summary(sends: number[], probes: number[]) {
  return {
    p50: percentile(sends, 0.5),
    p99: percentile(sends, 0.99),
    longest: Math.max(...probes),
  }
}

function print(before: Summary, during: Summary, tookSeconds: number) {
  console.log('| | sends: p50 / p99 ms | longest wait of a probe, ms |')
  console.log('|---|---|---|')
  for (const [name, { p50, p99, longest }] of Object.entries({ before, during })) {
    console.log(`| ${name} | ${p50.toFixed(2)} / ${p99.toFixed(2)} | ${longest.toFixed(1)} |`)
  }
  const factor = (during.p99 / before.p99).toFixed(2)
  console.log(`\n${followers} followers in ${tookSeconds.toFixed(1)} s; p99 of others × ${factor}`)
}
