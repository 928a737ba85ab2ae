import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createClient } from '../client/src/client.ts'
import { createConsumer } from './support/consumers.ts'
import { freePort } from './support/process.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

/** Runs the examples as a reader does: outside the repository, against the package, under Node, which strips types. */
const consumer = createConsumer()
await consumer.addClient()
for (const name of ['chat.ts', 'bot.ts', 'backend.ts']) {
  consumer.write({ [name]: await Bun.file(join(import.meta.dir, '../examples', name)).text() })
}
const service = await startService({ listen: true, environment: { WEBHOOK_PRIVATE: 'true' } })
afterAll(async () => {
  consumer[Symbol.dispose]()
  await service[Symbol.asyncDispose]()
})

test('chat.ts: two people talk, also in a second run', async () => {
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

test('bot.ts: a host replies, also to messages sent while it was offline', async () => {
  const host = await service.registerAs('host', 'host')
  const guest = createClient({ baseUrl: service.base })
  const heard: string[] = []
  await guest.register({ email: 'guest@example.com', password: 'correct horse' })
  guest.on('new_message', ({ message }) => {
    if (message.sender_id === host.id) heard.push(message.body)
  })
  await guest.connect()
  const { id } = await guest.conversations.open(host.id)
  const start = () => consumer.node22('bot.ts', service.base, host.email, 'correct horse')

  const first = start()
  await waitFor(() => service.hub.isOnline(host.id))
  await guest.send(id, { body: 'hello' })
  await guest.send(id, { body: 'bye' })
  expect(await first).toMatchObject({ exitCode: 0 })
  await guest.send(id, { body: 'are you there?' })
  await guest.send(id, { body: 'bye' })
  expect(await start()).toMatchObject({ exitCode: 0 })
  await waitFor(() => heard.length === 4)
  expect(heard).toEqual([
    'You said: hello. I will call you back.',
    'Goodbye!',
    'You said: are you there?. I will call you back.',
    'Goodbye!',
  ])
  guest.close()
})

test('backend.ts: a platform creates a customer and gets webhooks about them', async () => {
  const { token: key } = await service.issueKey(['users', 'sessions', 'notifications'])
  const { token } = await service.registerAs('admin')
  const port = await freePort()
  const made = await service.call('POST', '/v1/admin/webhooks', {
    token,
    body: { url: `http://localhost:${port}/`, events: ['notification.created'] },
  })
  const { exitCode, output } = await consumer.node22(
    'backend.ts',
    service.base,
    key,
    made.body.secret,
    String(port),
  )
  expect(exitCode).toBe(0)
  expect(output).toContain("notification: Payment received { amount: '25.00', currency: 'EUR' }")
  expect(output).toContain('webhook: notification.created')
})

/** Without Node's warnings about type stripping. */
function linesOf(output: string) {
  return output
    .split('\n')
    .filter((line) => line !== '' && !/ExperimentalWarning|--trace-warn/.test(line))
}
