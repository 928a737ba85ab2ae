import { expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { createTestClock } from './support/clock.ts'
import { temporaryDirectory } from './support/directory.ts'
import { startMailServer } from './support/mail.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'
import { startReceiver } from './support/webhook-receiver.ts'

type TestClock = ReturnType<typeof createTestClock>

const hour = 3_600_000
const since = '0'.repeat(26)

type Talk = { a: Person; b: Person; conversationId: string }

/** The messages that the other person reads, by catching up and by pages. */
async function heard(service: TestService, { b, conversationId }: Talk) {
  const path = `/v1/chat/conversations/${conversationId}/messages`
  const pages = await service.call('GET', path, b)
  const missed = await service.call('GET', `/v1/chat/messages?since=${since}`, b)
  const bodies = (list: { body: string }[]) => list.map(({ body }) => body)
  return [bodies(pages.body.data).reverse(), bodies(missed.body.data)]
}

async function say(service: TestService, { a, conversationId }: Talk, texts: string[]) {
  for (const text of texts) await service.say(a, conversationId, text)
}

/** A mail server that answers "busy" until `relent` is called. */
async function startBusyMailServer() {
  let isBusy = true
  const mail = await startMailServer({
    onRcptTo: (_address, _session, callback) =>
      callback(isBusy ? Object.assign(new Error('busy'), { responseCode: 451 }) : null),
  })
  return Object.assign(mail, { relent: () => (isBusy = false) })
}

async function mustSendTwoMails(mail: { mails: unknown[] }, clock: TestClock) {
  clock.advance(hour)
  await waitFor(() => {
    clock.advance(500)
    return mail.mails.length === 2
  }, 'two mails')
}

async function renew(service: TestService, { refreshToken }: Person) {
  const body = { refresh_token: refreshToken }
  const answer = await service.call('POST', '/v1/auth/refresh', { body })
  const token: string = answer.body.access_token
  return (await service.call('GET', '/v1/users/me', { token })).status
}

test('when the clock is set back an hour on a running server, order and sessions continue, and jobs run later', async () => {
  const clock = createTestClock()
  await using mail = await startBusyMailServer()
  await using service = await startService({ clock, environment: { SMTP_URL: mail.url } })
  const talk = await service.pair()
  await waitFor(() => service.log().match(/a job failed/g)?.length === 2)
  await say(service, talk, ['one', 'two'])
  clock.setBack(hour)
  await say(service, talk, ['three', 'four'])
  const all = ['one', 'two', 'three', 'four']
  expect(await heard(service, talk)).toEqual([all, all])
  expect(await renew(service, talk.b)).toBe(200)
  mail.relent()
  await mustSendTwoMails(mail, clock)
})

test('when the clock is set back an hour across a restart, order and sessions continue, and jobs run later', async () => {
  using directory = temporaryDirectory()
  const clock = createTestClock()
  await using mail = await startBusyMailServer()
  const environment = { SMTP_URL: mail.url }
  await using first = await startService({ clock, environment })
  const talk = await first.pair()
  await waitFor(() => first.log().match(/a job failed/g)?.length === 2)
  await say(first, talk, ['one', 'two'])
  await first.stop()
  cpSync(first.directory, directory.path, { recursive: true })

  clock.setBack(hour)
  mail.relent()
  const fill = async (path: string) => cpSync(directory.path, path, { recursive: true })
  await using second = await startService({ clock, environment, fill })
  await say(second, talk, ['three', 'four'])
  const all = ['one', 'two', 'three', 'four']
  expect(await heard(second, talk)).toEqual([all, all])
  expect(await renew(second, talk.b)).toBe(200)
  await mustSendTwoMails(mail, clock)
})

test('when the clock is set back an hour before a restart, no event gets the id of an earlier one', async () => {
  using directory = temporaryDirectory()
  const clock = createTestClock()
  await using receiver = await startReceiver()
  const environment = { WEBHOOK_PRIVATE: 'true' }
  await using first = await startService({ clock, environment })
  const talk = await first.pair()
  const { token } = await first.registerAs('admin')
  const body = { url: receiver.url, events: ['message.deleted'] }
  await first.call('POST', '/v1/admin/webhooks', { token, body })
  await say(first, talk, Array(8).fill('Hello'))
  const messages = `/v1/chat/conversations/${talk.conversationId}/messages`
  const listed = await first.call('GET', messages, talk.a)
  const ids: string[] = listed.body.data.map(({ id }: { id: string }) => id)
  const removeFour = async (service: TestService) => {
    for (const id of ids.splice(0, 4)) await service.call('DELETE', `${messages}/${id}`, talk.a)
    await waitFor(() => {
      clock.advance(500)
      return receiver.received.length === 8 - ids.length
    }, 'four events')
  }

  clock.setBack(hour)
  await removeFour(first)
  await first.stop()
  cpSync(first.directory, directory.path, { recursive: true })
  const fill = async (path: string) => cpSync(directory.path, path, { recursive: true })
  await using second = await startService({ clock, environment, fill })
  await removeFour(second)
  const used = receiver.received.map(({ headers }) => headers['webhook-id'])
  expect(new Set(used).size).toBe(8)
})

test('when the clock is set back an hour across a restart, a new notification is listed first', async () => {
  using directory = temporaryDirectory()
  const clock = createTestClock()
  await using first = await startService({ clock })
  const reader = await first.register()
  const { token } = await first.issueKey()
  const notify = (service: TestService, title: string) => {
    const body = { user_id: reader.id, type: 'payment_captured', title }
    return service.call('POST', '/v1/service/notifications', { token, body })
  }
  clock.advance(1_000)
  await notify(first, 'one')
  await first.stop()
  cpSync(first.directory, directory.path, { recursive: true })

  clock.setBack(hour)
  const fill = async (path: string) => cpSync(directory.path, path, { recursive: true })
  await using second = await startService({ clock, fill })
  await notify(second, 'two')
  const { body } = await second.call('GET', '/v1/notifications', {
    token: (await second.login(reader.email)).token,
  })
  expect(body.data.map(({ title }: { title: string }) => title)).toEqual(['two', 'one'])
})
