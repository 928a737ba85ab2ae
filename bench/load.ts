import { call } from '../test/support/process.ts'
import { cpuMicroseconds, percentile, rssMegabytes, type Target } from './measure.ts'

/** The load generator, a process of its own: closed loops of requests for some seconds. A message counts once its
 *  sender has the acknowledgement and both users' sockets have received it. Prints one line of JSON, a `Result`. */

export type Load = {
  transport?: 'socket' | 'rest'
  senders?: number
  /** Messages a second of all senders together; unlimited when absent. */
  perSecond?: number
  /** People who request pages of 50 messages, besides the senders. */
  readers?: number
  /** People who log in repeatedly, in parallel. */
  logins?: number
  /** Prefix of the names, different from that of an earlier load on the same database. */
  prefix?: string
}
export type Order = Load & {
  target: Target
  base: string
  serverPid: number
  seconds: number
  /** Seconds of load that do not count, before the others; 1 by default. */
  warmUp?: number
}
/** Times in ms; `cpu` is the server's CPU time in µs for each, only when nothing else ran. */
export type Series = { rate: number; p50: number; p99: number; cpu: number | null }
export type Result = { sends: Series | null; reads: Series | null; rssMegabytes: number }

/** A sender and the other participant. */
type Pair = {
  socketUrls: [own: string, theirs: string]
  messagesUrl: string
  headers: Record<string, string>
  frame: string
}

/** Password hashing keeps the server busy, so few people register at a time. */
const pairsAtOnce = 32
const body = 'a message of the usual length, as people write them all day'
const json = { 'content-type': 'application/json' }

const order = JSON.parse(process.argv[2] ?? '{}') as Order
const { target, base, serverPid, seconds, warmUp = 1 } = order
const { transport = 'rest', senders = 0, readers = 0, logins = 0, perSecond, prefix = '' } = order
const pauseMilliseconds = perSecond === undefined ? 0 : (1_000 * senders) / perSecond
const sendTimes: number[] = []
const readTimes: number[] = []
let isCounting = false

const pairOf = target === 'floor' ? floorPair : hostlinePair
const pairs: Pair[] = []
while (pairs.length < senders) {
  const rest = Math.min(pairsAtOnce, senders - pairs.length)
  const known = pairs.length
  pairs.push(...(await Promise.all(Array.from({ length: rest }, (_, n) => pairOf(known + n)))))
}
const first = pairs[0] ?? (await pairOf(0))
if (readers > 0) for (let n = 0; n < 50; n++) await post(first)
for (const pair of pairs) void talk(pair)
for (let n = 0; n < readers; n++) void read(first)
for (let n = 0; n < logins; n++) void logIn()
await Bun.sleep(warmUp * 1_000)
const cpuBefore = cpuMicroseconds(serverPid)
const startedAt = performance.now()
isCounting = true
await Bun.sleep(seconds * 1_000)
isCounting = false
const elapsedSeconds = (performance.now() - startedAt) / 1_000
const cpu = cpuMicroseconds(serverPid) - cpuBefore

const result: Result = {
  sends: senders > 0 ? series(sendTimes, readers + logins) : null,
  reads: readers > 0 ? series(readTimes, senders + logins) : null,
  rssMegabytes: rssMegabytes(serverPid),
}
console.log(JSON.stringify(result))
process.exit(0)

function series(times: number[], others: number): Series {
  return {
    rate: times.length / elapsedSeconds,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    cpu: others > 0 ? null : cpu / times.length,
  }
}

async function talk(pair: Pair) {
  const missing = new Set<string>()
  let wake = () => {}
  const open = async (url: string) => {
    const socket = new WebSocket(url)
    socket.onmessage = ({ data }) => {
      if (!String(data).includes('"new_message"')) throw new Error(String(data))
      missing.delete(url)
      if (missing.size === 0) wake()
    }
    await new Promise((resolve) => (socket.onopen = resolve))
    return socket
  }
  const [own, theirs] = pair.socketUrls
  const socket = await open(own)
  await open(theirs)
  let nextAt = performance.now() + Math.random() * pauseMilliseconds
  while (true) {
    if (pauseMilliseconds > 0) await Bun.sleep(Math.max(0, nextAt - performance.now()))
    nextAt = Math.max(nextAt, performance.now() - pauseMilliseconds) + pauseMilliseconds
    missing.add(own).add(theirs)
    const arrived = new Promise<void>((resolve) => (wake = resolve))
    const sentAt = performance.now()
    if (transport === 'socket') socket.send(pair.frame)
    else await post(pair)
    await arrived
    if (isCounting) sendTimes.push(performance.now() - sentAt)
  }
}

function post({ messagesUrl, headers }: Pair) {
  return ask(messagesUrl, 201, { method: 'POST', headers, body: JSON.stringify({ body }) })
}

async function read({ messagesUrl, headers }: Pair) {
  while (true) {
    const askedAt = performance.now()
    await ask(`${messagesUrl}?per_page=50`, 200, { headers })
    if (isCounting) readTimes.push(performance.now() - askedAt)
  }
}

async function logIn() {
  const request = { method: 'POST', headers: json, body: JSON.stringify(account('a0')) }
  while (true) await ask(`${base}/v1/auth/login`, 200, request)
}

async function ask(url: string, status: number, request: RequestInit) {
  const answer = await fetch(url, request)
  if (answer.status !== status) throw new Error(`${url} answered ${answer.status}`)
  await answer.arrayBuffer()
}

/** The floor server has no accounts. */
function floorPair(n: number): Pair {
  const socketUrl = `${base.replace('http', 'ws')}/ws/`
  return {
    socketUrls: [`${socketUrl}${2 * n}`, `${socketUrl}${2 * n + 1}`],
    messagesUrl: `${base}/messages/${2 * n}`,
    headers: json,
    frame: JSON.stringify({ type: 'message', body }),
  }
}

/** Registers two people and creates their conversation. */
async function hostlinePair(n: number): Promise<Pair> {
  const register = async (name: string) => {
    const { status, body } = await call(base, 'POST', '/v1/auth/register', { body: account(name) })
    if (status !== 201) throw new Error(`registration failed: ${JSON.stringify(body)}`)
    return body
  }
  const [a, b] = await Promise.all([register(`a${n}`), register(`b${n}`)])
  const token = a.access_token
  const request = { token, body: { user_id: b.user.id } }
  const { id } = (await call(base, 'POST', '/v1/chat/conversations', request)).body
  const socketUrl = `${base.replace('http', 'ws')}/v1/chat/ws?token=`
  return {
    socketUrls: [socketUrl + token, socketUrl + b.access_token],
    messagesUrl: `${base}/v1/chat/conversations/${id}/messages`,
    headers: { ...json, authorization: `Bearer ${token}` },
    frame: JSON.stringify({ type: 'message', conversation_id: id, body }),
  }
}

function account(name: string) {
  return { email: `${prefix}${name}@bench.example`, password: 'correct horse battery' }
}
