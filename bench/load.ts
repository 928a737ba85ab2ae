import { readFileSync } from 'node:fs'
import { floorPairs, hostlinePairs, type Pair } from './targets.ts'

/** The load generator, a process of its own: N senders in a closed loop for some seconds. A message counts when its
 *  sender has the acknowledgement and both users' sockets have it. Prints one line of JSON. */

type Order = {
  target: 'floor' | 'hostline'
  base: string
  serverPid: number
  transport: 'socket' | 'rest'
  senders: number
  seconds: number
  /** Readers that ask for a page of messages in a closed loop, beside the senders. */
  readers: number
  /** People who log in, again and again, all at once. */
  logins: number
}

const order = JSON.parse(process.argv[2] ?? '{}') as Order
const { target, base, transport, senders, seconds, readers, logins } = order
const pairs =
  target === 'floor' ? floorPairs(base, senders) : await hostlinePairs(base, Math.max(senders, 1))
const warmUpMilliseconds = 1_000
const settleMilliseconds = 500
const latencies: number[] = []
const reads: number[] = []
let entered = 0
let counting = false
let stopped = false

if (readers > 0) await fillPage(pairs)
const loops = [
  ...pairs.slice(0, senders).map(talk),
  ...Array.from({ length: readers }, (_, n) => readLoop(n)),
  ...Array.from({ length: logins }, loginLoop),
  ...Array.from({ length: logins }, loginLoop),
]
await Bun.sleep(warmUpMilliseconds)
const cpuBefore = cpuMicroseconds()
const startedAt = performance.now()
counting = true
await Bun.sleep(seconds * 1_000)
counting = false
const elapsed = (performance.now() - startedAt) / 1_000
const cpu = cpuMicroseconds() - cpuBefore
stopped = true
await Promise.race([Promise.all(loops), Bun.sleep(settleMilliseconds)])

console.log(
  JSON.stringify({
    messagesPerSecond: Math.round(latencies.length / elapsed),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    cpuPerMessage: Math.round(cpu / Math.max(1, latencies.length)),
    pagesPerSecond: Math.round(reads.length / elapsed),
    readP50: percentile(reads, 0.5),
    readP99: percentile(reads, 0.99),
    cpuPerPage: Math.round(cpu / Math.max(1, reads.length)),
    loginsPerSecond: Math.round(entered / elapsed),
    rssMegabytes: rssMegabytes(),
  }),
)
process.exit(0)

async function talk({ sender, recipient }: Pair) {
  let arrived = { own: 0, theirs: 0 }
  let wake = () => {}
  const listen = async (url: string, count: () => void) => {
    const socket = new WebSocket(url)
    socket.onmessage = ({ data }) => {
      if (!String(data).includes('"new_message"')) throw new Error(String(data))
      count()
      wake()
    }
    await new Promise((resolve) => (socket.onopen = resolve))
    return socket
  }
  const own = await listen(sender.socketUrl, () => arrived.own++)
  const theirs = await listen(recipient.socketUrl, () => arrived.theirs++)
  const body = 'a message of the usual length, as people write them all day'
  while (!stopped) {
    arrived = { own: 0, theirs: 0 }
    const sentAt = performance.now()
    if (transport === 'socket') own.send(sender.frame(body))
    else await post(sender.sendUrl, sender.headers, body)
    while (arrived.own === 0 || arrived.theirs === 0) {
      await new Promise<void>((resolve) => (wake = resolve))
    }
    if (counting) latencies.push(performance.now() - sentAt)
  }
  own.close()
  theirs.close()
}

async function post(url: string, headers: Record<string, string>, body: string) {
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ body }) })
  if (answer.status !== 201) throw new Error(`a send answered ${answer.status}`)
  await answer.arrayBuffer()
}

async function loginLoop() {
  const body = JSON.stringify({ email: 'a0@bench.example', password: 'correct horse battery' })
  while (!stopped) {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${base}/v1/auth/login`, { method: 'POST', headers, body })
    await answer.arrayBuffer()
    if (counting && answer.status === 200) entered++
  }
}

async function fillPage([first]: Pair[]) {
  if (!first) return
  for (let n = 0; n < 50; n++)
    await post(first.sender.sendUrl, first.sender.headers, `message ${n}`)
}

async function readLoop(n: number) {
  const pair = pairs[n % Math.max(1, Math.min(senders, pairs.length))] ?? pairs[0]
  if (!pair) return
  const url = `${(senders > 0 ? pair : (pairs[0] ?? pair)).sender.sendUrl}?per_page=50`
  while (!stopped) {
    const askedAt = performance.now()
    const answer = await fetch(url, { headers: pair.sender.headers })
    if (answer.status !== 200) throw new Error(`a page answered ${answer.status}`)
    await answer.arrayBuffer()
    if (counting) reads.push(performance.now() - askedAt)
  }
}

function percentile(values: number[], share: number) {
  const sorted = values.toSorted((a, b) => a - b)
  return Number((sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(2))
}

function cpuMicroseconds() {
  const [, rest = ''] = readFileSync(`/proc/${order.serverPid}/stat`, 'utf8').split(') ')
  const fields = rest.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000 // clock ticks of 10 ms
}

function rssMegabytes() {
  const status = readFileSync(`/proc/${order.serverPid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024)
}
