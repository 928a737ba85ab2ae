import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gatherCrowd } from './support/crowd.ts'
import { temporaryDirectory } from './support/directory.ts'
import { shim, size, testAtLength } from './support/faults.ts'
import { allMessages, call, meet, startServer } from './support/process.ts'
import { tools } from './support/tools.ts'
import { aWhile, waitFor } from './support/wait.ts'

type Crash = {
  rounds: number
  /** Waits for the moment of the kill. */
  moment: (dataDir: string) => Promise<unknown>
  /** Keeps only synced data. */
  cutsPower?: boolean
  environment?: Record<string, string>
}

/** Kills a server repeatedly under load and checks the data each time.
 *  @returns the violations after the first kill that has any */
async function killUnderLoad({ rounds, moment, cutsPower, environment = {} }: Crash) {
  using directory = temporaryDirectory()
  let dataDir = join(directory.path, 'data')
  const crowd = await gatherCrowd(dataDir)
  async function start() {
    const disk = `${dataDir}+`
    if (cutsPower) cpSync(dataDir, disk, { recursive: true })
    const watched = cutsPower ? { LD_PRELOAD: shim(), POWER_CUT_DIR: disk } : {}
    const server = await startServer({ dataDir, environment: { ...watched, ...environment } })
    return { ...server, disk }
  }

  let server = await start()
  let complaints: string[] = []
  for (let round = 0; round < rounds && complaints.length === 0; round++) {
    const load = crowd.useEverything(server.base)
    const enough = crowd.acknowledged() + 30
    await waitFor(() => crowd.acknowledged() > enough)
    await moment(dataDir)
    await server.kill('SIGKILL')
    await load.end()
    if (cutsPower) dataDir = server.disk
    server = await start()
    complaints = await crowd.complaints(server.base, dataDir)
  }
  await server.kill('SIGKILL')
  console.log(`${rounds} kills under load: ${crowd.acknowledged()} were acknowledged`)
  return complaints
}

const atRandom = () => aWhile(300)

/** Resolves when SQLite overwrites the WAL from its start, which increments a counter in its header. */
const walIsReused = (dataDir: string) =>
  waitFor(() => readFileSync(join(dataDir, 'hostline.db-wal')).readUInt32BE(12) > 0, 'a new wal')

test('kill -9 at any moment under mixed load loses and duplicates nothing', async () => {
  expect(await killUnderLoad({ rounds: size(50, 4, 1), moment: atRandom })).toEqual([])
})

test('a retry after the crash with the same client_id stores one message', async () => {
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

testAtLength(
  'a refresh with a response lost in a crash is answered after the restart',
  async () => {
    using directory = temporaryDirectory()
    const dataDir = directory.path
    const first = await startServer({ dataDir })
    const { a } = await meet(first.base)
    const using = {
      body: { refresh_token: a.refreshToken },
      headers: { 'x-idempotency-key': 'k1' },
    }
    const ask = (base: string) => call(base, 'POST', '/v1/auth/refresh', using)
    const lost = ask(first.base).catch(() => 'lost')
    const database = new Database(join(dataDir, 'hostline.db'), { readonly: true })
    const kept = database.query('SELECT 1 FROM refresh_tokens WHERE key_hash IS NOT NULL')
    await waitFor(() => kept.get() !== null, 'the commit')
    database.close()
    await first.kill('SIGKILL')
    await lost
    await using second = await startServer({ dataDir })
    const answer = await ask(second.base)
    expect(answer.status).toBe(200)
    const next = { body: { refresh_token: answer.body.refresh_token } }
    expect((await call(second.base, 'POST', '/v1/auth/refresh', next)).status).toBe(200)
  },
)

// The shim is compiled on first use; without a C compiler these tests are skipped.
describe.skipIf(!tools.gcc)('with a simulated disk', () => {
  testAtLength('a power cut loses nothing that was acknowledged', async () => {
    expect(await killUnderLoad({ cutsPower: true, rounds: 1, moment: atRandom })).toEqual([])
  })

  testAtLength('also not after the WAL was restarted', async () => {
    const moment = async (dataDir: string) => {
      await walIsReused(dataDir)
      await atRandom()
    }
    expect(await killUnderLoad({ cutsPower: true, rounds: size(30, 1), moment })).toEqual([])
  })

  testAtLength('the same power cut loses messages when syncs do nothing (control)', async () => {
    const environment = { POWER_CUT_DEAF: '1' }
    const cut = { cutsPower: true, rounds: 1, environment, moment: atRandom }
    const complaints = await killUnderLoad(cut)
    expect(complaints).toContainEqual(expect.stringMatching(/^lost: message/))
  })

  testAtLength('a slow disk loses nothing', async () => {
    const environment = { POWER_CUT_SLOW: '50' }
    const cut = { cutsPower: true, rounds: size(15, 1), environment }
    expect(await killUnderLoad({ ...cut, moment: atRandom })).toEqual([])
  })

  test('a failed sync ends the process, and the request gets no acknowledgement', async () => {
    using directory = temporaryDirectory()
    const failure = join(directory.path, 'fail')
    const environment = { LD_PRELOAD: shim(), POWER_CUT_FAIL: failure }
    await using server = await startServer({ dataDir: join(directory.path, 'data'), environment })
    const { a, conversationId } = await meet(server.base)
    writeFileSync(failure, '')
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const sending = call(server.base, 'POST', path, { token: a.token, body: { body: 'lost' } })
    const status = await sending.then(({ status }) => status).catch(() => 'cut off')
    expect([503, 'cut off']).toContain(status)
    expect(await server.exited).toBe(1)
    expect(server.output()).toContain('the disk failed to store data')
  })
})
