import { describedRoutes } from '../../src/http/route-table.ts'
import { addFollowers } from './audience.ts'
import { codeOf } from './authenticator.ts'
import type { createTestClock } from './clock.ts'
import { hostline } from './command.ts'
import { insertDeadJob } from './dead-job.ts'
import { desk, own } from './desk.ts'
import { temporaryDirectory } from './directory.ts'
import { fetchFile, upload } from './files.ts'
import { startPushService } from './push-services.ts'
import type { Person, TestService } from './service.ts'
import { waitFor } from './wait.ts'
import { startReceiver } from './webhook-receiver.ts'

type TestClock = ReturnType<typeof createTestClock>
type Guide = ReturnType<typeof createGuide>
type People = { root: Person; ada: Person; bob: Person; platform: { token: string } }

const password = 'correct horse'
const minute = 60_000

/** Uses a listening service completely: each route with success, each list in every form, and all jobs. */
export async function tour(service: TestService, clock: TestClock) {
  const guide = createGuide(service, clock)
  const root = await makeAdmin(guide)
  const [ada, bob] = [await service.register('ada'), await service.register('bob')]
  const { key } = await guide.ask(root, 'POST /v1/admin/service-keys', {
    name: 'tour',
    scopes: ['all', 'sessions'],
  })
  const people = { root, ada, bob, platform: { token: key } }
  await visitPages(guide)
  await visitAccounts(guide, people)
  await visitFeed(guide, people)
  await using push = await visitNotifications(guide, people)
  await visitFiles(guide, people)
  await visitChat(guide, people)
  await visitModeration(guide, people)
  await visitSupport(guide, people)
  await visitWebhooks(guide, people)
  await guide.settle(16)
  for (const person of [root, ada]) Object.assign(person, await service.login(person.email))
  service.trust(root)
  await visitAdministration(guide, people)
  await visitSocket(guide, people)
  push.respond({ status: 404 })
  await useCommands(guide, people)
  for (const person of [root, ada]) Object.assign(person, await service.login(person.email))
  service.trust(root)
  await guide.settle()
  const [preferences] = /\/mail-preferences\?[\w=&~.-]+/.exec(service.log()) ?? []
  for (const method of ['GET', 'POST']) await guide.ask(undefined, `${method} ${preferences}`)
  await guide.ask(root, `DELETE /v1/admin/users/${bob.id}/sessions`)
  await guide.ask(ada, 'GET /v1/users/me/export')
  await guide.ask(ada, 'DELETE /v1/users/me', { password })
  const ticket = { subject: 'My invoice', body: 'It is wrong.', answer: 'We have corrected it.' }
  await guide.ask(undefined, 'POST /demo/people', ticket)
  await guide.settle(25 * 60)
}

function createGuide(service: TestService, clock: TestClock) {
  /** @param what the method and the path
   *  @throws when the response is not a success */
  async function ask(as: { token: string } | undefined, what: string, body?: unknown) {
    const [method = '', path = ''] = what.split(' ')
    const answer = await service.call(method, path, { token: as?.token, body })
    if (answer.status < 400) return answer.body
    throw new Error(`${what}: ${answer.status} ${JSON.stringify(answer.body)}`)
  }

  // The comments keep them out of the plans that are checked.
  const waiting = service.sqlite.query('/* the tour */ SELECT 1 FROM outbox WHERE dead_at IS NULL')
  const due = service.sqlite.query<{ kind: string }, [number]>(
    '/* the tour */ SELECT kind FROM outbox WHERE dead_at IS NULL AND run_at <= ?',
  )

  /** Advances the clock until `look` returns something: slowly while a job runs, because its requests take real time. */
  function waitForJobs<T>(look: () => T | Promise<T>, what: string) {
    return waitFor(
      () => {
        clock.advance(due.get(clock.now()) ? 20 : 500)
        return look()
      },
      () => `${what}; due: ${JSON.stringify(due.all(clock.now()))}`,
    )
  }

  return {
    service,
    clock,
    ask,
    /** Reads a list by number and by cursor.
     *  @returns its first page */
    async list(as: { token: string }, path: string, query = '') {
      const first = await ask(as, `GET ${path}?page=1&per_page=1${query}`)
      await ask(as, `GET ${path}?page=2&per_page=1${query}`)
      const { cursor } = (await ask(as, `GET ${path}?limit=1${query}`)).pagination
      if (cursor) await ask(as, `GET ${path}?limit=1&cursor=${cursor}${query}`)
      return first.data
    },
    /** The token of the newest mailed link to a page. */
    linked: (page: string) => {
      const newest = new RegExp(`.*${page}\\S*?#token=([\\w-]{43})`, 's')
      return waitForJobs(() => service.log().match(newest)?.[1], `a link to ${page}`)
    },
    /** Runs all jobs due within some minutes. */
    async settle(minutes = 5) {
      clock.advance(minutes * minute)
      await waitForJobs(() => waiting.get() === null, 'an empty queue')
    },
  }
}

async function makeAdmin({ service, ask }: Guide): Promise<Person> {
  const token = await service.accounts.offerSetUp()
  const form = { token, email: 'root@example.com', password, display_name: 'Root' }
  const { user, access_token, refresh_token } = await ask(undefined, 'POST /v1/auth/set-up', form)
  service.trust(user)
  return { ...user, token: access_token, refreshToken: refresh_token }
}

async function visitPages({ service, ask }: Guide) {
  const [asset = ''] = /\/assets\/[\w.-]+/.exec(await ask(undefined, 'GET /')) ?? []
  for (const { method, path, access } of describedRoutes(service.app)) {
    if (method !== 'GET' || access !== 'public' || path.includes(':id')) continue
    if (path === '/mail-preferences') continue // needs a signed address
    const address = path.replace('/assets/:name', asset).replace(':hue/:file', '1/A.svg')
    await ask(undefined, `GET ${address}`)
  }
}

async function visitAccounts(guide: Guide, { ada }: People) {
  const { service, clock, ask, list, linked } = guide
  await ask(undefined, 'POST /v1/auth/verify-email', { token: await linked('/verify-email') })
  clock.advance(2 * minute)
  await ask(ada, 'POST /v1/auth/verify-email/resend')
  await ask(undefined, 'POST /v1/auth/password/forgot', { email: ada.email })
  const token = await linked('/reset-password')
  await ask(undefined, 'POST /v1/auth/password/reset', { token, password })
  Object.assign(ada, await service.login(ada.email))
  const { refreshToken } = ada
  const other = await service.login(ada.email)
  await service.login(ada.email)
  const [newest] = await list(ada, '/v1/auth/sessions')
  await ask(ada, `DELETE /v1/auth/sessions/${newest.id}`)
  await ask(other, 'POST /v1/auth/logout', { refresh_token: other.refreshToken })
  const change = { current_password: password, new_password: password }
  await ask(ada, 'POST /v1/auth/password/change', change)
  const refresh = (headers = {}) =>
    service.call('POST', '/v1/auth/refresh', { body: { refresh_token: refreshToken }, headers })
  for (const _ of ['first', 'again']) await refresh({ 'x-idempotency-key': 'k1' })
  // Without the key this is token reuse.
  await refresh()
  await visitCredentials(guide, ada)
  await ask(ada, 'GET /v1/users/me')
  await ask(ada, 'PATCH /v1/users/me', { display_name: 'Ada L.' })
}

/** Changes the address and back, adds a second factor and removes it. */
async function visitCredentials(guide: Guide, ada: Person) {
  const { service, clock, ask, linked, settle } = guide
  const change = { new_email: 'ada@elsewhere.example', password }
  await ask(ada, 'POST /v1/auth/email/change', change)
  await ask(undefined, 'POST /v1/auth/email/confirm', { token: await linked('/change-email') })
  await ask(undefined, 'POST /v1/auth/email/undo', { token: await linked('/undo-email') })
  await settle()
  const token = await linked('/reset-password')
  await ask(undefined, 'POST /v1/auth/password/reset', { token, password })
  Object.assign(ada, await service.login(ada.email))
  const { secret } = await ask(ada, 'POST /v1/auth/totp', { password })
  const code = codeOf(secret, clock.now())
  const { recovery_codes: codes } = await ask(ada, 'POST /v1/auth/totp/confirm', { code })
  const login = { email: ada.email, password, code: codes[0] }
  await ask(undefined, 'POST /v1/auth/login', login)
  await ask(ada, 'POST /v1/auth/confirm', { password })
  await ask(ada, 'POST /v1/auth/confirm/code')
  await settle()
  const [, mailed] = /Your code: (\d{6})/.exec(service.log()) ?? []
  await ask(ada, 'POST /v1/auth/confirm', { code: mailed })
  clock.advance(minute / 2)
  await ask(ada, 'POST /v1/auth/confirm', { code: codeOf(secret, clock.now()) })
  clock.advance(minute / 2)
  const renewal = { password, code: codeOf(secret, clock.now()) }
  const renewed = await ask(ada, 'POST /v1/auth/totp/recovery-codes', renewal)
  await ask(ada, 'DELETE /v1/auth/totp', { password, code: renewed.recovery_codes[0] })
}

/** The reports of the platform. */
async function visitFeed({ service, ask }: Guide, { ada, bob, platform }: People) {
  await ask(platform, `GET /v1/service/users/${ada.id}`)
  const brought = { email: 'dora@example.com', external_id: 'crm/1' }
  for (const person of [brought, brought]) await ask(platform, 'POST /v1/service/users', person)
  await ask(platform, 'GET /v1/service/users?email=dora@example.com&page=1&per_page=1')
  await ask(platform, 'GET /v1/service/users?external_id=crm/1')
  await ask(platform, 'POST /v1/service/users/ext%3Acrm%2F1/sessions')
  await ask(platform, 'DELETE /v1/service/users/ext%3Acrm%2F1/sessions')
  await ask(platform, 'POST /v1/service/users', { email: 'gone@example.com', external_id: 'gone' })
  await ask(platform, 'DELETE /v1/service/users/ext%3Agone')
  await ask(platform, `PATCH /v1/service/users/${ada.id}`, { role: 'host', email_verified: true })
  const two = { user_ids: [ada.id, 'ext:crm/1'] }
  const notice = await ask(platform, 'POST /v1/service/messages', {
    ...two,
    body: 'b',
    unread: true,
  })
  await ask(platform, `DELETE /v1/service/messages/${notice.id}`)
  const { id: opened } = await ask(platform, 'POST /v1/service/conversations', two)
  await ask(platform, `PATCH /v1/service/conversations/${opened}`, { state: 'read_only' })
  await ask(platform, `GET /v1/service/conversations/${opened}`)
  await ask(ada, `GET /v1/chat/conversations/${opened}`)
  await ask(ada, `PUT /v1/chat/conversations/${opened}/archive`)
  await ask(ada, 'GET /v1/chat/conversations?archived=true')
  await ask(ada, `DELETE /v1/chat/conversations/${opened}/archive`)
  await ask(platform, `GET /v1/service/follows?host_id=${ada.id}`)
  for (const query of ['', '?state=active']) await ask(platform, `GET /v1/service/calls${query}`)
  const followers = `/v1/service/follows/${ada.id}`
  await ask(platform, `PUT ${followers}/${bob.id}`)
  await ask(platform, `DELETE ${followers}/${bob.id}`)
  await ask(platform, `PUT ${followers}`, { follower_ids: [bob.id] })
  addFollowers(service.sqlite, ada.id, 60) // too many for the synchronous part
  for (const step of ['1 ringing', '1 active', '1 ended', '2 ringing', '2 missed', '3 active']) {
    const [id, state] = step.split(' ')
    const call = { state, host_id: ada.id, guest_id: bob.id }
    await ask(platform, `PUT /v1/service/calls/${id}`, call)
  }
}

async function visitNotifications({ clock, ask, list }: Guide, people: People) {
  const { ada, bob, platform, root } = people
  const { public_key } = await ask(undefined, 'GET /v1/notifications/web-push-key')
  const push = startPushService(public_key, clock)
  const devices = '/v1/notifications/push-tokens'
  for (const person of [ada, bob]) {
    const token = JSON.stringify(await push.subscribe())
    await ask(person, `POST ${devices}`, { token, platform: 'web' })
  }
  const { id } = await ask(ada, `POST ${devices}`, { token: 'old', platform: 'ios' })
  await list(ada, devices)
  await ask(ada, `DELETE ${devices}/${id}`)
  for (const type of ['call_incoming', 'call_missed', 'call_missed']) {
    const event = { user_ids: [ada.id, bob.id], type, dedupe_key: type }
    await ask(platform, 'POST /v1/service/notifications', event)
  }
  const [first] = await list(ada, '/v1/notifications')
  await list(ada, '/v1/notifications', '&unread=true')
  await ask(ada, `PUT /v1/notifications/${first.id}/read`)
  await ask(ada, 'GET /v1/notifications/unread-count')
  await ask(ada, 'PUT /v1/notifications/read-all')
  await ask(bob, 'PUT /v1/notifications/preferences', { call_missed: { email: true } })
  await ask(bob, 'GET /v1/notifications/preferences')
  const timeIn = (minutes: number) =>
    new Date(clock.now() + minutes * minute).toISOString().slice(11, 16)
  const quiet = { from: timeIn(-2), to: timeIn(3), time_zone: 'UTC' }
  await ask(bob, 'PUT /v1/users/me/quiet-hours', quiet)
  const texts = { title: 'News', body: 'For you.' }
  const one = { audience: 'users', user_ids: [bob.id], client_id: 'once' }
  for (const audience of [one, one, { audience: 'role', role: 'user' }, { audience: 'all' }]) {
    const news = { ...audience, ...texts }
    const { broadcast_id } = await ask(root, 'POST /v1/admin/notifications', news)
    await ask(root, `GET /v1/admin/notifications/${broadcast_id}`)
  }
  await list(root, '/v1/admin/notifications')
  await ask(ada, 'DELETE /v1/users/me/quiet-hours')
  return push
}

/** A file of a ticket, an unused one, one of so many messages that a job removes it, and one that an admin removes. */
async function visitFiles({ service, ask, list }: Guide, { ada, bob, root }: People) {
  const put = () => upload(service, ada, 'x')
  const [used, , said, wrong] = [await put(), await put(), await put(), await put()]
  await list(ada, '/v1/files')
  await fetchFile(service, used.body.file_url)
  const ticket = { subject: 's', body: 'b', attachments: [used.body] }
  await ask(ada, `POST ${own}`, ticket)
  const conversation = await service.openConversation(ada, bob)
  const message = { type: 'file', body: '', file_url: said.body.file_url }
  for (let n = 0; n < 10; n++)
    await ask(ada, `POST /v1/chat/conversations/${conversation}/messages`, message)
  await ask(ada, 'PATCH /v1/users/me', { avatar_url: said.body.file_url })
  await ask(ada, `DELETE /v1/files/${said.body.id}`)
  await ask(root, `DELETE /v1/admin/files/${wrong.body.id}`)
}

async function visitChat({ service, ask, list }: Guide, { ada, bob, root }: People) {
  const conversations = '/v1/chat/conversations'
  const { id } = await ask(bob, `POST ${conversations}`, { user_id: ada.id })
  await ask(bob, `POST ${conversations}`, { user_id: root.id })
  const messages = `${conversations}/${id}/messages`
  for (const body of ['one', 'two', 'two']) {
    await ask(ada, `POST ${messages}`, { body, client_id: body })
  }
  await list(bob, conversations)
  const [newest] = await list(bob, messages)
  await ask(bob, 'GET /v1/chat/messages')
  await ask(bob, `GET /v1/chat/messages?since=${newest.id}&limit=1`)
  await ask(bob, `PUT ${conversations}/${id}/read`)
  for (const body of ['live', 'live']) {
    const { id: sent } = await ask(ada, 'POST /v1/chat/broadcast', { body, client_id: 'live' })
    await ask(ada, `GET /v1/chat/broadcasts/${sent}`)
  }
  await ask(ada, 'GET /v1/chat/unread-count')
  await ask(bob, `PUT ${conversations}/${id}/mute`, { until: '2099-01-01T00:00:00Z' })
  await ask(bob, `DELETE ${conversations}/${id}/mute`)
  const { id: slip } = await ask(ada, `POST ${messages}`, { body: 'slip' })
  await ask(bob, `PUT ${conversations}/${id}/read`, { message_id: newest.id })
  await ask(ada, `DELETE ${messages}/${slip}`)
  const forgotten = await service.connect(bob)
  await ask(ada, `POST ${messages}`, { body: 'unread' })
  forgotten.close()
  await forgotten.closed
}

async function visitModeration({ service, ask, list }: Guide, { ada, bob, root }: People) {
  const carl = await service.register('carla')
  for (const { id } of [carl, root]) await ask(bob, `PUT /v1/users/blocks/${id}`)
  await list(bob, '/v1/users/blocks')
  await ask(bob, `DELETE /v1/users/blocks/${root.id}`)
  const conversation = await service.openConversation(ada, bob)
  const { body: message } = await service.say(ada, conversation, 'Buy this')
  for (const target of [{ message_id: message.id }, { user_id: ada.id }, { user_id: ada.id }]) {
    await ask(bob, 'POST /v1/reports', { ...target, reason: 'spam' })
  }
  for (const query of ['', '&status=open']) await list(root, '/v1/admin/reports', query)
  const [{ id }] = await list(root, '/v1/admin/reports')
  await ask(root, `GET /v1/admin/reports/${id}`)
  await ask(root, `PATCH /v1/admin/reports/${id}`, { status: 'resolved', note: 'Warned.' })
  await ask(root, `DELETE /v1/admin/messages/${message.id}`)
}

async function visitSocket({ service, ask }: Guide, { ada, bob }: People) {
  const conversation_id = await service.openConversation(ada, bob)
  const messages = `/v1/chat/conversations/${conversation_id}/messages`
  const { data } = await ask(bob, `GET ${messages}`)
  const socket = await service.connect(bob, `&events=ack,read&since=${data[1].id}`)
  await socket.next('new_message')
  for (const type of ['message', 'message', 'typing', 'read']) {
    socket.send({ type, conversation_id, body: 'hi', client_id: 'hi' })
  }
  socket.send({ type: 'auth', token: bob.token })
  await socket.next('ack')
  await socket.settled()
  socket.close()
  await socket.closed
  await ask(ada, `POST ${messages}`, { body: 'away' })
}

async function visitSupport({ ask, list }: Guide, { ada, bob, root }: People) {
  const form = { subject: 'Refund', body: 'Where is it?', client_id: 'refund' }
  for (const person of [ada, ada, bob]) await ask(person, `POST ${own}`, form)
  await ask(ada, `POST ${own}`, { ...form, client_id: 'again', category: 'billing' })
  await ask(root, `POST ${desk}`, { ...form, user_id: bob.id })
  const [{ id }] = await list(ada, own)
  await ask(ada, `GET ${own}/${id}`)
  await ask(ada, `POST ${own}/${id}/messages`, { body: 'Hello?' })
  await list(ada, `${own}/${id}/messages`)
  for (const query of queries(ada.id)) await list(root, desk, query)
  await ask(root, 'GET /v1/admin/support/counts')
  await list(root, `${desk}/${id}/messages`)
  await ask(root, `GET ${desk}/${id}`)
  await ask(root, `PATCH ${desk}/${id}`, { priority: 'high', assignee_id: root.id })
  await ask(root, `POST ${desk}/${id}/messages`, { body: 'On its way.', client_id: 'answer' })
  const note = await ask(root, `POST ${desk}/${id}/notes`, { body: 'Be kind.' })
  await ask(root, `PATCH ${desk}/${id}/notes/${note.id}`, { body: 'Be very kind.' })
  await ask(root, `DELETE ${desk}/${id}/notes/${note.id}`)
  await ask(ada, `POST ${own}/${id}/close`)
  await ask(ada, `POST ${own}/${id}/messages`, { body: 'Not yet.' })
  await ask(root, `PATCH ${desk}/${id}`, { status: 'resolved' })
  const replies = '/v1/admin/support/canned-replies'
  const reply = await ask(root, `POST ${replies}`, { title: 'Thanks', body: 'Thank you.' })
  await ask(root, `PATCH ${replies}/${reply.id}`, { title: 'Thank you' })
  await ask(root, `GET ${replies}`)
  await ask(root, `DELETE ${replies}/${reply.id}`)
}

/** The desk's list: each filter alone, with another one, with all, and with words. */
function queries(owner: string): string[] {
  const filters = ['&status=open', '&priority=normal', '&category=other', `&user_id=${owner}`]
  const pairs = filters.map((filter, n) => filter + filters[(n + 1) % filters.length])
  const found = ['', ...filters].map((filter) => `${filter}&q=refund`)
  const assigned = ['me', 'none'].map((assignee) => `&assignee_id=${assignee}`)
  const waiting = ['true', 'false'].map((is) => `&waiting=${is}`)
  const notClosed = '&status=open,in_progress,resolved'
  const views = [...waiting, notClosed, notClosed + assigned[0], waiting[0] + notClosed]
  const orders = [...waiting, '', notClosed].map((view) => `${view}&order=shortest_waiting`)
  const searches = [...found, ...views.map((view) => `${view}&q=refund`)]
  const alone = ['', ...filters, ...assigned, ...views, ...orders]
  return [...alone, ...pairs, filters.join('') + assigned[0], ...searches]
}

async function visitAdministration({ service, ask, list }: Guide, { root, bob }: People) {
  await ask(root, 'PATCH /v1/admin/settings', await ask(root, 'GET /v1/admin/settings'))
  await ask(root, 'PATCH /v1/admin/settings', { accent: '#000000' })
  await ask(root, 'PATCH /v1/admin/settings', { accent: null })
  await ask(root, 'GET /v1/admin/settings/defaults')
  await ask(root, 'GET /v1/admin/settings/texts')
  await ask(root, 'POST /v1/admin/settings/texts/preview', { kind: 'confirm', lang: 'en' })
  const users = '/v1/admin/users'
  for (const q of ['', 'bo', bob.id, bob.email]) await list(root, users, `&q=${q}`)
  const filters = ['&role=user', '&disabled=false', '&email_verified=false']
  for (const some of [...filters, filters.join('')]) {
    for (const q of ['', '&q=bo', '&q=example']) await list(root, users, some + q)
  }
  await ask(root, `GET ${users}/${bob.id}`)
  await list(root, `${users}/${bob.id}/deliveries`)
  await ask(root, `PATCH ${users}/${bob.id}`, { role: 'admin', disabled: true })
  await ask(root, `PATCH ${users}/${bob.id}`, { role: 'user', disabled: false })
  Object.assign(bob, await service.login(bob.email))
  await list(root, `${users}/${bob.id}/sessions`)
  await ask(root, `GET ${users}/${bob.id}/export`)
  await ask(root, `POST ${users}/${bob.id}/password-reset`)
  const bans = '/v1/admin/bans'
  const ban = await ask(root, `POST ${bans}`, { kind: 'network', value: '192.0.2.0/24' })
  await list(root, bans)
  await list(root, bans, '&kind=network&value=192.0.2.0/24')
  await ask(root, `DELETE ${bans}/${ban.id}`)
  const carl = await service.register('carl')
  await ask(root, `DELETE ${users}/${carl.id}/totp`)
  await ask(root, `DELETE ${users}/${carl.id}`)
  await ask(root, `GET ${users}/${carl.id}/purge`)
  await ask(root, `POST ${users}/${carl.id}/purge`)
  const times = '&from=2020-01-01T00:00:00Z&to=2099-01-01T00:00:00Z'
  const audits = ['', '&action=x', `&actor_id=${root.id}`, `&target_id=${root.id}`, times]
  for (const filter of audits) await list(root, '/v1/admin/audit-log', filter)
  const jobs = '/v1/admin/jobs'
  for (const state of ['', '&state=waiting', '&state=dead']) await list(root, jobs, state)
  await ask(root, `POST ${jobs}/${insertDeadJob(service.sqlite)}/retry`)
  await ask(root, `DELETE ${jobs}/${insertDeadJob(service.sqlite)}`)
  await ask(root, 'GET /v1/admin/system')
  await ask(root, 'GET /v1/admin/retention')
  const keys = '/v1/admin/service-keys'
  await list(root, keys)
  const { id } = await ask(root, `POST ${keys}`, { name: 'short', scopes: ['calls'] })
  await ask(root, `DELETE ${keys}/${id}`)
}

/** Endpoints that accept deliveries, and one that is gone. */
async function visitWebhooks({ service, clock, ask, list }: Guide, { root, bob }: People) {
  await using receiver = startReceiver()
  const queued = "SELECT 1 FROM outbox WHERE kind = 'webhook_delivery' AND dead_at IS NULL"
  const delivered = () =>
    waitFor(() => {
      clock.advance(500)
      return service.sqlite.query(queued).get() === null
    }, 'deliveries')
  const hooks = '/v1/admin/webhooks'
  const events = ['ticket.created', 'notification.created']
  const { id } = await ask(root, `POST ${hooks}`, { url: receiver.url, events })
  const gone = await ask(root, `POST ${hooks}`, { url: receiver.url, events: ['ticket.created'] })
  await ask(root, `PATCH ${hooks}/${id}`, { description: 'tour' })
  await ask(root, `POST ${hooks}/${id}/secret`)
  await ask(root, `POST ${hooks}/${id}/test`)
  receiver.respond({ status: 500 }, { status: 410 })
  for (const subject of ['one', 'two']) await ask(bob, `POST ${own}`, { subject, body: 'b' })
  await delivered()
  for (const path of [hooks, `${hooks}/${id}/deliveries`]) await list(root, path)
  await ask(root, `GET ${hooks}/${id}`)
  const { data } = await ask(root, `GET ${hooks}/${id}/deliveries`)
  await ask(root, `POST ${hooks}/${id}/deliveries/${data[0].id}/retry`)
  const since = { since: '2020-01-01T00:00:00Z' }
  await ask(root, `POST ${hooks}/${id}/deliveries/retry`, since)
  await delivered()
  await ask(root, `DELETE ${hooks}/${gone.id}`)
  await ask(root, `DELETE ${hooks}/${id}`)
}

/** Commands beside the running service. */
async function useCommands({ service }: Guide, { bob }: People) {
  insertDeadJob(service.sqlite)
  insertDeadJob(service.sqlite, 'notification', { user_id: 'none' })
  using directory = temporaryDirectory()
  const commands = [
    `user role ${bob.email} host`,
    'user create --email eve@example.com --role user --password-stdin',
    'jobs retry --all',
    'jobs list',
    'keys list',
    'keys rotate --now',
    `backup ${directory.path}/backup.db`,
  ]
  for (const command of commands) {
    const { exitCode, err } = await hostline(command.split(' '), service.directory, {
      stdin: 'correct horse',
    })
    if (exitCode !== 0) throw new Error(`${command}: ${err}`)
  }
}
