import { expect } from 'bun:test'
import { createClient, memoryStorage } from '../client/src/client.ts'
import { temporaryDirectory } from './support/directory.ts'
import { startFaultProxy } from './support/fault-proxy.ts'
import { testAtLength } from './support/faults.ts'
import { startServer } from './support/process.ts'
import { createRandom } from './support/random.ts'
import { aWhile, waitFor } from './support/wait.ts'

const cuts = 50
const messages = 20 * cuts
/** By the number of the cut before them. */
const restarts: { [cut: number]: 'SIGKILL' | 'SIGTERM' } = { 2: 'SIGKILL', 5: 'SIGTERM' }
/** One cut in five also invalidates the access token. */
const codes = [1006, 1006, 1001, 1009, 4401]

/** A client that records received messages; it does not know of the faults. */
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
    /** Sends the next part without waiting for it. */
    sayPart(conversationId: string) {
      for (const body of bodies.slice(sent.length, sent.length + messages / cuts)) {
        sent.push(client.send(conversationId, { body }))
      }
    },
  }
}

const seed = Date.now() % 1_000_000

testAtLength(
  `${messages} messages each way arrive once and in order despite ${cuts} cuts and two restarts (seed ${seed})`,
  async () => {
    using directory = temporaryDirectory()
    const start = () => startServer({ dataDir: directory.path })
    let server = await start()
    const proxy = startFaultProxy(() => server.base)
    const [ada, bob] = [await enter(proxy.base, 'ada'), await enter(proxy.base, 'bob')]
    const { id } = await ada.client.conversations.open(bob.user.id)

    proxy.disturb(createRandom(seed))
    for (let cut = 0; cut < cuts; cut++) {
      for (const person of [ada, bob]) person.sayPart(id)
      await waitFor(() => proxy.openSockets() === 2)
      await aWhile(20)
      proxy.cut(codes[cut % codes.length] ?? 1006)
      const restart = restarts[cut]
      if (!restart) continue
      await server.kill(restart)
      server = await start()
    }
    await Promise.all([...ada.sent, ...bob.sent])
    await waitFor(() => ada.heard.length >= messages && bob.heard.length >= messages)

    expect([bob.heard, ada.heard]).toEqual([ada.bodies, bob.bodies])
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
  },
)
