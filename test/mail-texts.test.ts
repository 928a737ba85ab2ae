import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { locales, texts } from '../src/lib/i18n.ts'
import { mailKinds } from '../src/lib/mail-texts.ts'
import { textOn } from '../src/outside/mail/face.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { startMailServer } from './support/mail.ts'
import { type Person, startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const clock = createTestClock()
const mail = await startMailServer()
const service = await startService({
  listen: true,
  clock,
  environment: { SMTP_URL: mail.url, PUBLIC_URL: 'https://chat.example.com' },
})
let admin: Person
let user: Person
beforeAll(async () => {
  admin = await service.registerAs('admin')
  user = await service.register('ada')
  // An admin made so soon may need no verification mail.
  await waitFor(() => {
    clock.advance(200)
    return service.sqlite.query('SELECT 1 FROM outbox').get() === null
  }, 'the first mails')
  mail.mails.splice(0)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await mail[Symbol.asyncDispose]()
})

/** Jobs run as the time goes on. */
const nextMail = (to: string) =>
  waitFor(() => {
    clock.advance(200)
    const index = mail.mails.findIndex((received) => received.to === to)
    return index < 0 ? undefined : mail.mails.splice(index, 1)[0]
  }, 'a mail')

const path = '/v1/admin/settings'
const call = (method: string, to: string, body?: object) =>
  service.call(method, to, { token: admin.token, ...(body && { body }) })
const change = (body: object) => call('PATCH', path, body)
const preview = (body: object) => call('POST', `${path}/texts/preview`, body)

describe('texts of the platform', () => {
  test('every kind lists its placeholders and its default texts in five languages', async () => {
    const { body } = await call('GET', `${path}/texts`)
    expect(body.kinds.map(({ kind }: { kind: string }) => kind)).toEqual(mailKinds)
    const [first] = body.kinds
    expect(first).toMatchObject({
      kind: 'verify_email',
      placeholders: ['platform', 'name', 'link'],
      required: 'link',
      texts: { en: { subject: 'Confirm your e-mail address' } },
    })
    for (const { texts: own, required } of body.kinds) {
      expect(Object.keys(own)).toEqual([...locales])
      for (const { body: text } of Object.values<{ body: string }>(own))
        expect(text).toContain(required === 'code' ? '{code}' : '{link}')
    }
  })

  test('no mail in any language names the software, or leaves a placeholder', async () => {
    for (const kind of mailKinds) {
      for (const lang of locales) {
        const { status, body } = await preview({ kind, lang })
        expect(status).toBe(200)
        const all = `${body.subject} ${body.text} ${body.html}`
        expect(all).not.toMatch(/hostline|\{\w+\}|undefined/i)
        expect(body.html).toContain(`<html lang="${lang}">`)
      }
    }
  })

  test('a mail shows the texts of people in their own direction', async () => {
    const { body } = await preview({ kind: 'unread_messages', lang: 'en' })
    expect(body.html).toMatch(/<p dir="auto"><b>Ada<\/b><\/p><p dir="auto"[^>]*>Hello\?<\/p>/)
  })

  test.each(['verify_email', 'reset_password', 'change_email', 'undo_email'])(
    'a preview of %s has the address of its page',
    async (kind) => {
      const { body } = await preview({ kind, lang: 'en' })
      expect(body.text).toContain(`https://chat.example.com/${kind.replace('_', '-')}#token=`)
    },
  )

  const invalid: [string, string, object][] = [
    ['body', 'must contain {link}', { body: 'Hello' }],
    ['body', 'has an unknown placeholder: {code}', { body: '{link} {code}' }],
    ['subject', 'must not contain control or format characters', { subject: 'A\nBcc: x' }],
    ['subject', 'must not be empty', { subject: '' }],
    ['body', 'must have at most 10000 characters', { body: `{link}${'a'.repeat(10_000)}` }],
  ]
  test.each(invalid)('a %s that %s is refused, stored or shown', async (field, problem, text) => {
    const shown = await preview({ kind: 'verify_email', lang: 'de', ...text })
    expect([shown.status, shown.body.error.details]).toEqual([400, { [field]: problem }])
    const stored = await change({ texts: { verify_email: { de: text } } })
    const place = `texts.verify_email.de.${field}`
    expect([stored.status, stored.body.error.details]).toEqual([400, { [place]: problem }])
  })

  test('unknown kinds and languages are refused', async () => {
    expect((await change({ texts: { other: {} } })).body.error.details).toHaveProperty([
      'texts.other',
    ])
    const { body } = await change({ texts: { confirm: { it: { subject: 'Ciao' } } } })
    expect(body.error.details).toHaveProperty(['texts.confirm.it'])
    expect((await preview({ kind: 'other', lang: 'en' })).status).toBe(400)
  })

  test('replace the default ones in their language alone; names and texts have no effect', async () => {
    const name = '<b>{link} $& https://evil.example</b>'
    const own = { subject: '{name}: {platform}', body: '<i>Hi</i> {name}\nline\n\n{link}\n\nBye' }
    await change({ texts: { verify_email: { de: own } } })
    const register = (email: string, locale: string) =>
      service.call('POST', '/v1/auth/register', {
        body: { email, password: 'correct horse', display_name: name },
        headers: { 'accept-language': locale },
      })
    await register('eva@example.com', 'de')
    const { raw, text, link } = await nextMail('eva@example.com')
    const [plain = '', html = ''] = text.split('text/html')
    const safe = '<b>{link} $& https evil example< b>'
    expect(plain.replaceAll('\r', '')).toContain(`<i>Hi</i> ${safe}\nline\n\n${link}\n\nBye`)
    expect(html).toContain('<p>&lt;i&gt;Hi&lt;/i&gt; &lt;b&gt;{link} $&amp; https evil example')
    expect(html).toContain(`>${texts.de.mails.verify_email.button}</a>`)
    expect(raw).not.toContain('List-Unsubscribe')
    await register('fay@example.com', 'fr')
    expect((await nextMail('fay@example.com')).text).toContain(texts.fr.mails.verify_email.lead)
    const [entry] = (await call('GET', '/v1/admin/audit-log?action=setting_changed')).body.data
    expect(entry).toMatchObject({ details: { from: '{}' }, target: { id: 'texts' } })
    await change({ texts: null })
  })

  test('a preview shows settings before they are stored, also in the mail to the admin', async () => {
    const texts = { unread_messages: { en: { subject: '{platform}: news' } } }
    const face = {
      platform_name: 'Rooms',
      accent: '#00aa00',
      links: { home: 'rooms://home' },
      texts,
    }
    const wanted = { kind: 'unread_messages', lang: 'en', settings: face, send: true }
    const { body } = await preview(wanted)
    expect(body.subject).toBe('Rooms: news')
    expect(body.html).toContain('background:#00aa00')
    expect(body.text).toMatch(/-- \nRooms\n.*mail-preferences/)
    const { raw } = await nextMail(admin.email)
    expect(raw).toContain('Subject: Rooms: news')
    expect(raw).toContain('From: Rooms <')
    expect(raw.match(/^--=20/gm)).toHaveLength(1)
    expect(raw).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
    expect((await call('GET', path)).body.platform_name).toBe('chat.example.com')
    const wrong = await preview({ ...wanted, settings: { accent: 'red', links: { ticket: 'x' } } })
    expect(Object.keys(wrong.body.error.details)).toEqual([
      'settings.accent',
      'settings.links.ticket',
    ])
  })

  test('mails can be stopped, but those about safety and to the operator', async () => {
    const stopped = []
    for (const kind of mailKinds) {
      const { body } = await preview({ kind, lang: 'en', send: true })
      const { raw } = await nextMail(admin.email)
      const isStopped = raw.includes('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
      expect([kind, /^List-Unsubscribe:/m.test(raw)]).toEqual([kind, isStopped])
      expect([kind, body.text.includes('/mail-preferences')]).toEqual([kind, isStopped])
      if (isStopped) stopped.push(kind)
    }
    expect(stopped).toEqual(['notifications', 'unread_messages', 'ticket_answer'])
  })

  test('a preview can be mailed to the admin, 60 times an hour', async () => {
    const wanted = { kind: 'confirm', lang: 'pt', subject: '{code}!', send: true }
    // One of each kind, and one more, were mailed above.
    for (let n = 1 + mailKinds.length; n < 60; n++) expect((await preview(wanted)).status).toBe(200)
    const sent = (await call('GET', '/v1/admin/audit-log?action=mail_text_sent')).body.data
    expect([sent.length, sent[0].details]).toEqual([50, { kind: 'confirm', lang: 'pt' }])
    expect((await nextMail(admin.email)).raw).toContain('Subject: 123456!')
    const { status, headers } = await preview(wanted)
    expect([status, Number(headers.get('retry-after')) > 3_000]).toEqual([429, true])
    mail.mails.splice(0)
  })

  test('hostline settings set texts', async () => {
    const set = (value: string) => hostline(['settings', 'set', 'texts', value], service.directory)
    expect((await set('{"confirm":{"en":{"subject":"{code} now"}}}')).exitCode).toBe(0)
    expect((await preview({ kind: 'confirm', lang: 'en' })).body.subject).toBe('123456 now')
    expect(await set('{"confirm":{"en":{"body":"no code"}}}')).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('must contain {code}'),
    })
    expect((await set('')).exitCode).toBe(0)
  })
})

describe('unsubscribing', () => {
  // Each mail takes three minutes.
  beforeEach(async () => {
    for (const person of [user, admin]) Object.assign(person, await service.login(person.email))
    service.trust(admin)
  })
  const preferences = async () =>
    (await service.call('GET', '/v1/notifications/preferences', { token: user.token })).body
  const fetchPage = async (url: string, form?: Record<string, string> | FormData) => {
    const { pathname, search } = new URL(url)
    const body = form instanceof FormData ? form : form && new URLSearchParams(form)
    const response = await fetch(service.base + pathname + search, {
      ...(body && { method: 'POST', body }),
    })
    const { status, headers, url: shown } = response
    return { status, text: await response.text(), headers, shown }
  }
  const stop = { 'List-Unsubscribe': 'One-Click' }

  /** @returns the address in the header of a mail about an answered ticket */
  async function receiveMail() {
    const ticket = { subject: 'Refund', body: 'Hello?', category: 'other', priority: 'normal' }
    const { body } = await service.call('POST', '/v1/support/tickets', {
      token: user.token,
      body: ticket,
    })
    await call('POST', `/v1/admin/support/tickets/${body.id}/messages`, { body: 'Yes.' })
    clock.advance(181_000)
    const { raw, text } = await nextMail(user.email)
    const head = (raw.split('\r\n\r\n')[0] ?? '').replace(/\r\n\s+/g, '')
    const [, url = ''] = /^List-Unsubscribe: ?<(.*)>$/m.exec(head) ?? []
    expect(head).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
    expect(text).toContain(`${texts.en.mailFrame.unsubscribe} ${url}`)
    return url
  }

  /** The form of a page as a browser sends it, with other boxes checked. */
  function choiceOf({ text }: { text: string }, choose: (on: string[]) => string[]) {
    const before = [...text.matchAll(/name="was_on" value="(.*?)"/g)].map(([, name = '']) => name)
    const form = new FormData()
    for (const name of before) form.append('was_on', name)
    for (const name of choose(before)) form.append('on', name)
    form.set('save', '1')
    return form
  }

  test('with one click of a mail program, as often as it likes, and back on the page', async () => {
    const url = await receiveMail()
    const page = await fetchPage(url)
    expect(page.text).toContain('Mails about: Support has answered')
    expect(page.text).not.toMatch(/hostline|<script/i)
    expect(page.headers.get('content-security-policy')).toContain("form-action 'self'")
    expect((await preferences()).support_reply.email).toBe(true)
    const multipart = new FormData()
    multipart.set('List-Unsubscribe', 'One-Click')
    for (const form of [stop, multipart]) {
      const { status, text, shown } = await fetchPage(url, form)
      expect([status, text.includes('Done: you get no more mails about this.')]).toEqual([
        200,
        true,
      ])
      expect(shown).toEndWith(new URL(url).search) // mail programs may not follow a redirect
      expect((await preferences()).support_reply).toEqual({
        in_app: true,
        push: true,
        email: false,
      })
    }
    // A browser is led to a page that it can reload, and come back to, without a form.
    const { shown } = await fetchPage(url, { stop: '1' })
    expect((await fetchPage(shown)).text).toContain('Done: you get no more mails about this.')
    const all = choiceOf(await fetchPage(url), () => [
      'follow_new.push',
      'support_reply.email',
      'chat_message.push',
    ])
    expect((await fetchPage(url, all)).text).toContain('Your choice is saved.')
    expect(await preferences()).toMatchObject({
      support_reply: { in_app: true, push: false, email: true },
      follow_new: { in_app: false, push: true, email: false },
      broadcast: { in_app: false, push: false, email: false },
      chat_message: { push: true },
    })
    expect((await fetchPage(shown)).text).not.toContain('Done')
    expect((await preferences()).support_reply.email).toBe(true)
  })

  test('the page has the platform’s own types, and leaves one that it did not show', async () => {
    const url = await receiveMail()
    const { token } = await service.issueKey()
    const notify = (type: string) =>
      service.call('POST', '/v1/service/notifications', {
        token,
        body: { user_id: user.id, type, title: 'Moved', body: 'To 15:00.' },
      })
    await notify('custom.moved')
    const page = await fetchPage(url)
    expect(page.text).toContain('value="custom.moved.push" aria-label="moved: Push" checked')
    await notify('custom.paid')
    const form = choiceOf(page, () => ['custom.moved.in_app', 'support_reply.email'])
    expect((await fetchPage(url, form)).status).toBe(200)
    const chosen = await preferences()
    expect(chosen['custom.moved']).toEqual({ in_app: true, push: false, email: false })
    expect(chosen['custom.paid']).toBeUndefined()
  })

  test('the page saves a choice beside more types of the platform than a person may change', async () => {
    const url = await receiveMail()
    const { token } = await service.issueKey()
    const notify = (n: number) =>
      service.call('POST', '/v1/service/notifications', {
        token,
        body: { user_id: user.id, type: `custom.order_${n}`, title: 'Order', body: 'It is sent.' },
      })
    await Promise.all(Array.from({ length: 101 }, (_, n) => notify(n)))
    const form = choiceOf(await fetchPage(url), (on) =>
      on.filter((name) => name !== 'custom.order_7.push'),
    )
    expect((await fetchPage(url, form)).status).toBe(200)
    const chosen = await preferences()
    expect(chosen['custom.order_7']).toEqual({ in_app: true, push: false, email: false })
    expect(chosen['custom.order_8']).toBeUndefined()
  })

  test('the page leaves what was changed in the app after it was opened', async () => {
    const url = await receiveMail()
    const set = (broadcast: object) =>
      service.call('PUT', '/v1/notifications/preferences', {
        token: user.token,
        body: { broadcast },
      })
    await set({ in_app: true, push: true })
    const page = await fetchPage(url)
    await set({ push: false })
    const form = choiceOf(page, (on) => on.filter((name) => name !== 'broadcast.in_app'))
    expect((await fetchPage(url, form)).text).toContain('Your choice is saved.')
    expect((await preferences()).broadcast).toEqual({ in_app: false, push: false, email: false })
  })

  test('needs an address that was made here, and is answered in its language', async () => {
    const url = await receiveMail()
    const forged = url.replace(/token=[^~]+/, `token=${admin.id}`)
    for (const wrong of [forged, url.replace(/.$/, '!'), url.replace(/token=.*/, '')]) {
      const { status, text } = await fetchPage(wrong, stop)
      expect([status, text.includes(texts.en.mailPreferences.invalid)]).toEqual([400, true])
    }
    for (const lang of locales) {
      const { text } = await fetchPage(url.replace('lang=en', `lang=${lang}`))
      expect(text).toContain(`<h1>${texts[lang].mailPreferences.title}</h1>`)
    }
    const large = new FormData()
    large.set('on', 'a'.repeat(70_000))
    expect((await fetchPage(url, large)).status).toBe(413)
  })

  test('of a former address, which others may read, changes nothing', async () => {
    service.sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [user.id])
    const url = await receiveMail()
    const before = await preferences()
    const { token } = await service.issueKey()
    const move = (email: string) =>
      service.call('PATCH', `/v1/service/users/${user.id}`, {
        token,
        body: { email, email_verified: true },
      })
    expect((await move('corrected@example.com')).status).toBe(200)
    for (const form of [stop, { save: '1' }]) {
      const { status, text } = await fetchPage(url, form)
      expect([status, text.includes(texts.en.mailPreferences.gone)]).toEqual([200, true])
    }
    expect(await preferences()).toEqual(before)
    await move(user.email)
  })

  test('of a removed person is answered kindly', async () => {
    const url = await receiveMail()
    await call('DELETE', `/v1/admin/users/${user.id}`)
    for (const form of [undefined, stop]) {
      const { status, text } = await fetchPage(url, form)
      expect([status, text.includes(texts.en.mailPreferences.gone)]).toEqual([200, true])
    }
  })
})

test.each([
  [451, '4.7.1 come back later'],
  [550, '5.1.1 no such mailbox'],
])(
  'a preview that the mail server refuses with %d was not mailed',
  async (responseCode, message) => {
    const refusal = Object.assign(new Error(message), { responseCode })
    await using refusing = await startMailServer({
      onRcptTo: (_address, _session, callback) => callback(refusal),
    })
    await using refused = await startService({ environment: { SMTP_URL: refusing.url } })
    const { token } = await refused.registerAs('admin')
    const body = { kind: 'confirm', lang: 'en', send: true }
    const answer = await refused.call('POST', `${path}/texts/preview`, { token, body })
    expect([answer.status, answer.body.error.details]).toEqual([
      400,
      { send: expect.stringContaining(message) },
    ])
  },
)

test.each([
  ['#ffffff', '#000000'],
  ['#767676', '#000000'],
  ['#757575', '#ffffff'],
  ['#0000ff', '#ffffff'],
] as const)('on %s the text of a button is %s, which is easier to read', (colour, text) => {
  expect(textOn(colour)).toBe(text)
})
