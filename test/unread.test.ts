import { expect, test } from 'bun:test'
import type { ConversationListItem } from '../src/modules/chat/model.ts'
import { createTestClock } from './support/clock.ts'
import { size } from './support/faults.ts'
import { createRandom } from './support/random.ts'
import { type Person, startService, type TestService } from './support/service.ts'

/** The expected conversation list in the simplest form: messages, and the number that each person has read. */
function createModel() {
  const talks = new Map<string, { people: [string, string]; activity: number }>()
  const messages: { id: string; talk: string; from: string; body: string; gone?: true }[] = []
  const readUpTo = new Map<string, number>()

  return {
    opened(talk: string, people: [string, string], now: number) {
      if (!talks.has(talk)) talks.set(talk, { people, activity: now })
    },
    said(talk: string, message: { id: string; from: string; body: string }, now: number) {
      messages.push({ talk, ...message })
      const known = talks.get(talk)
      if (known) known.activity = now
    },
    /** Up to a message, or to the end; never back. */
    read(talk: string, by: string, upTo = messages.at(-1)?.id) {
      const key = `${talk} ${by}`
      const place = messages.findIndex(({ id }) => id === upTo) + 1
      readUpTo.set(key, Math.max(place, readUpTo.get(key) ?? 0))
    },
    removed(id: string) {
      const message = messages.find((it) => it.id === id)
      if (message) Object.assign(message, { body: '', gone: true })
    },
    messagesOf: (talk: string) => messages.filter(({ talk: of }) => of === talk),
    inboxOf(user: string) {
      return [...talks]
        .filter(([, { people }]) => people.includes(user))
        .sort(([, a], [, b]) => b.activity - a.activity)
        .map(([talk]) => ({
          id: talk,
          unread: messages.filter(
            ({ talk: of, from, gone }, n) =>
              of === talk && from !== user && !gone && n >= (readUpTo.get(`${talk} ${user}`) ?? 0),
          ).length,
          last: messages.findLast(({ talk: of }) => of === talk)?.body ?? null,
        }))
    },
  }
}

async function inboxOf(service: TestService, { token }: Person) {
  const { body } = await service.call('GET', '/v1/chat/conversations?per_page=100', { token })
  expect(body.pagination.total).toBe(body.data.length)
  return body.data.map(({ id, unread_count, last_message }: ConversationListItem) => ({
    id,
    unread: unread_count,
    last: last_message?.body ?? null,
  }))
}

test.each([11, 12, 13].slice(0, size(3, 3, 1)))(
  'unread counts, order and last message are exact under random operations (seed %i)',
  async (seed) => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const random = createRandom(seed)
    const model = createModel()
    const people: Person[] = [await service.registerAs('host')]
    for (let n = 0; n < 4; n++) people.push(await service.register())
    const [host, fan] = people as [Person, Person]
    const { token } = await service.issueKey()
    await service.call('PUT', `/v1/service/follows/${host.id}/${fan.id}`, { token })
    const talks = new Map<string, [Person, Person]>()

    const open = async (a: Person, b: Person) => {
      if (a === b) return
      const id = await service.openConversation(a, b)
      model.opened(id, [a.id, b.id], clock.now())
      talks.set(id, [a, b])
    }
    const anyTalk = () => random.pick([...talks])
    const operations = [
      () => open(random.pick(people), random.pick(people)),
      async () => {
        const [id, both] = anyTalk()
        const from = random.pick(both)
        const body = `message ${random.below(1_000_000)}`
        const path = `/v1/chat/conversations/${id}/messages`
        const send = { token: from.token, body: { body, client_id: body } }
        const { body: sent } = await service.call('POST', path, send)
        if (random.next() < 0.3) await service.call('POST', path, send) // a retry counts once
        model.said(id, { id: sent.id, from: from.id, body }, clock.now())
      },
      async () => {
        const [id, both] = anyTalk()
        const by = random.pick(both)
        await service.call('PUT', `/v1/chat/conversations/${id}/read`, { token: by.token })
        model.read(id, by.id)
      },
      async () => {
        const [id, both] = anyTalk()
        const by = random.pick(both)
        const all = model.messagesOf(id)
        if (all.length === 0) return
        const message_id = random.pick(all).id
        const path = `/v1/chat/conversations/${id}/read`
        await service.call('PUT', path, { token: by.token, body: { message_id } })
        model.read(id, by.id, message_id)
      },
      async () => {
        const [talk, both] = anyTalk()
        const by = random.pick(both)
        const own = model.messagesOf(talk).filter(({ from }) => from === by.id)
        if (own.length === 0) return
        const { id } = random.pick(own)
        const path = `/v1/chat/conversations/${talk}/messages/${id}`
        await service.call('DELETE', path, { token: by.token })
        model.removed(id)
      },
      async () => {
        const body = `to all ${random.below(1_000_000)}`
        await service.call('POST', '/v1/chat/broadcast', { token: host.token, body: { body } })
        await open(host, fan)
        const [id] = [...talks].find(([, both]) => both.includes(host) && both.includes(fan)) ?? [
          '',
        ]
        const { body: list } = await service.call('GET', `/v1/chat/conversations/${id}/messages`, {
          token: host.token,
        })
        model.said(id, { id: list.data[0].id, from: host.id, body }, clock.now())
      },
    ]

    await open(host, fan)
    for (let step = 0; step < 200; step++) {
      clock.advance(1)
      await random.pick(operations)()
      const looked = random.pick(people)
      expect(await inboxOf(service, looked)).toEqual(model.inboxOf(looked.id))
    }
    for (const person of people) {
      const inbox = model.inboxOf(person.id)
      expect(await inboxOf(service, person)).toEqual(inbox)
      const { body } = await service.call('GET', '/v1/chat/unread-count', { token: person.token })
      expect(body).toEqual({ count: inbox.reduce((sum, { unread }) => sum + unread, 0) })
    }
  },
)
