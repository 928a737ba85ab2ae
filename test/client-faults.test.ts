import { expect, test } from 'bun:test'
import { createClient, memoryStorage } from '../client/src/client.ts'
import { temporaryDirectory } from './support/directory.ts'
import { startFaultProxy } from './support/fault-proxy.ts'
import { startServer } from './support/process.ts'
import { createRandom } from './support/random.ts'
import { aWhile, waitFor } from './support/wait.ts'

const messages = 1_000
const cuts = 50
/** Cuts of which one in five also takes the access token. */
const codes = [1006, 1006, 1001, 1009, 4401]

/** A client that hears what the other says. It is not told of any fault. */
async function enter(baseUrl: string, name: string) {
  const client = createClient({ baseUrl, random: () => 0.004, storage: memoryStorage() })
  const user = await client.register({ email: `${name}@example.com`, password: 'correct horse' })
  const heard: string[] = []
  const troubles: unknown[] = []
  client.on('new_message', ({ message }) => {
    if (message.sender_id !== user.id) heard.push(message.body)
  })
  client.on('session_ended', () => troubles.push('session_ended'))
  client.on('message_refused', ({ error }) => troubles.push(error))
  await client.connect()
  const bodies = Array.from({ length: messages }, (_, n) => `${name} ${n}`)
  const sent: Promise<unknown>[] = []
  return {
    client,
    user,
    heard,
    troubles,
    bodies,
    sent,
    /** Says the next part, without waiting for it. */
    sayPart(conversationId: string) {
      for (const body of bodies.slice(sent.length, sent.length + messages / cuts)) {
        sent.push(client.send(conversationId, { body }))
      }
    },
  }
}

const seed = Date.now() % 1_000_000

test(`1,000 messages each way arrive once and in order over 50 cuts and two restarts (seed ${seed})`, async () => {
  using directory = temporaryDirectory()
  const start = () => startServer({ dataDir: directory.path })
  let server = await start()
  const proxy = startFaultProxy(() => server.base)
  const [ada, bob] = [await enter(proxy.base, 'ada'), await enter(proxy.base, 'bob')]
  const { id } = await ada.client.conversations.open(bob.user.id)
  let cutsWithinTalk = 0

  proxy.disturb(createRandom(seed))
  for (let cut = 0; cut < cuts; cut++) {
    for (const person of [ada, bob]) person.sayPart(id)
    await waitFor(() => proxy.openSockets() === 2)
    await aWhile(20)
    cutsWithinTalk += Math.sign(ada.client.pending().length * bob.client.pending().length)
    proxy.cut(codes[cut % codes.length] ?? 1006)
    if (cut !== 15 && cut !== 35) continue
    await server.kill(cut === 15 ? 'SIGKILL' : 'SIGTERM')
    server = await start()
  }
  await Promise.all([...ada.sent, ...bob.sent])
  await waitFor(() => ada.heard.length >= messages && bob.heard.length >= messages)

  expect([bob.heard, ada.heard]).toEqual([ada.bodies, bob.bodies])
  expect(cutsWithinTalk).toBeGreaterThan(cuts / 2)
  expect([...ada.troubles, ...bob.troubles]).toEqual([])
  proxy.disturb(undefined)
  const all = await Array.fromAsync(ada.client.messages.each(id, { limit: 100 }))
  const stored = all.map(({ body }) => body).toReversed()
  expect(stored.filter((body) => body.startsWith('ada'))).toEqual(ada.bodies)
  expect(stored.filter((body) => body.startsWith('bob'))).toEqual(bob.bodies)
  ada.client.close()
  bob.client.close()
  await proxy[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
}, 60_000)
