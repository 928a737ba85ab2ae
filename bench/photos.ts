import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { deflateSync } from 'node:zlib'
import { call, meet } from '../test/support/process.ts'
import { judge, median, percentile, pin, startPinned } from './measure.ts'

/** `bun run bench:photos`: small requests while photos of 12 megapixels come in. The server has a core of its own; the
 *  prober and the sender of photos are processes on the other, where the sender has the lowest priority: photos come from other
 *  machines. */

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    photos: { type: 'string', default: '50' },
    /** Uploads at the same time. */
    senders: { type: 'string', default: '4' },
    /** The speed of each sender's line in Mbit/s; 0 has no limit. A good mobile network has 50. */
    line: { type: 'string', default: '0' },
    /** Before and after the photos. */
    'quiet-seconds': { type: 'string', default: '5' },
    /** For the child processes. */
    role: { type: 'string', default: '' },
    base: { type: 'string', default: '' },
    photo: { type: 'string', default: '' },
  },
})
/** A child process speaks JSON, one value a line. */
type Probe = [kind: 'read' | 'send', at: number, milliseconds: number]

const { base } = values
const pauseMilliseconds = 5
const settleMilliseconds = 1_000
const partBytes = 16_384
const [width, height] = [4_000, 3_000]
const kinds = ['read', 'send'] as const

async function compare() {
  const workshop = mkdtempSync(join(tmpdir(), 'hostline-photos-'))
  const photo = join(workshop, 'photo.jpg')
  const bytes = await Bun.write(photo, await makePhoto())
  console.log(
    `${values.photos} photos of ${(bytes / 1e6).toFixed(1)} MB, ${values.senders} at once, line: ${values.line} Mbit/s`,
  )
  console.log('| | quiet p50 / p99 ms | during p50 / p99 ms | p99 ratio | photos/s |')
  console.log('|---|---|---|---|---|')
  const ratios = { read: [] as number[], send: [] as number[] }
  try {
    for (let round = 0; round < Number(values.rounds); round++) {
      const dataDir = join(workshop, `data-${round}`)
      const environment = { FILES_QUOTA_MB: '10000' }
      await using server = await startPinned('hostline', { dataDir, environment })
      const prober = start('prober', server.base)
      // The first photos after a start load code.
      await finish(start('sender', server.base, photo, values.senders))
      await Bun.sleep(settleMilliseconds)
      const quietAt = Date.now()
      await Bun.sleep(Number(values['quiet-seconds']) * 1_000)
      const startedAt = Date.now()
      await finish(start('sender', server.base, photo))
      const endedAt = Date.now()
      await Bun.sleep(settleMilliseconds)
      const quietAgainAt = Date.now()
      await Bun.sleep(Number(values['quiet-seconds']) * 1_000)
      prober.kill('SIGTERM')
      const probes = JSON.parse(await finish(prober)) as Probe[]
      for (const kind of kinds) {
        const timesIn = (start: number, end = Number.POSITIVE_INFINITY) =>
          probes.filter(([of, at]) => of === kind && at >= start && at < end).map(([, , ms]) => ms)
        const quiet = [...timesIn(quietAt, startedAt), ...timesIn(quietAgainAt)]
        const during = timesIn(startedAt, endedAt)
        const ratio = percentile(during, 0.99) / percentile(quiet, 0.99)
        ratios[kind].push(ratio)
        const rate = Number(values.photos) / ((endedAt - startedAt) / 1_000)
        console.log(
          `| ${[kind, both(quiet), both(during), ratio.toFixed(2), rate.toFixed(1)].join(' | ')} |`,
        )
      }
    }
  } finally {
    rmSync(workshop, { recursive: true })
  }
  return judge(
    'during : quiet',
    kinds.map((kind) => ({ what: `p99, ${kind}`, value: median(ratios[kind]), goal: ['≤', 1.5] })),
  )
}

const both = (times: number[]) =>
  [0.5, 0.99].map((share) => percentile(times, share).toFixed(2)).join(' / ')

function start(role: 'prober' | 'sender', server: string, photo = '', photos = values.photos) {
  const options = [
    '--role',
    role,
    '--base',
    server,
    '--photo',
    photo,
    '--photos',
    photos,
    '--senders',
    values.senders,
    '--line',
    values.line,
  ]
  const nice = role === 'sender' ? ['nice', '-n', '19'] : []
  return Bun.spawn([...nice, ...pin(1), 'bun', import.meta.path, ...options], { stderr: 'inherit' })
}

async function finish(child: ReturnType<typeof start>): Promise<string> {
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error('a process of the benchmark failed')
  return text
}

/** Reads a page and sends a message in turns, until it is stopped. */
async function probe() {
  const { a, conversationId } = await meet(base)
  const path = `/v1/chat/conversations/${conversationId}/messages`
  const requests = {
    read: () => call(base, 'GET', `${path}?limit=20`, { token: a.token }),
    send: () => call(base, 'POST', path, { token: a.token, body: { body: 'hello' } }),
  }
  const probes: Probe[] = []
  let isStopped = false
  process.once('SIGTERM', () => (isStopped = true))
  while (!isStopped) {
    for (const kind of kinds) {
      const [at, startedAt] = [Date.now(), performance.now()]
      const { status } = await requests[kind]()
      if (status >= 300) throw new Error(`${kind} answered ${status}`)
      probes.push([kind, at, performance.now() - startedAt])
      await Bun.sleep(pauseMilliseconds)
    }
  }
  console.log(JSON.stringify(probes))
}

async function sendPhotos() {
  const email = `photographer-${Date.now()}@example.com`
  const account = { email, password: 'correct horse' }
  const { body: session } = await call(base, 'POST', '/v1/auth/register', { body: account })
  const photo = await Bun.file(values.photo).bytes()
  let left = Number(values.photos)
  const headers = { authorization: `Bearer ${session.access_token}`, 'content-type': 'image/jpeg' }
  const send = async () => {
    while (left-- > 0) {
      const body = overLine(photo)
      const answer = await fetch(`${base}/v1/files`, { method: 'POST', headers, body })
      const { placeholder } = (await answer.json()) as { placeholder?: string }
      if (!placeholder) throw new Error(`an upload answered ${answer.status}`)
    }
  }
  await Promise.all(Array.from({ length: Number(values.senders) }, send))
}

/** The bytes as they come over a sender's line. */
function overLine(bytes: Uint8Array): ReadableStream | Uint8Array {
  const bytesPerMillisecond = (Number(values.line) * 1e6) / 8 / 1_000
  if (bytesPerMillisecond === 0) return bytes
  const startedAt = performance.now()
  let at = 0
  return new ReadableStream({
    async pull(controller) {
      const early = startedAt + at / bytesPerMillisecond - performance.now()
      if (early > 0) await Bun.sleep(early)
      controller.enqueue(bytes.slice(at, at + partBytes))
      at += partBytes
      if (at >= bytes.length) controller.close()
    },
  })
}

/** Noise of a few pixels, so that the file is as large as a photo. */
async function makePhoto(): Promise<Uint8Array> {
  const [columns, rows] = [width / 4, height / 4]
  const line = () =>
    Buffer.concat([Buffer.of(0), crypto.getRandomValues(Buffer.alloc(columns * 3))])
  const header = Buffer.alloc(13)
  header.writeUInt32BE(columns, 0)
  header.writeUInt32BE(rows, 4)
  header.set([8, 2], 8)
  const chunk = (type: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const numbers = Buffer.alloc(8)
    numbers.writeUInt32BE(data.length, 0)
    numbers.writeUInt32BE(Bun.hash.crc32(body), 4)
    return Buffer.concat([numbers.subarray(0, 4), body, numbers.subarray(4)])
  }
  const pixels = deflateSync(Buffer.concat(Array.from({ length: rows }, line)), { level: 1 })
  const png = Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', pixels),
    chunk('IEND', new Uint8Array()),
  ])
  return await new Bun.Image(png).resize(width, height).jpeg({ quality: 85 }).bytes()
}

if (values.role === 'prober') await probe()
else if (values.role === 'sender') await sendPhotos()
else process.exitCode = await compare()
