import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from './support/directory.ts'
import { size, testAtLength } from './support/faults.ts'
import { call, startServer } from './support/process.ts'
import { startService } from './support/service.ts'
import { aWhile, waitFor } from './support/wait.ts'
import { startReceiver } from './support/webhook-receiver.ts'

const senders = 8
const environment = { WEBHOOK_PRIVATE: 'true' }

/** A data directory with a webhook, and two people who talk. */
async function prepare(url: string, dataDir: string) {
  await using service = await startService({ environment })
  const { token } = await service.registerAs('admin')
  const body = { url, events: ['message.created'] }
  await service.call('POST', '/v1/admin/webhooks', { token, body })
  const { a, conversationId } = await service.pair()
  await service.stop()
  cpSync(service.directory, dataDir, { recursive: true })
  return { token: a.token, path: `/v1/chat/conversations/${conversationId}/messages` }
}

testAtLength(
  'kill -9 between a message and its delivery: each acknowledged one is delivered, with one id',
  async () => {
    using directory = temporaryDirectory()
    await using receiver = startReceiver()
    const dataDir = join(directory.path, 'data')
    const { token, path } = await prepare(receiver.url, dataDir)
    const acknowledged = new Set<string>()
    const rounds = size(30, 3)
    let leftBehind = 0

    async function talkUntilGone(base: string) {
      for (;;) {
        const message = { token, body: { body: 'hello' } }
        const answer = await call(base, 'POST', path, message).catch(() => undefined)
        if (answer?.status !== 201) return
        acknowledged.add(answer.body.id)
      }
    }

    for (let round = 0; round < rounds; round++) {
      const server = await startServer({ dataDir, environment })
      const isMore = (count: number) => {
        const before = acknowledged.size
        return waitFor(() => acknowledged.size >= before + count, 'messages')
      }
      const talking = Array.from({ length: senders }, () => talkUntilGone(server.base))
      await isMore(1)
      await aWhile(100)
      // Some deliveries are in flight at the kill, however fast the others were.
      receiver.respondAll('hang')
      await isMore(1)
      await server.kill('SIGKILL')
      receiver.respondAll({ status: 204 })
      await Promise.all(talking)
      using sqlite = new Database(join(dataDir, 'hostline.db'))
      leftBehind += sqlite
        .query("SELECT 1 FROM outbox WHERE kind = 'webhook_delivery'")
        .all().length
    }
    expect(leftBehind).toBeGreaterThan(0)
    await using _last = await startServer({ dataDir, environment })
    const delivered = new Set<string>()
    let seen = 0
    // The endpoint is in this process, so its received requests are read directly.
    await waitFor(() => {
      for (const { body } of receiver.received.slice(seen)) delivered.add(body.data.message.id)
      seen = receiver.received.length
      return delivered.isSupersetOf(acknowledged)
    }, 'every message')
    const ids = receiver.received.slice(0, seen).map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(delivered.size)
    console.log(
      `${acknowledged.size} acknowledged, ${leftBehind} undelivered at a kill, ${ids.length} requests`,
    )
  },
)
