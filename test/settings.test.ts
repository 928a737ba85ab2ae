import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { shownAt } from '../src/modules/notifications/jobs.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { png, upload } from './support/files.ts'
import { startMailServer } from './support/mail.ts'
import { type Person, startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const service = await startService({
  environment: { PUBLIC_URL: 'https://chat.example.com', DEMO: 'true' },
})
afterAll(() => service[Symbol.asyncDispose]())
let admin: Person
beforeAll(async () => {
  admin = await service.registerAs('admin')
})

const path = '/v1/admin/settings'
const read = async () => (await service.call('GET', path, { token: admin.token })).body
const change = (body: object) => service.call('PATCH', path, { token: admin.token, body })

const defaults = {
  platform_name: 'chat.example.com',
  app_url: null,
  support_email: null,
  logo_url: null,
  accent: '#1d4ed8',
  links: {},
  texts: {},
  unread_mail_minutes: 15,
  push_content: 'full',
  mail_content: 'full',
  message_retention_days: 0,
  ticket_retention_days: 0,
  registration: 'open',
}

/** The icon of a page's tab, which also is the sign in the console. */
const iconIn = (html: string) =>
  decodeURIComponent(/<link rel="icon" href="([^"]*)">/.exec(html)?.[1] ?? '')

test('settings begin with their defaults, and can be put back as they were shown', async () => {
  expect(await read()).toEqual(defaults)
  const answer = await change(await read())
  expect([answer.status, answer.body]).toEqual([200, defaults])
  const stored = service.sqlite.query('SELECT * FROM settings').all()
  const shown = await service.call('GET', `${path}/defaults`, { token: admin.token })
  expect(shown.body).toEqual(defaults)
  expect(stored).toEqual([]) // so that a new default still applies
})

test('a change has effect at once, keeps the others, and null is the default', async () => {
  const links = { conversation: 'https://app.example.com/c/{id}', home: 'myapp://home' }
  const given = { ...links, ticket: null }
  const answer = await change({ platform_name: ' Rooms ', links: given, accent: '#AA0000' })
  const expected = { ...defaults, platform_name: 'Rooms', links, accent: '#AA0000' }
  expect(answer.body).toEqual(expected)
  expect(await read()).toEqual(expected)
  expect((await change({ platform_name: null, links: null, accent: null })).body).toEqual(defaults)
  // A default may change with the configuration.
  expect(service.sqlite.query('SELECT name FROM settings').all()).toEqual([])
})

test('changes of the same moment are all kept', async () => {
  await Promise.all([change({ platform_name: 'B' }), change({ platform_name: 'C' })])
  await Promise.all([change({ ticket_retention_days: 5 }), change({ ticket_retention_days: 0 })])
  expect(await read()).toEqual({ ...defaults, platform_name: 'C' })
  await change({ platform_name: null })
})

test('each change is audited with its author and both values, and no change is not', async () => {
  await change({ push_content: 'none' })
  await change({ push_content: 'none' })
  await change({ push_content: null })
  const query = '?action=setting_changed&target_id=push_content'
  const { body } = await service.call('GET', `/v1/admin/audit-log${query}`, { token: admin.token })
  const details = body.data.map((entry: { details: object }) => entry.details)
  expect(details).toEqual([
    { from: '"none"', to: '"full"' },
    { from: '"full"', to: '"none"' },
  ])
  expect(body.data[0]).toMatchObject({
    actor: { type: 'user', id: admin.id },
    target: { type: 'setting', id: 'push_content' },
  })
})

describe('a wrong value is refused by name and changes nothing', () => {
  const urlRule = 'must be an https address or one of your app’s own scheme'
  test.each([
    [{ no_such: 1 }, 'no_such', 'is not a setting'],
    [{ accent: 'red' }, 'accent', 'must be a colour such as #1d4ed8'],
    [{ platform_name: ' ' }, 'platform_name', 'must not be empty'],
    [{ platform_name: 'a\nb' }, 'platform_name', 'must not contain control or format characters'],
    [{ app_url: 'http://app.example.com' }, 'app_url', urlRule],
    [{ app_url: 'javascript://%0aalert(1)' }, 'app_url', urlRule],
    [{ app_url: 'https://a@b.example' }, 'app_url', urlRule],
    [{ app_url: 'https://a.example/{id}' }, 'app_url', 'has an unknown placeholder: {id}'],
    [{ links: { ticket: 'data:text/html,{id}' } }, 'links.ticket', urlRule],
    [{ links: { ticket: '{id}://x' } }, 'links.ticket', urlRule],
    [{ links: { ticket: 'https://a.example/{id' } }, 'links.ticket', urlRule],
    [
      { links: { ticket: 'https://a.example/{name}' } },
      'links.ticket',
      'has an unknown placeholder: {name}',
    ],
    [
      { links: { inbox: 'https://a.example/' } },
      'links.inbox',
      'must be one of: conversation, ticket, notification, home',
    ],
    [
      { texts: { digest: {} } },
      'texts.digest',
      expect.stringContaining('must be one of: verify_email, '),
    ],
    [
      { texts: { confirm: { en: { title: 'x' } } } },
      'texts.confirm.en.title',
      'must be one of: subject, body',
    ],
    [{ message_retention_days: 36_501 }, 'message_retention_days', 'must be at most 36500'],
    [{ mail_content: 'some' }, 'mail_content', 'must be one of: full, sender, none'],
    [{ support_email: 'help' }, 'support_email', 'must be a valid e-mail address'],
    [
      { logo_url: 'https://elsewhere.example/a.png' },
      'logo_url',
      'must be the address of an image that was uploaded here',
    ],
  ])('%j', async (body, field, problem) => {
    const { status, body: answer } = await change({ ticket_retention_days: 30, ...body })
    expect([status, answer.error.details]).toEqual([400, { [field]: problem }])
    expect(await read()).toEqual(defaults)
  })
})

test('only a confirmed admin changes settings', async () => {
  const body = { accent: '#000000' }
  const host = await service.registerAs('host')
  expect((await service.call('PATCH', path, { token: host.token, body })).status).toBe(403)
  const { token } = await service.login(admin.email)
  const { status, headers } = await service.call('PATCH', path, { token, body })
  expect([status, headers.get('x-error-reason')]).toEqual([403, 'confirm_required'])
})

test('the logo is an uploaded image, which is kept while it is the logo', async () => {
  const logo = await upload(service, admin, png, { type: 'image/png' })
  const text = await upload(service, admin, Buffer.from('x'), { type: 'text/plain' })
  expect((await change({ logo_url: text.body.file_url })).status).toBe(400)
  expect((await change({ logo_url: logo.body.file_url })).body.logo_url).toBe(logo.body.file_url)
  expect(iconIn((await service.call('GET', '/console')).body)).toBe(logo.body.file_url)
  const unusedSince = () =>
    service.sqlite
      .query<{ at: number | null }, [string]>('SELECT unused_since AS at FROM files WHERE id = ?')
      .get(logo.body.id)?.at
  expect(unusedSince()).toBeNull()
  await change({ logo_url: null })
  expect(unusedSince()).toBeNumber()
})

test('the logo is gone with its file, and the settings can still be put back', async () => {
  const owner = await service.registerAs('admin')
  const removeFile = (id: string) => service.call('DELETE', `/v1/files/${id}`, owner)
  const removeOwner = () => service.call('DELETE', `/v1/admin/users/${owner.id}`, admin)
  for (const remove of [removeFile, removeOwner]) {
    const logo = await upload(service, owner, png, { type: 'image/png' })
    await change({ logo_url: logo.body.file_url })
    expect((await remove(logo.body.id)).status).toBe(204)
    const shown = await waitFor(async () => {
      const settings = await read()
      return settings.logo_url === null && settings
    })
    expect((await change(shown)).status).toBe(200)
  }
})

test('a stored value that is not valid is logged and ignored', async () => {
  using directory = temporaryDirectory()
  {
    await using first = await startService({ dataDir: directory.path })
    const insert = 'INSERT INTO settings VALUES (?, ?)'
    first.sqlite.run(insert, ['accent', 'no JSON'])
    first.sqlite.run(insert, ['platform_name', '17'])
    first.sqlite.run(insert, ['of_a_newer_version', '1'])
    first.sqlite.run(insert, ['push_content', '"sender"'])
  }
  await using second = await startService({ dataDir: directory.path })
  const { token } = await second.registerAs('admin')
  const { body } = await second.call('GET', path, { token })
  expect(body).toMatchObject({
    accent: '#1d4ed8',
    platform_name: 'localhost',
    push_content: 'sender',
  })
  for (const name of ['accent', 'platform_name', 'of_a_newer_version']) {
    expect(second.log()).toContain(`"name":"${name}"`)
  }
})

test('REGISTRATION is the default of its setting', async () => {
  await using own = await startService({ environment: { REGISTRATION: 'off' } })
  const register = (email: string) =>
    own.call('POST', '/v1/auth/register', { body: { email, password: 'correct horse' } })
  expect((await register('a@example.com')).status).toBe(403)
  const { exitCode } = await hostline(['settings', 'set', 'registration', 'open'], own.directory)
  expect(exitCode).toBe(0)
  expect((await register('a@example.com')).status).toBe(201)
})

describe('hostline settings', () => {
  const run = (...args: string[]) => hostline(['settings', ...args], service.directory)

  test('set changes the running server, and list shows every setting', async () => {
    expect(await run('set', 'platform_name', 'Rooms & Co')).toMatchObject({
      exitCode: 0,
      out: 'platform_name is Rooms & Co',
    })
    await run('set', 'links', '{"home":"https://app.example.com/"}')
    await run('set', 'message_retention_days', '400')
    const { out } = await run('list')
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        'name\tvalue',
        'platform_name\tRooms & Co',
        'logo_url\t–',
        'links\t{"home":"https://app.example.com/"}',
        'message_retention_days\t400',
      ]),
    )
    expect(JSON.parse((await run('list', '--json')).out)).toEqual(await read())
    for (const name of ['platform_name', 'links', 'message_retention_days']) {
      expect((await run('set', name, '')).exitCode).toBe(0)
    }
    expect(await read()).toEqual(defaults)
  })

  test.each([
    [['set', 'accent', 'red'], 'accent must be a colour such as #1d4ed8'],
    [['set', 'colour', 'red'], 'the key must be one of platform_name, '],
    [['set', 'links', '{'], 'must be JSON such as {"home":"https://app.example.com/inbox"}'],
    [['set', 'texts', 'x'], 'must be JSON such as {"verify_email":{"en":{"subject":"Welcome to '],
    [['set', 'ticket_retention_days', 'soon'], 'ticket_retention_days must be JSON such as 0'],
    [['set', 'accent'], 'settings set KEY VALUE'],
    [['unset', 'accent'], 'settings list or set'],
  ])('%j is wrong usage', async (args, message) => {
    const { exitCode, err } = await run(...args)
    expect([exitCode, err]).toEqual([2, expect.stringContaining(message)])
  })
})

describe('the face of the platform', () => {
  const name = 'Rooms <b>& "Co" $& {link}'
  const face = {
    platform_name: name,
    app_url: 'https://app.example.com/?a=1&b="',
    support_email: 'help@example.com',
    accent: '#ffee00',
    links: { ticket: 'https://app.example.com/help/{id}', home: 'rooms://home' },
  }

  test.each(['en', 'de', 'es', 'fr', 'pt'])(
    'stands in every mail, in text and HTML (%s)',
    async (locale) => {
      await using mail = await startMailServer()
      await using own = await startService({
        environment: { SMTP_URL: mail.url, PUBLIC_URL: 'https://chat.example.com' },
      })
      const { token } = await own.registerAs('admin')
      await own.call('PATCH', path, { token, body: face })
      const body = { email: 'eva@example.com', password: 'correct horse' }
      const headers = { 'accept-language': locale }
      await own.call('POST', '/v1/auth/register', { body, headers })
      const { raw, from, text } = await mail.next('eva@example.com')
      expect(from).toBe('noreply@chat.example.com')
      expect(raw).toContain('From: "Rooms <b>& \\"Co\\" $& {link}" <noreply@chat.example.com>')
      const [plain = '', html = ''] = text.split('text/html')
      expect(plain.replaceAll('\r', '')).toContain(
        `-- \n${name}\nhttps://app.example.com/?a=1&b="\n`,
      )
      expect(plain).toContain('help@example.com')
      expect(html).toContain(`<html lang="${locale}">`)
      expect(html).toContain('Rooms &lt;b&gt;&amp; &quot;Co&quot; $&amp; {link}</b>')
      expect(html).toContain('background:#ffee00;color:#000000')
      expect(html).toContain('href="https://app.example.com/?a=1&amp;b=&quot;"')
      expect(text).not.toMatch(/hostline/i)
    },
  )

  test('stands on account pages, which lead back to the app', async () => {
    await change(face)
    for (const page of ['verify-email', 'reset-password', 'change-email', 'undo-email', 'set-up']) {
      const { body } = await service.call('GET', `/${page}?lang=en`)
      expect(body).toContain(
        '<header class="word-mark">Rooms &lt;b&gt;&amp; &quot;Co&quot; $&amp; {link}</header>',
      )
      expect(body).toContain('<a href="https://app.example.com/?a=1&amp;b=&quot;">Back to Rooms')
      expect(body).toContain('<link rel="stylesheet" href="/platform.css"></head>')
      expect(body).not.toMatch(/hostline/i)
      expect(iconIn(body)).toMatch(/fill="#ffee00".*>R</)
    }
    const { body: console } = await service.call('GET', '/console')
    expect(console).toContain('<title>Rooms &lt;b&gt;&amp; &quot;Co&quot; $&amp; {link}</title>')
    for (const page of ['/', '/demo']) {
      const { body: text } = await service.call('GET', page)
      expect(text).toContain('<title>Rooms &lt;b&gt;&amp; &quot;Co&quot; $&amp; {link}</title>')
      expect(text).not.toContain('Hostline')
    }
    expect(iconIn(console)).toMatch(/fill="#ffee00".*>R</)
    const { body: start } = await service.call('GET', '/')
    expect(start).toContain('<span class="word-mark">Rooms &lt;b&gt;')
    const { body: style, headers } = await service.call('GET', '/platform.css')
    expect(headers.get('content-type')).toBe('text/css; charset=utf-8')
    expect(style).toContain('--accent:#ffee00;')
    expect(style).toContain('--on-accent:#000000')
    await change({
      platform_name: null,
      app_url: null,
      support_email: null,
      accent: null,
      links: null,
    })
  })
})

describe('what others on the way read of a notification', () => {
  const data = { follower_id: 'F1', follower_name: 'Ada', note: 'secret' }
  const follow = { type: 'follow_new', title: 'Ada is here', body: 'secret', data }
  const money = { amount: '9.90', currency: 'EUR', call_session_id: 'c1' }
  const paid = { type: 'payment_captured', title: 'Paid', body: '9.90 EUR', data: money }
  const own = { type: 'custom.booking', title: 'Booking of Ada', body: 'secret', data: {} }
  const person = { locale: 'en', platform: 'Rooms' } as const
  const ids = { follower_id: 'F1' }
  test.each([
    ['full', follow, { title: 'Ada is here', body: 'secret', data }],
    [
      'sender',
      follow,
      {
        title: 'New follower',
        body: 'Ada follows you now.',
        data: { ...ids, follower_name: 'Ada' },
      },
    ],
    ['none', follow, { title: 'Rooms', body: 'New follower', data: ids }],
    [
      'sender',
      paid,
      {
        title: 'Payment received',
        body: 'A payment was received.',
        data: { call_session_id: 'c1' },
      },
    ],
    ['none', paid, { title: 'Rooms', body: 'Payment received', data: { call_session_id: 'c1' } }],
    ['none', own, { title: 'Rooms', body: 'News', data: {} }],
  ] as const)('%s: %j', (level, row, shown) => {
    expect(shownAt(level, row, person)).toEqual(shown)
  })
})
