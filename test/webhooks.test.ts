import { afterAll, describe, expect, test } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { Webhook } from 'standardwebhooks'
import { ulid } from 'ulid'
import type { WebhookEvent } from '../client/src/contract.ts'
import { verifyWebhook } from '../client/src/webhook.ts'
import type { Core } from '../src/core.ts'
import { createAuditTrail } from '../src/db/audit-trail.ts'
import { systemClock } from '../src/lib/clock.ts'
import { eventTypes } from '../src/lib/vocabulary.ts'
import { createDeliveries } from '../src/modules/webhooks/deliveries.ts'
import { testEvent } from '../src/modules/webhooks/model.ts'
import { newSecret } from '../src/modules/webhooks/sender.ts'
import { createWebhookStore } from '../src/modules/webhooks/store.ts'
import { subscribeWebhooks } from '../src/modules/webhooks/subscriptions.ts'
import { addFollowers } from './support/audience.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { desk, own } from './support/desk.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { type Person, startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'
import { insertDelivery, startReceiver, verify } from './support/webhook-receiver.ts'

const path = '/v1/admin/webhooks'
const [second, minute, hour] = [1_000, 60_000, 3_600_000]
const day = 24 * hour

/** What an event carries, as the client declares it. */
type Data<T extends WebhookEvent['type']> = Extract<WebhookEvent, { type: T }>['data']

type Options = Parameters<typeof startService>[0]

/** A service with an admin, whose endpoints may be on this machine. */
async function startHost(options: Options = {}) {
  const clock = createTestClock()
  const environment = { WEBHOOK_PRIVATE: 'true' }
  const service = await startService({ clock, environment, ...options })
  const root = await service.registerAs('admin', 'root')
  const ask = async (method: string, at: string, body?: unknown, as: { token: string } = root) =>
    service.call(method, at, { token: as.token, body })

  return {
    service,
    clock,
    root,
    ask,
    create: async (url: string, events: readonly string[], more = {}) =>
      (await ask('POST', path, { url, events, ...more })).body,
    show: async (id: string) => (await ask('GET', `${path}/${id}`)).body,
    deliveries: async (id: string) => (await ask('GET', `${path}/${id}/deliveries`)).body.data,
    /** Sends a message between two new users. */
    async talk() {
      const { a, b, conversationId } = await service.pair()
      return { a, b, conversationId, sent: (await service.say(a, conversationId, 'hello')).body }
    },
    notify: async (person: Person) =>
      ask('POST', '/v1/admin/notifications', {
        audience: 'users',
        user_ids: [person.id],
        title: 'News',
        body: 'For you.',
      }),
    audited: (action: string) =>
      service.sqlite
        .query<{ actor_type: string; target_id: string }, [string]>(
          'SELECT actor_type, target_id FROM audit_log WHERE action = ?',
        )
        .all(action),
    /** The number of queued deliveries. */
    queued: () =>
      service.sqlite.query("SELECT 1 FROM outbox WHERE kind = 'webhook_delivery'").all().length,
    /** Failed deliveries that are to be retried. */
    waiting: () =>
      service.sqlite
        .query<{ run_at: number; attempts: number }, []>(
          "SELECT run_at, attempts FROM outbox WHERE kind = 'webhook_delivery' AND attempts > 0",
        )
        .all(),
    /** Advances the clock beyond the life of tokens, and logs people in again. */
    async pass(milliseconds: number, ...people: Person[]) {
      clock.advance(milliseconds)
      for (const person of [root, ...people])
        Object.assign(person, await service.login(person.email))
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

const host = await startHost()
afterAll(() => host[Symbol.asyncDispose]())

describe('an event', () => {
  test('reaches an endpoint, signed by the Standard Webhooks rules, with the fields of REST', async () => {
    await using receiver = startReceiver()
    const made = await host.create(receiver.url, ['message.created'])
    expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const { sent } = await host.talk()
    const [got] = await waitFor(() => receiver.received[0] && receiver.received)
    const expected = {
      type: 'message.created',
      timestamp: sent.created_at,
      data: { message: sent },
    }
    expect(verify(made.secret, got as never)).toEqual(expected)
    expect(got?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Hostline\/\d+\.\d+\.\d+/),
      'webhook-id': expect.stringMatching(/^[0-9A-Z]{26}$/),
    })
    expect(() => verify(`whsec_${btoa('another secret')}`, got as never)).toThrow()
    await host.ask('DELETE', `${path}/${made.id}`)
  })

  test('goes only to endpoints that subscribe to its type, and to none once they are gone', async () => {
    await using receiver = startReceiver()
    const [users, messages] = await Promise.all([
      host.create(`${receiver.url}/reports`, ['report.created']),
      host.create(`${receiver.url}/messages`, ['message.created', 'message.created']),
    ])
    expect(messages.events).toEqual(['message.created'])
    await host.talk()
    await waitFor(() => receiver.received.length > 0)
    for (const { id } of [users, messages]) await host.ask('DELETE', `${path}/${id}`)
    await host.talk()
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook/messages'])
    await waitFor(() => host.queued() === 0)
  })

  test('about a ticket, a notification or a broadcast contains it as admins see it', async () => {
    await using receiver = startReceiver()
    const types = eventTypes.filter((type) => /^(ticket|notification|broadcast)/.test(type))
    const { id } = await host.create(receiver.url, types)
    const ada = await host.service.register('ada')
    const form = { subject: 'Refund', body: 'Where is it?' }
    const ticket = (await host.ask('POST', own, form, ada)).body
    const answer = (
      await host.ask('POST', `${desk}/${ticket.id}/messages`, {
        body: 'On its way.',
        status: 'resolved',
      })
    ).body
    await waitFor(() => receiver.received.length === 4, 'the ticket and its notification')
    const shown = (await host.ask('GET', `${desk}?user_id=${ada.id}`)).body.data[0]
    const [notification] = (await host.ask('GET', '/v1/notifications', undefined, ada)).body.data
    const question = { ...ticket.messages[0], author: { id: ada.id, display_name: 'ada' } }
    const data = (type: string) => receiver.of(type).map(({ body }) => body.data)
    expect(data('ticket.created')).toEqual([
      { ticket: expect.objectContaining({ id: ticket.id, user: shown.user }), message: question },
    ])
    expect(data('ticket.replied')).toEqual([{ ticket: shown, message: answer }])
    expect(data('ticket.updated')).toEqual([{ ticket: shown }])
    expect(data('notification.created')).toEqual([
      { notification: { ...notification, user_id: ada.id } },
    ])

    await host.notify(ada)
    const [news] = await waitFor(
      () => data('broadcast.completed')[0] && data('broadcast.completed'),
    )
    expect(news.broadcast).toMatchObject({ title: 'News', status: 'completed', delivered_count: 1 })
    // The event of the broadcast covers its copies.
    expect(receiver.of('notification.created')).toHaveLength(1)
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('about a broadcast is sent once, and not for each copy', async () => {
    await using receiver = startReceiver()
    const { id } = await host.create(receiver.url, ['message.created', 'broadcast.completed'])
    const star = await host.service.registerAs('host')
    addFollowers(host.service.sqlite, star.id, 30)
    const sent = await host.ask('POST', '/v1/chat/broadcast', { body: 'live' }, star)
    const [completed] = await waitFor(() => {
      host.clock.advance(500)
      return receiver.received[0] && receiver.received
    })
    expect(completed?.body.data.broadcast).toEqual({ ...sent.body, status: 'completed' })
    expect(receiver.of('message.created')).toEqual([])
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('about a user or a report contains what admins see, also when a command caused it', async () => {
    await using own = await startHost()
    await using receiver = startReceiver()
    const types = eventTypes.filter((type) => /^(user|report)/.test(type))
    await own.create(receiver.url, types)
    const ada = await own.service.registerAs('user', 'ada')
    await own.ask('PATCH', `/v1/admin/users/${ada.id}`, { role: 'host', email_verified: true })
    const report = { user_id: own.root.id, reason: 'spam' }
    const { id } = (await own.ask('POST', '/v1/reports', report, ada)).body
    await waitFor(() => receiver.of('report.created').length === 1)
    const shown = (await own.ask('GET', `/v1/admin/users/${ada.id}`)).body
    const users = receiver.received.flatMap(({ body }) => body.data.user ?? [])
    expect(users.at(-1)).toMatchObject({ id: ada.id, email: ada.email, role: 'host' })
    expect(Object.keys(users.at(-1))).toEqual(
      expect.arrayContaining(Object.keys(shown.user ?? shown)),
    )
    const listed = (await own.ask('GET', '/v1/admin/reports')).body.data[0]
    expect(receiver.of('report.created')[0]?.body.data).toEqual({ report: listed })
    expect(listed.id).toBe(id)

    const command = `user create --email cleo@example.com --role user`
    await hostline(command.split(' '), own.service.directory)
    own.clock.advance(2 * second)
    await waitFor(() => receiver.received.some(({ text }) => text.includes('cleo@example.com')))
    expect(receiver.received.at(-1)?.body.type).toBe('user.created')
    own.service.sqlite.run("UPDATE users SET external_id = 'crm-9' WHERE id = ?", [ada.id])
    await own.ask('DELETE', `/v1/admin/users/${ada.id}`)
    const [gone] = await waitFor(
      () => receiver.of('user.deleted')[0] && receiver.of('user.deleted'),
    )
    expect(gone?.body.data).toEqual({ user: { id: ada.id, external_id: 'crm-9' } })
  })

  test('identifies users by external ids, too, and removed ones by id only', async () => {
    await using receiver = startReceiver()
    const types = ['message.created', 'message.deleted', 'ticket.created', 'report.created']
    const { id } = await host.create(receiver.url, types)
    const { a, b, conversationId, sent } = await host.talk()
    await waitFor(() => receiver.received.length === 1)
    expect(receiver.received[0]?.body.data.message).not.toContainKey('sender_external_id')
    host.service.sqlite.run("UPDATE users SET external_id = 'crm-7' WHERE id = ?", [a.id])
    await host.service.say(a, conversationId, 'again')
    await host.ask('POST', own, { subject: 's', body: 'b' }, a)
    const removed = `/v1/chat/conversations/${conversationId}/messages/${sent.id}`
    await host.ask('DELETE', removed, undefined, a)
    await waitFor(() => receiver.received.length === 4)
    const { message } = receiver.of('message.created')[1]?.body.data ?? {}
    expect(message).toMatchObject({ sender_id: a.id, sender_external_id: 'crm-7' })
    expect(Object.keys(message).filter((key) => key.endsWith('external_id'))).toHaveLength(1)
    const opened: Data<'ticket.created'> = receiver.of('ticket.created')[0]?.body.data
    expect([opened.ticket.user.external_id, opened.message.author.external_id]).toEqual([
      'crm-7',
      'crm-7',
    ])
    expect(receiver.of('message.deleted')[0]?.body.data).toEqual({ message: { id: sent.id } })
    const key = await host.service.issueKey()
    const body = { conversation_id: conversationId, body: 'n', data: { user_id: a.id } }
    await host.service.call('POST', '/v1/service/messages', { token: key.token, body })
    await waitFor(() => receiver.received.length === 5)
    expect(receiver.received[4]?.body.data.message.data).toEqual(body.data)
    await host.ask('POST', '/v1/reports', { user_id: a.id, reason: 'spam' }, b)
    await waitFor(() => receiver.received.length === 6)
    const [reported] = receiver.of('report.created')
    const { report }: Data<'report.created'> = reported?.body.data ?? {}
    expect([report.reporter.external_id, report.reported.external_id]).toEqual([undefined, 'crm-7'])
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('of every type has the body of the API description, with external ids and without', async () => {
    await using receiver = startReceiver()
    const { service, root } = host
    const { id } = await host.create(receiver.url, eventTypes)
    const { token } = await service.issueKey(['all', 'messages_as'])
    const feed = (method: string, at: string, body?: unknown) =>
      service.call(method, `/v1/service${at}`, { token, body })
    for (const external of [null, 'crm-5']) {
      const [ada, bob] = [await service.registerAs('host'), await service.register()]
      const conversationId = await service.openConversation(ada, bob)
      const talk = `/v1/chat/conversations/${conversationId}/messages`
      service.sqlite.run('UPDATE users SET external_id = ? WHERE id = ?', [external, ada.id])
      await feed('PATCH', `/users/${ada.id}`, { display_name: 'Ada' })
      const files = ['a', 'b'].map((name) => ({ file_url: `https://example.com/${name}` }))
      await host.ask('POST', talk, { body: '', type: 'file', ...files[0] }, ada)
      await host.ask('POST', talk, { body: '', type: 'file', attachments: files }, ada)
      await feed('POST', '/messages', { conversation_id: conversationId, body: 'n', data: {} })
      const said = { conversation_id: conversationId, body: 'm', from: ada.id }
      const { body: message } = await feed('POST', '/messages', said)
      await host.ask('DELETE', `${talk}/${message.id}`, undefined, ada)
      const { body: ticket } = await host.ask('POST', own, { subject: 's', body: 'b' }, ada)
      const answer = { body: 'a', status: 'resolved' }
      await host.ask('POST', `${desk}/${ticket.id}/messages`, answer, root)
      for (const target of [{ user_id: ada.id }, { message_id: message.id }])
        await host.ask('POST', '/v1/reports', { ...target, reason: 'spam' }, bob)
      await feed('PUT', `/follows/${ada.id}/${bob.id}`)
      const custom = { type: 'custom.moved', title: 't', body: 'b', data: { host_id: ada.id } }
      await feed('POST', '/notifications', { user_id: bob.id, ...custom })
      await host.ask('POST', '/v1/chat/broadcast', { body: 'all' }, ada)
      const news = { audience: 'all', title: 't', body: 'b' }
      await host.ask('POST', '/v1/admin/notifications', news)
      await waitFor(() => host.queued() === 0)
      await feed('DELETE', `/users/${ada.id}`)
    }
    await host.ask('POST', `${path}/${id}/test`)
    await waitFor(() => host.queued() === 0)
    const document = (await service.call('GET', '/v1/openapi.json')).body
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    addFormats(ajv)
    ajv.addSchema(document, 'api')
    const wrong = receiver.received.flatMap(({ body }) => {
      const { schema } = document.webhooks[body.type].post.requestBody.content['application/json']
      const isValid = ajv.compile({ $ref: `api${schema.$ref}` })
      return isValid(body) ? [] : [{ body, errors: isValid.errors }]
    })
    expect(wrong).toEqual([])
    const types = new Set(receiver.received.map(({ body }) => body.type))
    expect([...types].sort()).toEqual([...eventTypes, testEvent].sort())
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('that was not accepted is delivered again with those since a time', async () => {
    await using own = await startHost()
    await using receiver = startReceiver()
    const { id } = await own.create(receiver.url, ['message.created'])
    receiver.respond({ status: 410 })
    const { a, conversationId, sent } = await own.talk()
    await waitFor(async () => (await own.deliveries(id))[0]?.status === 'failed')
    const retry = async (since: string) =>
      (await own.ask('POST', `${path}/${id}/deliveries/retry`, { since })).body
    expect(await retry(sent.created_at)).toEqual({ retried: 0 })
    expect((await own.deliveries(id))[0]).toMatchObject({ response_status: 410 })
    await own.ask('PATCH', `${path}/${id}`, { enabled: true })
    await own.service.say(a, conversationId, 'accepted')
    await waitFor(async () => (await own.deliveries(id)).some(isDelivered))
    expect(await retry(new Date(own.clock.now() + 1_000).toISOString())).toEqual({ retried: 0 })
    expect(await retry(sent.created_at)).toEqual({ retried: 1 })
    await waitFor(async () => (await own.deliveries(id)).every(isDelivered))
    expect(receiver.received).toHaveLength(3)
    own.service.sqlite.run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
       INSERT INTO outbox (id, kind, receiver, payload, attempts, created_at, run_at)
       SELECT printf('00%024d', i), 'webhook_delivery', ?1, json_object('webhook_id', ?1, 'event', json('{}')), 3, ?2, ?3
       FROM n`,
      [id, own.clock.now(), own.clock.now() + day],
    )
    own.service.sqlite.run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
       INSERT INTO webhook_deliveries (webhook_id, id, event, status, attempts, created_at, attempted_at)
       SELECT ?1, printf('01%024d', i), '{}', 'failed', 9, ?2, ?2 FROM n`,
      [id, own.clock.now()],
    )
    expect(await retry(sent.created_at)).toEqual({ retried: 360 })
    const wrong = await own.ask('POST', `${path}/${id}/deliveries/retry`, { since: 'yesterday' })
    expect(Object.keys(wrong.body.error.details)).toEqual(['since'])
  })

  test('that waits begins a new series of attempts, also when its result was pruned', async () => {
    await using own = await startHost()
    await using receiver = startReceiver()
    const { id } = await own.create(receiver.url, ['message.created'])
    receiver.respond({ status: 500 }, { status: 500 }, { status: 500 })
    const { sent } = await own.talk()
    const tried = (count: number) =>
      waitFor(() => own.waiting().find(({ attempts }) => attempts === count))
    await tried(1)
    own.clock.advance(10 * second)
    await tried(2)
    own.service.sqlite.run('DELETE FROM webhook_deliveries')
    const body = { since: sent.created_at }
    const retried = await own.ask('POST', `${path}/${id}/deliveries/retry`, body)
    expect(retried.body).toEqual({ retried: 1 })
    await waitFor(() => receiver.received.length === 3)
    await tried(1)
  })

  test.each([
    ['second', 1],
    ['last', 9],
  ])(
    'that is retried during its %s attempt begins a new series when that one fails',
    async (_, former) => {
      await using own = await startHost()
      await using receiver = startReceiver()
      const { id } = await own.create(receiver.url, ['message.created'])
      const { promise, resolve } = Promise.withResolvers<{ status: number }>()
      receiver.respond({ status: 500 }, promise)
      const { sent } = await own.talk()
      await waitFor(() => own.waiting().length === 1)
      own.service.sqlite.run('UPDATE outbox SET attempts = ? WHERE attempts = 1', [former])
      own.clock.advance(10 * second)
      await waitFor(() => receiver.received.length === 2)
      own.clock.advance(second)
      const body = { since: sent.created_at }
      const retried = await own.ask('POST', `${path}/${id}/deliveries/retry`, body)
      expect(retried.body).toEqual({ retried: 1 })
      resolve({ status: 500 })
      const third = () => receiver.received.length === 3
      await waitFor(third)
    },
  )

  test('counts as failed when its waiting job is discarded', async () => {
    await using receiver = startReceiver()
    const { id } = await host.create(receiver.url, ['message.created'])
    receiver.respond({ status: 500 })
    await host.talk()
    const [delivery] = await waitFor(async () => {
      const all = await host.deliveries(id)
      return all.length === 1 && all
    })
    expect((await host.ask('DELETE', `/v1/admin/jobs/${delivery.id}`)).status).toBe(204)
    expect(await host.deliveries(id)).toEqual([{ ...delivery, status: 'failed' }])
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('counts as failed when its job is discarded during an attempt that fails', async () => {
    await using receiver = startReceiver()
    const { id } = await host.create(receiver.url, ['message.created'])
    const { promise, resolve } = Promise.withResolvers<{ status: number }>()
    receiver.respond(promise)
    await host.talk()
    const { headers } = await waitFor(() => receiver.received[0])
    expect((await host.ask('DELETE', `/v1/admin/jobs/${headers['webhook-id']}`)).status).toBe(204)
    resolve({ status: 500 })
    const [delivery] = await waitFor(async () => {
      const all = await host.deliveries(id)
      return all.length === 1 && all
    })
    expect(delivery).toMatchObject({ status: 'failed', attempts: 1 })
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('whose former address is gone does not switch off a webhook that moved meanwhile', async () => {
    await using former = startReceiver()
    await using receiver = startReceiver()
    const { id } = await host.create(former.url, ['message.created'])
    const { promise, resolve } = Promise.withResolvers<{ status: number }>()
    former.respond(promise)
    await host.talk()
    await waitFor(() => former.received.length === 1)
    await host.ask('PATCH', `${path}/${id}`, { url: receiver.url })
    resolve({ status: 410 })
    await waitFor(async () => (await host.deliveries(id)).length === 1)
    expect(await host.show(id)).toMatchObject({ enabled: true, failing_since: null })
    await host.talk()
    await waitFor(() => receiver.received.length === 1)
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('is sent in its current state, and not at all once it is gone', async () => {
    await using own = await startHost()
    await using receiver = startReceiver()
    const { id } = await own.create(receiver.url, ['notification.created'])
    receiver.respond({ status: 500 }, { status: 500 })
    const key = await own.service.issueKey(['notifications'])
    const [ada, bob] = [await own.service.register(), await own.service.register()]
    const event = { user_ids: [ada.id, bob.id], type: 'payout_completed' }
    await own.ask('POST', '/v1/service/notifications', event, key)
    await waitFor(() => own.waiting().length === 2)
    const body = { password: 'correct horse' }
    await own.service.call('DELETE', '/v1/users/me', { token: bob.token, body })
    await own.ask('PUT', '/v1/notifications/read-all', undefined, ada)
    own.clock.advance(10 * second)
    await waitFor(() => own.queued() === 0)
    await waitFor(async () => (await own.deliveries(id)).some(isDelivered))
    const delivered = receiver.received.slice(2).map(({ body }) => body.data.notification)
    expect(delivered.map(({ user_id, read }) => [user_id, read])).toEqual([[ada.id, true]])
    const payload = own.service.sqlite.query('SELECT event FROM webhook_deliveries').values()
    expect(JSON.stringify(payload)).not.toContain('title')
    const ended = { status: 'failed', response: 'not sent: its subject was removed' }
    expect(await own.deliveries(id)).toContainEqual(expect.objectContaining(ended))
    expect(await own.deliveries(id)).toHaveLength(2)
  })
})

const isDelivered = ({ status }: { status: string }) => status === 'delivered'

const usualWaits = [
  5 * second,
  5 * minute,
  30 * minute,
  ...[2, 5, 10, 14, 20, 24].map((n) => n * hour),
]

describe('a failing delivery', () => {
  test('is tried ten times within four days with one id, then kept as failed, and may be retried', async () => {
    await using own = await startHost()
    await using receiver = startReceiver({ status: 302, headers: { location: '/elsewhere' } })
    const { id } = await own.create(receiver.url, ['message.created'])
    await own.talk()
    for (const [n, usual] of usualWaits.entries()) {
      const job = await waitFor(() => own.waiting().find(({ attempts }) => attempts === n + 1))
      const wait = job.run_at - own.clock.now()
      expect(wait).toBeWithin(usual, usual + 1_001)
      own.clock.advance(wait)
      await waitFor(() => receiver.received.length === n + 2)
    }
    await waitFor(() => own.queued() === 0)
    await own.pass(0)
    const [failed] = await own.deliveries(id)
    expect(failed).toMatchObject({ status: 'failed', attempts: 10, response_status: 302 })
    const seen = receiver.received.map(({ headers, path }) => [headers['webhook-id'], path])
    expect(new Set(seen.map(String))).toEqual(new Set([`${failed.id},/hook`]))
    expect((await own.ask('GET', '/v1/admin/jobs?state=dead')).body.data).toEqual([])

    receiver.respond({ status: 200, body: 'thank you' })
    const retried = await own.ask('POST', `${path}/${id}/deliveries/${failed.id}/retry`)
    expect([retried.status, retried.body.status]).toEqual([200, 'waiting'])
    await waitFor(async () => (await own.deliveries(id)).some(isDelivered))
    expect(await own.deliveries(id)).toEqual([
      {
        ...failed,
        status: 'delivered',
        attempts: 1,
        response_status: 200,
        response: 'thank you',
        attempted_at: new Date(own.clock.now()).toISOString(),
      },
    ])
    expect(receiver.received.at(-1)?.headers['webhook-id']).toBe(failed.id)
    expect((await own.show(id)).failing_since).toBeNull()
  })

  test.each([
    ['90', 90 * second],
    ['604800', day],
    ['soon', 5 * second],
  ])('with Retry-After: %s waits for that long, a day at most', async (header, expected) => {
    await using receiver = startReceiver()
    receiver.respond({ status: 429, headers: { 'retry-after': header } })
    const { id } = await host.create(receiver.url, ['message.created'])
    await host.talk()
    const [job] = await waitFor(() => host.waiting()[0] && host.waiting())
    expect((job?.run_at ?? 0) - host.clock.now()).toBeWithin(expected, expected + 1_001)
    expect((await host.show(id)).failing_since).toBe(new Date(host.clock.now()).toISOString())
    const { webhooks, warnings } = (await host.ask('GET', '/v1/admin/system')).body
    expect(webhooks).toEqual({ total: 1, disabled: 0, failing: 1, dropped: 0 })
    expect(warnings.map(({ code }: { code: string }) => code)).toContain('webhooks_failing')
    const [delivery] = await host.deliveries(id)
    await host.ask('POST', `${path}/${id}/deliveries/${delivery.id}/retry`)
    await waitFor(async () => (await host.deliveries(id)).some(isDelivered))
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('is kept with the first KiB of the response, however long that is', async () => {
    await using receiver = startReceiver()
    receiver.respond('flood')
    const { id } = await host.create(receiver.url, ['message.created'])
    await host.talk()
    const [delivery] = await waitFor(async () => {
      const all = await host.deliveries(id)
      return all.length > 0 && all
    })
    expect(delivery).toMatchObject({ response_status: 500, response: 'x'.repeat(1_024) })
    expect(receiver.flooded()).toBeLessThan(50_000_000)
    await host.ask('POST', `${path}/${id}/deliveries/${delivery.id}/retry`)
    await waitFor(() => host.queued() === 0)
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('that a stop breaks off costs no attempt: it is sent after the next start', async () => {
    const webhook = { id: 'w', url: 'https://example.com/in', disabledAt: null }
    const deliver = createDeliveries({ clock: createTestClock() } as never, {
      store: { find: () => webhook, hasExternalIds: () => false } as never,
      send: async () => Promise.reject(new Error('aborted')),
      notify() {},
      others: [{ eventData: { 'user.created': () => ({}) } } as never],
      reload() {},
    })
    const event = { type: 'user.created', at: '' } as const
    const run = { id: 'j', attempts: 1, signal: AbortSignal.abort() }
    const outcome = deliver({ webhook_id: 'w', event }, run as never)
    expect(await outcome).toEqual({ againAfterMilliseconds: 0 })
  })

  test('at a hanging endpoint delays no other endpoint', async () => {
    await using own = await startHost()
    await using well = startReceiver()
    await using hung = startReceiver('hang')
    await own.create(hung.url, ['message.created'])
    await own.create(well.url, ['message.created'])
    const { a, conversationId } = await own.talk()
    for (let n = 0; n < 20; n++) await own.service.say(a, conversationId, `message ${n}`)
    await waitFor(() => well.received.length === 21)
    expect(hung.received).toHaveLength(4)
  })
})

describe('an endpoint', () => {
  test('that answers 410 is disabled: admins are notified, and nothing is sent until one enables it', async () => {
    await using own = await startHost()
    await using receiver = startReceiver()
    const { id } = await own.create(receiver.url, ['message.created'])
    const { promise, resolve } = Promise.withResolvers<{ status: number }>()
    receiver.respond(promise, promise)
    const { a, conversationId } = await own.talk()
    await own.service.say(a, conversationId, 'meanwhile')
    await waitFor(() => receiver.received.length === 2)
    resolve({ status: 410 })
    await waitFor(() => own.queued() === 0)
    const { disabled_at } = await waitFor(async () => {
      const shown = await own.show(id)
      return !shown.enabled && shown
    })
    expect(disabled_at).toBe(new Date(own.clock.now()).toISOString())
    expect(own.audited('webhook_disabled')).toEqual([{ actor_type: 'system', target_id: id }])
    const [notification, ...others] = (await own.ask('GET', '/v1/notifications')).body.data
    expect(others).toEqual([])
    expect(notification).toMatchObject({ type: 'broadcast', data: { webhook_id: id } })
    expect(notification.body).toContain(new URL(receiver.url).host)
    await waitFor(() => own.service.log().includes('a webhook was switched off'))
    expect((await own.ask('GET', '/v1/admin/system')).body.webhooks.disabled).toBe(1)
    await own.service.say(a, conversationId, 'unheard')
    expect(own.queued()).toBe(0)
    await own.ask('PATCH', `${path}/${id}`, { enabled: true })
    await own.service.say(a, conversationId, 'heard')
    await waitFor(() => receiver.received.length === 3)
    expect(receiver.received[2]?.body.data.message.body).toBe('heard')
  })

  test('that fails for five days is disabled, and its pending deliveries are not sent', async () => {
    await using own = await startHost()
    await using receiver = startReceiver({ status: 503 })
    const { id } = await own.create(receiver.url, ['message.created'])
    const { a, conversationId } = await own.talk()
    await waitFor(() => own.waiting().length === 1)
    await own.pass(5 * day - 1, a)
    const say = async (text: string) => {
      const before = receiver.received.length
      await own.service.say(a, conversationId, text)
      await waitFor(() => receiver.received.length > before)
    }
    await waitFor(() => own.waiting().some(({ attempts }) => attempts === 2))
    await say('almost')
    await waitFor(() => own.waiting().length === 2)
    expect((await own.show(id)).enabled).toBe(true)
    own.clock.advance(1)
    await say('late')
    await waitFor(async () => !(await own.show(id)).enabled)
    const sent = receiver.received.length
    await waitFor(() => own.waiting().length === 3)
    await own.pass(hour)
    await waitFor(() => own.queued() === 0)
    expect(receiver.received).toHaveLength(sent)
    const kept = await waitFor(async () => {
      const all = await own.deliveries(id)
      return all.every(({ status }: { status: string }) => status === 'failed') && all
    })
    expect(kept).toHaveLength(3)
    expect(kept[0].response).toBe('not sent: the webhook is switched off')
  })

  test('that failed before the machine was off for a week has an hour after the start', async () => {
    using directory = temporaryDirectory()
    const environment = { WEBHOOK_PRIVATE: 'true' }
    await using own = await startHost({ environment, dataDir: directory.path })
    await using receiver = startReceiver({ status: 503 })
    await own.create(receiver.url, ['message.created'])
    await own.talk()
    await waitFor(() => own.waiting().length === 1)
    const { clock } = own
    await own.service.stop()
    clock.advance(7 * day)
    await using again = await startService({ clock, environment, dataDir: directory.path })
    const isOff = () =>
      again.sqlite.query('SELECT 1 FROM webhooks WHERE disabled_at IS NULL').get() === null
    const tried = (count: number) =>
      waitFor(() => {
        clock.advance(500)
        return again.sqlite.query('SELECT 1 FROM outbox WHERE attempts = ?').get(count) !== null
      })
    await tried(2)
    expect(isOff()).toBe(false)
    clock.advance(hour)
    await waitFor(isOff)
  })

  test('at a new address has five days of its own', async () => {
    await using own = await startHost()
    await using receiver = startReceiver({ status: 503 })
    const { id } = await own.create(receiver.url, ['message.created'])
    const { a, conversationId } = await own.talk()
    await waitFor(() => own.waiting().length === 1)
    await own.pass(5 * day - 1, a)
    await waitFor(() => own.waiting().some(({ attempts }) => attempts === 2))
    await own.service.confirm(own.root)
    const { url } = receiver
    const moveTo = async (to: string) =>
      (await own.ask('PATCH', `${path}/${id}`, { url: to })).body.failing_since
    expect(await moveTo(url)).toBeString()
    expect(await moveTo(`${url}/moved`)).toBeNull()
    own.clock.advance(1)
    await own.service.say(a, conversationId, 'too early')
    await waitFor(() => own.waiting().length === 2)
    const failing_since = new Date(own.clock.now()).toISOString()
    expect(await own.show(id)).toMatchObject({ enabled: true, failing_since })
  })

  test('is signed with the old secret for 24 hours after a rotation, then with the new one only', async () => {
    await using own = await startHost()
    await using receiver = startReceiver()
    const { id, secret } = await own.create(receiver.url, ['message.created'])
    const renewed = (await own.ask('POST', `${path}/${id}/secret`)).body
    expect(renewed.secret).not.toBe(secret)
    expect(await own.show(id)).not.toContainKey('secret')
    const signatures = async () => {
      receiver.received.length = 0
      await own.ask('POST', `${path}/${id}/test`)
      return receiver.received[0]
    }
    const both = await signatures()
    for (const key of [secret, renewed.secret]) verify(key, both as never)
    await own.pass(day)
    const one = await signatures()
    expect(both?.headers['webhook-signature']?.split(' ')).toHaveLength(2)
    expect(one?.headers['webhook-signature']?.split(' ')).toHaveLength(1)
  })

  test('is signed with the secret of the endpoint also when the answer of a rotation was lost', async () => {
    await using receiver = startReceiver()
    const { id, secret } = await host.create(receiver.url, ['report.created'])
    await host.ask('POST', `${path}/${id}/secret`)
    const repeated = (await host.ask('POST', `${path}/${id}/secret`)).body
    await host.ask('POST', `${path}/${id}/test`)
    for (const key of [secret, repeated.secret]) verify(key, receiver.received[0] as never)
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('is signed with at most five former secrets, however often it is rotated', async () => {
    await using receiver = startReceiver()
    const { id } = await host.create(receiver.url, ['report.created'])
    for (let n = 0; n < 7; n++) await host.ask('POST', `${path}/${id}/secret`)
    await host.ask('POST', `${path}/${id}/test`)
    expect(receiver.received[0]?.headers['webhook-signature']?.split(' ')).toHaveLength(6)
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('can be tested, also while it is disabled', async () => {
    await using receiver = startReceiver()
    const { id, secret } = await host.create(receiver.url, ['report.created'])
    await host.ask('PATCH', `${path}/${id}`, { enabled: false })
    receiver.respond({ status: 202, body: 'fine' }, { status: 500 })
    const test = async () => (await host.ask('POST', `${path}/${id}/test`)).body
    expect(await test()).toEqual({ status: 'delivered', response_status: 202, response: 'fine' })
    expect(verify(secret, receiver.received[0] as never)).toMatchObject({
      type: 'webhook.test',
      data: { webhook: { id } },
    })
    expect(await test()).toEqual({ status: 'failed', response_status: 500, response: '' })
    await receiver[Symbol.asyncDispose]()
    expect(await test()).toEqual({
      status: 'failed',
      response_status: null,
      response: expect.stringMatching(/ECONNREFUSED|refused|connect/i),
    })
    await host.ask('DELETE', `${path}/${id}`)
  })

  test('keeps the results of its last 100 deliveries, in pages', async () => {
    await using own = await startHost()
    await using receiver = startReceiver()
    const { id } = await own.create(receiver.url, ['message.created'])
    const { a, conversationId } = await own.talk()
    for (let n = 1; n < 119; n++) await own.service.say(a, conversationId, `message ${n}`)
    await waitFor(() => receiver.received.length === 119)
    const rows = () =>
      own.service.sqlite.query<{ n: number }, []>('SELECT count(*) n FROM webhook_deliveries').get()
    await waitFor(() => own.queued() === 0)
    own.clock.advance(minute)
    await waitFor(() => rows()?.n === 100)
    const all = await own.deliveries(id)
    expect(all).toHaveLength(100)
    expect(all[0].id > all[99].id).toBe(true)
    const page = (await own.ask('GET', `${path}/${id}/deliveries?limit=30`)).body
    expect(page.data).toEqual(all.slice(0, 30))
  })

  test('is created, shown, changed and removed by admins; its secret is shown once', async () => {
    const url = 'https://hooks.example.com/in?key=1'
    const made = await host.create(url, ['user.created'], { description: ' CRM ' })
    const { secret, ...shown } = made
    expect(shown).toEqual({
      id: expect.any(String),
      url,
      events: ['user.created'],
      description: 'CRM',
      enabled: true,
      failing_since: null,
      disabled_at: null,
      dropped_count: 0,
      created_at: new Date(host.clock.now()).toISOString(),
    })
    expect((await host.ask('GET', path)).body.data).toContainEqual(shown)
    expect(await host.show(shown.id)).toEqual(shown)
    const changed = await host.ask('PATCH', `${path}/${shown.id}`, {
      events: ['user.deleted'],
      description: '',
    })
    expect(changed.body).toEqual({ ...shown, events: ['user.deleted'], description: null })
    expect((await host.ask('PATCH', `${path}/${shown.id}`, {})).status).toBe(400)
    const audit = JSON.stringify(
      host.service.sqlite.query('SELECT details FROM audit_log').values(),
    )
    expect([audit.includes('key=1'), audit.includes(secret)]).toEqual([false, false])
    expect((await host.ask('DELETE', `${path}/${shown.id}`)).status).toBe(204)
    for (const [method, at] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/secret'],
      ['POST', '/test'],
      ['GET', '/deliveries'],
      ['POST', `/deliveries/${shown.id}/retry`],
    ] as const) {
      const body = method === 'PATCH' ? { enabled: true } : undefined
      expect((await host.ask(method, `${path}/${shown.id}${at}`, body)).status).toBe(404)
    }
  })
})

describe('a URL', () => {
  const publicly = startService()
  afterAll(async () => (await publicly)[Symbol.asyncDispose]())

  test.each([
    ['http://hooks.example.com/', 'public_url'],
    ['https://127.0.0.1/', 'public_url'],
    ['https://2130706433/', 'public_url'],
    ['https://0x7f.1/', 'public_url'],
    ['https://10.1.2.3:8443/', 'public_url'],
    ['https://100.64.0.1/', 'public_url'],
    ['https://169.254.169.254/latest', 'public_url'],
    ['https://[::1]/', 'public_url'],
    ['https://[::ffff:8.8.8.8]/', 'public_url'],
    ['https://[64:ff9b::808:808]/', 'public_url'],
    ['https://[2002:808:808::1]/', 'public_url'],
    ['https://[fe80::1]/', 'public_url'],
    ['https://user:pass@hooks.example.com/', 'http_url'],
    ['ftp://hooks.example.com/', 'http_url'],
    ['https://hooks.example.com/#part', 'no_fragment'],
  ])('%s is refused', async (url, problem) => {
    const service = await publicly
    const { token } = await service.registerAs('admin')
    const body = { url, events: ['user.created'] }
    const { status, body: refusal } = await service.call('POST', path, { token, body })
    const { fields } = (await import('../src/lib/texts/en.json')).default
    expect([status, refusal.error.details]).toEqual([400, { url: fields[problem as 'public_url'] }])
  })

  test('without a known event is refused, and each unknown one is named', async () => {
    const service = await publicly
    const { token } = await service.registerAs('admin')
    const body = { url: 'https://hooks.example.com/', events: ['user.x', 'user.created', 5] }
    const { status, body: refusal } = await service.call('POST', path, { token, body })
    const fields = Object.keys(refusal.error.details)
    expect([status, fields]).toEqual([400, ['events.0', 'events.2']])
  })

  test('with a host name is resolved for each request, and one private address refuses it', async () => {
    const asked: string[] = []
    const answers = [['8.8.8.8', '127.0.0.1'], ['::1'], ['100.100.0.1'], []]
    const resolveHost = async (name: string) => {
      asked.push(name)
      return (answers.shift() ?? []).map((address) => ({ address, family: 0 }))
    }
    await using own = await startHost({ environment: {}, resolveHost })
    const { id } = await own.create('https://hooks.example.com/', ['message.created'])
    const results: unknown[] = []
    for (let n = 0; n < 4; n++) results.push((await own.ask('POST', `${path}/${id}/test`)).body)
    const refusal = 'the host has an address that is not public'
    expect(results).toEqual(
      [refusal, refusal, refusal, 'the host has no address'].map((response) => ({
        status: 'failed',
        response_status: null,
        response,
      })),
    )
    expect(asked).toEqual(Array(4).fill('hooks.example.com'))
  })

  test('without TLS gets nothing once WEBHOOK_PRIVATE is off again', async () => {
    const resolveHost = async () => [{ address: '8.8.8.8', family: 4 }]
    await using own = await startHost({ environment: {}, resolveHost })
    const { id } = await own.create('https://hooks.example.com/', ['message.created'])
    own.service.sqlite.run("UPDATE webhooks SET url = 'http://hooks.example.com/'")
    const { body } = await own.ask('POST', `${path}/${id}/test`)
    expect(body.response).toBe('the address is not https')
  })
})

describe('verifyWebhook of the client', () => {
  const secret = newSecret()
  const body = JSON.stringify({
    type: 'user.deleted',
    timestamp: 'now',
    data: { user: { id: 'u' } },
  })
  const signed = (by: string, age = 0) => {
    const at = new Date(Date.now() - age)
    return {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': new Webhook(by).sign('msg_1', at, body),
    }
  }

  test('gives the event of a delivery, from a Request and from headers and text', async () => {
    await using receiver = startReceiver()
    await using host = await startHost({ clock: systemClock })
    const { secret } = await host.create(receiver.url, ['message.created'])
    const { sent } = await host.talk()
    await waitFor(() => receiver.received.length === 1)
    const [{ headers, text } = { headers: {}, text: '' }] = receiver.received
    const request = new Request(receiver.url, { method: 'POST', headers, body: text })
    for (const given of [request, { headers, body: text }]) {
      const event = await verifyWebhook(given, secret)
      // The type says which data there is.
      if (event.type !== 'message.created') throw new Error(event.type)
      const { id, sender_external_id } = event.data.message
      expect([id, sender_external_id]).toEqual([sent.id, undefined])
    }
  })

  test('accepts one good signature of several, such as after a rotation', async () => {
    const headers = signed(secret)
    const both = `${signed(newSecret())['webhook-signature']} v2,x ${headers['webhook-signature']}`
    const given = { headers: { ...headers, 'webhook-signature': both }, body }
    expect(await verifyWebhook(given, secret)).toEqual(JSON.parse(body))
  })

  // Signed when their test runs: the file may take minutes until then.
  test.each([
    ['another secret', () => ({ headers: signed(newSecret()), body }), secret],
    ['a changed body', () => ({ headers: signed(secret), body: `${body} ` }), secret],
    ['another id', () => ({ headers: { ...signed(secret), 'webhook-id': 'msg_2' }, body }), secret],
    ['six minutes', () => ({ headers: signed(secret, 360_000), body }), secret],
    ['six minutes to come', () => ({ headers: signed(secret, -360_000), body }), secret],
    ['no headers', () => ({ headers: {}, body }), secret],
    ['no secret', () => ({ headers: signed(secret), body }), ''],
  ])('refuses a request with %s', async (_, request, by) => {
    await expect(verifyWebhook(request(), by)).rejects.toThrow(Error)
  })
})

testAtLength(
  'more than 100,000 waiting events drop the oldest: the webhook counts them, and log, metrics and console say so',
  async () => {
    await using receiver = startReceiver({ status: 503 })
    const METRICS_TOKEN = 'x'.repeat(32)
    await using host = await startHost({ environment: { WEBHOOK_PRIVATE: 'true', METRICS_TOKEN } })
    const { id } = await host.create(receiver.url, ['message.created'])
    const other = await host.create(receiver.url, ['report.created'])
    const fill = host.service.sqlite.query(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
     INSERT INTO outbox (id, kind, receiver, payload, created_at, run_at)
     SELECT printf('00%024d', i * 2 + ?4), 'webhook_delivery', ?1,
       json_object('webhook_id', ?1, 'event', json(?5)), 0, ?3 FROM n`,
    )
    const { id: user_id } = await host.service.register()
    const event = JSON.stringify({ type: 'user.created', at: new Date(0).toISOString(), user_id })
    const later = host.clock.now() + 10 * day
    fill.run(id, 100_004, later, 0, event)
    fill.run(other.id, 10, later, 1, event)
    const triedId = insertDelivery(host.service.sqlite, id)
    host.service.sqlite.run(
      "UPDATE webhook_deliveries SET id = printf('00%024d', 4), status = 'waiting'",
    )
    expect((await host.show(id)).dropped_count).toBe(0)
    const { a, conversationId } = await host.talk()
    expect((await host.show(id)).dropped_count).toBe(5)
    const oldest = host.service.sqlite.query(
      'SELECT min(id) AS id, count(*) AS n FROM outbox WHERE receiver = ?',
    )
    expect(oldest.get(id)).toEqual({ id: '00000000000000000000000012', n: 100_000 })
    expect(oldest.get(other.id)).toMatchObject({ n: 10 })
    // The attempt to deliver the message has ended, so its event waits, too.
    await waitFor(async () => (await host.deliveries(id)).length === 2)
    receiver.respondAll('hang')
    const [, tried] = await host.deliveries(id)
    expect([tried.id === triedId, tried.status]).toEqual([false, 'failed'])
    expect(host.service.log()).toContain('events of a webhook were dropped because too many wait')
    expect(host.audited('webhook_events_dropped')).toEqual([
      { actor_type: 'system', target_id: id },
    ])
    const metrics = (await host.service.call('GET', '/metrics', { token: METRICS_TOKEN })).body
    expect(metrics).toContain('\nhostline_webhook_events_dropped_total 5\n')
    const { webhooks, warnings } = (await host.ask('GET', '/v1/admin/system')).body
    expect(webhooks.dropped).toBe(5)
    const endpoint = new URL(receiver.url).host
    expect(warnings).toContainEqual({
      code: 'webhook_events_dropped',
      message: `More than 100,000 events wait for ${endpoint}: the oldest are dropped.`,
    })
    const since = new Date(0).toISOString()
    const retried = await host.ask('POST', `${path}/${id}/deliveries/retry`, { since })
    expect(retried.body).toEqual({ retried: 100_001 })
    // Looked at again after a thousand events; audited once an hour.
    for (let n = 0; n < 1_000; n++) await host.service.say(a, conversationId, 'more')
    expect((await host.show(id)).dropped_count).toBeGreaterThan(5)
    expect(host.audited('webhook_events_dropped')).toHaveLength(1)
  },
)

test('events of two webhooks that are dropped in turn are audited once an hour for each', async () => {
  await using host = await startHost()
  const webhooks = [
    await host.create('https://a.example', ['message.created']),
    await host.create('https://b.example', ['message.created']),
  ]
  const { clock } = host
  const orm = drizzle(host.service.sqlite)
  let publish: (event: object) => void = () => {}
  const core = {
    clock,
    audit: createAuditTrail(orm, ulid, clock),
    events: { subscribe: (subscriber: typeof publish) => (publish = subscriber) },
    outbox: { add() {}, dropOldest: () => [ulid()] },
    log: { error() {} },
    afterCommit: (work: () => void) => work(),
  } as unknown as Core // what is used
  subscribeWebhooks(core, createWebhookStore(orm))
  const publishMany = () => {
    for (let n = 0; n < 3_000; n++) publish({ type: 'message.created', ids: {} })
  }
  publishMany()
  const audited = () =>
    host
      .audited('webhook_events_dropped')
      .map(({ target_id }) => target_id)
      .sort()
  const ids = webhooks.map(({ id }) => id)
  expect(audited()).toEqual(ids)
  clock.advance(hour)
  publishMany()
  expect(audited()).toEqual([...ids, ...ids].sort())
})

test('there are at most a hundred webhooks', async () => {
  await using own = await startHost()
  const row = own.service.sqlite.prepare(
    "INSERT INTO webhooks (id, url, events, secret, created_at) VALUES (?, 'https://a.example', '[]', 's', 0)",
  )
  for (let n = 0; n < 99; n++) row.run(`01ARZ3NDEKTSV4RRFFQ69G5F${10 + n}`)
  const body = { url: 'https://b.example', events: ['user.created'] }
  expect((await own.ask('POST', path, body)).status).toBe(201)
  const refused = await own.ask('POST', path, body)
  expect([refused.status, refused.headers.get('x-error-reason')]).toEqual([409, 'quota_exceeded'])
})

test('commands create, list, test and delete webhooks, and a running server follows', async () => {
  await using own = await startHost()
  await using receiver = startReceiver()
  const run = (line: string) =>
    hostline(`webhook ${line}`.split(' '), own.service.directory, {
      environment: { WEBHOOK_PRIVATE: 'true' },
    })
  const made = await run(`create --url ${receiver.url} --events message.created,user.created`)
  const [, id = ''] = /^(\w{26})\t/.exec(made.out) ?? []
  const [, secret = ''] = /secret: (whsec_\S+)$/.exec(made.out) ?? []
  expect((await run(`test ${id}`)).out).toBe(`${id} was reached: it responded with 204`)
  verify(secret, receiver.received[0] as never)
  own.clock.advance(2 * second)
  await waitFor(async () => {
    await own.talk()
    return receiver.of('message.created').length > 0
  })
  const waiting = own.service.sqlite.query("SELECT 1 FROM outbox WHERE kind = 'webhook_delivery'")
  await waitFor(() => waiting.get() === null, 'the last delivery')
  const [listed] = JSON.parse((await run('list --json')).out)
  expect(listed).toMatchObject({
    id,
    url: receiver.url,
    events: ['message.created', 'user.created'],
  })
  expect((await run('list')).out).not.toContain(secret)
  receiver.respond({ status: 500 })
  expect(await run(`test ${id}`)).toMatchObject({
    exitCode: 1,
    err: `hostline: ${id} was not reached: it responded with 500`,
  })
  expect((await run(`delete ${id}`)).out).toBe(`${id} is removed`)
  expect(await run(`delete ${id}`)).toMatchObject({ exitCode: 1 })
  for (const wrong of ['', 'create', 'create --url https://a.example --events x', 'test']) {
    expect((await run(wrong)).exitCode).toBe(2)
  }
})

test('a command refuses a URL that the server would refuse', async () => {
  await using service = await startService()
  const line = 'webhook create --url http://a.example --events user.created'
  const { exitCode, err } = await hostline(line.split(' '), service.directory)
  expect([exitCode, err]).toEqual([2, expect.stringMatching(/^hostline: url must be /)])
})
