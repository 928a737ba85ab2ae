import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '../client/src/client.ts'
import { createConsumer } from './support/consumers.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { call, freePort, startServer } from './support/process.ts'
import { startService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { aWhile, waitFor } from './support/wait.ts'

/** Runs the examples as a reader does: outside the repository, against the package, under Node, which strips types. */
const start = shared(async () => {
  const consumer = createConsumer()
  await consumer.addClient()
  for (const name of ['chat.ts', 'bot.ts', 'backend.ts']) {
    consumer.write({ [name]: await Bun.file(join(import.meta.dir, '../examples', name)).text() })
  }
  const service = await startService({ listen: true, environment: { WEBHOOK_PRIVATE: 'true' } })
  return {
    consumer,
    service,
    async [Symbol.asyncDispose]() {
      consumer[Symbol.dispose]()
      await service[Symbol.asyncDispose]()
    },
  }
})

testAtLength('chat.ts: two people talk, also in a second run', async () => {
  const { consumer, service } = await start()
  const talk = [
    'Ada: How are you?',
    'Bob has read it.',
    'Bob is typing …',
    'Bob: Very well, thank you!',
  ]
  for (const time of ['first', 'second']) {
    const { exitCode, output } = await consumer.node22('chat.ts', service.base)
    const lines = linesOf(output)
    expect([time, exitCode, lines.sort()]).toEqual([time, 0, [...talk].sort()])
  }
})

testAtLength('bot.ts: a host replies, also to messages sent while it was offline', async () => {
  const { consumer, service } = await start()
  const host = await service.registerAs('host', 'host')
  const guest = createClient({ baseUrl: service.base })
  const heard: string[] = []
  await guest.register({ email: 'guest@example.com', password: 'correct horse' })
  guest.on('new_message', ({ message }) => {
    if (message.sender_id === host.id) heard.push(message.body)
  })
  await guest.connect()
  const { id } = await guest.conversations.open(host.id)
  const run = () => consumer.node22('bot.ts', service.base, host.email, 'correct horse')

  const first = run()
  await waitFor(() => service.hub.isOnline(host.id))
  const { token } = await service.issueKey()
  const notice = { conversation_id: id, body: 'Booked', unread: true }
  await service.call('POST', '/v1/service/messages', { token, body: notice })
  await guest.send(id, { body: 'hello' })
  await guest.send(id, { body: 'bye' })
  expect(await first).toMatchObject({ exitCode: 0 })
  await guest.send(id, { body: 'are you there?' })
  await guest.send(id, { body: 'bye' })
  expect(await run()).toMatchObject({ exitCode: 0 })
  await waitFor(() => heard.length === 4)
  expect(heard).toEqual([
    'You said: hello. I will call you back.',
    'Goodbye!',
    'You said: are you there?. I will call you back.',
    'Goodbye!',
  ])
  guest.close()
})

testAtLength(
  'backend.ts: whenever a side is killed, people, bookings, notices, marks and webhooks are right at the end',
  async () => {
    const { consumer } = await start()
    using directory = temporaryDirectory()
    const dataDir = join(directory.path, 'data')
    const [hostlinePort, port] = [await freePort(), await freePort()]
    const environment = { WEBHOOK_PRIVATE: 'true', PORT: String(hostlinePort) }
    const [base, backend] = [hostlinePort, port].map((n) => `http://127.0.0.1:${n}`) as [
      string,
      string,
    ]
    const made = await prepare(dataDir, environment, `${backend}/hooks`)
    const args = [base, made.key, made.secret, String(port), join(directory.path, 'bookings.jsonl')]
    const startBackend = () =>
      Bun.spawn(
        [consumer.path('node_modules/node22/bin/node'), consumer.path('backend.ts'), ...args],
        {
          stdout: 'ignore',
          stderr: 'ignore',
        },
      )
    const startHostline = () => startServer({ dataDir, environment })
    let [hostline, platform] = [await startHostline(), startBackend()]
    await using _ = {
      async [Symbol.asyncDispose]() {
        platform.kill('SIGKILL')
        await hostline.kill('SIGKILL')
      },
    }
    let isOver = false

    async function killOften() {
      for (let kills = 0; kills < 6 && !isOver; kills++) {
        await aWhile(300)
        if (kills % 3 !== 0) {
          platform.kill('SIGKILL')
          await platform.exited
        }
        if (kills % 3 !== 1) {
          await hostline.kill('SIGKILL')
          hostline = await startHostline()
        }
        if (kills % 3 !== 0) platform = startBackend()
      }
    }
    // biome-ignore lint/suspicious/noExplicitAny: judged by the assertions
    const ask = (at: string, method: string, path: string, request = {}): Promise<any> =>
      waitFor(async () => {
        const answer = await call(at, method, path, request).catch(() => undefined)
        return answer && answer.status < 300 && { body: answer.body }
      }, `${method} ${path}`)

    const keep = (path: string, body: object) => ask(backend, 'PUT', path, { body })
    const ids = ['1', '2', '3']
    const time = (hour: number) => `2026-12-01T${hour}:00:00Z`
    const shown = (id: string) => ask(backend, 'GET', `/bookings/${id}`)

    /** A booking from its beginning to its end, with a message of the customer at each step. */
    async function play(id: string) {
      const [customer, host] = [`customer-${id}`, `host-${id}`]
      await keep(`/people/${customer}`, { email: `c${id}@example.com`, name: 'Carla' })
      await keep(`/people/${host}`, { email: `h${id}@example.com`, name: 'Henri', role: 'host' })
      for (const hour of [14, 15, 16]) {
        await keep(`/bookings/${id}`, { customer, host, starts_at: time(hour) })
        const conversation = await waitFor(async () => (await shown(id)).body.conversation_id)
        const session = await ask(backend, 'POST', `/people/${customer}/session`)
        const request = {
          token: session.body.access_token,
          body: { body: `at ${hour}`, client_id: `${id}-${hour}` },
        }
        await ask(base, 'POST', `/v1/chat/conversations/${conversation}/messages`, request)
      }
      await keep(`/people/${customer}`, { email: `c${id}@example.com`, name: `Carla ${id}` })
      await keep(`/bookings/${id}`, { customer, host, starts_at: time(16), is_over: true })
    }

    // Refused for good, which must not keep back the changes after it.
    await keep('/people/root', { email: 'root@example.com', name: 'Root' })
    await keep('/people/leaver', { email: 'l@example.com', name: 'Lena' })
    const killing = killOften()
    await ask(backend, 'DELETE', '/people/leaver')
    await Promise.all(ids.map(play))
    isOver = true
    await killing
    await waitFor(async () => (await ask(backend, 'GET', '/')).body.waiting === 0, 'every change')
    const retry = `/v1/admin/webhooks/${made.webhookId}/deliveries/retry`
    const since = { token: made.token, body: { since: '2020-01-01T00:00:00Z' } }
    await ask(base, 'POST', retry, since)
    for (const id of ids) {
      const messages = await waitFor(async () => {
        const { body } = await shown(id)
        return body.messages.length >= 3 && body.messages
      }, 'webhooks')
      expect(messages.sort()).toEqual(['at 14', 'at 15', 'at 16'])
    }
    await hostline.kill('SIGTERM')
    using sqlite = new Database(join(dataDir, 'hostline.db'))
    expect(sqlite.query('SELECT state, data FROM conversations ORDER BY data').values()).toEqual(
      ids.map((id) => [
        'read_only',
        JSON.stringify({ booking_id: id, starts_at: time(16), is_over: true }),
      ]),
    )
    for (const id of ids) {
      const spoken = sqlite.query(
        `SELECT body FROM messages JOIN conversations ON conversations.id = conversation_id
       WHERE sender_id IS NULL AND json_extract(conversations.data, '$.booking_id') = ? ORDER BY seq`,
      )
      expect(spoken.values(id).flat()).toEqual([
        'Booked for 14:00',
        'Moved to 15:00',
        'Moved to 16:00',
        'Thank you, good-bye',
      ])
    }
    const names = sqlite.query(
      "SELECT display_name FROM users WHERE external_id LIKE 'customer-%' ORDER BY external_id",
    )
    expect(names.values().flat()).toEqual(ids.map((id) => `Carla ${id}`))
    expect(sqlite.query("SELECT 1 FROM users WHERE external_id = 'leaver'").get()).toBe(null)
    const payments = sqlite.query("SELECT 1 FROM notifications WHERE type = 'payment_captured'")
    expect(payments.all()).toHaveLength(ids.length)
  },
)

/** A data directory with an admin, and the platform's key and webhook. */
async function prepare(dataDir: string, environment: Record<string, string>, url: string) {
  await using own = await startService({ environment })
  const { token, id } = await own.registerAs('admin')
  own.sqlite.run("UPDATE users SET external_id = 'root' WHERE id = ?", [id])
  const key = await own.issueKey(['users', 'sessions', 'notifications', 'messages'])
  const body = { url, events: ['message.created'] }
  const webhook = await own.call('POST', '/v1/admin/webhooks', { token, body })
  await own.stop()
  cpSync(own.directory, dataDir, { recursive: true })
  return { token, key: key.token, secret: webhook.body.secret, webhookId: webhook.body.id }
}

/** Without Node's warnings about type stripping. */
function linesOf(output: string) {
  return output
    .split('\n')
    .filter((line) => line !== '' && !/ExperimentalWarning|--trace-warn/.test(line))
}
