import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import type { Core } from '../src/core.ts'
import { texts } from '../src/lib/i18n.ts'
import { excerptOf } from '../src/lib/text.ts'
import { createUnread } from '../src/modules/chat/unread-store.ts'
import { createTestClock } from './support/clock.ts'
import { temporaryDirectory } from './support/directory.ts'
import { size, testAtLength } from './support/faults.ts'
import { type ReceivedMail, startMailServer } from './support/mail.ts'
import { type ServerProcess, startServer } from './support/process.ts'
import { createRandom } from './support/random.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { watchRuns } from './support/statements.ts'
import { waitFor } from './support/wait.ts'

const minute = 60_000

type Said = { id: string; talk: string; to: string; at: number; body: string }
type State = Said & { isOpen: boolean; isMailed: boolean; wasHeld: boolean }

async function startMailing(folder: string, more: { listen?: boolean } = {}) {
  const clock = createTestClock()
  let isAway = false
  let asked = 0
  let free = Promise.resolve()
  const mail = await startMailServer({
    onRcptTo(_address, _session, answer) {
      asked++
      const busy = Object.assign(new Error('busy'), { responseCode: 451 })
      void free.then(() => answer(isAway ? busy : null))
    },
  })
  let dataDir = join(folder, 'data')
  const start = () => startService({ clock, dataDir, environment: { SMTP_URL: mail.url }, ...more })
  let service: TestService = await start()
  const settled = () => {
    const due = `SELECT 1 FROM outbox WHERE dead_at IS NULL AND run_at <= ${clock.now()}`
    return service.sqlite.query(due).get() === null
  }
  const settle = () =>
    waitFor(() => {
      clock.advance(500)
      return settled()
    }, 'jobs that are due')
  return {
    clock,
    mail,
    service: () => service,
    settle,
    async pass(minutes: number) {
      clock.advance(minutes * minute)
      await settle()
    },
    async restart() {
      await service.stop()
      service = await start()
    },
    /** Goes on with a copy of the stored data, as after a crash or on another machine. */
    async takeOver() {
      const next = join(folder, crypto.randomUUID())
      cpSync(dataDir, next, { recursive: true, filter: (path) => !path.endsWith('.sock') })
      await service.stop()
      dataDir = next
      service = await start()
    },
    setAway(value: boolean) {
      isAway = value
    },
    /** Until it is released, the mail server answers nobody. */
    hold() {
      const before = asked
      const { promise, resolve: release } = Promise.withResolvers<void>()
      free = promise
      return { release, reached: () => waitFor(() => asked > before, 'a mail that is held') }
    },
    /** A request of a person, which is a visit. */
    async as({ email, id }: Person, method: string, path: string, body?: unknown) {
      const { token } = await service.login(email)
      const answer = await service.call(method, path, { token, body })
      const mark = 'SELECT 1 FROM inboxes WHERE user_id = ? AND is_mailed'
      await waitFor(() => service.sqlite.query(mark).get(id) === null, 'the end of the run')
      return answer
    },
    async [Symbol.asyncDispose]() {
      await service.stop()
      await mail[Symbol.asyncDispose]()
    },
  }
}
type Mailing = Awaited<ReturnType<typeof startMailing>>

const subjectOf = (text: string) => /^Subject: (.*)$/m.exec(text)?.[1] ?? ''
const isAboutMessages = ({ text }: ReceivedMail) => /^New messages: /.test(subjectOf(text))
const bodiesOf = ({ raw }: ReceivedMail) => [...new Set(raw.match(/word\d+/g) ?? [])].sort()

async function startPair(options: { minutes?: number; listen?: boolean } = {}) {
  const directory = temporaryDirectory()
  const all = await startMailing(directory.path, { listen: options.listen ?? false })
  const service = all.service()
  const [ada, bob] = [
    await service.registerAs('user', 'ada'),
    await service.registerAs('user', 'bob'),
  ]
  const talk = await service.openConversation(ada, bob)
  const admin = await service.registerAs('admin')
  // Tokens expire within an hour.
  async function set(body: object) {
    const { id, token } = await all.service().login(admin.email)
    all.service().trust({ id })
    const { status } = await all.service().call('PATCH', '/v1/admin/settings', { token, body })
    expect(status).toBe(200)
  }
  if (options.minutes !== undefined) await set({ unread_mail_minutes: options.minutes })
  await all.settle()
  all.mail.mails.length = 0
  const messages = `/v1/chat/conversations/${talk}/messages`
  return {
    ...all,
    ada,
    bob,
    talk,
    set,
    say: (body: string) => all.as(ada, 'POST', messages, { body }),
    mails: () => all.mail.mails.filter(isAboutMessages),
    async [Symbol.asyncDispose]() {
      await all[Symbol.asyncDispose]()
      directory[Symbol.dispose]()
    },
  }
}

describe('unread messages', () => {
  test('are mailed once after 15 minutes, with a button, and again only after a visit', async () => {
    await using all = await startPair()
    await all.set({ links: { conversation: 'https://app.example.com/chat/{id}' } })
    await all.say('word1')
    await all.pass(10)
    await all.say('word2')
    await all.pass(4)
    expect(all.mails()).toEqual([])
    await all.pass(2)
    const [mail] = all.mails()
    expect(mail && [mail.to, subjectOf(mail.text), bodiesOf(mail)]).toEqual([
      'bob@example.com',
      'New messages: ada',
      ['word1', 'word2'],
    ])
    expect(mail?.text).toContain(`https://app.example.com/chat/${all.talk}`)
    await all.say('word3')
    await all.pass(60)
    expect(all.mails()).toHaveLength(1)
    await all.as(all.bob, 'GET', '/v1/users/me')
    await all.settle()
    await all.pass(16)
    expect(all.mails().map(bodiesOf)).toEqual([['word1', 'word2'], ['word3']])
    const kinds = all
      .service()
      .sqlite.query('SELECT state FROM deliveries WHERE kind = ?')
      .all('unread_mail')
    expect(kinds).toEqual([{ state: 'sent' }, { state: 'sent' }])
  })

  test.each([
    ['full', 'New messages: ada', ['ada', 'word1']],
    ['sender', 'New messages: ada', ['ada']],
    ['none', 'New messages: localhost', []],
  ])('are mailed with %s content', async (mail_content, subject, shown) => {
    await using all = await startPair()
    await all.set({ mail_content })
    await all.say('word1')
    await all.pass(16)
    const [mail] = all.mails()
    const text = mail?.text ?? ''
    expect(subjectOf(text)).toBe(subject)
    // As words: boundaries and signatures within the mail are random.
    const isShown = (word: string) => new RegExp(`\\b${word}\\b`).test(text)
    expect(['ada', 'word1'].filter(isShown)).toEqual(shown)
  })

  test('are not mailed to people who want none, are not verified, or where it is off', async () => {
    await using all = await startPair({ minutes: 0 })
    await all.say('word1')
    await all.pass(60)
    await all.set({ unread_mail_minutes: 15 })
    const preferences = '/v1/notifications/preferences'
    await all.as(all.bob, 'PUT', preferences, { chat_message: { email: false } })
    await all.say('word2')
    await all.pass(60)
    await all.as(all.bob, 'PUT', preferences, { chat_message: { email: true } })
    all.service().sqlite.run('UPDATE users SET email_verified = 0 WHERE id = ?', [all.bob.id])
    await all.say('word3')
    await all.pass(60)
    all.service().sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [all.bob.id])
    await all.say('word4')
    await all.set({ unread_mail_minutes: 0 })
    await all.pass(60)
    expect(all.mails()).toEqual([])
    await all.set({ unread_mail_minutes: 15 })
    await all.say('word5')
    await all.pass(60)
    expect(all.mails()).toHaveLength(1)
  })

  test('wait for the end of quiet hours', async () => {
    await using all = await startPair()
    const time = (minutes: number) =>
      new Date(all.clock.now() + minutes * minute).toISOString().slice(11, 16)
    const hours = { from: time(-60), to: time(60), time_zone: 'UTC' }
    await all.as(all.bob, 'PUT', '/v1/users/me/quiet-hours', hours)
    await all.say('word1')
    await all.pass(16)
    await all.say('word2')
    await all.pass(40)
    expect(all.mails()).toEqual([])
    await all.pass(10)
    expect(all.mails().map(bodiesOf)).toEqual([['word1', 'word2']])
  })

  test('are mailed although a device is connected; using it ends the run', async () => {
    await using all = await startPair({ listen: true, minutes: 2 })
    const device = await all.service().connect(await all.service().login(all.bob.email))
    await all.say('word1')
    await all.pass(3)
    device.send({ type: 'ping' })
    await device.next('pong')
    await all.say('word2')
    await all.pass(6)
    expect(all.mails().map(bodiesOf)).toEqual([['word1']])
    device.send({ type: 'typing', conversation_id: all.talk })
    await device.settled()
    await all.settle()
    await all.pass(3)
    expect(all.mails().map(bodiesOf)).toEqual([['word1'], ['word2']])
  })

  test.each([
    ['retry', ['word1']],
    ['discard', ['word1', 'word2']],
  ])('are mailed although an admin changed their job: %s', async (action, mailed) => {
    await using all = await startPair()
    const service = all.service()
    const { token } = await service.registerAs('admin', 'grace')
    await all.say('word1')
    const waiting = "SELECT id FROM outbox WHERE kind = 'unread_mail'"
    const path = `/v1/admin/jobs/${service.sqlite.query<{ id: string }, []>(waiting).get()?.id}`
    if (action === 'retry') await service.call('POST', `${path}/retry`, { token })
    else await service.call('DELETE', path, { token })
    await all.settle()
    if (mailed.includes('word2')) await all.say('word2')
    await all.pass(16)
    expect(all.mails().map(bodiesOf)).toEqual([mailed])
  })

  test('are mailed although the clock was set back', async () => {
    await using all = await startPair()
    await all.say('word1')
    await all.pass(16)
    await all.as(all.bob, 'GET', '/v1/users/me')
    all.clock.setBack(10 * minute)
    await all.say('word2')
    await all.pass(30)
    expect(all.mails().map(bodiesOf)).toEqual([['word1'], ['word2']])
  })

  test('are mailed when the oldest is of a time when the clock was three days ahead', async () => {
    await using all = await startPair()
    await all.say('word1')
    all.clock.setBack(3 * 24 * 60 * minute)
    await all.say('word2')
    await all.pass(16)
    expect(all.mails().map(bodiesOf)).toEqual([['word1', 'word2']])
  })

  test('are mailed once when the mail server was away, also after a visit meanwhile', async () => {
    await using all = await startPair()
    all.setAway(true)
    await all.say('word1')
    await all.pass(16)
    await all.as(all.bob, 'GET', '/v1/users/me')
    await all.pass(1)
    expect(all.mails()).toEqual([])
    all.setAway(false)
    await all.pass(5)
    await all.say('word2')
    await all.pass(60)
    expect(all.mails().map(bodiesOf)).toEqual([['word1']])
  })

  test('are mailed once when a visit and the next job come while their mail is under way', async () => {
    await using all = await startPair()
    await all.say('word1')
    const held = all.hold()
    all.clock.advance(16 * minute)
    await held.reached()
    await all.as(all.bob, 'GET', '/v1/users/me')
    all.clock.advance(16 * minute)
    // The job that the visit made has begun, and waits for the first.
    await all.service().write(() => {})
    held.release()
    await all.pass(60)
    expect(all.mails().map(bodiesOf)).toEqual([['word1']])
  })

  test('of silent notices and broadcasts are not mailed, and one job stands for many', async () => {
    await using all = await startPair()
    const service = all.service()
    const { token } = await service.issueKey(['all'])
    const host = await service.registerAs('host', 'hostess')
    await service.call('PUT', `/v1/service/follows/${host.id}/${all.bob.id}`, { token })
    const sent = await service.call('POST', '/v1/chat/broadcast', {
      token: host.token,
      body: { body: 'word1' },
    })
    const notice = { user_ids: [all.ada.id, all.bob.id], body: 'word2' }
    const said = await service.call('POST', '/v1/service/messages', { token, body: notice })
    expect([sent.status, said.status]).toEqual([201, 201])
    await all.pass(20)
    expect(all.mails()).toEqual([])
    for (let n = 0; n < 5; n++) {
      await all.say(`word${n}`)
      await all.settle()
    }
    const jobs = service.sqlite.query('SELECT count(*) AS n FROM outbox WHERE kind = ?')
    expect(jobs.get('unread_mail')).toEqual({ n: 1 })
  })

  test('show a notice as of the platform, beside the words of the other person', async () => {
    await using all = await startPair()
    const { token } = await all.service().issueKey(['all'])
    await all.set({ platform_name: 'Harbour' })
    await all.say('word1')
    const notice = { user_ids: [all.ada.id, all.bob.id], body: 'word2', unread: true }
    await all.service().call('POST', '/v1/service/messages', { token, body: notice })
    await all.service().call('POST', '/v1/service/messages', {
      token,
      body: { ...notice, body: 'word4', unread: false },
    })
    await all.say('word3')
    await all.pass(16)
    // Ada gets one with the notice, too.
    const mail = all.mails().find(({ to }) => to === all.bob.email)
    const shown = mail?.text.match(/^(ada|Harbour|word\d)$/gm)
    // The mail ends with the name of the platform.
    expect(shown).toEqual(['ada', 'word1', 'word3', 'Harbour', 'word2', 'Harbour'])
  })

  test('of several conversations lead to the first page; archived ones are left out', async () => {
    await using all = await startPair()
    await all.set({
      links: { conversation: 'https://app.example.com/c/{id}', home: 'rooms://home' },
    })
    const service = all.service()
    const [eve, fay] = [await service.register('eve'), await service.register('fay')]
    const talks = [
      await service.openConversation(eve, all.bob),
      await service.openConversation(fay, all.bob),
    ] as const
    const write = (from: Person, talk: string, body: string) =>
      all.as(from, 'POST', `/v1/chat/conversations/${talk}/messages`, { body })
    await write(fay, talks[1], 'word9')
    await all.as(all.bob, 'PUT', `/v1/chat/conversations/${talks[1]}/archive`)
    await all.say('word1')
    await all.pass(16)
    const [one] = all.mails()
    expect(one && bodiesOf(one)).toEqual(['word1'])
    expect(one?.text).toContain(`https://app.example.com/c/${all.talk}`)
    await all.as(all.bob, 'GET', '/v1/users/me')
    await write(eve, talks[0], 'word2')
    await all.say('word3')
    await all.pass(16)
    const [, several] = all.mails()
    expect(several && bodiesOf(several)).toEqual(['word2', 'word3'])
    expect(several?.text).toContain('rooms://home')
    expect(several?.text).not.toContain('/c/')
  })

  test('are read with as many statements in 25 conversations as in 21', async () => {
    await using service = await startService()
    const bob = await service.register()
    const core = { orm: drizzle(service.sqlite), clock: createTestClock() } as unknown as Core // what is used
    const unread = createUnread(core, () => true)
    let runs = 0
    watchRuns(() => runs++)
    async function countFor(conversations: number) {
      for (let n = 0; n < conversations; n++) {
        const sender = await service.register()
        await service.say(sender, await service.openConversation(sender, bob), 'word1')
      }
      runs = 0
      expect(unread.findMailable(bob.id)?.conversations).toHaveLength(20)
      return runs
    }
    expect(await countFor(21)).toBe(await countFor(4))
  })

  test('of three talks come in one mail; who was disabled meanwhile gets none', async () => {
    await using all = await startPair()
    const service = all.service()
    await all.say('word1')
    for (const [name, word] of [
      ['eve', 'word2'],
      ['fay', 'word3'],
    ] as const) {
      const sender = await service.register(name)
      const talk = await service.openConversation(sender, all.bob)
      await all.as(sender, 'POST', `/v1/chat/conversations/${talk}/messages`, { body: word })
    }
    await all.pass(16)
    expect(all.mails().map(bodiesOf)).toEqual([['word1', 'word2', 'word3']])
    await all.as(all.bob, 'GET', '/v1/users/me')
    await all.say('word4')
    service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [all.bob.id])
    await all.pass(16)
    expect(all.mails()).toHaveLength(1)
  })

  test('show names as no links, captions, and the names of all files', async () => {
    await using all = await startPair()
    await all.as(all.ada, 'PATCH', '/v1/users/me', { display_name: 'Win at evil.com/x @now' })
    const send = (content: object) =>
      all.as(all.ada, 'POST', `/v1/chat/conversations/${all.talk}/messages`, {
        type: 'file',
        ...content,
      })
    const file = (name: string) => ({ file_url: `https://a.example/${name}`, file_name: name })
    await send({ body: 'word1', ...file('one.png') })
    await send({ body: '', attachments: [file('two.png'), file('three.png')] })
    await send({ body: '', file_url: 'https://a.example/4' })
    await all.pass(16)
    const [mail] = all.mails()
    expect(subjectOf(mail?.text ?? '')).toBe('New messages: Win at evil com x now')
    expect(mail?.text).not.toContain('evil.com')
    expect(mail?.text).toContain('word1')
    expect(mail?.text).toContain('two.png, three.png')
    expect(mail?.text).toContain(texts.en.push.file)
  })

  test('show the ten newest of a talk', async () => {
    await using all = await startPair()
    const words = Array.from({ length: 12 }, (_, n) => `word${n + 11}`)
    for (const word of words) await all.say(word)
    await all.pass(16)
    expect(all.mails().map(bodiesOf)).toEqual([words.slice(2)])
  })

  test('show at most 200 characters of each', async () => {
    await using all = await startPair()
    await all.say('é'.repeat(300))
    await all.pass(16)
    const [shown = ''] = all.mails()[0]?.text.match(/é+…?/) ?? []
    expect(shown).toBe(`${'é'.repeat(199)}…`)
  })

  test.each([
    ['a b', 3, 'a b'],
    ['one two three', 9, 'one two…'],
    ['onetwothree', 5, 'onet…'],
    ['one two', 4, 'one…'],
    ['👍👍👍👍', 4, '👍👍👍👍'],
    ['👍👍👍👍👍', 4, '👍👍👍…'],
  ])('"%s" is cut to %i characters as "%s"', (text, max, cut) => {
    expect(excerptOf(text, max)).toBe(cut)
  })
})

/** Bob wants mails of followers. */
async function startNotifying() {
  const all = await startPair()
  const { token } = await all.service().issueKey(['notifications'])
  const prefer = (preferences: object) =>
    all.as(all.bob, 'PUT', '/v1/notifications/preferences', preferences)
  await prefer({ follow_new: { email: true } })
  return {
    ...all,
    prefer,
    /** @returns its id */
    async notify(title: string): Promise<string> {
      const body = { user_id: all.bob.id, type: 'follow_new', title, body: 'b', data: {} }
      const sent = await all.service().call('POST', '/v1/service/notifications', { token, body })
      return sent.body.data[0].id
    },
    mailed: () => all.mail.mails.filter(({ to }) => to === all.bob.email).map(bodiesOf),
  }
}

test('notifications are mailed once when the mail server was away', async () => {
  await using all = await startNotifying()
  all.setAway(true)
  await all.notify('word1')
  await all.pass(4)
  all.setAway(false)
  await all.notify('word2')
  await all.pass(60)
  expect(all.mailed()).toEqual([['word1', 'word2']])
})

test('a notification of a type that was not mailed then is not mailed with a later one', async () => {
  await using all = await startNotifying()
  await all.prefer({ follow_new: { email: false } })
  await all.notify('word1')
  await all.prefer({ follow_new: { email: true } })
  await all.notify('word2')
  await all.pass(4)
  expect(all.mailed()).toEqual([['word2']])
})

test('an incoming call is not mailed after it was answered', async () => {
  await using all = await startNotifying()
  await all.prefer({ call_incoming: { email: true } })
  const { token } = await all.service().issueKey(['calls'])
  for (const state of ['ringing', 'active']) {
    const body = { host_id: all.bob.id, guest_id: all.ada.id, state }
    const { status } = await all.service().call('PUT', '/v1/service/calls/1', { token, body })
    expect(status).toBe(200)
    all.clock.advance(1_000)
  }
  await all.pass(4)
  expect(all.mailed()).toEqual([])
})

test('a mail that failed once is listed as waiting until quiet hours end', async () => {
  await using all = await startNotifying()
  all.setAway(true)
  await all.notify('word1')
  await all.pass(4)
  const time = (later: number) =>
    new Date(all.clock.now() + later * minute).toISOString().slice(11, 16)
  const body = { from: time(-5), to: time(60), time_zone: 'UTC' }
  await all.as(all.bob, 'PUT', '/v1/users/me/quiet-hours', body)
  await all.pass(10)
  const states = "SELECT state FROM deliveries WHERE kind = 'notification_mail'"
  expect(all.service().sqlite.query(states).values()).toEqual([['waiting']])
})

test('a mail that was given up, and is retried when all is read, is listed as skipped', async () => {
  await using all = await startNotifying()
  const { sqlite, registerAs } = all.service()
  all.setAway(true)
  await all.notify('word1')
  sqlite.run('UPDATE outbox SET attempts = 11')
  await all.pass(4)
  const states = () => sqlite.query('SELECT state FROM deliveries WHERE attempts > 1').values()
  expect(states()).toEqual([['failed']])
  await all.as(all.bob, 'PUT', '/v1/notifications/read-all')
  const job = sqlite.query<{ id: string }, []>('SELECT id FROM outbox WHERE dead_at > 0').get()
  await all.as(await registerAs('admin'), 'POST', `/v1/admin/jobs/${job?.id}/retry`)
  await all.settle()
  expect(states()).toEqual([['skipped']])
})

test('a mail about a notification ends the mark of a bounce, too', async () => {
  await using all = await startNotifying()
  const { sqlite } = all.service()
  sqlite.run('UPDATE users SET email_bounced_at = 1')
  await all.notify('word1')
  await all.pass(4)
  const marked = 'SELECT email FROM users WHERE email_bounced_at IS NOT NULL'
  expect(sqlite.query(marked).values().flat()).not.toContain(all.bob.email)
})

test('a notification is mailed although its job met a failing mail about one that is read since', async () => {
  await using all = await startNotifying()
  const held = all.hold()
  const first = await all.notify('word1')
  await all.notify('word2')
  all.clock.advance(4 * minute)
  await held.reached()
  // The second job has begun, and waits for the first.
  await all.service().write(() => {})
  all.setAway(true)
  held.release()
  await all.settle()
  all.setAway(false)
  await all.as(all.bob, 'PUT', `/v1/notifications/${first}/read`)
  await all.pass(60)
  expect(all.mailed()).toEqual([['word2']])
})

test('a notification is mailed although the disk was full when the mail server refused it', async () => {
  await using all = await startNotifying()
  await all.settle()
  const { sqlite, log } = all.service()
  const held = all.hold()
  await all.notify('word1')
  all.clock.advance(4 * minute)
  await held.reached()
  sqlite.run('PRAGMA query_only = ON')
  all.setAway(true)
  held.release()
  await waitFor(() => log().includes('the outcome of a job could not be stored yet'))
  sqlite.run('PRAGMA query_only = OFF')
  all.setAway(false)
  await all.pass(60)
  expect(all.mailed()).toEqual([['word1']])
})

testAtLength.each([
  ['unread_mail', /^New messages: /],
  ['notification_mail', /^Support has answered/],
])(
  'a kill after the mail server has accepted a mail of %s leads to no second one',
  async (kind, subject) => {
    using directory = temporaryDirectory()
    const clock = createTestClock(Date.now() - 60 * minute)
    await using before = await startService({ clock, dataDir: directory.path })
    const ada = await before.registerAs('admin', 'ada')
    const bob = await before.registerAs('user', 'bob')
    await before.say(ada, await before.openConversation(ada, bob), 'word1')
    const { body } = await before.call('POST', '/v1/support/tickets', {
      token: bob.token,
      body: { subject: 'Refund', body: 'Hello?' },
    })
    await before.call('POST', `/v1/admin/support/tickets/${body.id}/messages`, {
      token: ada.token,
      body: { body: 'Yes.' },
    })
    await before.stop()
    let server: ServerProcess | undefined
    const isMeant = ({ text }: ReceivedMail) => subject.test(subjectOf(text))
    await using mail = await startMailServer({
      onMail: (received) => isMeant(received) && void server?.kill('SIGKILL'),
    })
    const start = () =>
      startServer({ dataDir: directory.path, environment: { SMTP_URL: mail.url } })
    server = await start()
    await server.exited
    await using _again = await start()
    using sqlite = new Database(`${directory.path}/hostline.db`)
    const job = sqlite.query('SELECT 1 FROM outbox WHERE kind = ?')
    await waitFor(() => job.get(kind) === null, 'the end of the job')
    expect(mail.mails.filter(isMeant)).toHaveLength(1)
  },
)

/** Messages and what may be mailed of them, in the simplest form. */
function createModel() {
  const messages: State[] = []
  const isRunning = new Set<string>()
  const visitedAt = new Map<string, number>()
  const held = new Map<string, Set<string>>()
  let wasAt = 0

  const holdsOf = (to: string, talk: string) => held.get(`${to} ${talk}`) ?? new Set()
  const openTo = (to: string) => messages.filter((it) => it.to === to && it.isOpen)
  const isShown = ({ to, talk }: State) => holdsOf(to, talk).size === 0

  return {
    openTo,
    messages,
    /** Jobs keep their time, so they wait until the clock has caught up. */
    setBack(now: number) {
      wasAt = Math.max(wasAt, now)
    },
    visited(user: string, now: number) {
      isRunning.delete(user)
      visitedAt.set(user, now)
    },
    said(message: Said) {
      // A new message brings an archived conversation back.
      for (const to of [message.to]) held.get(`${to} ${message.talk}`)?.delete('archived')
      const isHeld = holdsOf(message.to, message.talk).size > 0
      messages.push({ ...message, isOpen: true, isMailed: false, wasHeld: isHeld })
    },
    hold(to: string, talk: string, why: string, isOn: boolean) {
      const key = `${to} ${talk}`
      const holds = held.get(key) ?? new Set<string>()
      held.set(key, holds)
      if (isOn) holds.add(why)
      else holds.delete(why)
      for (const it of openTo(to)) if (it.talk === talk) it.wasHeld = true
    },
    isHeld: (to: string, talk: string, why: string) => holdsOf(to, talk).has(why),
    read(to: string, talk: string) {
      for (const it of openTo(to)) if (it.talk === talk) it.isOpen = false
    },
    removed(id: string) {
      const message = messages.find((it) => it.id === id)
      if (!message) return
      message.isOpen = false
      const counted = openTo(message.to).filter((it) => !holdsOf(it.to, it.talk).has('archived'))
      if (counted.length === 0) isRunning.delete(message.to)
    },
    /** The mistakes in a mail that arrived now. */
    mailed(user: string, bodies: string[], now: number): string[] {
      const due = openTo(user).filter((it) => isShown(it) && !it.isMailed)
      const wrong = bodies.filter((body) => !due.some((it) => it.body === body))
      // Later ones are from before the clock was set back.
      const oldest = Math.min(...due.map(({ at }) => (at > now ? 0 : at)))
      const problems = [
        ...(isRunning.has(user) ? ['a second mail'] : []),
        ...(wrong.length > 0 ? [`${wrong} is read, held or mailed`] : []),
        ...(now < oldest + 15 * minute ? ['too early'] : []),
      ]
      isRunning.add(user)
      for (const it of due) it.isMailed = true
      return problems
    },
    /** Messages that should have been mailed by now. */
    missing: (now: number) =>
      messages.filter(
        (it) =>
          it.isOpen &&
          !it.isMailed &&
          !it.wasHeld &&
          !isRunning.has(it.to) &&
          now > Math.max(it.at, visitedAt.get(it.to) ?? 0, wasAt) + 16 * minute,
      ),
  }
}

async function runModel(seed: number, steps: number) {
  using directory = temporaryDirectory()
  await using all: Mailing = await startMailing(directory.path)
  const random = createRandom(seed)
  const model = createModel()
  const { clock } = all
  const people: Person[] = []
  for (const name of ['ada', 'bob', 'eve']) {
    people.push(await all.service().registerAs('user', name))
  }
  const [ada, bob, eve] = people as [Person, Person, Person]
  const pairs = [
    [ada, bob],
    [bob, eve],
  ] as const
  const talks = new Map<string, readonly [Person, Person]>()
  for (const pair of pairs) talks.set(await all.service().openConversation(...pair), pair)
  const idOf = new Map(people.map(({ email, id }) => [email, id]))
  let words = 0
  let mails = 0

  const act = async (who: Person, method: string, path: string, body?: unknown) => {
    const answer = await all.as(who, method, path, body)
    model.visited(who.id, clock.now())
    return answer
  }
  const check = () => {
    for (const mail of all.mail.mails.splice(0).filter(isAboutMessages)) {
      mails++
      const problems = model.mailed(idOf.get(mail.to) ?? '', bodiesOf(mail), clock.now())
      expect([seed, problems]).toEqual([seed, []])
    }
    expect([seed, model.missing(clock.now())]).toEqual([seed, []])
  }
  const any = () => {
    const [talk, pair] = random.pick([...talks])
    const [me, other] = random.pick([pair, [pair[1], pair[0]] as const])
    return { talk, me, other, path: `/v1/chat/conversations/${talk}` }
  }
  const say = async ({ talk, me, other, path } = any()) => {
    const body = `word${++words}`
    const { status, body: said } = await act(me, 'POST', `${path}/messages`, { body })
    if (status !== 201) return
    model.said({ id: said.id, talk, to: other.id, at: clock.now(), body })
    model.hold(me.id, talk, 'archived', false)
  }
  const remove = async ({ id, talk, to }: Said) => {
    const from = talks.get(talk)?.find((person) => person.id !== to)
    if (!from) return
    await act(from, 'DELETE', `/v1/chat/conversations/${talk}/messages/${id}`)
    model.removed(id)
  }
  const removeAll = async (to: Person) => {
    for (const message of model.openTo(to.id)) await remove(message)
  }
  const toggle = async (why: 'mute' | 'archived') => {
    const { talk, me, path } = any()
    const isOn = !model.isHeld(me.id, talk, why)
    const place = why === 'mute' ? 'mute' : 'archive'
    await act(me, isOn ? 'PUT' : 'DELETE', `${path}/${place}`)
    model.hold(me.id, talk, why, isOn)
  }
  const operations: (() => Promise<unknown>)[] = [
    () => say(),
    () => say(),
    // Somebody stays away: one mail, and the next after a visit or when nothing was left unread.
    async () => {
      const away = any()
      for (const isRemoved of random.pick([
        [false, false],
        [false, true, false],
      ])) {
        if (isRemoved) await removeAll(away.other)
        await say(away)
        await all.pass(20)
        check()
      }
      await act(away.other, 'GET', '/v1/chat/unread-count')
      await all.pass(20)
    },
    async () => {
      for (let n = 0; n < 3; n++) await say()
    },
    async () => {
      const { talk, me, path } = any()
      if (model.isHeld(me.id, talk, 'block')) return
      await act(me, 'PUT', `${path}/read`)
      model.read(me.id, talk)
    },
    async () => act(random.pick(people), 'GET', '/v1/chat/unread-count'),
    () => toggle('mute'),
    () => toggle('archived'),
    async () => {
      const { talk, me, other } = any()
      const isOn = !model.isHeld(me.id, talk, 'block')
      await act(me, isOn ? 'PUT' : 'DELETE', `/v1/users/blocks/${other.id}`)
      for (const { id } of [me, other]) model.hold(id, talk, 'block', isOn)
      // Each of the two may block: one of them is enough here.
      if (!isOn) await act(other, 'DELETE', `/v1/users/blocks/${me.id}`)
    },
    async () => {
      const open = model.messages.filter(({ isOpen }) => isOpen)
      if (open.length > 0) await remove(random.pick(open))
    },
    async () => all.restart(),
    async () => all.takeOver(),
    async () => {
      model.setBack(clock.now())
      clock.setBack(10 * minute)
    },
    async () => {
      all.setAway(true)
      await all.pass(16)
      all.setAway(false)
      await all.pass(5)
    },
    async () => all.pass(random.pick([1, 5, 14])),
    async () => all.pass(20),
  ]
  for (let step = 0; step < steps; step++) {
    await random.pick(operations)()
    await all.settle()
    check()
  }
  await all.pass(40)
  check()
  return mails
}

describe('nobody is mailed twice in a run, or what they have read, and nothing is forgotten', () => {
  testAtLength.each([1, 2, 3])('with seed %i', async (seed) => {
    expect(await runModel(seed, 80)).toBeGreaterThan(0)
  })
  const longSeeds = Array.from({ length: size(30, 2) }, (_, n) => 10 + n)
  testAtLength.each(longSeeds)('in a long run with seed %i', async (seed) => {
    expect(await runModel(seed, 300)).toBeGreaterThan(0)
  })
})
