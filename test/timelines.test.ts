import { expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { createRandom } from './support/random.ts'
import { type Person, startService, type TestService } from './support/service.ts'

// Catching up must not show how far the timelines are behind the messages.
test.each([31, 32])(
  'what a user catches up on is the same however far the timelines are (seed %i)',
  async (seed) => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const random = createRandom(seed)
    const host = await service.registerAs('host')
    const people = [host, await service.register(), await service.register()]
    const { token } = await service.issueKey()
    for (const fan of people.slice(1)) {
      await service.call('PUT', `/v1/service/follows/${host.id}/${fan.id}`, { token })
    }
    const told = new Map(people.map(({ id }) => [id, [] as string[]]))
    const known = () =>
      service.sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM timelines').get()?.n ?? 0
    let total = 0

    const tellAll = async (text: string) => {
      await service.call('POST', '/v1/chat/broadcast', { token: host.token, body: { body: text } })
      for (const fan of people.slice(1)) told.get(fan.id)?.push(text)
      total += 2
    }
    const say = async (from: Person, to: Person, text: string) => {
      if (from === to) return
      await service.say(from, await service.openConversation(from, to), text)
      for (const { id } of [from, to]) told.get(id)?.push(text)
      total += 2
    }
    const writeTimelines = async () => {
      clock.advance(250)
      while (known() < total) await Bun.sleep(1)
    }

    for (let step = 0; step < 120; step++) {
      const text = `message ${step}`
      if (random.next() < 0.1) await tellAll(text)
      else await say(random.pick(people), random.pick(people), text)
      if (random.next() < 0.05) await writeTimelines()
      const looked = random.pick(people)
      expect(await caughtUp(service, looked)).toEqual(told.get(looked.id) ?? [])
    }
    expect(known()).toBeGreaterThan(0)
  },
)

/** The bodies of everything that a user has to catch up on, page by page. */
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

test('a read of what is not in the timelines yet is cut from the index', async () => {
  await using service = await startService()
  const plan = service.sqlite
    .query<{ detail: string }, []>(
      `EXPLAIN QUERY PLAN SELECT conversation_id, seq FROM messages
       WHERE id > 'x' AND (recipient_id = 'a' OR (sender_id = 'a' AND broadcast_id IS NULL)) ORDER BY id LIMIT 9`,
    )
    .all()
  expect(plan.map(({ detail }) => detail)).toEqual([
    'SEARCH messages USING COVERING INDEX messages_by_id (id>?)',
  ])
})
