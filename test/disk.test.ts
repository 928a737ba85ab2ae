import { describe, expect } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gatherCrowd } from './support/crowd.ts'
import { temporaryDirectory } from './support/directory.ts'
import { shim, size, testAtLength } from './support/faults.ts'
import { call, startServer } from './support/process.ts'
import { tools } from './support/tools.ts'
import { aWhile, waitFor } from './support/wait.ts'

const errors = { full: '28', 'read-only': '30' } // ENOSPC, EROFS
const refusals = ['full', 'read-only'] as const

/** A server under load, on a disk that can refuse every write. */
async function startOnDisk(environment: Record<string, string> = {}) {
  const directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  const refusal = join(directory.path, 'refusal')
  const crowd = await gatherCrowd(dataDir)
  const watched = { LD_PRELOAD: shim(), POWER_CUT_REFUSE: refusal, ...environment }
  const start = () => startServer({ dataDir, environment: watched })
  let server = await start()
  return {
    crowd,
    base: () => server.base,
    output: () => server.output(),
    refuse: (why: keyof typeof errors) => writeFileSync(refusal, errors[why]),
    relent: () => rmSync(refusal),
    complaints: () => crowd.complaints(server.base, dataDir),
    stop: (signal: 'SIGKILL' | 'SIGTERM') => server.kill(signal),
    async start() {
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      directory[Symbol.dispose]()
    },
  }
}

// The shim is compiled on first use; without a C compiler these tests are skipped.
describe.skipIf(!tools.gcc)('a disk', () => {
  testAtLength.each(refusals)(
    'that is %s at any moment: reads continue, writes are refused, nothing is lost',
    async (why) => {
      await using disk = await startOnDisk()
      const { crowd } = disk
      for (let round = 0; round < size(20, 2); round++) {
        const load = crowd.useEverything(disk.base())
        await aWhile(200)
        disk.refuse(why)
        const refused = crowd.refused()
        await waitFor(() => crowd.refused() > refused + 10)
        expect(await answersOf(disk)).toEqual({ write: 503, retry: '1', read: 200, ready: 503 })
        await aWhile(200)
        disk.relent()
        const acknowledged = crowd.acknowledged()
        await waitFor(() => crowd.acknowledged() > acknowledged + 10)
        expect(await answersOf(disk)).toEqual({ write: 201, retry: null, read: 200, ready: 200 })
        await load.end()
        expect(await disk.complaints()).toEqual([])
      }
      await disk.stop('SIGKILL')
      await disk.start()
      expect(await disk.complaints()).toEqual([])
    },
  )

  testAtLength.each(['SIGKILL', 'SIGTERM'] as const)(
    'that is full at the start after %s: the server exits with one line, and starts once there is room',
    async (signal) => {
      await using disk = await startOnDisk()
      await disk.stop(signal)
      disk.refuse('full')
      const line =
        /^the server ended with 1: hostline: cannot [^\n]* database [^\n]* is full[^\n]*\n$/
      await expect(disk.start()).rejects.toThrow(line)
      disk.relent()
      await disk.start()
      expect(await answersOf(disk)).toEqual({ write: 201, retry: null, read: 200, ready: 200 })
      expect(await disk.complaints()).toEqual([])
    },
  )
})

type Disk = Awaited<ReturnType<typeof startOnDisk>>

/** The responses to a write, a read and a readiness check. */
async function answersOf({ crowd, base }: Disk) {
  const [{ token } = { token: '' }] = crowd.people
  const path = `/v1/chat/conversations/${crowd.talks[0]?.id}/messages`
  const write = await call(base(), 'POST', path, { token, body: { body: crypto.randomUUID() } })
  const read = await call(base(), 'GET', path, { token })
  const ready = await call(base(), 'GET', '/readyz')
  const retry = write.headers.get('retry-after')
  return { write: write.status, retry, read: read.status, ready: ready.status }
}
