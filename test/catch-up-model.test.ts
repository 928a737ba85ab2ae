import { expect, test } from 'bun:test'
import { createRandom } from './support/random.ts'
import { type Person, startService, type TestService } from './support/service.ts'

test.each([31, 32])(
  'the catch-up of each user matches a model of their conversations (seed %i)',
  async (seed) => {
    await using service = await startService()
    const random = createRandom(seed)
    const host = await service.registerAs('host')
    const people = [host, await service.register(), await service.register()]
    const { token } = await service.issueKey()
    for (const fan of people.slice(1)) {
      await service.call('PUT', `/v1/service/follows/${host.id}/${fan.id}`, { token })
    }
    const received = new Map(people.map(({ id }) => [id, [] as string[]]))

    const broadcast = async (text: string) => {
      await service.call('POST', '/v1/chat/broadcast', { token: host.token, body: { body: text } })
      for (const fan of people.slice(1)) received.get(fan.id)?.push(text)
    }
    const say = async (from: Person, to: Person, text: string) => {
      if (from === to) return
      await service.say(from, await service.openConversation(from, to), text)
      for (const { id } of [from, to]) received.get(id)?.push(text)
    }

    for (let step = 0; step < 120; step++) {
      const text = `message ${step}`
      if (random.next() < 0.1) await broadcast(text)
      else await say(random.pick(people), random.pick(people), text)
      const reader = random.pick(people)
      expect(await caughtUp(service, reader)).toEqual(received.get(reader.id) ?? [])
    }
  },
)

/** All texts that a user gets by catching up page by page. */
async function caughtUp(service: TestService, { token }: Person) {
  const found: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path = `/v1/chat/messages?limit=7${cursor && `&cursor=${cursor}`}`
    const { body } = await service.call('GET', path, { token })
    found.push(...body.data.map((message: { body: string }) => message.body))
    cursor = body.pagination.cursor
  }
  return found
}
