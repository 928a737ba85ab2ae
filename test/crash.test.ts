import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from './support/directory.ts'
import { allMessages, call, meet, startServer } from './support/process.ts'
import { TestSocket } from './support/socket.ts'
import { waitFor } from './support/wait.ts'

const compiler = Bun.which('gcc') ?? Bun.which('cc')
const workshop = temporaryDirectory()
const shim = join(workshop.path, 'power-cut.so')
afterAll(() => workshop[Symbol.dispose]())

/** Sends over REST and the socket, many at once, until the server is gone.
 *  @returns the bodies that were acknowledged, as they come in */
function burst(base: string, { a, b, conversationId }: Awaited<ReturnType<typeof meet>>) {
  const acknowledged: string[] = []
  let over = false
  const path = `/v1/chat/conversations/${conversationId}/messages`
  const loops = Array.from({ length: 16 }, async (_, sender) => {
    for (let n = 0; !over; n++) {
      const body = { body: `rest ${sender} ${n}`, client_id: `${sender} ${n}` }
      const answer = await call(base, 'POST', path, { token: a.token, body }).catch(() => undefined)
      if (answer?.status !== 201) return
      acknowledged.push(body.body)
    }
  })
  const socketLoop = async () => {
    const url = `${base.replace('http', 'ws')}/v1/chat/ws?token=${b.token}`
    const socket = await TestSocket.open(url)
    for (let n = 0; !over; n++) {
      socket.send({ type: 'message', conversation_id: conversationId, body: `frame ${n}` })
      let text = ''
      while (text !== `frame ${n}`) {
        const frame = await Promise.race([socket.next('new_message'), socket.closed])
        if (typeof frame === 'number') return
        text = frame.message.body
      }
      acknowledged.push(text)
    }
  }
  const finished = Promise.allSettled([...loops, socketLoop()])
  return {
    acknowledged,
    reached: (count: number) => waitFor(() => acknowledged.length >= count),
    async end() {
      over = true
      await finished
    },
  }
}

/** Starts a server on what is left and compares it with what was acknowledged. */
async function accountFor(
  dataDir: string,
  people: Awaited<ReturnType<typeof meet>>,
  acknowledged: string[],
) {
  await using server = await startServer({ dataDir })
  const { conversationId, a } = people
  const stored = (await allMessages(server.base, conversationId, a.token)).map(({ body }) => body)
  const kept = new Set(stored)
  return {
    missing: acknowledged.filter((body) => !kept.has(body)).length,
    doubled: stored.length - kept.size,
  }
}

test('kill -9 in the middle of a burst: every acknowledged message is there exactly once', async () => {
  using directory = temporaryDirectory()
  for (let round = 0; round < 2; round++) {
    const dataDir = join(directory.path, `${round}`)
    await using server = await startServer({ dataDir })
    const people = await meet(server.base)
    const sending = burst(server.base, people)
    await sending.reached(500 + 700 * round)
    await server.kill('SIGKILL')
    await sending.end()
    expect(await accountFor(dataDir, people, sending.acknowledged)).toEqual({
      missing: 0,
      doubled: 0,
    })
  }
})

test('a retry after the crash with the same client_id does not double', async () => {
  using directory = temporaryDirectory()
  const dataDir = directory.path
  const first = await startServer({ dataDir })
  const people = await meet(first.base)
  const path = `/v1/chat/conversations/${people.conversationId}/messages`
  const message = { token: people.a.token, body: { body: 'once', client_id: 'k' } }
  const sent = await call(first.base, 'POST', path, message)
  await first.kill('SIGKILL')
  await using second = await startServer({ dataDir })
  expect((await call(second.base, 'POST', path, message)).body.id).toBe(sent.body.id)
  expect(await allMessages(second.base, people.conversationId, people.a.token)).toHaveLength(1)
})

// The shim is built on the spot: without a C compiler these are skipped.
describe.skipIf(!compiler)('with a disk that can be watched', () => {
  beforeAll(() => {
    const source = join(import.meta.dir, 'support/power-cut.c')
    const built = Bun.spawnSync([compiler ?? '', '-shared', '-fPIC', '-O2', '-o', shim, source])
    if (built.exitCode !== 0) throw new Error(built.stderr.toString())
  })

  /** Cuts the power in the middle of a burst, after so many messages.
   *  @returns what of the acknowledged is missing or doubled on the disk that is left */
  async function cutPower(messages: number, environment: Record<string, string> = {}) {
    using directory = temporaryDirectory()
    const [dataDir, disk] = [join(directory.path, 'data'), join(directory.path, 'disk')]
    mkdirSync(disk)
    const watched = { LD_PRELOAD: shim, POWER_CUT_DIR: disk, ...environment }
    await using server = await startServer({ dataDir, environment: watched })
    const people = await meet(server.base)
    const sending = burst(server.base, people)
    await sending.reached(messages)
    await server.kill('SIGKILL')
    await sending.end()
    return await accountFor(disk, people, sending.acknowledged)
  }

  test('a power cut loses nothing that was acknowledged, also after the log was started anew', async () => {
    expect(await cutPower(2_500)).toEqual({ missing: 0, doubled: 0 })
  })

  test('the same cut would lose messages if the log were not synced', async () => {
    const { missing } = await cutPower(1_200, { POWER_CUT_DEAF: '1' })
    expect(missing).toBeGreaterThan(0)
  })

  test('a disk that refuses a sync ends the process, and the request gets no acknowledgement', async () => {
    using directory = temporaryDirectory()
    const failure = join(directory.path, 'fail')
    const environment = { LD_PRELOAD: shim, POWER_CUT_FAIL: failure }
    await using server = await startServer({ dataDir: join(directory.path, 'data'), environment })
    const { a, conversationId } = await meet(server.base)
    writeFileSync(failure, '')
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const sending = call(server.base, 'POST', path, { token: a.token, body: { body: 'lost' } })
    const status = await sending.then(({ status }) => status).catch(() => 'cut off')
    expect([503, 'cut off']).toContain(status)
    expect(await server.exited).toBe(1)
    expect(server.output()).toContain('the disk refused to keep data')
  })
})
