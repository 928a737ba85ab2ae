import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { codeOf } from './support/authenticator.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { type Answer, type Person, startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const clock = createTestClock()
const step = 30_000
const password = 'correct horse'

let service: TestService
let admins: TestService

beforeAll(async () => {
  service = await startService({ clock })
  admins = await startService({ clock, listen: true, environment: { ADMIN_TOTP: 'required' } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await admins[Symbol.asyncDispose]()
})

const refusalOf = ({ status, headers, body }: Answer) => [
  status,
  body.error.code,
  headers.get('x-error-reason'),
]
const required = [401, 'invalid_credentials', 'totp_required']
const invalid = [401, 'invalid_credentials', 'totp_invalid']

const begin = ({ token }: Person, of = service) =>
  of.call('POST', '/v1/auth/totp', { token, body: { password } })
const confirm = ({ token }: Person, code: string, of = service) =>
  of.call('POST', '/v1/auth/totp/confirm', { token, body: { code } })
const remove = ({ token }: Person, body: object, of = service) =>
  of.call('DELETE', '/v1/auth/totp', { token, body })
const renew = ({ token }: Person, body: object) =>
  service.call('POST', '/v1/auth/totp/recovery-codes', { token, body })
const login = ({ email }: Person, code?: string) =>
  service.call('POST', '/v1/auth/login', { body: { email, password, code } })
const profile = ({ token }: Person, of = service) => of.call('GET', '/v1/users/me', { token })

/** Enables a second factor and advances the clock, so that the next code differs. */
async function guard(person: Person, of = service) {
  const { secret } = (await begin(person, of)).body
  const { body } = await confirm(person, codeOf(secret, clock.now()), of)
  clock.advance(step)
  return {
    ...person,
    secret: secret as string,
    recoveryCodes: body.recovery_codes as string[],
    code: () => codeOf(secret, clock.now()),
  }
}

describe('the set-up', () => {
  test('returns a secret for an authenticator, with the names of the platform and the account', async () => {
    const ada = await service.register('ada')
    const { status, body } = await begin(ada)
    const url = new URL(body.otpauth_url)
    expect([status, body.secret]).toEqual([200, expect.stringMatching(/^[A-Z2-7]{32}$/)])
    expect(decodeURIComponent(url.pathname)).toBe('/localhost:ada@example.com')
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      issuer: 'localhost',
      secret: body.secret,
      digits: '6',
      period: '30',
    })
    const { token } = await service.registerAs('admin', 'namer')
    const name = (platform_name: string | null) =>
      service.call('PATCH', '/v1/admin/settings', { token, body: { platform_name } })
    await name('Rooms: Bath')
    const named = new URL((await begin(ada)).body.otpauth_url)
    expect(decodeURIComponent(named.pathname)).toBe('/Rooms Bath:ada@example.com')
    await name(null)
  })

  test('has no effect until a code confirms it, of any tab that began one; the others are void then', async () => {
    const bob = await service.register('bob')
    const [first, second] = [(await begin(bob)).body, (await begin(bob)).body]
    expect((await login(bob)).status).toBe(200)
    expect(refusalOf(await confirm(bob, '12345a'))).toEqual(invalid)
    expect((await profile(bob)).body.totp).toBe(false)
    const { status, body } = await confirm(bob, codeOf(first.secret, clock.now()))
    clock.advance(step)
    expect(refusalOf(await login(bob, codeOf(second.secret, clock.now())))).toEqual(invalid)
    expect((await login(bob, codeOf(first.secret, clock.now()))).status).toBe(200)
    expect([status, new Set(body.recovery_codes).size]).toEqual([200, 10])
    expect((await profile(bob)).body.totp).toBe(true)
    for (const again of [await begin(bob), await confirm(bob, '123456')]) {
      expect([again.status, again.headers.get('x-error-reason')]).toEqual([409, 'totp_exists'])
    }
  })

  test('is not confirmed by a session that ends meanwhile', async () => {
    const thief = await service.register()
    const { secret } = (await begin(thief)).body
    const { token } = await service.issueKey()
    const [ended, confirmed] = await Promise.all([
      service.call('DELETE', `/v1/service/users/${thief.id}/sessions`, { token }),
      confirm(thief, codeOf(secret, clock.now())),
    ])
    expect([ended.status, confirmed.status]).toEqual([204, 401])
    expect((await login(thief)).status).toBe(200)
  })

  test('expires after a day without confirmation; a confirmed factor stays', async () => {
    const own = createTestClock()
    await using other = await startService({ clock: own })
    const [ada, bob] = [await other.register(), await other.register()]
    await begin(ada, other)
    const { secret } = (await begin(bob, other)).body
    await confirm(bob, codeOf(secret, own.now()), other)
    const left = other.sqlite.query<{ user_id: string }, []>('SELECT user_id FROM totp_factors')
    own.advance(25 * 3_600_000)
    await waitFor(() => left.all().length < 2)
    expect(left.all()).toEqual([{ user_id: bob.id }])
  })

  test('answers 404 when there is nothing to confirm or to remove', async () => {
    const cleo = await service.register('cleo')
    expect((await confirm(cleo, '123456')).status).toBe(404)
    await begin(cleo)
    expect((await remove(cleo, { password, code: '123456' })).status).toBe(404)
  })
})

describe('logging in', () => {
  test('needs a code, and says so only after the right password', async () => {
    const dan = await guard(await service.register('dan'))
    const wrong = await service.call('POST', '/v1/auth/login', {
      body: { email: dan.email, password: 'wrong', code: dan.code() },
    })
    expect(refusalOf(wrong)).toEqual([401, 'invalid_credentials', null])
    for (const none of [undefined, '']) expect(refusalOf(await login(dan, none))).toEqual(required)
    for (const code of ['000000', 'x', dan.secret]) {
      expect(refusalOf(await login(dan, code))).toEqual(invalid)
    }
    expect((await login(dan, dan.code())).status).toBe(200)
    const body = { refresh_token: dan.refreshToken }
    expect((await service.call('POST', '/v1/auth/refresh', { body })).status).toBe(200)
  })

  test('accepts the codes of one step before and after, and none further', async () => {
    const emma = await guard(await service.register('emma'))
    clock.advance(10 * step)
    const at = (steps: number) => codeOf(emma.secret, clock.now() + steps * step)
    expect(refusalOf(await login(emma, at(-2)))).toEqual(invalid)
    expect(refusalOf(await login(emma, at(2)))).toEqual(invalid)
    for (const steps of [-1, 0, 1]) expect((await login(emma, at(steps))).status).toBe(200)
  })

  test('accepts a code once, also of two parallel requests, and none from before it', async () => {
    const finn = await guard(await service.register('finn'))
    clock.advance(10 * step)
    const code = finn.code()
    const both = await Promise.all([login(finn, code), login(finn, code)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
    expect(refusalOf(await login(finn, code))).toEqual(invalid)
    const older = codeOf(finn.secret, clock.now() - step)
    expect(refusalOf(await login(finn, older))).toEqual(invalid)
  })

  test('accepts each recovery code once, however it is typed', async () => {
    const gina = await guard(await service.register('gina'))
    const [first = '', second = ''] = gina.recoveryCodes
    expect(first).toMatch(/^([a-z2-7]{4}-){5}[a-z2-7]{4}$/)
    expect((await login(gina, first)).status).toBe(200)
    expect(refusalOf(await login(gina, first))).toEqual(invalid)
    const typed = ` ${second.replaceAll('-', ' ').toUpperCase()}`
    expect((await login(gina, typed)).status).toBe(200)
  })

  test('refuses the code of another user; users without a factor need none', async () => {
    const [hugo, ines] = [
      await guard(await service.register('hugo')),
      await guard(await service.register('ines')),
    ]
    expect(refusalOf(await login(hugo, ines.code()))).toEqual(invalid)
    expect(refusalOf(await login(hugo, ines.recoveryCodes[0]))).toEqual(invalid)
    expect((await login(await service.register('jo'), '123456')).status).toBe(200)
  })

  test('a new password keeps the factor', async () => {
    const kim = await guard(await service.registerAs('verified_user', 'kim'))
    await service.call('POST', '/v1/auth/password/forgot', { body: { email: kim.email } })
    const token = await waitFor(() => {
      clock.advance(500)
      return /.*reset-password\?lang=en#token=([\w-]{43})/s.exec(service.log())?.[1]
    })
    const body = { token, password }
    expect((await service.call('POST', '/v1/auth/password/reset', { body })).status).toBe(204)
    expect(refusalOf(await login(kim))).toEqual(required)
  })
})

test('wrong codes are counted like wrong passwords, in a session too', async () => {
  await using strict = await startService({ clock, environment: { RATE_LIMIT_LOGIN: '1000/1m' } })
  const lea = await guard(await strict.register('lea'), strict)
  const inSession = () => remove(lea, { password, code: '000000' }, strict)
  for (let n = 0; n < 20; n++) {
    await inSession()
    clock.advance(6_001)
  }
  const { headers, body } = await inSession()
  expect(headers.get('x-error-reason')).toBe('login_throttled')
  expect(body.error.message).toContain('too many wrong passwords or codes')
  const audit = strict.sqlite.query<{ n: number }, []>(
    "SELECT count(*) AS n FROM audit_log WHERE action = 'totp_refused'",
  )
  expect(audit.get()?.n).toBe(20)
})

test('wrong codes slow down logins from elsewhere; the right password does not reset the count', async () => {
  const environment = { RATE_LIMIT_LOGIN: '1000/1m', TRUSTED_PROXIES: '127.0.0.1' }
  await using strict = await startService({ clock, listen: true, environment })
  const mia = await guard(await strict.register('mia'), strict)
  const attempt = (code?: string) =>
    strict.call('POST', '/v1/auth/login', {
      body: { email: mia.email, password, code },
      headers: { 'x-forwarded-for': '203.0.113.9' },
    })
  for (let n = 0; n < 10; n++) {
    expect(refusalOf(await attempt('000000'))).toEqual(invalid)
    expect(refusalOf(await attempt())).toEqual(required)
  }
  expect(refusalOf(await attempt(mia.code()))).toEqual([429, 'rate_limited', 'login_throttled'])
})

describe('renewing the recovery codes', () => {
  test('voids the old ones, and answers a repeated request with new ones again', async () => {
    const rita = await guard(await service.register('rita'))
    const renewed = await renew(rita, { password, code: rita.code() })
    const [first] = renewed.body.recovery_codes
    expect([renewed.status, new Set(renewed.body.recovery_codes).size]).toEqual([200, 10])
    for (const old of rita.recoveryCodes) expect(refusalOf(await login(rita, old))).toEqual(invalid)
    expect((await login(rita, first)).status).toBe(200)
    clock.advance(step)
    const again = (await renew(rita, { password, code: rita.code() })).body.recovery_codes
    const [unseen] = renewed.body.recovery_codes.slice(1)
    expect(refusalOf(await login(rita, unseen))).toEqual(invalid)
    expect((await login(rita, again[0])).status).toBe(200)
    const rows = service.sqlite.query(
      "SELECT 1 FROM audit_log WHERE action = 'recovery_codes_renewed' AND actor_id = ?",
    )
    expect(rows.all(rita.id)).toHaveLength(2)
    expect((await profile(rita)).body.totp).toBe(true)
  })

  test('needs the password and an unused code of the authenticator; a refusal changes nothing', async () => {
    const sara = await guard(await service.register('sara'))
    const [recoveryCode] = sara.recoveryCodes
    const wrong = await renew(sara, { password: 'wrong', code: sara.code() })
    expect(refusalOf(wrong)).toEqual([401, 'invalid_credentials', null])
    expect((await renew(sara, { code: sara.code() })).status).toBe(403)
    for (const code of ['000000', recoveryCode]) {
      expect(refusalOf(await renew(sara, { password, code }))).toEqual(invalid)
    }
    expect((await login(sara, recoveryCode)).status).toBe(200)
    const body = { password, code: sara.code() }
    const both = await Promise.all([renew(sara, body), renew(sara, body)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
    expect((await renew(await service.register(), body)).status).toBe(404)
  })
})

describe('removing', () => {
  test('needs the password and a code', async () => {
    const nina = await guard(await service.register('nina'))
    const wrong = await remove(nina, { password: 'wrong', code: nina.code() })
    expect(refusalOf(wrong)).toEqual([401, 'invalid_credentials', null])
    expect(refusalOf(await remove(nina, { password, code: '000000' }))).toEqual(invalid)
    expect((await remove(nina, { password, code: nina.code() })).status).toBe(204)
    expect((await profile(nina)).body.totp).toBe(false)
    expect((await login(nina)).status).toBe(200)
  })

  test('accepts a recovery code, too; the secret and the other codes are gone', async () => {
    const otto = await guard(await service.register('otto'))
    expect((await remove(otto, { password, code: otto.recoveryCodes[9] })).status).toBe(204)
    const left = ['totp_factors', 'recovery_codes'].flatMap((table) =>
      service.sqlite.query(`SELECT 1 FROM ${table} WHERE user_id = ?`).all(otto.id),
    )
    expect(left).toEqual([])
  })

  test('is done by an operator when both are lost; a reset keeps the factor', async () => {
    const pia = await guard(await service.register('pia'))
    await hostline(['user', 'reset', pia.email], service.directory)
    expect((await profile(pia)).body.totp).toBe(true)
    const done = await hostline(['user', 'totp-off', pia.email], service.directory)
    expect([done.exitCode, done.out]).toEqual([0, `${pia.email} logs in with only the password`])
    expect((await login(pia)).status).toBe(200)
    const again = await hostline(['user', 'totp-off', pia.email], service.directory)
    expect([again.exitCode, again.err]).toEqual([
      1,
      `hostline: there is no account ${pia.email} with a second factor`,
    ])
  })
})

describe('confirming a session', () => {
  const counting = { clock, environment: { RATE_LIMIT_LOGIN: '1000/1m' } }
  const prove = ({ token }: Person, body: object) =>
    service.call('POST', '/v1/auth/confirm', { token, body })

  test('needs the password, and changes nothing', async () => {
    const tess = await service.register('tess')
    const before = await profile(tess)
    const { status, body } = await prove(tess, { password })
    expect([status, body]).toEqual([204, ''])
    const wrong = refusalOf(await prove(tess, { password: 'wrong' }))
    expect(wrong).toEqual([401, 'invalid_credentials', null])
    expect((await profile(tess)).body).toEqual(before.body)
    expect((await service.call('POST', '/v1/auth/confirm', { body: { password } })).status).toBe(
      401,
    )
  })

  test('accepts a code of the authenticator once, which is used up then', async () => {
    const ugo = await guard(await service.register('ugo'))
    const code = ugo.code()
    expect(refusalOf(await prove(ugo, { code: '000000' }))).toEqual(invalid)
    expect((await prove(ugo, { code: `${code.slice(0, 3)} ${code.slice(3)}` })).status).toBe(204)
    expect(refusalOf(await prove(ugo, { code }))).toEqual(invalid)
    expect(refusalOf(await login(ugo, code))).toEqual(invalid)
    expect((await prove(ugo, { password })).status).toBe(204)
  })

  test('accepts no recovery code, which stays valid, and no code of an unconfirmed factor', async () => {
    const [vera, walt] = [
      await guard(await service.register('vera')),
      await service.register('walt'),
    ]
    const [recoveryCode] = vera.recoveryCodes
    expect(refusalOf(await prove(vera, { code: recoveryCode }))).toEqual(invalid)
    expect(refusalOf(await prove(vera, { code: '①②③④⑤⑥' }))).toEqual(invalid)
    expect((await login(vera, recoveryCode)).status).toBe(200)
    const unknown = [401, 'invalid_credentials', 'code_invalid']
    expect(refusalOf(await prove(walt, { code: '123456' }))).toEqual(unknown)
    const { secret } = (await begin(walt)).body
    expect(refusalOf(await prove(walt, { code: codeOf(secret, clock.now()) }))).toEqual(unknown)
    expect((await confirm(walt, codeOf(secret, clock.now()))).status).toBe(200)
  })

  test.each([{}, { password, code: '123456' }, { password: null }, { password: '', code: '' }])(
    'accepts exactly one of the two: %j',
    async (body) => {
      const answer = await prove(await service.register(), body)
      const details = { body: 'must have either a password or a code' }
      expect([answer.status, answer.body.error.details]).toEqual([400, details])
    },
  )

  test('counts and records wrong passwords with those of the same session', async () => {
    await using strict = await startService(counting)
    const [xena, other] = [await strict.register('xena'), await strict.register()]
    const ask = ({ token }: Person, body: object) =>
      strict.call('POST', '/v1/auth/confirm', { token, body })
    for (let n = 0; n < 20; n++) {
      await ask(xena, { password: 'wrong' })
      clock.advance(6_001)
    }
    const throttled = [429, 'rate_limited', 'login_throttled']
    expect(refusalOf(await ask(xena, { password }))).toEqual(throttled)
    const change = { current_password: password, new_password: password }
    const { token } = xena
    const elsewhere = await strict.call('POST', '/v1/auth/password/change', { token, body: change })
    expect(refusalOf(elsewhere)).toEqual(throttled)
    expect((await ask(other, { password })).status).toBe(204)
    const kept = "SELECT count(*) AS n FROM audit_log WHERE action = 'password_refused'"
    expect(strict.sqlite.query(kept).get()).toEqual({ n: 20 })
  })

  test('counts and records wrong codes with those of the same account', async () => {
    await using strict = await startService(counting)
    const yara = await guard(await strict.register('yara'), strict)
    const ask = (code: string) =>
      strict.call('POST', '/v1/auth/confirm', { token: yara.token, body: { code } })
    for (let n = 0; n < 20; n++) {
      await ask('000000')
      clock.advance(6_001)
    }
    const throttled = [429, 'rate_limited', 'login_throttled']
    expect(refusalOf(await ask(yara.code()))).toEqual(throttled)
    expect(refusalOf(await remove(yara, { password, code: yara.code() }, strict))).toEqual(
      throttled,
    )
    const kept = "SELECT count(*) AS n FROM audit_log WHERE action = 'totp_refused'"
    expect(strict.sqlite.query(kept).get()).toEqual({ n: 20 })
  })
})

test('no secret is in the log or the audit log, and codes are stored as hashes', async () => {
  const rosa = await guard(await service.register('rosa'))
  await login(rosa, rosa.recoveryCodes[0])
  const tables = ['audit_log', 'outbox', 'recovery_codes']
  const kept = JSON.stringify(tables.map((t) => service.sqlite.query(`SELECT * FROM ${t}`).all()))
  const secrets = [rosa.secret, ...rosa.recoveryCodes.flatMap((c) => [c, c.replaceAll('-', '')])]
  expect(secrets.filter((it) => kept.includes(it) || service.log().includes(it))).toEqual([])
  const actions = service.sqlite
    .query<{ action: string }, [string]>('SELECT action FROM audit_log WHERE target_id = ?')
    .all(rosa.id)
  expect(actions.map(({ action }) => action)).toContain('totp_enabled')
})

describe('with ADMIN_TOTP=required', () => {
  const list = ({ token }: Person) => admins.call('GET', '/v1/admin/users', { token })
  const report = async () => {
    const { token } = await admins.register()
    const body = { subject: 'Help', body: 'Me' }
    await admins.call('POST', '/v1/support/tickets', { token, body })
  }

  test('an admin without a factor has no admin routes, and can set one up', async () => {
    const sam = await admins.registerAs('admin')
    expect(refusalOf(await list(sam))).toEqual([403, 'forbidden', 'totp_required'])
    expect(refusalOf(await list(await admins.register()))[2]).toBe('role_required')
    const guarded = await guard(sam, admins)
    expect((await list(sam)).status).toBe(200)
    await remove(sam, { password, code: guarded.code() }, admins)
    expect((await list(sam)).status).toBe(403)
  })

  test('removing the factor ends the admin frames at once', async () => {
    const tom = await admins.registerAs('admin')
    const without = await admins.connect(tom, '&events=support')
    await report()
    await without.settled()
    expect(without.frames.filter(({ type }) => type === 'ticket_created')).toEqual([])
    const guarded = await guard(tom, admins)
    expect(await without.closed).toBe(4403)
    const socket = await admins.connect(tom, '&events=support')
    await report()
    await socket.next('ticket_created')
    await remove(tom, { password, code: guarded.code() }, admins)
    expect(await socket.closed).toBe(4403)
  })

  test('other sockets stay open when a factor is added or removed', async () => {
    const una = await admins.register()
    const socket = await admins.connect(una)
    const guarded = await guard(una, admins)
    await remove(una, { password, code: guarded.code() }, admins)
    await socket.settled()
    socket.close()
  })

  test('a command beside the server affects sockets, too', async () => {
    await using own = await startService({ listen: true, environment: { ADMIN_TOTP: 'required' } })
    const vic = await own.registerAs('admin')
    own.sqlite.run("INSERT INTO totp_factors VALUES (?, 'AAAA', 1, 0, 1, 0)", [vic.id])
    const socket = await own.connect(vic, '&events=support')
    await hostline(['user', 'totp-off', vic.email], own.directory)
    expect(await socket.closed).toBe(4403)
  })
})

test('a warning names admins without a factor', async () => {
  await using own = await startService({ clock })
  const root = await own.registerAs('admin')
  const codes = async () =>
    (await own.call('GET', '/v1/admin/system', { token: root.token })).body.warnings.map(
      ({ code }: { code: string }) => code,
    )
  const check = async () => (await hostline(['check'], own.directory)).out
  expect(await codes()).toContain('no_admin_totp')
  expect(await check()).toContain('warn   admins: 1 without a second factor')
  await guard(root, own)
  expect(await codes()).not.toContain('no_admin_totp')
  expect(await check()).toContain('ok     admins: all with a second factor')
})
