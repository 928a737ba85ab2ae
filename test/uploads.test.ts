import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { filesIn } from './support/files.ts'
import { call, meet, startServer } from './support/process.ts'
import { waitFor } from './support/wait.ts'

// Large files and bad connections. The server is a process of its own, so that its memory can be measured.

const megabyte = 1_000_000
const largest = 25 * megabyte
const parallel = 16

const directory = temporaryDirectory()
afterAll(() => directory[Symbol.dispose]())
const server = await startServer({
  dataDir: directory.path,
  environment: { FILES_QUOTA_MB: '100000' },
})
afterAll(() => server[Symbol.asyncDispose]())
const { a: ada } = await meet(server.base)
const port = Number(new URL(server.base).port)
const stored = () => filesIn({ directory: directory.path })
const rounds = 3
const chunk = Buffer.alloc(65_536, 7)

function residentBytes() {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1_024
}

const atFirst = residentBytes()

/** The growth of the server's memory while something runs. */
async function growthDuring(work: Promise<unknown>) {
  let most = atFirst
  const watch = setInterval(() => {
    most = Math.max(most, residentBytes())
  }, 5)
  await work.finally(() => clearInterval(watch))
  return most - atFirst
}

async function open(head: string[]): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write([...head, 'Host: localhost', '', ''].join('\r\n'))
  return socket
}

const uploadHead = (...headers: string[]) => [
  'POST /v1/files HTTP/1.1',
  `Authorization: Bearer ${ada.token}`,
  ...headers,
]

async function sendBytes(socket: Socket, count: number) {
  for (let left = count; left > 0; left -= chunk.byteLength) {
    if (socket.write(chunk.subarray(0, left))) continue
    await new Promise((resolve) => socket.once('drain', resolve))
  }
}

/** The status of the response. */
async function statusOf(socket: Socket): Promise<number> {
  let text = ''
  socket.on('data', (data) => {
    text += data.toString('latin1')
  })
  return Number(await waitFor(() => /^HTTP\/1\.1 (\d+)/.exec(text)?.[1], 'an answer'))
}

async function uploadRaw() {
  const socket = await open(uploadHead(`Content-Length: ${largest}`, 'Connection: close'))
  await sendBytes(socket, largest)
  return statusOf(socket)
}

async function uploadForm() {
  const start = '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
  const end = '\r\n--x--\r\n'
  const length = start.length + largest + end.length
  const socket = await open(
    uploadHead(`Content-Length: ${length}`, 'Content-Type: multipart/form-data; boundary=x'),
  )
  socket.write(start)
  await sendBytes(socket, largest)
  socket.write(end)
  return statusOf(socket)
}

testAtLength('sixteen large uploads at once use a MiB or two each, repeatedly', async () => {
  const statuses: number[] = []
  const grown = await growthDuring(
    (async () => {
      for (let round = 0; round < rounds; round++) {
        const all = Array.from({ length: parallel }, (_, n) => (n % 2 ? uploadForm() : uploadRaw()))
        statuses.push(...(await Promise.all(all)))
      }
    })(),
  )
  console.log(`${parallel} uploads of 25 MB: ${(grown / megabyte).toFixed(0)} MB more`)
  expect(statuses).toEqual(Array(rounds * parallel).fill(201))
  expect(grown).toBeLessThan(110 * megabyte)
})

test('large downloads that are read slowly use little memory', async () => {
  const answer = await fetch(`${server.base}/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ada.token}` },
    body: new Uint8Array(largest),
  })
  const { id } = (await answer.json()) as { id: string }
  const readers = Array.from({ length: 20 }, async () => {
    const socket = await open([`GET /v1/files/${id}/a HTTP/1.1`])
    await new Promise((resolve) => socket.once('data', resolve))
    socket.pause()
    return socket
  })
  const grown = await growthDuring(Promise.all(readers))
  console.log(`20 readers of 25 MB that do not read: ${(grown / megabyte).toFixed(0)} MB more`)
  for (const reader of await Promise.all(readers)) reader.destroy()
  expect(grown).toBeLessThan(110 * megabyte)
})

test('an interrupted upload leaves nothing, whatever its declared size', async () => {
  const before = stored()
  const heads = [
    uploadHead('Content-Length: 1000000'),
    uploadHead('Transfer-Encoding: chunked'),
    uploadHead('Content-Length: 1000000', 'Content-Type: multipart/form-data; boundary=x'),
  ]
  for (const head of heads) {
    const socket = await open(head)
    if (head.some((line) => line.startsWith('Transfer'))) socket.write('10000\r\n')
    if (head.length > 3) socket.write('--x\r\ncontent-disposition: form-data; name="file"\r\n\r\n')
    await sendBytes(socket, 65_536)
    await waitFor(() => stored().length === before.length + 1, 'the beginning of a file')
    socket.destroy()
    await waitFor(() => stored().length === before.length, 'the end of it')
  }
  expect(stored()).toEqual(before)
  expect(server.output()).not.toContain('cannot be stored')
})

test('a slow sender delays no other', async () => {
  const socket = await open(uploadHead('Content-Length: 20'))
  for (let n = 0; n < 20; n++) {
    socket.write('x')
    const answer = await fetch(`${server.base}/healthz`)
    expect(answer.status).toBe(200)
  }
  expect(await statusOf(socket)).toBe(201)
  socket.destroy()
})

test('a crash keeps acknowledged uploads, and neither a readable part of others nor their room', async () => {
  const usedAt = async (base: string) =>
    (await call(base, 'GET', '/v1/files', { token: ada.token })).body.used
  const send = (text: string) =>
    fetch(`${server.base}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ada.token}` },
      body: text,
    })
  const { id } = (await (await send('acknowledged')).json()) as { id: string }
  const [before, used] = [stored(), await usedAt(server.base)]
  const socket = await open(uploadHead('Content-Length: 1000000'))
  await sendBytes(socket, 65_536)
  await waitFor(() => stored().length > before.length, 'the beginning of a file')
  await server.kill('SIGKILL')
  await using next = await startServer({ dataDir: directory.path })
  const kept = await fetch(`${next.base}/v1/files/${id}/file`)
  expect(await kept.text()).toBe('acknowledged')
  const [begun = ''] = stored().filter((name) => !before.includes(name))
  expect(begun).toEndWith('.part')
  const lost = await fetch(`${next.base}/v1/files/${begun.replace('.part', '')}/file`)
  expect(lost.status).toBe(404)
  await waitFor(async () => (await usedAt(next.base)) <= used, 'the room of the lost upload')
  await waitFor(() => !stored().includes(begun), 'the removal of its bytes')
})
