import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../../test/support/directory.ts'
import { call, meet, startServer, type Visitor } from '../../test/support/process.ts'
import { headFrom, stuckReader, TestSocket } from '../../test/support/socket.ts'
import { tools } from '../../test/support/tools.ts'
import { waitFor } from '../../test/support/wait.ts'
import { measured } from '../measure.ts'

// A flood must slow down its sender only. The server is a process of its own, so that its memory can be measured.

const floodMilliseconds = 1_500
const unseenMessages = 5_000
const megabyte = 1_048_576

const wsBase = (base: string) => `${base.replace('http', 'ws')}/v1/chat/ws`
const open = (base: string, { token }: Visitor) => TestSocket.open(`${wsBase(base)}?token=${token}`)

function residentBytes(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1_024
}

/** Two people send each other messages while `happening` runs.
 *  @returns the delivery times in ms */
async function talkMeanwhile(base: string, pair: Pair, happening: Promise<unknown>) {
  const [ada, bob] = [await open(base, pair.a), await open(base, pair.b)]
  const took: number[] = []
  let isOver = false
  void happening.finally(() => {
    isOver = true
  })
  while (!isOver) {
    const sentAt = performance.now()
    ada.send({ type: 'message', conversation_id: pair.conversationId, body: 'hello' })
    await bob.next('new_message')
    took.push(performance.now() - sentAt)
    await waitFor(() => performance.now() - sentAt > 110) // the limit is ten a second
  }
  await happening
  return took.sort((a, b) => a - b)
}

type Pair = Awaited<ReturnType<typeof meet>>

async function startFlooded() {
  const directory = temporaryDirectory()
  const server = await startServer({
    dataDir: directory.path,
    environment: { RATE_LIMIT_FRAMES: '10/1s' },
  })
  const pair = await meet(server.base)
  const [mallory, trent] = await Promise.all(
    ['mallory', 'trent'].map(async (name): Promise<Visitor> => {
      const email = `${name}@example.com`
      const body = { email, password: 'correct horse' }
      const answer = await call(server.base, 'POST', '/v1/auth/register', { body })
      const { user, access_token: token, refresh_token: refreshToken } = answer.body
      return { id: user.id, email, token, refreshToken }
    }),
  )
  if (!mallory || !trent) throw new Error('two people were not registered')
  const opened = await call(server.base, 'POST', '/v1/chat/conversations', {
    token: mallory.token,
    body: { user_id: trent.id },
  })
  return {
    server,
    dataDir: directory.path,
    pair,
    mallory,
    trent,
    conversationId: opened.body.id as string,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      directory[Symbol.dispose]()
    },
  }
}

/** Sends as fast as possible over a socket that is reopened whenever it is closed.
 *  @returns the close codes */
async function flood(base: string, mallory: Visitor, frames: readonly string[]) {
  const codes: number[] = []
  const until = performance.now() + floodMilliseconds
  while (performance.now() < until) {
    const socket = await open(base, mallory)
    let code: number | undefined
    void socket.closed.then((reason) => {
      code = reason
    })
    while (code === undefined && performance.now() < until) {
      for (const frame of frames) socket.send(frame)
      socket.frames.length = 0
      await new Promise(setImmediate)
    }
    socket.close()
    codes.push(await socket.closed)
  }
  return codes
}

const ninthDecile = (sorted: number[]) => sorted[Math.floor(sorted.length * 0.9)] ?? 0

function report(name: string, took: number[], grownBytes: number) {
  const [others, grown] = [ninthDecile(took).toFixed(0), (grownBytes / megabyte).toFixed(0)]
  console.log(`${name}: others' p90 ${others} ms, resident memory ${grown} MB more`)
}

test.each([
  [
    'messages',
    (id: string) => [JSON.stringify({ type: 'message', conversation_id: id, body: 'x' })],
  ],
  [
    'typing',
    (id: string) => Array(10).fill(JSON.stringify({ type: 'typing', conversation_id: id })),
  ],
  ['gibberish', () => Array(10).fill('{"type":')],
  ['large frames', () => [JSON.stringify({ type: 'message', body: 'x'.repeat(60_000) })]],
])(
  'a flood of %s is cut off, others talk on, and memory stays flat',
  async (name, framesFor) => {
    await using flooded = await startFlooded()
    const { server, pair, mallory, conversationId } = flooded
    const before = residentBytes(server.pid)
    const frames = framesFor(conversationId)
    const flooding = Promise.all(
      Array.from({ length: 10 }, () => flood(server.base, mallory, frames)),
    )
    const took = await talkMeanwhile(server.base, pair, flooding)
    const codes = new Set((await flooding).flat())
    expect(codes.has(4429) || codes.has(4400)).toBe(true)
    expect(took.length).toBeGreaterThan(3)
    const grown = residentBytes(server.pid) - before
    report(name, took, grown)
    expect(ninthDecile(took)).toBeLessThan(250)
    expect(grown).toBeLessThan(96 * megabyte)
  },
  measured,
)

test(
  'fifty readers that do not read are cut off at a MiB each, and memory stays flat',
  async () => {
    await using flooded = await startFlooded()
    const { server, pair, mallory, trent, conversationId } = flooded
    const path = `/v1/chat/ws?token=${trent.token}`
    const stuck = await Promise.all(
      Array.from({ length: 50 }, () => stuckReader(server.base, path)),
    )
    const before = residentBytes(server.pid)
    const send = async () => {
      const until = performance.now() + floodMilliseconds
      const message = { token: mallory.token, body: { body: '\u{1F600}'.repeat(5_000) } }
      while (performance.now() < until) {
        const target = `/v1/chat/conversations/${conversationId}/messages`
        await Promise.all(
          Array.from({ length: 8 }, () => call(server.base, 'POST', target, message)),
        )
      }
    }
    const sending = send()
    const took = await talkMeanwhile(server.base, pair, sending)
    const grown = residentBytes(server.pid) - before
    report('readers that do not read', took, grown)
    expect(ninthDecile(took)).toBeLessThan(250)
    expect(grown).toBeLessThan(160 * megabyte)
    for (const socket of stuck) socket.destroy()
  },
  measured,
)

/** Fills the conversations of `readers` with unread messages. */
function addUnseen(path: string, readers: readonly string[], messages: number) {
  const sqlite = new Database(path)
  const conversation = sqlite.prepare<{ id: string; user_a: string; user_b: string }, [string]>(
    'SELECT id, user_a, user_b FROM conversations WHERE ?1 IN (user_a, user_b)',
  )
  const insert = sqlite.prepare(
    `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?4)
     INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, created_at)
     SELECT ?1, i, printf('%s%06d', substr(?2, 1, 20), i), ?3, 'text', 'hello', i FROM n`,
  )
  sqlite.transaction(() => {
    for (const reader of readers) {
      const found = conversation.get(reader)
      if (!found) throw new Error('there is no conversation')
      const { id, user_a, user_b } = found
      insert.run(id, id, reader === user_a ? user_b : user_a, messages)
      sqlite.run('UPDATE conversations SET last_seq = ? WHERE id = ?', [messages, id])
      sqlite.run('UPDATE participants SET last_activity_id = ? WHERE conversation_id = ?', [
        `${id.slice(0, 20)}${String(messages).padStart(6, '0')}`,
        id,
      ])
    }
  })()
  sqlite.close()
}

test(
  'forty replays at once, two of each of twenty people, do not delay others',
  async () => {
    await using flooded = await startFlooded()
    const { server, pair, trent } = flooded
    const readers = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const body = { email: `reader${n}@example.com`, password: 'correct horse' }
        const answer = await call(server.base, 'POST', '/v1/auth/register', { body })
        const { user, access_token: token } = answer.body
        const open = { token, body: { user_id: trent.id } }
        await call(server.base, 'POST', '/v1/chat/conversations', open)
        return { id: user.id as string, token: token as string }
      }),
    )
    const ids = readers.map(({ id }) => id)
    addUnseen(join(flooded.dataDir, 'hostline.db'), ids, unseenMessages)
    // The service replays only what is not newer than the last message that it has delivered.
    const path = `/v1/chat/conversations/${pair.conversationId}/messages`
    await call(server.base, 'POST', path, { token: pair.a.token, body: { body: 'hello' } })
    const replay = async ({ token }: { token: string }) => {
      const since = '0'.repeat(26)
      const socket = await TestSocket.open(`${wsBase(server.base)}?token=${token}&since=${since}`)
      await waitFor(() => socket.frames.length >= unseenMessages, 'the replay', 20_000)
      socket.close()
    }
    const replays = Promise.all([...readers, ...readers].map(replay))
    const took = await talkMeanwhile(server.base, pair, replays)
    const slowest = took.at(-1) ?? 0
    console.log(`forty replays: the slowest of ${took.length} others took ${slowest.toFixed(0)} ms`)
    expect(took.length).toBeGreaterThan(5)
    expect(slowest).toBeLessThan(100)
  },
  measured,
)

// Opens `argv[2]` connections with small receive buffers that never read, each with the request from stdin.
const holder = `
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **argv) {
  char request[8192];
  int length = fread(request, 1, sizeof request, stdin), buffer = 4096, segment = 1448;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int n = atoi(argv[2]); n > 0; n--) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    setsockopt(s, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    if (connect(s, (void *)&to, sizeof to) || write(s, request, length) != length) return 1;
  }
  puts("holding");
  fflush(stdout);
  pause();
}`

test.skipIf(!tools.gcc)(
  'unread responses take little memory, and other clients are served',
  async () => {
    await using flooded = await startFlooded()
    const { server, mallory, conversationId } = flooded
    const message = { token: mallory.token, body: { body: '\u{1F600}'.repeat(2_300) } }
    const path = `/v1/chat/conversations/${conversationId}/messages`
    for (let n = 0; n < 100; n++) await call(server.base, 'POST', path, message)
    const page = () => call(server.base, 'GET', `${path}?per_page=100`, mallory)
    const bytes = Buffer.byteLength(JSON.stringify((await page()).body))
    expect(bytes).toBeGreaterThan(900_000)
    expect(bytes).toBeLessThan(megabyte)

    const before = residentBytes(server.pid)
    const binary = join(flooded.dataDir, 'holder')
    await Bun.$`${tools.gcc} -x c -o ${binary} - < ${new Response(holder)}`.quiet()
    const { port } = new URL(server.base)
    const head = `GET ${path}?per_page=100 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${mallory.token}\r\n\r\n`
    await using child = Bun.spawn([binary, port, '300'], {
      stdin: new Blob([head]),
      stdout: 'pipe',
    })
    await child.stdout.getReader().read()
    const refused = await waitFor(async () => {
      const answer = await page()
      return answer.status === 429 ? answer : undefined
    }, 'the refusal of one more')
    expect(refused.body.error.code).toBe('rate_limited')
    expect(await headFrom('127.0.0.2', server.base, '/v1/openapi.json')).toMatch(/^HTTP.1.1 200/)
    const grown = residentBytes(server.pid) - before
    console.log(`unread responses: resident memory ${(grown / megabyte).toFixed(0)} MB more`)
    expect(grown).toBeLessThan(160 * megabyte)
    child.kill()
    await child.exited
    await waitFor(async () => (await page()).status === 200, 'answers as before')
  },
  measured,
)
