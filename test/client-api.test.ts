import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { type Client, createClient } from '../client/src/client.ts'
import { codeOf } from './support/authenticator.ts'
import { refusalOf } from './support/clients.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const service = await startService({ listen: true })
const clients: Client[] = []
const password = 'correct horse'
let people = 0

/** A new user with an open channel. */
async function enter() {
  const client = createClient({ baseUrl: service.base })
  const email = `p${++people}@example.com`
  const { id } = await client.register({ email, password, display_name: `P${people}` })
  clients.push(client)
  await client.connect()
  return { client, id, email }
}

/** A new user with a role, and a service key. */
async function enterAs(role: string) {
  const { id, email } = await service.registerAs(role)
  const client = createClient({ baseUrl: service.base })
  clients.push(client)
  await client.login({ email, password })
  return { client, id }
}

afterAll(async () => {
  for (const client of clients) client.close()
  await service[Symbol.asyncDispose]()
})

describe('chat', () => {
  test('users mute, count, remove and read up to a message, and get the events', async () => {
    const [ada, bob] = [await enter(), await enter()]
    const { id } = await ada.client.conversations.open(bob.id)
    const [first, second] = [
      await ada.client.send(id, { body: '1' }),
      await ada.client.send(id, { body: '2' }),
    ]
    const removed = next(bob.client, 'message_deleted')
    const receipt = next(ada.client, 'read_receipt')
    await ada.client.messages.remove(id, second.id)
    expect(await removed).toMatchObject({ conversation_id: id, message_id: second.id })
    expect(await bob.client.conversations.unreadCount()).toEqual({ count: 1 })
    await bob.client.conversations.mute(id, new Date(Date.now() + 60_000).toISOString())
    await bob.client.conversations.markRead(id, first.id)
    expect(await receipt).toMatchObject({ conversation_id: id, user_id: bob.id })
    const [item] = (await bob.client.conversations.list()).data
    expect(item).toMatchObject({ muted: true, unread_count: 0 })
    await bob.client.conversations.unmute(id)
    expect((await bob.client.conversations.list()).data[0]?.muted).toBe(false)
  })

  test('users send files that the other side can read', async () => {
    const [ada, bob] = [await enter(), await enter()]
    const { id } = await ada.client.conversations.open(bob.id)
    const steps: number[] = []
    const file = await ada.client.files.upload(new Blob(['x'.repeat(200_000)]), {
      name: 'ä b.txt',
      type: 'text/plain',
      onProgress: (sent) => steps.push(sent),
    })
    expect([steps.length > 2, steps.at(-1), file.file_name]).toEqual([true, 200_000, 'ä b.txt'])
    const { id: _, ...fields } = file
    const heard = next(bob.client, 'new_message')
    await ada.client.send(id, { type: 'file', body: '', ...fields })
    const { message } = await heard
    expect(message).toMatchObject({ type: 'file', ...fields })
    const path = new URL(message.file_url ?? '').pathname
    expect((await (await fetch(service.base + path)).text()).length).toBe(200_000)
  })

  test('a fetch of their own sends uploads, too, also where there is an XMLHttpRequest', async () => {
    const surroundings = globalThis as { XMLHttpRequest?: unknown }
    surroundings.XMLHttpRequest = class {
      constructor() {
        throw new Error('passes by the given fetch')
      }
    }
    try {
      const sent: string[] = []
      const client = createClient({
        baseUrl: service.base,
        fetch(url, init) {
          sent.push(new URL(url).pathname)
          return fetch(url, init)
        },
      })
      clients.push(client)
      await client.register({ email: `p${++people}@example.com`, password, display_name: 'P' })
      await client.files.upload(new Blob(['x']), { name: 'a.txt', type: 'text/plain' })
      expect(sent).toEqual(['/v1/auth/register', '/v1/files'])
    } finally {
      delete surroundings.XMLHttpRequest
    }
  })

  test('users block each other and learn why messages are refused', async () => {
    const [ada, bob] = [await enter(), await enter()]
    const { id } = await ada.client.conversations.open(bob.id)
    await bob.client.blocks.add(ada.id)
    const refused = next(ada.client, 'message_refused')
    expect(await refusalOf(ada.client.send(id, { body: 'x' }))).toMatchObject({
      name: 'ApiError',
      code: 'forbidden',
      reason: 'blocked',
    })
    expect(await refused).toMatchObject({ queued: { conversation_id: id } })
    expect(await Array.fromAsync(bob.client.blocks.each())).toMatchObject([
      { user: { id: ada.id } },
    ])
    await bob.client.blocks.remove(ada.id)
    const message = await ada.client.send(id, { body: 'y' })
    const report = { message_id: message.id, reason: 'spam' } as const
    expect(await bob.client.report(report)).toMatchObject({ status: 'open' })
  })
})

function next<Name extends Parameters<Client['on']>[0]>(client: Client, name: Name) {
  return new Promise<Parameters<Parameters<typeof client.on<Name>>[1]>[0]>((resolve) => {
    const off = client.on(name, (event) => {
      off()
      resolve(event)
    })
  })
}

describe('support', () => {
  test('users open a ticket once, reply, get the desk’s events and close it', async () => {
    const [ada, root] = [await enter(), await enterAs('admin')]
    const opened = next(ada.client, 'ticket_updated')
    const ticket = await ada.client.tickets.create({ subject: 'Help', body: 'It is broken.' })
    expect(await opened).toMatchObject({ ticket: { id: ticket.id, status: 'open' } })
    const updated = next(ada.client, 'ticket_updated')
    await root.client.request('POST /v1/admin/support/tickets/{id}/messages', {
      params: { id: ticket.id },
      body: { body: 'Which one?', status: 'in_progress' },
    })
    expect(await updated).toMatchObject({ ticket: { id: ticket.id, status: 'in_progress' } })
    await ada.client.tickets.reply(ticket.id, { body: 'The red one.' })
    const { messages } = await ada.client.tickets.get(ticket.id)
    expect(messages.map(({ body }) => body)).toEqual([
      'It is broken.',
      'Which one?',
      'The red one.',
    ])
    expect((await ada.client.tickets.close(ticket.id)).status).toBe('closed')
    expect((await ada.client.tickets.list({ per_page: 1 })).data).toMatchObject([{ id: ticket.id }])
  })
})

describe('notifications', () => {
  test('users always know their unread count', async () => {
    const ada = await enter()
    const counts: number[] = []
    ada.client.on('unread_notifications', ({ count }) => counts.push(count))
    ada.client.disconnect()
    await notify(ada.id)
    await ada.client.connect()
    await waitFor(() => counts.length === 1)
    await notify(ada.id)
    await waitFor(() => counts.length === 2)
    const [newest] = (await ada.client.notifications.list({ unread: true })).data
    await ada.client.notifications.markRead(newest?.id ?? '')
    await waitFor(() => counts.length === 3)
    await ada.client.notifications.markAllRead()
    await waitFor(() => counts.length === 4)
    expect(counts).toEqual([1, 2, 1, 0])
    expect(await ada.client.notifications.unreadCount()).toEqual({ count: 0 })
  })

  test('users choose types, channels and devices', async () => {
    const { client } = await enter()
    const preferences = await client.notifications.updatePreferences({
      broadcast: { push: false },
    })
    expect(preferences.broadcast.push).toBe(false)
    expect(await client.notifications.preferences()).toEqual(preferences)
    const { id } = await client.pushTokens.register({ platform: 'ios', token: 'device' })
    expect((await client.pushTokens.list()).data).toMatchObject([{ id, platform: 'ios' }])
    await client.pushTokens.remove(id)
    expect((await client.pushTokens.list()).data).toEqual([])
  })

  test('users subscribe a browser once with the service’s key, and unsubscribe', async () => {
    const { client } = await enter()
    const asked: object[] = []
    const keys = { p256dh: publicKey, auth: Buffer.alloc(16, 1).toString('base64url') }
    let subscription: object | undefined
    const options = { applicationServerKey: null as ArrayBuffer | null }
    const made = {
      options,
      toJSON: () => ({ endpoint: 'https://fcm.googleapis.com/fcm/send/x', keys }),
      async unsubscribe() {
        subscription = undefined
        return true
      },
    }
    const pushManager = {
      getSubscription: async () => (subscription ? made : null),
      async subscribe(request: { applicationServerKey: string }) {
        asked.push(request)
        subscription = request
        const key = Buffer.from(request.applicationServerKey, 'base64url')
        options.applicationServerKey = new Uint8Array(key).buffer
        return made
      },
    }
    const token = await client.pushTokens.subscribe({ pushManager })
    expect(await client.pushTokens.subscribe({ pushManager })).toEqual(token)
    const { public_key } = await client.request('GET /v1/notifications/web-push-key')
    expect(asked).toEqual([{ userVisibleOnly: true, applicationServerKey: public_key }])
    options.applicationServerKey = new ArrayBuffer(65)
    await client.pushTokens.subscribe({ pushManager })
    expect(asked).toHaveLength(2) // a subscription for another key is replaced
    await client.pushTokens.unsubscribe({ pushManager }, token.id)
    expect([subscription, (await client.pushTokens.list()).data]).toEqual([undefined, []])
  })
})

// An arbitrary point on the curve.
const publicKey =
  'BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM'

async function notify(user_id: string) {
  const { token } = await service.issueKey()
  const platform = createClient({ baseUrl: service.base, serviceKey: token })
  await platform.request('POST /v1/service/notifications', {
    body: { user_id, type: 'payment_captured', data: { amount: '1.00', currency: 'EUR' } },
  })
}

describe('accounts', () => {
  test('users change theirs, log out other devices and export their data', async () => {
    const { client, id, email } = await enter()
    const elsewhere = createClient({ baseUrl: service.base })
    await elsewhere.login({ email, password })
    expect(await client.account.update({ display_name: 'Ada L.' })).toMatchObject({
      id,
      display_name: 'Ada L.',
    })
    const sessions = await Array.fromAsync(client.sessions.each())
    const other = sessions.find(({ current }) => !current)
    await client.sessions.end(other?.id ?? '')
    expect(await refusalOf(elsewhere.account.get())).toMatchObject({ name: 'SessionEndedError' })
    expect(await client.account.export()).toMatchObject({ user: { id } })
    const wrong = { current_password: 'wrong', new_password: 'another horse' }
    expect(await refusalOf(client.account.changePassword(wrong))).toMatchObject({
      code: 'invalid_credentials',
    })
    await client.account.remove({ password })
    expect(await refusalOf(client.account.get())).toMatchObject({ name: 'SessionEndedError' })
  })

  test('users set up a second factor, and a login without its code names the reason', async () => {
    const { client, email } = await enter()
    const { secret } = await client.totp.setUp({ password })
    const { recovery_codes } = await client.totp.confirm(codeOf(secret, Date.now()))
    const login = (code?: string) =>
      createClient({ baseUrl: service.base }).login({ email, password, ...(code && { code }) })
    expect(await refusalOf(login())).toMatchObject({ reason: 'totp_required' })
    expect(await refusalOf(login('000000'))).toMatchObject({ reason: 'totp_invalid' })
    const [first] = recovery_codes
    expect((await login(first)).email).toBe(email)
    // The code of the next step is valid already.
    const code = codeOf(secret, Date.now() + 30_000)
    const renewed = (await client.totp.renewCodes({ password, code })).recovery_codes
    await client.totp.remove({ password, code: renewed[0] ?? '' })
    expect((await login()).email).toBe(email)
  })

  test('users get links by mail, and a wrong token is refused', async () => {
    const { client, email } = await enter()
    expect(await client.account.forgotPassword(email)).toBeUndefined()
    await client.account.changeEmail({ new_email: `new-${email}`, password })
    expect(await refusalOf(client.account.resendVerification())).toMatchObject({
      code: 'rate_limited',
      reason: 'mail_throttled',
    })
    const uses = [
      client.account.verifyEmail('x'),
      client.account.confirmEmail('x'),
      client.account.undoEmail('x'),
      client.account.resetPassword({ token: 'x', password: 'another horse' }),
    ].map(refusalOf)
    for (const refusal of await Promise.all(uses)) {
      expect(refusal).toMatchObject({ details: { token: expect.any(String) } })
    }
  })

  test('users are logged in by the platform that created them', async () => {
    const { token } = await service.issueKey(['users', 'sessions'])
    const platform = createClient({ baseUrl: service.base, serviceKey: token })
    const body = { email: 'own@example.com', external_id: 'c-7', display_name: 'Carla' }
    const user = await platform.request('POST /v1/service/users', { body })
    const params = { id: 'ext:c-7' }
    const session = await platform.request('POST /v1/service/users/{id}/sessions', { params })
    const app = createClient({ baseUrl: service.base })
    expect(app.setSession(session).id).toBe(user.id)
    expect((await app.account.get()).display_name).toBe('Carla')
  })
})

test('a closed client answers nothing and keeps unsent messages', async () => {
  const { client, id } = await enter()
  client.close()
  expect(client.status()).toBe('closed')
  expect(await refusalOf(client.account.get())).toMatchObject({ name: 'ClosedError' })
  expect(await refusalOf(client.send(id, { body: 'x' }))).toMatchObject({ name: 'ClosedError' })
})

test('the service worker gives a click to an open page, or opens one with the data in its address', async () => {
  const scope = 'https://app.example.com/'
  const heard: unknown[] = []
  const page = { url: `${scope}chat`, postMessage: (it: unknown) => heard.push(it), focus() {} }
  let pages = [page]
  const clients = {
    matchAll: async () => pages,
    openWindow: async (url: string) => heard.push(decodeURIComponent(url)),
  }
  type Click = { notification: { data: object; close(): void }; waitUntil(it: unknown): void }
  const handlers: Record<string, (event: Click) => void> = {}
  const addEventListener = (type: string, handler: (event: Click) => void) => {
    handlers[type] = handler
  }
  const worker = await Bun.file(join(import.meta.dir, '../client/service-worker.js')).text()
  runInNewContext(worker, { self: { addEventListener, registration: { scope }, clients } })
  const click = async (data: object) => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    handlers['notificationclick']?.({ notification: { data, close() {} }, waitUntil: resolve })
    await promise
  }
  await click({ type: 'chat_message' })
  pages = []
  await click({ type: 'summary' })
  expect(heard).toEqual([
    { type: 'hostline_notification', data: { type: 'chat_message' } },
    `${scope}#hostline={"type":"summary"}`,
  ])
})
