import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { codeOf } from './support/authenticator.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { type Person, readAnswer, startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const password = 'correct horse'

let service: TestService
let key: { token: string }
let logins: { token: string }
let names = 0

beforeAll(async () => {
  service = await startService()
  key = await service.issueKey()
  logins = await service.issueKey(['sessions'])
})
afterAll(() => service[Symbol.asyncDispose]())

const feed = (method: string, path: string, body?: unknown) =>
  service.call(method, `/v1/service${path}`, { token: key.token, body })
const refusalOf = ({ status, headers }: { status: number; headers: Headers }) => [
  status,
  headers.get('x-error-reason'),
]
/** Creates a user with an external id. */
async function bring(external_id: string, more: object = {}) {
  const body = { email: `p${++names}@example.com`, external_id, ...more }
  return (await feed('POST', '/users', body)).body
}
const unverified = { email_verified: false, role: 'user' }
const ext = (externalId: string) => encodeURIComponent(`ext:${externalId}`)

describe('users created by the platform', () => {
  test('have the given fields, and are audited', async () => {
    const answer = await feed('POST', '/users', {
      email: 'Ada@Example.com',
      display_name: ' Ada L. ',
      role: 'host',
      email_verified: true,
      external_id: 'crm/1',
      locale: 'de',
      avatar_url: 'https://example.com/a.png',
    })
    const ada = {
      id: expect.any(String),
      email: 'ada@example.com',
      display_name: 'Ada L.',
      role: 'host',
      email_verified: true,
      created_at: expect.any(String),
      avatar_url: 'https://example.com/a.png',
      locale: 'de',
      totp: false,
      email_bounced_at: null,
      quiet_hours: null,
      disabled: false,
      external_id: 'crm/1',
    }
    expect([answer.status, answer.body]).toEqual([201, ada])
    expect((await feed('GET', `/users/${answer.body.id}`)).body).toEqual(answer.body)
    const row = service.sqlite
      .query('SELECT action, actor_type FROM audit_log WHERE target_id = ?')
      .all(answer.body.id)
    expect(row).toEqual([{ action: 'user_created', actor_type: 'service_key' }])
  })

  test('need only an address, and have no password until they set one', async () => {
    const { status, body } = await feed('POST', '/users', { email: 'plain@example.com' })
    expect([status, body.display_name, body.role, body.locale]).toEqual([
      201,
      'plain',
      'user',
      'en',
    ])
    for (const password of ['', 'none', 'correct horse']) {
      const login = { body: { email: 'plain@example.com', password } }
      expect((await service.call('POST', '/v1/auth/login', login)).status).toBe(401)
    }
    const verified = await feed('POST', '/users', { email: 'v@example.com', email_verified: true })
    expect(verified.body.role).toBe('verified_user')
  })

  test('are created once: the same external id brings the first up to date, a taken address is 409', async () => {
    const first = await bring('once', { email_verified: true })
    const again = await feed('POST', '/users', {
      email: 'OTHER@example.com',
      email_verified: true,
      external_id: 'once',
      display_name: 'Onda',
      locale: 'fr',
      role: 'host',
      avatar_url: 'https://example.com/o.png',
    })
    const changed = {
      email: 'other@example.com',
      display_name: 'Onda',
      locale: 'fr',
      role: 'host',
      avatar_url: 'https://example.com/o.png',
    }
    expect([again.status, again.body]).toEqual([200, { ...first, ...changed }])
    const repeated = { email: 'other@example.com', external_id: 'once', avatar_url: null }
    const rows = () => service.sqlite.query('SELECT count(*) AS n FROM audit_log').get()
    const before = rows()
    for (const body of [repeated, { ...repeated, disabled: true }])
      expect((await feed('POST', '/users', body)).body).toEqual(again.body)
    expect(rows()).toEqual(before)
    const taken = await feed('POST', '/users', { email: again.body.email, external_id: 'twice' })
    expect(refusalOf(taken)).toEqual([409, 'email_taken'])
    const [second, other] = [await bring('second'), await bring('third')]
    const update = { email: other.email, external_id: 'second' }
    expect(refusalOf(await feed('POST', '/users', update))).toEqual([409, 'email_taken'])
    expect((await feed('GET', `/users/${second.id}`)).body).toEqual(second)
  })

  test.each([
    [{ role: 'admin' }, 403, undefined],
    [{ role: 'verified_user' }, 400, 'role'],
    [{ external_id: '' }, 400, 'external_id'],
    [{ external_id: 'x'.repeat(129) }, 400, 'external_id'],
    [{ external_id: 'a\nb' }, 400, 'external_id'],
    [{ email: 'nobody' }, 400, 'email'],
    [{ locale: 'xx' }, 400, 'locale'],
  ])('%j is refused', async (wrong, status, field) => {
    const answer = await feed('POST', '/users', { email: `x${++names}@example.com`, ...wrong })
    expect([answer.status, Object.keys(answer.body.error.details ?? {})[0]]).toEqual([
      status,
      field,
    ])
  })

  test('are found by address, external id, or both', async () => {
    const bob = await bring('bob 7')
    const emailsOf = async (query: string) =>
      (await feed('GET', `/users?${query}`)).body.data.map(({ id }: { id: string }) => id)
    const pagination = { page: 1, per_page: 20, total: 1, total_pages: 1 }
    const found = await feed('GET', `/users?email=${bob.email.toUpperCase()}`)
    expect(found.body).toEqual({ success: true, data: [bob], pagination })
    expect(await emailsOf('external_id=bob%207')).toEqual([bob.id])
    expect(await emailsOf(`external_id=bob%207&email=${bob.email}`)).toEqual([bob.id])
    expect(await emailsOf('external_id=bob%207&email=somebody@example.com')).toEqual([])
    expect(await emailsOf('external_id=nobody')).toEqual([])
    expect(await emailsOf('external_id=bob%207&page=2')).toEqual([])
    const none = await feed('GET', '/users')
    const details = { email: 'is required without external_id' }
    expect([none.status, none.body.error.details]).toEqual([400, details])
  })

  test('can get another external id, but no used one, and never become admins', async () => {
    const [cleo, dan] = [await bring('cleo'), await bring('dan')]
    const patch = (body: object) => feed('PATCH', `/users/${cleo.id}`, body)
    expect((await patch({ external_id: 'cleo 2' })).body.external_id).toBe('cleo 2')
    expect((await patch({ display_name: 'C', external_id: null })).body.external_id).toBe('cleo 2')
    expect(refusalOf(await patch({ external_id: 'dan' }))).toEqual([409, 'external_id_taken'])
    expect(refusalOf(await patch({ role: 'admin' }))).toEqual([403, 'role_required'])
    expect((await feed('GET', `/users/${ext('dan')}`)).body.id).toBe(dan.id)
  })

  test('are removed by the platform, as they could themselves, which frees their external id', async () => {
    const gone = await bring('gone')
    const { body } = await feed('POST', `/users/${ext('gone')}`)
    expect(body.error.code).toBe('not_found')
    expect((await feed('DELETE', `/users/${ext('gone')}`)).status).toBe(204)
    expect((await feed('DELETE', `/users/${gone.id}`)).status).toBe(404)
    expect((await feed('GET', `/users/${ext('gone')}`)).status).toBe(404)
    expect((await bring('gone')).id).not.toBe(gone.id)
    const rows = service.sqlite
      .query(
        'SELECT action, actor_type FROM audit_log WHERE target_id = ? ORDER BY id DESC LIMIT 1',
      )
      .all(gone.id)
    expect(rows).toEqual([{ action: 'user_deleted', actor_type: 'service_key' }])
  })

  test('are logged out on every device', async () => {
    const eve = await bring('eve')
    const session = await service.call('POST', `/v1/service/users/${eve.id}/sessions`, logins)
    const me = () => service.call('GET', '/v1/users/me', { token: session.body.access_token })
    expect((await me()).status).toBe(200)
    expect((await feed('DELETE', `/users/${ext('eve')}/sessions`)).status).toBe(204)
    expect((await me()).status).toBe(401)
    expect((await feed('DELETE', `/users/${ext('nobody')}/sessions`)).status).toBe(404)
  })

  test('get a new address at once: unverified with a mail, or verified without', async () => {
    const fay = await bring('fay', { email_verified: true })
    const session = await service.call('POST', `/v1/service/users/${fay.id}/sessions`, logins)
    const moved = await feed('PATCH', `/users/${ext('fay')}`, { email: 'Fay@new.example' })
    expect(moved.body).toEqual({ ...fay, email: 'fay@new.example', ...unverified })
    const token = session.body.access_token
    expect((await service.call('GET', '/v1/users/me', { token })).body.email).toBe(moved.body.email)
    const mail = await waitFor(
      () => service.logged.find((it) => it.includes('fay@new.example')),
      'a mail',
    )
    expect(mail).toContain('verify-email')
    const given = { email: 'fay@third.example', email_verified: true, locale: 'pt' }
    const sure = await feed('PATCH', `/users/${fay.id}`, given)
    expect(sure.body).toEqual({ ...fay, ...given })
    const [, link = ''] = /#token=([\w-]{43})/.exec(mail) ?? []
    const former = await service.call('POST', '/v1/auth/verify-email', { body: { token: link } })
    expect(former.status).toBe(400)
    await feed('PATCH', `/users/${fay.id}`, { email: 'fay@new.example' })
    await waitFor(() => service.sqlite.query('SELECT 1 FROM outbox').get() === null)
    const links = service.logged.filter((it) => /fay@new\.example.*verify-email/s.test(it))
    expect(links).toEqual([mail]) // at most one a minute
  })

  test('with a new address no longer have links mailed to the former one, nor its bounce', async () => {
    const kit = await bring('kit', { email_verified: true })
    await service.call('POST', '/v1/auth/password/forgot', { body: { email: kit.email } })
    const mail = await waitFor(
      () => service.logged.find((it) => it.includes(kit.email) && it.includes('#token=')),
      'a mail',
    )
    const [, token = ''] = /#token=([\w-]{43})/.exec(mail) ?? []
    service.sqlite.run('UPDATE users SET email_bounced_at = 1 WHERE id = ?', [kit.id])
    const bounced = () => feed('GET', `/users/${kit.id}`).then(({ body }) => body.email_bounced_at)
    expect(await bounced()).toBe('1970-01-01T00:00:00.001Z')
    await feed('PATCH', `/users/${kit.id}`, { email: 'kit@new.example', email_verified: true })
    expect(await bounced()).toBeNull()
    const reset = { token, password: 'another horse' }
    const answer = await service.call('POST', '/v1/auth/password/reset', { body: reset })
    expect(answer.status).toBe(400)
  })

  test('take an address over from an account that was never verified, and from no other', async () => {
    const [squatter, owner] = [await service.register('squatter'), await bring('gil')]
    const taken = await feed('PATCH', `/users/${owner.id}`, { email: squatter.email })
    expect([taken.status, taken.body.email]).toEqual([200, squatter.email])
    expect((await feed('GET', `/users/${squatter.id}`)).status).toBe(404)
    const proved = await service.registerAs('user')
    const refused = await feed('PATCH', `/users/${owner.id}`, { email: proved.email })
    expect(refusalOf(refused)).toEqual([409, 'email_taken'])
  })

  test('that are admins keep their address, role, access and account', async () => {
    const [root] = [await service.registerAs('admin'), await service.registerAs('admin')]
    for (const attempt of [
      feed('PATCH', `/users/${root.id}`, { email: 'mine@example.com', email_verified: true }),
      feed('PATCH', `/users/${root.id}`, { role: 'user' }),
      feed('PATCH', `/users/${root.id}`, { disabled: true }),
      feed('PATCH', `/users/${root.id}`, { email_verified: false }),
      feed('DELETE', `/users/${root.id}`),
      feed('DELETE', `/users/${root.id}/sessions`),
    ]) {
      const refused = await attempt
      expect(refusalOf(refused)).toEqual([403, 'role_required'])
      expect(refused.body.error.message).toBe(
        'A service key cannot do this to an admin, nor make one.',
      )
    }
    expect((await service.call('GET', '/v1/users/me', root)).body.email).toBe(root.email)
  })
})

describe('a confirmation by a mailed code', () => {
  const askFor = ({ token }: { token: string }) =>
    service.call('POST', '/v1/auth/confirm/code', { token })
  const confirm = ({ token }: { token: string }, code: string) =>
    service.call('POST', '/v1/auth/confirm', { token, body: { code } })

  async function brought(externalId: string, more = {}) {
    const user = await bring(externalId, { email_verified: true, ...more })
    const answer = await service.call('POST', `/v1/service/users/${user.id}/sessions`, logins)
    return { ...user, token: answer.body.access_token }
  }

  /** @param n which mail to this address */
  const codeFor = (email: string, n = 0): Promise<string> =>
    waitFor(() => {
      const mails = service.logged.filter((line) => line.includes(email))
      return mails.flatMap((mail) => /Your code: (\d{6})/.exec(mail)?.[1] ?? [])[n]
    }, 'a code')

  const wrong = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')

  test('lets people without a password remove their account', async () => {
    const person = await brought('hana')
    const remove = () => service.call('DELETE', '/v1/users/me', { token: person.token, body: {} })
    expect(refusalOf(await remove())).toEqual([403, 'confirm_required'])
    expect((await askFor(person)).status).toBe(204)
    const code = await codeFor(person.email)
    const refused = await confirm(person, wrong(code))
    expect([...refusalOf(refused), refused.body.error.code]).toEqual([
      401,
      'code_invalid',
      'invalid_credentials',
    ])
    expect((await confirm(person, ` ${code} `)).status).toBe(204)
    expect(refusalOf(await confirm(person, code))).toEqual([401, 'code_invalid'])
    expect((await remove()).status).toBe(204)
  })

  test('is void after five wrong attempts', async () => {
    const person = await brought('ines')
    await askFor(person)
    const code = await codeFor(person.email)
    for (let n = 0; n < 5; n++) expect((await confirm(person, wrong(code))).status).toBe(401)
    expect(refusalOf(await confirm(person, code))).toEqual([401, 'code_invalid'])
  })

  test('works for its own session only, and not after ten minutes', async () => {
    const [person, other] = [await brought('jo'), await brought('kim')]
    await askFor(person)
    const code = await codeFor(person.email)
    expect(refusalOf(await confirm(other, code))).toEqual([401, 'code_invalid'])
    const path = `/v1/service/users/${person.id}/sessions`
    const { body: elsewhere } = await service.call('POST', path, logins)
    const ofOtherSession = await confirm({ token: elsewhere.access_token }, code)
    expect(refusalOf(ofOtherSession)).toEqual([401, 'code_invalid'])
    const late =
      "UPDATE one_time_tokens SET expires_at = expires_at - 600000 WHERE purpose = 'confirm'"
    service.sqlite.run(late)
    expect(refusalOf(await confirm(person, code))).toEqual([401, 'code_invalid'])
  })

  test('needs a verified address, and is mailed once a minute; a new code replaces the first', async () => {
    const unproved = await brought('lea', { email_verified: false })
    expect(refusalOf(await askFor(unproved))).toEqual([403, 'email_not_verified'])
    const person = await brought('mia')
    await askFor(person)
    const throttled = await askFor(person)
    expect(refusalOf(throttled)).toEqual([429, 'mail_throttled'])
    expect(Number(throttled.headers.get('retry-after'))).toBeGreaterThan(50)
    const first = await codeFor(person.email)
    service.sqlite.run('DELETE FROM sent_mails')
    await askFor(person)
    const second = await codeFor(person.email, 1)
    if (first !== second) {
      expect(refusalOf(await confirm(person, first))).toEqual([401, 'code_invalid'])
    }
    expect((await confirm(person, second)).status).toBe(204)
  })

  test('is mailed five times a day', async () => {
    const person = await brought('noa')
    for (let n = 0; n < 5; n++) {
      expect((await askFor(person)).status).toBe(204)
      service.sqlite.run('UPDATE sent_mails SET at = at - 60000')
    }
    expect(refusalOf(await askFor(person))).toEqual([429, 'mail_throttled'])
  })
})

/** A person who has registered with an address of another person, set up a second factor and a device, and requested
 *  links. */
async function squat(name = `squatter${++names}`) {
  const person = await service.register(name)
  const as = (method: string, path: string, body?: object) =>
    service.call(method, path, { token: person.token, body })
  const { secret } = (await as('POST', '/v1/auth/totp', { password })).body
  await as('POST', '/v1/auth/totp/confirm', { code: codeOf(secret, Date.now()) })
  await as('POST', '/v1/notifications/push-tokens', { token: `t${name}`, platform: 'ios' })
  await as('POST', '/v1/auth/email/change', { new_email: `${name}@thief.example`, password })
  const picture = 'https://thief.example/a.png'
  await as('PATCH', '/v1/users/me', { display_name: 'Thief', avatar_url: picture, locale: 'de' })
  const night = { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' }
  await as('PUT', '/v1/users/me/quiet-hours', night)
  return person
}

/** The ways by which that person could still log in or be notified. */
async function remainingAccessOf({ id, email, token, refreshToken }: Person) {
  const login = { email, password }
  const isKept = (where: string) =>
    service.sqlite.query(`SELECT 1 FROM ${where} = ?`).get(id) !== null
  return {
    access: (await service.call('GET', '/v1/users/me', { token })).status,
    refresh: (
      await service.call('POST', '/v1/auth/refresh', {
        body: { refresh_token: refreshToken },
        headers: { 'x-idempotency-key': 'again' },
      })
    ).status,
    login: (await service.call('POST', '/v1/auth/login', { body: login })).headers.get(
      'x-error-reason',
    ),
    kept: [
      'totp_factors WHERE user_id',
      'recovery_codes WHERE user_id',
      'push_tokens WHERE user_id',
      "one_time_tokens WHERE purpose = 'change_email' AND user_id",
    ].filter(isKept).length,
  }
}
const none = { access: 401, refresh: 401, login: null, kept: 0 }
const held = { access: 200, refresh: 200, login: 'totp_required', kept: 4 }

describe('an address that a stranger registered first', () => {
  test('goes to the platform’s customer: the former account is removed with everything in it', async () => {
    const thief = await squat('ada.owner')
    const victim = await service.register()
    const conversationId = await service.openConversation(thief, victim)
    await service.say(thief, conversationId, 'I am Ada')
    const person = { email: ' Ada.Owner@example.com ', external_id: 'ada-owner' }
    const brought = await feed('POST', '/users', person)
    expect([brought.status, brought.body.display_name]).toEqual([201, 'ada.owner'])
    expect(brought.body.id).not.toBe(thief.id)
    expect(await remainingAccessOf(thief)).toEqual(none)
    expect((await feed('GET', `/users/${thief.id}`)).status).toBe(404)
    const opened = await service.call(
      'POST',
      `/v1/service/users/${ext('ada-owner')}/sessions`,
      logins,
    )
    const inbox = { token: opened.body.access_token }
    expect((await service.call('GET', '/v1/chat/conversations', inbox)).body.data).toEqual([])
    expect((await feed('POST', '/users', person)).body.id).toBe(brought.body.id)
  })

  test.each<[string, (person: Person) => unknown]>([
    [
      'verified',
      ({ id }) => service.sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [id]),
    ],
    [
      'verified once',
      async ({ id }) => {
        service.sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [id])
        await feed('PATCH', `/users/${id}`, { email_verified: false })
      },
    ],
    [
      'of an admin',
      ({ id }) => service.sqlite.run("UPDATE users SET role = 'admin' WHERE id = ?", [id]),
    ],
    ['adopted', ({ id }) => feed('PATCH', `/users/${id}`, { external_id: `adopted-${id}` })],
  ])('is taken over when the account is %s', async (_, change) => {
    const person = await service.register()
    await change(person)
    const answer = await feed('POST', '/users', { email: person.email })
    expect(refusalOf(answer)).toEqual([409, 'email_taken'])
  })

  test('is taken over also from a disabled account, but nothing is removed for a user who cannot be created', async () => {
    const thief = await service.register()
    await feed('PATCH', `/users/${thief.id}`, { disabled: true })
    const wrong = await feed('POST', '/users', { email: thief.email, role: 'admin' })
    expect(refusalOf(wrong)).toEqual([403, 'role_required'])
    expect((await feed('GET', `/users/${thief.id}`)).status).toBe(200)
    const { status, body } = await feed('POST', '/users', { email: thief.email })
    expect([status, body.disabled]).toEqual([201, false])
  })

  test.each<
    [string, (person: Person, root: Person) => Promise<{ status?: number; exitCode?: number }>]
  >([
    ['an external id', ({ id }) => feed('PATCH', `/users/${id}`, { external_id: `of ${id}` })],
    ['a verified address', ({ id }) => feed('PATCH', `/users/${id}`, { email_verified: true })],
    [
      'a verified address from an admin',
      ({ id }, { token }) =>
        service.call('PATCH', `/v1/admin/users/${id}`, { token, body: { email_verified: true } }),
    ],
    [
      'a verified address from the command line',
      ({ email }) => hostline(['user', 'verify', email], service.directory),
    ],
  ])(
    'cannot be held by a stranger once the account gets %s: all their settings are gone',
    async (_, adopt) => {
      const thief = await squat()
      const root = await service.registerAs('admin')
      await feed('PATCH', `/users/${thief.id}`, { role: 'host', display_name: 'Still the thief' })
      expect(await remainingAccessOf(thief)).toEqual(held)
      const { status, exitCode } = await adopt(thief, root)
      expect(status ?? exitCode).toBe(status === undefined ? 0 : 200)
      expect(await remainingAccessOf(thief)).toEqual(none)
      const { body } = await feed('GET', `/users/${thief.id}`)
      expect(body).toMatchObject({
        display_name: thief.email.split('@')[0],
        locale: 'en',
        quiet_hours: null,
        role: 'host',
      })
      expect(body.avatar_url).toStartWith('http://localhost')
      const log = service.sqlite.query(
        "SELECT 1 FROM audit_log WHERE action = 'account_adopted' AND target_id = ?",
      )
      expect(log.all(thief.id)).toHaveLength(1)
    },
  )

  test('cannot be locked by their second factor once its owner has followed the mailed link', async () => {
    const thief = await squat()
    service.sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [thief.id])
    const token = new Bun.CryptoHasher('sha256').update(thief.id).digest('hex')
    service.sqlite.run("INSERT INTO one_time_tokens VALUES (?, 'reset_password', ?, ?, ?, 0)", [
      token,
      thief.id,
      thief.email,
      Date.now() + 60_000,
    ])
    const body = { token: thief.id, password: 'battery staple' }
    expect((await service.call('POST', '/v1/auth/password/reset', { body })).status).toBe(204)
    const login = { email: thief.email, password: body.password }
    expect((await service.call('POST', '/v1/auth/login', { body: login })).status).toBe(200)
  })

  test('shows its owner neither their devices nor what they did', async () => {
    const thief = await service.register()
    const headers = { 'user-agent': 'Browser of a stranger' }
    const login = { email: thief.email, password }
    await service.call('POST', '/v1/auth/login', { body: login, headers })
    await feed('PATCH', `/users/${thief.id}`, { email_verified: true })
    const path = `/v1/service/users/${thief.id}/sessions`
    const owner = (await service.call('POST', path, { token: logins.token })).body
    const token = owner.access_token
    const { body } = await service.call('GET', '/v1/users/me/export', { token })
    expect(body.sessions).toMatchObject([{ user_agent: null }])
    expect(body.audit_log.map(({ action }: { action: string }) => action)).toEqual([
      'data_exported',
    ])
  })

  test('loses their sockets as well', async () => {
    await using own = await startService({ listen: true })
    const { token } = await own.issueKey()
    const thief = await own.register()
    const socket = await own.connect(thief)
    const body = { email_verified: true }
    await own.call('PATCH', `/v1/service/users/${thief.id}`, { token, body })
    expect(await socket.closed).toBe(4403)
  })

  test('takes nothing from a request of theirs that is running', async () => {
    const thief = await service.register()
    const { token } = thief
    const night = { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' }
    const device = { token: `device of ${thief.id}`, platform: 'ios' }
    const [adopted, ...running] = await Promise.all([
      feed('PATCH', `/users/${thief.id}`, { email_verified: true }),
      service.call('POST', '/v1/notifications/push-tokens', { token, body: device }),
      service.call('PATCH', '/v1/users/me', { token, body: { display_name: 'Thief' } }),
      service.call('PUT', '/v1/users/me/quiet-hours', { token, body: night }),
    ])
    expect([adopted.status, ...running.map(({ status }) => status)]).toEqual([200, 401, 401, 401])
    const row = 'SELECT display_name, quiet_hours FROM users WHERE id = ?'
    const [name] = thief.email.split('@')
    expect(service.sqlite.query(row).values(thief.id)).toEqual([[name ?? '', null]])
  })

  test('is adopted once: settings of the owner stay, and a given name holds', async () => {
    const thief = await service.register()
    const names = { external_id: `once ${thief.id}`, display_name: 'Ada' }
    expect((await feed('PATCH', `/users/${thief.id}`, names)).body.display_name).toBe('Ada')
    const opened = await service.call('POST', `/v1/service/users/${thief.id}/sessions`, logins)
    const verified = await feed('PATCH', `/users/${thief.id}`, { email_verified: true })
    expect(verified.body).toMatchObject({ display_name: 'Ada', role: 'verified_user' })
    const me = await service.call('GET', '/v1/users/me', { token: opened.body.access_token })
    expect(me.status).toBe(200)
  })

  test('created by the platform without a proof keeps name and sessions when the proof arrives', async () => {
    const { id } = await bring('proved-later', { display_name: 'Ada' })
    const opened = await service.call('POST', `/v1/service/users/${id}/sessions`, logins)
    const changed = await feed('PATCH', `/users/${id}`, {
      email_verified: true,
      external_id: 'proved',
    })
    expect(changed.body.display_name).toBe('Ada')
    const me = await service.call('GET', '/v1/users/me', { token: opened.body.access_token })
    expect(me.status).toBe(200)
  })

  test('does not lock out the only admin', async () => {
    await using own = await startService()
    const { token } = await own.issueKey()
    const ada = await own.register('ada')
    own.sqlite.run("UPDATE users SET role = 'user' WHERE role = 'admin'")
    own.sqlite.run("UPDATE users SET role = 'admin' WHERE id = ?", [ada.id])
    const body = { email_verified: true }
    const answer = await own.call('PATCH', `/v1/service/users/${ada.id}`, { token, body })
    expect(refusalOf(answer)).toEqual([409, 'last_admin'])
    expect((await own.login(ada.email)).id).toBe(ada.id)
  })

  test.each([{ external_id: 'of an admin' }, { email_verified: true }])(
    'of an admin is no reason for a service to lock them out: %o',
    async (proof) => {
      const ada = await service.register()
      service.sqlite.run("UPDATE users SET role = 'admin' WHERE id = ?", [ada.id])
      await service.registerAs('admin')
      const answer = await feed('PATCH', `/users/${ada.id}`, proof)
      expect(refusalOf(answer)).toEqual([403, 'role_required'])
      expect((await service.login(ada.email)).id).toBe(ada.id)
    },
  )

  test('is free again when the stranger has moved away from it', async () => {
    const thief = await service.register()
    const address = `thief${++names}@thief.example`
    const sha256 = new Bun.CryptoHasher('sha256').update(thief.id).digest('hex')
    service.sqlite.run("INSERT INTO one_time_tokens VALUES (?, 'change_email', ?, ?, ?, 0)", [
      sha256,
      thief.id,
      address,
      Date.now() + 60_000,
    ])
    const moved = await service.call('POST', '/v1/auth/email/confirm', {
      body: { token: thief.id },
    })
    expect(moved.body.user.email).toBe(address)
    expect((await feed('POST', '/users', { email: thief.email })).status).toBe(201)
  })
})

test('with REGISTRATION=off only the platform’s users and the first admin can be created', async () => {
  await using own = await startService({ environment: { REGISTRATION: 'off' } })
  const setUp = await own.accounts.offerSetUp()
  const admin = { email: 'root@example.com', password, token: setUp }
  const root = await own.call('POST', '/v1/auth/set-up', { body: admin })
  expect(root.status).toBe(201)
  const refused = await own.call('POST', '/v1/auth/register', {
    body: { email: 'ada@example.com', password },
  })
  expect(refusalOf(refused)).toEqual([403, 'registration_closed'])
  const asRoot = (path: string, body: object) =>
    own.call('POST', path, { token: root.body.access_token, body })
  await asRoot('/v1/auth/confirm', { password })
  const key = await asRoot('/v1/admin/service-keys', { name: 'platform', scopes: ['users'] })
  const token = key.body.key
  const brought = await own.call('POST', '/v1/service/users', {
    token,
    body: { email: 'ada@example.com' },
  })
  expect(brought.status).toBe(201)
  const create = ['user', 'create', '--email', 'bob@example.com', '--role', 'user']
  expect((await hostline(create, own.directory)).exitCode).toBe(0)
})

describe('`ext:` and the external id', () => {
  test('identify the user in paths, with any characters', async () => {
    for (const externalId of ['a/b?c#d', 'ext:ext', 'ä 100%', 'x'.repeat(128)]) {
      const { id } = await bring(externalId)
      expect((await feed('GET', `/users/${ext(externalId)}`)).body.id).toBe(id)
    }
    const { body } = await feed('PATCH', `/users/${ext('a/b?c#d')}`, { display_name: 'Found' })
    expect(body.display_name).toBe('Found')
    for (const unknown of [ext('nobody'), ext(''), ext('x'.repeat(129)), 'ext:%']) {
      expect((await feed('GET', `/users/${unknown}`)).status).toBe(404)
    }
  })

  test('identify a user whose creation is not stored yet', async () => {
    const creation = bring('burst')
    const { body } = await feed('PATCH', `/users/${ext('burst')}`, { role: 'host' })
    expect(body).toMatchObject({ id: (await creation).id, role: 'host' })
  })

  test('identify hosts, followers and guests', async () => {
    const [host, fan, guest] = [await bring('host'), await bring('fan'), await bring('guest')]
    await feed('PATCH', `/users/${host.id}`, { role: 'host' })
    expect((await feed('PUT', `/follows/${ext('host')}/${ext('fan')}`)).status).toBe(204)
    const follower_ids = ['ext:fan', 'ext:guest', 'ext:nobody', fan.id]
    const imported = await feed('PUT', `/follows/${ext('host')}`, { follower_ids })
    expect(imported.body).toEqual({ added: 1, already: 2, unknown: ['ext:nobody'] })
    const listed = await feed('GET', `/follows?host_id=${ext('host')}`)
    expect(listed.body.data[0]).toMatchObject({
      host_id: host.id,
      host_external_id: 'host',
      follower_id: fan.id,
      follower_external_id: 'fan',
    })
    expect((await feed('DELETE', `/follows/${host.id}/${ext('fan')}`)).status).toBe(204)
    expect((await feed('PUT', `/follows/${ext('nobody')}/${ext('fan')}`)).status).toBe(404)
    const call = { state: 'active', host_id: 'ext:host', guest_id: 'ext:guest' }
    const answered = await feed('PUT', '/calls/c1', call)
    expect(answered.body).toMatchObject({
      host_id: host.id,
      host_external_id: 'host',
      guest_id: guest.id,
      guest_external_id: 'guest',
    })
    expect((await feed('GET', '/calls')).body.data).toEqual([answered.body])
    const stranger = await feed('PUT', '/calls/c2', { ...call, guest_id: 'ext:nobody' })
    expect(stranger.body.error.details).toEqual({ guest_id: 'must be an existing user' })
  })

  test('identify the user to notify, and users in data', async () => {
    const [erik, fay] = [await bring('erik'), await bring('fay')]
    const event = { type: 'call_missed', data: { guest_id: 'ext:fay' } }
    const one = await feed('POST', '/notifications', { ...event, user_id: 'ext:erik' })
    expect(one.body.data[0].data).toEqual({ guest_id: fay.id, guest_name: fay.display_name })
    const user_ids = ['ext:erik', erik.id, 'ext:fay']
    const many = await feed('POST', '/notifications', { ...event, user_ids })
    expect(many.body.data).toHaveLength(2)
    const details = async (body: object) =>
      (await feed('POST', '/notifications', { ...event, ...body })).body.error.details
    expect(await details({ user_id: 'ext:nobody' })).toEqual({
      user_id: 'must be an existing user',
    })
    expect(await details({ user_id: 'ext:' })).toEqual({ user_id: 'must be a valid identifier' })
    expect(await details({ user_id: erik.id, data: { guest_id: 'ext:nobody' } })).toEqual({
      'data.guest_id': 'must be an existing user',
    })
  })

  test('open conversations, in sessions that the platform made', async () => {
    const [max, nora] = [await bring('max'), await bring('nora')]
    const session = await service.call('POST', `/v1/service/users/${max.id}/sessions`, logins)
    const open = (token: string, user_id: string) =>
      service.call('POST', '/v1/chat/conversations', { token, body: { user_id } })
    const token = session.body.access_token
    const { status, body } = await open(token, 'ext:nora')
    expect([status, body.participant]).toEqual([
      201,
      { id: nora.id, display_name: nora.display_name, external_id: 'nora' },
    ])
    expect((await open(token, nora.id)).body).toEqual(body)
    expect((await open(token, 'ext:nobody')).status).toBe(404)
    const oneself = await open(token, 'ext:max')
    expect(oneself.body.error.details).toEqual({ user_id: 'must be another user' })
    const stranger = await service.register()
    const refused = await open(stranger.token, 'ext:nora')
    expect(refused.body.error.details).toEqual({ user_id: 'must be a valid identifier' })
  })

  test('are no id anywhere else', async () => {
    await bring('elsewhere')
    const { token } = await service.registerAs('admin')
    const as = (method: string, path: string, body?: object) =>
      service.call(method, path, { token, body })
    expect((await as('GET', `/v1/admin/users/${ext('elsewhere')}`)).status).toBe(404)
    expect((await as('POST', '/v1/chat/conversations', { user_id: 'ext:elsewhere' })).status).toBe(
      400,
    )
    const news = { audience: 'users', user_ids: ['ext:elsewhere'], title: 't', body: 'b' }
    expect((await as('POST', '/v1/admin/notifications', news)).status).toBe(400)
  })
})

describe('sessions opened by the platform', () => {
  const open = (reference: string, token = logins.token) =>
    service.call('POST', `/v1/service/users/${reference}/sessions`, { token })

  test('log a user in like any login', async () => {
    const gina = await bring('gina')
    const { status, body } = await open(ext('gina'))
    expect([status, body.user.id, body.expires_in]).toEqual([201, gina.id, 900])
    const me = await service.call('GET', '/v1/users/me', { token: body.access_token })
    expect(me.body.email).toBe(gina.email)
    const renewed = await service.call('POST', '/v1/auth/refresh', { body })
    expect(renewed.status).toBe(200)
    const audit = service.sqlite.query(
      "SELECT actor_type FROM audit_log WHERE action = 'session_opened' AND target_id = ?",
    )
    expect(audit.all(gina.id)).toEqual([{ actor_type: 'service_key' }])
  })

  test('end when the user becomes an admin, who has to log in', async () => {
    const { id } = await bring('later-admin')
    const opened = await service.call('POST', `/v1/service/users/${id}/sessions`, logins)
    const { access_token: token, refresh_token } = opened.body
    const root = await service.registerAs('admin')
    const role = { token: root.token, body: { role: 'admin' } }
    expect((await service.call('PATCH', `/v1/admin/users/${id}`, role)).status).toBe(200)
    expect((await service.call('GET', '/v1/admin/system', { token })).status).toBe(401)
    const renewed = await service.call('POST', '/v1/auth/refresh', { body: { refresh_token } })
    expect(renewed.status).toBe(401)
    expect(refusalOf(await feed('PATCH', `/users/${id}`, { role: 'admin' }))).toEqual([
      403,
      'role_required',
    ])
  })

  test('need a scope that `all` does not contain', async () => {
    const { id } = await bring('hugo')
    expect(refusalOf(await open(id, key.token))).toEqual([403, 'scope_required'])
    const other = await service.call('GET', `/v1/service/users/${id}`, { token: logins.token })
    expect(refusalOf(other)).toEqual([403, 'scope_required'])
  })

  test('are refused for admins, and for disabled, unknown and removed users', async () => {
    const admin = await service.registerAs('admin')
    expect(refusalOf(await open(admin.id))).toEqual([403, 'role_required'])
    const { id } = await bring('ines')
    await feed('PATCH', `/users/${id}`, { disabled: true })
    expect(refusalOf(await open(id))).toEqual([403, 'recipient_gone'])
    await service.call('DELETE', `/v1/admin/users/${id}`, { token: admin.token })
    for (const nobody of [id, ext('ines'), 'x']) expect((await open(nobody)).status).toBe(404)
  })
})

test('the idempotency header is the `dedupe_key` of a notification without one', async () => {
  const { id } = await bring('jo')
  const notify = (body: object, idempotency: string) =>
    service.call('POST', '/v1/service/notifications', {
      token: key.token,
      headers: { 'x-idempotency-key': idempotency },
      body: { user_id: id, type: 'broadcast', ...body },
    })
  expect((await notify({}, 'one')).body.duplicates).toBe(0)
  expect((await notify({}, 'one')).body.duplicates).toBe(1)
  expect((await notify({ dedupe_key: 'two' }, 'one')).body.duplicates).toBe(0)
  expect((await notify({ dedupe_key: 'one' }, 'three')).body.duplicates).toBe(1)
})

describe('the people of the demo', () => {
  const ticket = { subject: 'My invoice', body: 'It is wrong.', answer: 'We have corrected it.' }
  async function begin(of: TestService, body: object = ticket) {
    const headers = { 'content-type': 'application/json' }
    return of.request('/demo/people', { method: 'POST', headers, body: JSON.stringify(body) })
  }

  test('count as no registrations, have a session each and an answered ticket, for a server’s 60 pairs an hour', async () => {
    await using own = await startService({ environment: { RATE_LIMIT_REGISTER: '1/1h' } })
    await own.register()
    const { body: made } = await readAnswer(await begin(own))
    const { left, right } = made
    expect(left.user).toMatchObject({ role: 'user', email_verified: false })
    expect(left.user.id).not.toBe(right.user.id)
    const token = left.access_token
    const { body: list } = await own.call('GET', '/v1/support/tickets', { token })
    const { body: answered } = await own.call('GET', `/v1/support/tickets/${list.data[0].id}`, {
      token,
    })
    expect(answered).toMatchObject({
      subject: 'My invoice',
      status: 'in_progress',
      messages: [{ is_admin: false }, { is_admin: true, body: 'We have corrected it.' }],
    })
    const unread = await own.call('GET', '/v1/notifications/unread-count', { token })
    expect(unread.body.count).toBe(1)
    expect((await begin(own, { ...ticket, subject: '' })).status).toBe(400)
    for (let pair = 2; pair <= 60; pair++) expect((await begin(own)).status).toBe(200)
    const refused = await begin(own)
    expect([refused.status, Number(refused.headers.get('retry-after')) > 3000]).toEqual([429, true])
  })

  test('are removed after a day with their tickets, but for one who got an address', async () => {
    const clock = createTestClock()
    await using own = await startService({ clock })
    const { left, right } = (await readAnswer(await begin(own))).body
    const { token } = await own.issueKey(['users'])
    const body = { email: 'right@example.com' }
    await own.call('PATCH', `/v1/service/users/${right.user.id}`, { token, body })
    const known = own.sqlite.query(
      'SELECT id FROM users WHERE id IN (?, ?) AND deleted_at IS NULL ORDER BY id',
    )
    const remaining = () => known.values(left.user.id, right.user.id).flat()
    clock.advance(86_399_000)
    await own.register()
    expect(remaining()).toHaveLength(2)
    clock.advance(1_000)
    await waitFor(() => remaining().length < 2)
    await waitFor(
      () => own.sqlite.query("SELECT 1 FROM outbox WHERE kind = 'guest_end'").get() === null,
    )
    expect(remaining()).toEqual([right.user.id])
    await waitFor(() => own.sqlite.query('SELECT 1 FROM tickets').get() === null)
    // A removal erases only the addresses of entries by the removed person.
    const withAddress = own.sqlite.query(
      'SELECT action FROM audit_log WHERE target_id = ? AND ip IS NOT NULL',
    )
    expect(withAddress.values(left.user.id)).toEqual([])
  })

  test('are removed after a day also if a kill interrupts their creation', async () => {
    let lasting = 0
    let find = () => {}
    const sync = async (real: () => Promise<void>) => {
      find()
      await real()
    }
    await using own = await startService({ sync })
    const people = own.sqlite.query<{ n: number }, []>(
      `SELECT count(*) AS n FROM users WHERE email LIKE '%@demo.invalid' AND external_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM outbox WHERE kind = 'guest_end' AND payload ->> 'user_id' = users.id)`,
    )
    find = () => {
      lasting += people.get()?.n ?? 0
    }
    expect((await begin(own)).status).toBe(200)
    expect(lasting).toBe(0)
  })

  test('do not exist without the demo, nor while registration is off', async () => {
    await using without = await startService({ environment: { DEMO: 'false' } })
    expect((await begin(without)).status).toBe(404)
    await using closed = await startService()
    const { token } = await closed.registerAs('admin')
    const body = { registration: 'off' }
    await closed.call('PATCH', '/v1/admin/settings', { token, body })
    const { status, headers } = await begin(closed)
    expect([status, headers.get('x-error-reason')]).toEqual([403, 'registration_closed'])
  })
})
