import { expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { size } from './support/faults.ts'
import { createRandom } from './support/random.ts'
import { damageOf } from './support/recount.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const day = 86_400_000

type Said = { id: string; text: string; isRemoved: boolean }

test.each([31, 32].slice(0, size(2, 2, 1)))(
  'the catch-up of each user matches a model of their conversations (seed %i)',
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
    const received = new Map(people.map(({ id }) => [id, [] as Said[]]))
    const noticeIds = new Set<string>()
    const closedIds = new Set<string>()
    // The messages of today, which the next night keeps.
    let today = new Set<string>()
    const admin = await service.registerAs('admin')
    const ask = async (
      status: number,
      [method, path]: [string, string],
      by: string,
      body?: unknown,
    ) => {
      const answer = await service.call(method, `/v1${path}`, { token: by, body })
      expect([path, answer.status]).toEqual([path, status])
      return answer.body
    }
    await ask(200, ['PATCH', '/admin/settings'], admin.token, { message_retention_days: 1 })
    const countRuns = service.sqlite.query<{ n: number }, []>(
      "SELECT count(*) AS n FROM audit_log WHERE action = 'retention_run'",
    )

    const night = async () => {
      const runs = countRuns.get()?.n
      clock.advance(day)
      await waitFor(() => countRuns.get()?.n !== runs)
      for (const person of [...people, admin])
        Object.assign(person, await service.login(person.email))
      for (const [id, all] of received)
        received.set(
          id,
          all.filter(({ text }) => today.has(text)),
        )
      today = new Set()
    }

    const note = (to: Person[], said: Said) => {
      for (const { id } of to) received.get(id)?.push(said)
    }

    type Action = (text: string, one: Person, other: Person) => Promise<void>
    const broadcast: Action = async (text) => {
      await ask(201, ['POST', '/chat/broadcast'], host.token, { body: text })
      for (const fan of people.slice(1)) {
        const isClosed = closedIds.has(await service.openConversation(host, fan))
        if (!isClosed) note([fan], { id: '', text, isRemoved: false })
      }
    }
    const say: Action = async (text, from, to) => {
      const id = await service.openConversation(from, to)
      const status = closedIds.has(id) ? 403 : 201
      const path = `/chat/conversations/${id}/messages`
      const said = await ask(status, ['POST', path], from.token, { body: text })
      if (status === 201) note([from, to], { id: said.id, text, isRemoved: false })
    }
    const notify: Action = async (text, ...to) => {
      const body = { user_ids: to.map(({ id }) => id), body: text, data: { text } }
      const unread = random.next() < 0.5
      const said = await ask(201, ['POST', '/service/messages'], token, { ...body, unread })
      noticeIds.add(said.id)
      note(to, { id: said.id, text, isRemoved: false })
    }
    const remove: Action = async (_, reader) => {
      const all = (received.get(reader.id) ?? []).filter(({ id }) => id !== '')
      if (all.length === 0) return
      const said = random.pick(all)
      const isNotice = noticeIds.has(said.id)
      const path = `${isNotice ? '/service' : '/admin'}/messages/${said.id}`
      await ask(204, ['DELETE', path], isNotice ? token : admin.token)
      said.isRemoved = true
    }
    const archive: Action = async (_, by, other) => {
      const path = `/chat/conversations/${await service.openConversation(by, other)}/archive`
      await ask(204, [random.next() < 0.7 ? 'PUT' : 'DELETE', path], by.token)
    }
    const closeOrOpen: Action = async (_, one, other) => {
      const id = await service.openConversation(one, other)
      const isClosed = closedIds.delete(id)
      if (!isClosed) closedIds.add(id)
      const body = { state: isClosed ? 'open' : 'read_only', data: { isClosed } }
      await ask(200, ['PATCH', `/service/conversations/${id}`], token, body)
    }

    const others = [notify, notify, broadcast, broadcast, night, archive, closeOrOpen, remove]
    for (let step = 0; step < 120; step++) {
      const text = `message ${step}`
      today.add(text)
      const one = random.pick(people)
      const other = random.pick(people.filter((person) => person !== one))
      await random.pick([...others, say, say, say, say, say, say])(text, one, other)
      const reader = random.pick(people)
      const due = (received.get(reader.id) ?? []).map((it) => (it.isRemoved ? '' : it.text))
      expect(await caughtUp(service, reader)).toEqual(due)
    }
    expect(damageOf(service.sqlite)).toEqual([])
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
