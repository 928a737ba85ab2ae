import { describe, expect, test } from 'bun:test'
import { texts } from '../src/lib/i18n.ts'
import { createTestClock } from './support/clock.ts'
import { type Desk, openDesk, own } from './support/desk.ts'
import { startMailServer } from './support/mail.ts'
import { startService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

const anyDesk = shared(() => openDesk())
const newPeople = async () => (await anyDesk()).withNewPeople()

const reasonOf = ({ status, headers }: { status: number; headers: Headers }) => [
  status,
  headers.get('x-error-reason'),
]

describe('the size of a ticket', () => {
  test('is limited to 200 messages of its owner; the desk can always reply', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    const more = Array.from({ length: 199 }, (_, n) => d.write(id, `more ${n}`))
    for (const { status } of await Promise.all(more)) expect(status).toBe(201)
    expect(reasonOf(await d.write(id, 'too many'))).toEqual([409, 'ticket_full'])
    expect((await d.answer(id)).status).toBe(201)
  })

  test('is limited to 200,000 characters of its owner', async () => {
    const d = await newPeople()
    const long = '\u{1F600}'.repeat(10_000)
    const { id } = await d.open({ body: long })
    for (let n = 1; n < 20; n++) expect((await d.write(id, long)).status).toBe(201)
    expect(reasonOf(await d.write(id, 'x'))).toEqual([409, 'ticket_full'])
  })

  test('the newest 200 messages are shown with a cursor for earlier ones', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    for (let n = 0; n < 10; n++) await d.answer(id, { body: `answer ${n}` })
    await Promise.all(Array.from({ length: 195 }, () => d.answer(id)))
    const token = d.ada.token
    const { body } = await d.service.call('GET', `${own}/${id}`, { token })
    expect([body.messages.length, body.messages[0].body]).toEqual([200, 'answer 5'])
    const path = `${own}/${id}/messages?limit=100&cursor=${body.messages_before}`
    const rest = await d.service.call('GET', path, { token })
    expect(rest.body.data.map((it: { body: string }) => it.body)).toEqual([
      'answer 4',
      'answer 3',
      'answer 2',
      'answer 1',
      'answer 0',
      'Where is it?',
    ])
    expect(rest.body.pagination).toEqual({ cursor: null, has_more: false, limit: 100 })
    expect((await d.open()).messages_before).toBeUndefined()
  })
})

test('tickets opened while the clock was ahead do not stop others', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const { token } = await service.register()
  const body = { subject: 'Refund', body: 'Where is it?' }
  const open = async () => (await service.call('POST', own, { token, body })).status
  clock.advance(840_000)
  for (let n = 0; n < 5; n++) expect(await open()).toBe(201)
  expect(await open()).toBe(429)
  clock.setBack(840_000)
  expect(await open()).toBe(201)
})

test('a user can open 20 tickets a day, 5 with an unverified address', async () => {
  await using service = await startService()
  const open = async (token: string) =>
    service.call('POST', own, { token, body: { subject: 'Refund', body: 'Where is it?' } })
  for (const [person, perDay] of [
    [await service.register(), 5],
    [await service.registerAs('verified_user'), 20],
  ] as const) {
    for (let n = 0; n < perDay; n++) expect((await open(person.token)).status).toBe(201)
    const refused = await open(person.token)
    expect(reasonOf(refused)).toEqual([429, 'quota_exceeded'])
    const [wait, reset] = ['retry-after', 'x-ratelimit-reset'].map((name) =>
      Number(refused.headers.get(name)),
    )
    expect(wait).toBeGreaterThan(80_000)
    expect(Number(reset) - Date.now() / 1_000).toBeCloseTo(Number(wait), -1)
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0')
  }
})

test('the desk sees the author of a reply, the owner does not', async () => {
  const d = await newPeople()
  const eve = await d.hire('eve')
  const { id } = await d.open()
  await d.answer(id, {}, eve)
  const shown = (await d.show(id)).messages
  expect(shown.map((it: { author: object }) => it.author)).toEqual([
    { id: d.ada.id, display_name: 'ada' },
    { id: eve.id, display_name: 'eve' },
  ])
  const { body } = await d.service.call('GET', `${own}/${id}`, { token: d.ada.token })
  expect(JSON.stringify(body)).not.toContain(eve.id)
})

describe('a resolved ticket notifies its owner', () => {
  const notificationsOf = async (d: Desk) =>
    (await d.service.call('GET', '/v1/notifications', { token: d.ada.token })).body.data
  const { title, body } = texts.en.events.ticket_resolved

  test('also without a reply', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    await d.update(id, { status: 'resolved' })
    await d.update(id, { status: 'resolved' })
    const of = { type: 'support_reply', data: { ticket_id: id } }
    expect(await notificationsOf(d)).toEqual([
      expect.objectContaining({ ...of, title: title.replace('{subject}', 'Refund'), body }),
    ])
    await d.write(id, 'Not yet.')
    await d.update(id, { status: 'resolved' })
    expect(await notificationsOf(d)).toHaveLength(2)
  })

  test('together with a reply sent with it, once', async () => {
    const d = await newPeople()
    const { id } = await d.open()
    const answer = await d.answer(id, { status: 'resolved' })
    expect(await notificationsOf(d)).toEqual([
      expect.objectContaining({
        title: title.replace('{subject}', 'Refund'),
        body: 'On its way.',
        data: { ticket_id: id, message_id: answer.body.id },
      }),
    ])
  })

  test('by mail too', async () => {
    await using mail = await startMailServer()
    await using d = await openDesk({ environment: { SMTP_URL: mail.url } })
    await forgetVerification(d, mail)
    const { id } = await d.open()
    await d.update(id, { status: 'resolved' })
    d.clock.advance(4 * 60_000)
    expect(await mail.next()).toMatchObject({
      to: 'ada@example.com',
      raw: expect.stringContaining('Subject: Support has resolved: Refund'),
    })
  })
})

/** Drops the mail about the manual verification of the admin, which is sent only if the job is quick. */
async function forgetVerification(
  { service: { sqlite } }: Awaited<ReturnType<typeof openDesk>>,
  { mails }: Awaited<ReturnType<typeof startMailServer>>,
) {
  const waiting = sqlite.query("SELECT 1 FROM outbox WHERE kind = 'verification_mail'")
  await waitFor(() => waiting.get() === null, 'the mails about the accounts themselves')
  mails.length = 0
}

describe('mails to the desk', () => {
  const minute = 60_000

  async function openMailedDesk(options: Parameters<typeof startMailServer>[0] = {}) {
    const mail = await startMailServer(options)
    const environment = { SMTP_URL: mail.url, SUPPORT_INBOX: 'desk@example.com' }
    const d = await openDesk({ environment, listen: true })
    await forgetVerification(d, mail)
    return {
      ...d,
      mail,
      /** Advances the clock and runs due jobs. */
      async pass(milliseconds: number) {
        d.clock.advance(milliseconds)
        const due = d.service.sqlite.query<{ n: number }, [number]>(
          'SELECT count(*) AS n FROM outbox WHERE run_at <= ?',
        )
        await waitFor(() => {
          d.clock.advance(1)
          return due.get(d.clock.now())?.n === 0
        }, 'what is due')
      },
      async [Symbol.asyncDispose]() {
        await d[Symbol.asyncDispose]()
        await mail[Symbol.asyncDispose]()
      },
    }
  }

  test('are combined for ten minutes, however many tickets there are', async () => {
    await using d = await openMailedDesk()
    const bob = await d.service.register('bob')
    await d.mail.next()
    for (let n = 0; n < 60; n++) await d.open({ subject: `Refund ${n}` }, n % 2 ? d.ada : bob)
    await d.pass(9 * minute)
    expect(d.mail.mails).toEqual([])
    await d.pass(2 * minute)
    const { to, raw, text } = await d.mail.next()
    expect(to).toBe('desk@example.com')
    expect(raw).toMatch(/^Subject: New ticket: Refund 0 \(50\)\r$/m)
    expect(raw).toMatch(/^Reply-To: desk@example\.com\r$/m)
    expect(text.match(/console#ticket=/g)?.length).toBeGreaterThan(49)
    expect((await d.mail.next()).raw).toMatch(/^Subject: New ticket: Refund 50 \(10\)\r$/m)
    await d.pass(20 * minute)
    expect(d.mail.mails).toEqual([])
  })

  test('leave out tickets that were answered, assigned or resolved meanwhile', async () => {
    await using d = await openMailedDesk()
    const [answered, assigned, settled] = [await d.open(), await d.open(), await d.open()]
    await d.answer(answered.id)
    await d.update(assigned.id, { assignee_id: d.root.id })
    await d.update(settled.id, { status: 'resolved' })
    await d.pass(11 * minute)
    expect(d.mail.mails.filter(({ to }) => to === 'desk@example.com')).toEqual([])
  })

  test('include a ticket whose assignment or resolve was taken back', async () => {
    await using d = await openMailedDesk()
    const [assigned, settled] = [await d.open(), await d.open()]
    await d.update(assigned.id, { assignee_id: d.root.id })
    await d.update(assigned.id, { assignee_id: null })
    await d.update(settled.id, { status: 'resolved' })
    await d.update(settled.id, { status: 'open' })
    await d.pass(11 * minute)
    const toDesk = d.mail.mails.filter(({ to }) => to === 'desk@example.com')
    expect(toDesk.map(({ text }) => new Set(text.match(/(?<=#ticket=)\w+/g)))).toEqual([
      new Set([assigned.id, settled.id]),
    ])
  })

  test('leave out tickets whose owner was removed meanwhile', async () => {
    await using d = await openMailedDesk()
    await d.open()
    const { token } = d.ada
    await d.service.call('DELETE', '/v1/users/me', { token, body: { password: 'correct horse' } })
    await d.pass(11 * minute)
    expect(d.mail.mails.filter(({ to }) => to === 'desk@example.com')).toEqual([])
  })

  test('go to the inbox when the assignee is gone', async () => {
    await using d = await openMailedDesk()
    const { id } = await d.open()
    await d.update(id, { assignee_id: d.root.id })
    d.service.sqlite.run('UPDATE users SET disabled_at = 1 WHERE id = ?', [d.root.id])
    await d.write(id, 'Anybody?')
    await d.pass(11 * minute)
    const { to, text } = await d.mail.next()
    expect(to).toBe('desk@example.com')
    expect(text).toContain('Anybody?')
  })

  test.each([
    ['left', {}],
    ['is no admin any more', { role: 'user' }],
    ['is disabled', { disabled: true }],
  ])('go to the inbox when the assignee %s before their mail', async (_, change) => {
    await using d = await openMailedDesk()
    const [{ id }, agent] = [await d.open(), await d.hire('agent')]
    await d.update(id, { assignee_id: agent.id })
    const time = (later: number) => new Date(d.clock.now() + later).toISOString().slice(11, 16)
    const body = { from: time(-5 * minute), to: time(5 * minute), time_zone: 'UTC' }
    await d.service.call('PUT', '/v1/users/me/quiet-hours', { token: agent.token, body })
    for (const text of ['Hello?', 'Anybody?']) await d.write(id, text)
    const { token } = d.root
    const path = `/v1/admin/users/${agent.id}`
    const isGone = Object.keys(change).length === 0
    await d.service.call(isGone ? 'DELETE' : 'PATCH', path, {
      token,
      ...(!isGone && { body: change }),
    })
    await d.pass(6 * minute)
    await d.pass(11 * minute)
    const toDesk = d.mail.mails.filter(({ text }) => text.includes('Anybody?'))
    expect(toDesk.map(({ to }) => to)).toEqual(['desk@example.com'])
  })

  test('go to the inbox once when the owner writes again after the assignee left', async () => {
    await using d = await openMailedDesk()
    const [{ id }, agent] = [await d.open(), await d.hire('agent')]
    await d.update(id, { assignee_id: agent.id })
    const time = (later: number) => new Date(d.clock.now() + later).toISOString().slice(11, 16)
    const body = { from: time(-5 * minute), to: time(60 * minute), time_zone: 'UTC' }
    await d.service.call('PUT', '/v1/users/me/quiet-hours', { token: agent.token, body })
    await d.write(id, 'Hello?')
    const { token } = d.root
    await d.service.call('DELETE', `/v1/admin/users/${agent.id}`, { token })
    await d.pass(minute)
    await d.write(id, 'Anybody?')
    for (const minutes of [11, 60, 11]) await d.pass(minutes * minute)
    const toDesk = d.mail.mails.filter(({ text }) => text.includes('Anybody?'))
    expect(toDesk.map(({ to }) => to)).toEqual(['desk@example.com'])
  })

  test('name the author, have their Reply-To, and take no headers from strangers', async () => {
    await using d = await openMailedDesk()
    const subject = 'A\r\nBcc: x@example.com'
    const ticket = await d.open({ subject, body: '<b>Help</b>', client_id: 'k' })
    await d.open({ subject, body: '<b>Help</b>', client_id: 'k' })
    await d.pass(11 * minute)
    const { raw, text } = await d.mail.next()
    expect(text).toContain(
      `ada <ada@example.com> wrote in ticket ${ticket.id} (other, priority normal).`,
    )
    expect(text).toContain('&lt;b&gt;Help&lt;/b&gt;')
    expect(text).toContain(`http://localhost:0/console#ticket=${ticket.id}`)
    const [head = ''] = raw.split('\r\n\r\n')
    expect(head).toMatch(/^Subject: New ticket: A Bcc: x@example\.com\r$/m)
    expect(head).toMatch(/^Reply-To: ada@example\.com\r$/m)
    expect(head).not.toMatch(/^Bcc:/m)
    expect(d.mail.mails).toEqual([])
  })

  test('go to the assignee, unless they have an open socket, once in ten minutes', async () => {
    await using d = await openMailedDesk()
    const { id } = await d.open()
    await d.answer(id)
    const mailsAfter = async (milliseconds = minute) => {
      await d.pass(milliseconds)
      for (const person of [d.ada, d.root])
        Object.assign(person, await d.service.login(person.email))
      const mails = d.mail.mails.splice(0)
      expect(mails.filter(({ to }) => to === 'desk@example.com')).toEqual([])
      return mails.filter(({ to }) => to === 'root@example.com')
    }
    await mailsAfter(15 * minute)

    for (let n = 0; n < 5; n++) await d.write(id, `Hello ${n}?`)
    const [first, ...others] = await mailsAfter()
    expect(others).toEqual([])
    expect(first?.raw).toContain('Subject: Answer in ticket: Refund')
    expect(first?.raw).toContain('Reply-To: ada@example.com')
    await d.write(id, 'Nobody there?')
    expect(await mailsAfter()).toEqual([])
    expect(await mailsAfter(10 * minute)).toHaveLength(1)

    const socket = await d.service.connect(d.root)
    d.clock.advance(11 * minute)
    await d.write(id, 'You see this.')
    expect(await mailsAfter()).toEqual([])
    socket.close()
    await socket.closed
    await d.update(id, { status: 'resolved' })
    await d.write(id, 'Not resolved.')
    expect(await mailsAfter()).toHaveLength(1)
  })

  test('go to assignee and inbox also after the clock was set back', async () => {
    await using d = await openMailedDesk()
    const [taken, free] = [await d.open(), await d.open({ subject: 'Waits' })]
    await d.update(taken.id, { assignee_id: d.root.id })
    d.clock.advance(14 * minute)
    await d.write(taken.id, 'Ahead?')
    await d.pass(1_000)
    await d.pass(11 * minute)
    d.mail.mails.splice(0)
    Object.assign(d.ada, await d.service.login(d.ada.email))
    await d.write(free.id, 'Ahead, too?')
    d.clock.setBack(20 * minute)
    await d.write(taken.id, 'Now?')
    await d.write(free.id, 'Now, too?')
    await d.pass(11 * minute)
    expect(d.mail.mails.map(({ to }) => to).sort()).toEqual([
      'desk@example.com',
      'root@example.com',
    ])
  })

  test.each([
    { kind: 'support_inbox_mail', address: 'desk@example.com', isAssigned: false },
    { kind: 'assignee_mail', address: 'root@example.com', isAssigned: true },
  ])(
    'go out once although the disk is full when they are sent: $kind',
    async ({ kind, address, isAssigned }) => {
      let fill = () => {}
      await using d = await openMailedDesk({ onMail: () => fill() })
      const { sqlite, log } = d.service
      const { id } = await d.open()
      if (isAssigned) await d.update(id, { assignee_id: d.root.id })
      // Another job about the same message, due after the one of the message itself.
      sqlite.run(
        'INSERT INTO outbox (id, kind, payload, created_at, run_at) VALUES (?1, ?2, ?3, ?4, ?4)',
        [id, kind, JSON.stringify({ ticket_id: id }), d.clock.now() + 12 * minute],
      )
      fill = () => sqlite.run('PRAGMA query_only = ON')
      await d.write(id, 'Hello?')
      d.clock.advance(11 * minute)
      await waitFor(() => log().includes('the outcome of a job could not be stored yet'))
      fill = () => {}
      sqlite.run('PRAGMA query_only = OFF')
      await d.pass(minute)
      expect(d.mail.mails.map(({ to }) => to)).toEqual([address])
    },
  )

  test.each([
    ['full', 'Refund', ['ada <', 'ada@example.com', 'Refund', 'Secret']],
    ['sender', 'ada', ['ada@example.com']],
    ['none', 'localhost', []],
  ])('have %s content', async (mail_content, title, shown) => {
    await using d = await openMailedDesk()
    const token = d.root.token
    await d.service.call('PATCH', '/v1/admin/settings', { token, body: { mail_content } })
    const { id } = await d.open({ subject: 'Refund', body: 'Secret' })
    await d.pass(11 * minute)
    const { id: own } = await d.open({ subject: 'Refund', body: 'Secret' })
    await d.update(own, { assignee_id: d.root.id })
    await d.write(own, 'Secret')
    await d.pass(minute)
    const mails = d.mail.mails.map(({ to, text }) => ({
      to,
      subject: /^Subject: (.*)\r$/m.exec(text)?.[1],
      shown: ['ada <', 'ada@example.com', 'Refund', 'Secret'].filter((it) => text.includes(it)),
      leadsTo: [id, own].filter((it) => text.includes(`/console#ticket=${it}`)),
    }))
    expect(mails).toEqual([
      { to: 'desk@example.com', subject: `New ticket: ${title}`, shown, leadsTo: [id] },
      { to: 'root@example.com', subject: `Answer in ticket: ${title}`, shown, leadsTo: [own] },
    ])
  })

  test('wait for the end of the quiet hours of the assignee', async () => {
    await using d = await openMailedDesk()
    const { id } = await d.open()
    await d.update(id, { assignee_id: d.root.id })
    const time = (later: number) => new Date(d.clock.now() + later).toISOString().slice(11, 16)
    const body = { from: time(-5 * minute), to: time(5 * minute), time_zone: 'UTC' }
    await d.service.call('PUT', '/v1/users/me/quiet-hours', { token: d.root.token, body })
    for (const text of ['Hello?', 'Anybody?']) await d.write(id, text)
    await d.pass(minute)
    expect(d.mail.mails).toEqual([])
    await d.pass(5 * minute)
    expect(d.mail.mails.map(({ to, text }) => [to, text.includes('Anybody?')])).toEqual([
      ['root@example.com', true],
    ])
  })
})

describe('the search of the desk', () => {
  test('finds tickets by their owner, by any part of the name or the address', async () => {
    await using d = await openDesk()
    const zoe = await d.service.register('zoe')
    await d.service.call('PATCH', '/v1/users/me', {
      token: zoe.token,
      body: { display_name: 'Zoé Ångström' },
    })
    const [{ id }] = [await d.open({ subject: 'Invoice' }, zoe), await d.open()]
    const found = async (q: string) =>
      (await d.list(`?q=${encodeURIComponent(q)}`)).data.map((it: { id: string }) => it.id)
    for (const q of ['zoe@example.com', 'angstrom', 'NGST', 'zoé invoice', 'invoice Ångström']) {
      expect([q, await found(q)]).toEqual([q, [id]])
    }
    expect(await found('angstrom refund')).toEqual([])
    expect(await found('example.com')).toHaveLength(2)
    const status = '&status=closed'
    expect((await d.list(`?q=angstrom${status}`)).data).toEqual([])
    await d.service.call('PATCH', '/v1/users/me', {
      token: zoe.token,
      body: { display_name: '王芳' },
    })
    expect(await found('王芳')).toEqual([id])
    // A search uses the first eight words.
    expect(await found(`${'invoice '.repeat(8)} unknown`)).toEqual([id])
    expect(await found(`${'invoice '.repeat(7)} unknown`)).toEqual([])
  })

  test('drops the name and the address of a removed user', async () => {
    await using d = await openDesk()
    await d.open()
    await d.service.call('DELETE', '/v1/users/me', {
      token: d.ada.token,
      body: { password: 'correct horse' },
    })
    expect((await d.list('?q=ada%40example.com')).data).toEqual([])
    expect((await d.list('?q=deleted')).data).toEqual([])
    expect((await d.list('?q=refund')).data).toHaveLength(1)
  })
})
