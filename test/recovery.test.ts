import { describe, expect, test } from 'bun:test'
import { createPasswords } from '../src/modules/accounts/sign-in/passwords.ts'
import { codeOf } from './support/authenticator.ts'
import { createTestClock } from './support/clock.ts'
import { startMailServer } from './support/mail.ts'
import { type Person, startService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { waitFor } from './support/wait.ts'

/** A service with a real SMTP server, and jobs on the machine's clock. */
async function startWithMail(options: Parameters<typeof startService>[0] = {}) {
  const mail = await startMailServer()
  const environment = {
    SMTP_URL: mail.url,
    PUBLIC_URL: 'https://chat.example.com',
    ...options.environment,
  }
  const service = await startService({ ...options, environment })
  return {
    mail,
    service,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await mail[Symbol.asyncDispose]()
    },
  }
}

type Started = Pick<Awaited<ReturnType<typeof startWithMail>>, 'mail' | 'service'>

const anyService = shared(() => startService())
const anyWithMail = shared(() => startWithMail())

const tokenOf = (link: string) => new URL(link).hash.slice('#token='.length)
const guessable = 'must not be one of the commonest passwords, nor your own address or name'
const badToken = { token: 'is not valid, has expired or was already used' }

async function isIn({ service }: Started, { token }: { token: string }) {
  return (await service.call('GET', '/v1/users/me', { token })).status === 200
}

async function forgot({ service, mail }: Started, { email }: { email: string }) {
  const answer = await service.call('POST', '/v1/auth/password/forgot', { body: { email } })
  expect(answer.status).toBe(204)
  return tokenOf((await mail.next(email)).link)
}

/** Registers and drops the first mail. */
async function join({ service, mail }: Started, name?: string): Promise<Person> {
  const person = await service.register(name)
  await mail.next(person.email)
  return person
}

describe('the verification mail', () => {
  test('is sent after a registration, with a link to this server only', async () => {
    const started = await anyWithMail()
    const { service, mail } = started
    const person = await service.register('ada')
    const received = await mail.next(person.email)
    expect(received).toMatchObject({ to: 'ada@example.com', from: 'noreply@chat.example.com' })
    expect(received.link).toMatch(
      /^https:\/\/chat\.example\.com\/verify-email\?lang=en#token=[\w-]{43}$/,
    )
    expect(received.raw).toContain('Subject: Confirm your e-mail address')
    expect(received.raw).toContain('text/html')
    const body = { token: tokenOf(received.link) }
    const answer = await service.call('POST', '/v1/auth/verify-email', { body })
    expect(answer.status).toBe(200)
    expect(answer.body.user).toMatchObject({
      id: person.id,
      email_verified: true,
      role: 'verified_user',
    })
  })

  test('is in the language of the registration', async () => {
    const started = await anyWithMail()
    const body = { email: 'rita@example.com', password: 'correct horse' }
    const headers = { 'accept-language': 'pt-BR' }
    await started.service.call('POST', '/v1/auth/register', { body, headers })
    const { raw, link } = await started.mail.next(body.email)
    expect(raw).toContain('Subject: Confirme o seu e-mail')
    expect(link).toContain('?lang=pt#')
  })

  test('works once, and only its hash is kept', async () => {
    const started = await anyWithMail()
    const { service, mail } = started
    const { email } = await service.register()
    const token = tokenOf((await mail.next(email)).link)
    const dump = JSON.stringify([
      service.sqlite.query('SELECT * FROM one_time_tokens').all(),
      service.sqlite.query('SELECT * FROM outbox').all(),
      service.sqlite.query('SELECT * FROM audit_log').all(),
    ])
    expect(dump).not.toContain(token)
    const verify = () => service.call('POST', '/v1/auth/verify-email', { body: { token } })
    expect((await verify()).status).toBe(200)
    expect(await verify()).toMatchObject({ status: 400, body: { error: { details: badToken } } })
  })

  test('fails after 24 hours, for another purpose, or for another address', async () => {
    const clock = createTestClock()
    await using started = await startWithMail({ clock })
    const { service, mail } = started
    const run = async () => {
      clock.advance(1_000)
      return tokenOf((await mail.next()).link)
    }
    const verify = async (token: string) =>
      (await service.call('POST', '/v1/auth/verify-email', { body: { token } })).status
    await service.register('ada')
    const late = await run()
    clock.advance(24 * 3_600_000)
    expect(await verify(late)).toBe(400)
    const bob = await service.register('bob')
    const old = await run()
    service.sqlite.run("UPDATE users SET email = 'new@example.com' WHERE id = ?", [bob.id])
    expect(await verify(old)).toBe(400)
    await service.call('POST', '/v1/auth/password/forgot', { body: { email: 'new@example.com' } })
    expect(await verify(await run())).toBe(400)
  })

  test.each(['', 'x', "' OR 1=1", 'A'.repeat(10_000)])('is not replaced by %j', async (token) => {
    const started = await anyWithMail()
    const answer = await started.service.call('POST', '/v1/auth/verify-email', { body: { token } })
    expect([answer.status, answer.body.error.details]).toEqual([400, badToken])
  })

  test('can be requested again once a minute and five times a day, the first one included', async () => {
    const clock = createTestClock()
    await using started = await startWithMail({ clock })
    const { token } = await started.service.register()
    const resend = async () => {
      const answer = await started.service.call('POST', '/v1/auth/verify-email/resend', { token })
      return [answer.status, Number(answer.headers.get('retry-after')) || null]
    }
    expect(await resend()).toEqual([429, 60])
    const later: unknown[] = []
    for (let n = 0; n < 5; n++) {
      clock.advance(61_000)
      later.push((await resend())[0])
    }
    expect(later).toEqual([204, 204, 204, 204, 429])
  })

  test('is not sent again for a verified address, and a host stays a host', async () => {
    await using started = await startWithMail()
    const { service, mail } = started
    const ada = await service.register()
    service.sqlite.run("UPDATE users SET role = 'host' WHERE id = ?", [ada.id])
    const body = { token: tokenOf((await mail.next()).link) }
    const { user } = (await service.call('POST', '/v1/auth/verify-email', { body })).body
    expect(user).toMatchObject({ role: 'host', email_verified: true })
    const again = await service.call('POST', '/v1/auth/verify-email/resend', { token: ada.token })
    expect(again.status).toBe(204)
    expect(service.sqlite.query('SELECT count(*) n FROM outbox').get()).toEqual({ n: 0 })
  })
})

describe('a forgotten password', () => {
  test('is reset with the mailed token: every session ends, and the new password is valid', async () => {
    const started = await anyWithMail()
    const { service } = started
    const laptop = await join(started)
    const phone = await service.login(laptop.email)
    const body = { token: await forgot(started, laptop), password: 'brand new horse' }
    expect((await service.call('POST', '/v1/auth/password/reset', { body })).status).toBe(204)
    expect([await isIn(started, laptop), await isIn(started, phone)]).toEqual([false, false])
    const login = (password: string) =>
      service.call('POST', '/v1/auth/login', { body: { email: laptop.email, password } })
    expect((await login('correct horse')).status).toBe(401)
    expect((await login('brand new horse')).status).toBe(200)
    expect((await started.mail.next(laptop.email)).raw).toContain(
      'Subject: Your password was changed',
    )
    const again = await service.call('POST', '/v1/auth/password/reset', { body })
    expect(again.body.error.details).toEqual(badToken)
  })

  test('is not reset to one that is easily guessed, and the token stays valid', async () => {
    const started = await anyWithMail()
    const ada = await join(started, 'adalovelace')
    const token = await forgot(started, ada)
    const reset = (password: string) =>
      started.service.call('POST', '/v1/auth/password/reset', { body: { token, password } })
    for (const password of ['baseball', 'AdaLovelace', ada.email]) {
      const answer = await reset(password)
      expect([answer.status, answer.body.error.details]).toEqual([400, { password: guessable }])
    }
    expect((await reset('brand new horse')).status).toBe(204)
  })

  test('gets the same response for an unknown address, which gets no mail', async () => {
    await using started = await startWithMail()
    const { service, mail } = started
    const ada = await join(started, 'ada')
    for (const email of ['nobody@example.com', 'no address', 'ADA@example.com']) {
      const answer = await service.call('POST', '/v1/auth/password/forgot', { body: { email } })
      expect([answer.status, answer.body]).toEqual([204, ''])
    }
    expect((await mail.next()).to).toBe(ada.email)
    expect(mail.mails).toEqual([])
    const missing = await service.call('POST', '/v1/auth/password/forgot', { body: {} })
    expect(missing.body.error.details).toEqual({ email: 'is required' })
  })

  test('cannot be reset after 30 minutes or to a short one', async () => {
    const clock = createTestClock()
    await using started = await startWithMail({ clock })
    const { service, mail } = started
    await service.register('ada')
    clock.advance(1_000)
    await mail.next()
    await service.call('POST', '/v1/auth/password/forgot', { body: { email: 'ada@example.com' } })
    clock.advance(1_000)
    const token = tokenOf((await mail.next()).link)
    const reset = (password: string) =>
      service.call('POST', '/v1/auth/password/reset', { body: { token, password } })
    expect((await reset('short')).body.error.details).toEqual({
      password: 'must have at least 8 characters',
    })
    clock.advance(30 * 60_000)
    expect((await reset('long enough')).body.error.details).toEqual(badToken)
  })

  test('does not flood a mailbox', async () => {
    await using started = await startWithMail()
    const ada = await join(started, 'ada')
    await forgot(started, ada)
    await Promise.all(
      [1, 2, 3, 4, 5, 6].map(() =>
        started.service.call('POST', '/v1/auth/password/forgot', { body: { email: ada.email } }),
      ),
    )
    const { sqlite } = started.service
    await waitFor(() => sqlite.query('SELECT 1 FROM outbox').get() === null, 'an empty outbox')
    expect(started.mail.mails).toEqual([])
  })
})

describe('changing the password', () => {
  const change = (started: Started, { token }: Person, current: string, next: string) =>
    started.service.call('POST', '/v1/auth/password/change', {
      token,
      body: { current_password: current, new_password: next },
    })

  test('ends the other sessions and keeps this one', async () => {
    const started = await anyWithMail()
    const laptop = await join(started)
    const phone = await started.service.login(laptop.email)
    expect((await change(started, laptop, 'correct horse', 'brand new horse')).status).toBe(204)
    expect([await isIn(started, laptop), await isIn(started, phone)]).toEqual([true, false])
    const body = { refresh_token: laptop.refreshToken }
    expect((await started.service.call('POST', '/v1/auth/refresh', { body })).status).toBe(200)
  })

  test('with the old password cannot win against a reset', async () => {
    await using started = await startWithMail({
      passwordCost: { memoryKibibytes: 8_192, iterations: 2 },
    })
    const { service } = started
    const ada = await join(started, 'ada')
    const token = await forgot(started, ada)
    const reset = service.call('POST', '/v1/auth/password/reset', {
      body: { token, password: "the owner's new one" },
    })
    const stolen = change(started, ada, 'correct horse', "the thief's new one")
    expect((await reset).status).toBe(204)
    expect((await stolen).status).toBe(401)
    const body = { email: ada.email, password: "the owner's new one" }
    expect((await service.call('POST', '/v1/auth/login', { body })).status).toBe(200)
  })

  test('to one that is easily guessed is refused', async () => {
    const started = await anyWithMail()
    const ada = await join(started)
    await started.service.call('PATCH', '/v1/users/me', {
      token: ada.token,
      body: { display_name: 'Ada Lovelace' },
    })
    for (const password of ['1Q2W3E4R', 'ada lovelace', ada.email]) {
      const answer = await change(started, ada, 'correct horse', password)
      const details = { new_password: guessable }
      expect([answer.status, answer.body.error.details]).toEqual([400, details])
    }
    expect((await change(started, ada, 'wrong horse', 'baseball')).status).toBe(401)
    expect(await isIn(started, ada)).toBe(true)
  })

  test('slows parallel guesses down like successive ones', async () => {
    await using service = await startService({ environment: { RATE_LIMIT_LOGIN: '1000/15m' } })
    const { token } = await service.register()
    const body = { current_password: 'a wrong guess', new_password: 'brand new horse' }
    const answers = await Promise.all(
      Array.from({ length: 60 }, () =>
        service.call('POST', '/v1/auth/password/change', { token, body }),
      ),
    )
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(20)
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(40)
    const rows = service.sqlite
      .query("SELECT count(*) n FROM audit_log WHERE action = 'password_refused'")
      .get()
    expect(rows).toEqual({ n: answers.filter(({ status }) => status === 401).length })
  })

  test('needs the current one', async () => {
    const started = await anyWithMail()
    const ada = await join(started)
    const wrong = await change(started, ada, 'wrong horse', 'brand new horse')
    expect([wrong.status, wrong.body.error.code]).toEqual([401, 'invalid_credentials'])
    const short = await change(started, ada, 'correct horse', 'short')
    expect(short.body.error.details).toEqual({ new_password: 'must have at least 8 characters' })
  })
})

test('a reset and an undone change of address close every socket, a change of the password those of the other sessions', async () => {
  await using started = await startWithMail({ listen: true })
  const { service, mail } = started
  const laptop = await join(started, 'ada')
  const phone = await service.login(laptop.email)
  const [onLaptop, onPhone] = [await service.connect(laptop), await service.connect(phone)]
  const body = { current_password: 'correct horse', new_password: 'brand new horse' }
  await service.call('POST', '/v1/auth/password/change', { token: laptop.token, body })
  expect(await onPhone.closed).toBe(4403)
  await onLaptop.settled()
  const token = await forgot(started, laptop)
  const password = 'correct horse'
  await service.call('POST', '/v1/auth/password/reset', { body: { token, password } })
  expect(await onLaptop.closed).toBe(4403)
  const again = await service.login(laptop.email)
  const socket = await service.connect(again)
  const mailed = (page: string) =>
    waitFor(() => mail.mails.find(({ link }) => link.includes(`/${page}?`)), page)
  const call = (path: string, of: object) =>
    service.call('POST', `/v1/auth/email/${path}`, { token: again.token, body: of })
  await call('change', { new_email: 'ada@new.example', password })
  await call('confirm', { token: tokenOf((await mailed('change-email')).link) })
  await socket.settled()
  await call('undo', { token: tokenOf((await mailed('undo-email')).link) })
  expect(await socket.closed).toBe(4403)
})

describe('guessing', () => {
  const environment = { RATE_LIMIT_LOGIN: '1000/15m', TRUSTED_PROXIES: '127.0.0.1' }
  const login = (service: Started['service'], from: string, email: string, password: string) =>
    service.call('POST', '/v1/auth/login', {
      headers: { 'x-forwarded-for': from },
      body: { email, password },
    })
  const guess = (service: Started['service'], email: string, password = 'wrong horse') =>
    login(service, '203.0.113.9', email, password)

  test.each(['ada@example.com', 'nobody@example.com'])(
    'at %s is slowed down after 20 failures to one try a minute, never locked',
    async (email) => {
      const clock = createTestClock()
      await using service = await startService({
        clock,
        environment,
        listen: true,
      })
      await service.register('ada')
      for (let n = 0; n < 20; n++) expect((await guess(service, email)).status).toBe(401)
      const slowed = await guess(service, email)
      expect([slowed.status, slowed.headers.get('retry-after')]).toEqual([429, '60'])
      clock.advance(60_000)
      expect((await guess(service, email)).status).toBe(401)
      expect((await guess(service, email, 'correct horse')).status).toBe(429)
      clock.setBack(30 * 86_400_000)
      expect((await guess(service, email)).headers.get('retry-after')).toBe('60')
      clock.advance(60_000)
      const right = await guess(service, email, 'correct horse')
      expect(right.status).toBe(email.startsWith('ada') ? 200 : 401)
    },
  )

  test('does not slow down known login places, not even those of a neighbour in the same /64', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, environment, listen: true })
    const { email } = await service.register('ada')
    expect((await login(service, '2001:db8:1::5', email, 'correct horse')).status).toBe(200)
    for (let n = 0; n < 20; n++) await guess(service, email)
    const from = async (ip: string) => (await login(service, ip, email, 'correct horse')).status
    expect(await from('198.51.100.7')).toBe(429)
    expect(await from('2001:db8:1:1::5')).toBe(429)
    expect(await from('2001:db8:1::77')).toBe(200)
  })

  test('slows down a known place after 30 days without a login', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, environment, listen: true })
    const { email } = await service.register('ada')
    clock.advance(31 * 86_400_000)
    for (let n = 0; n < 20; n++) await guess(service, email)
    expect((await login(service, '127.0.0.1', email, 'correct horse')).status).toBe(429)
  })

  test('does not slow down a confirmation in a session; a thief of one is slowed down in that one', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, environment, listen: true })
    const ada = await service.register('ada')
    const other = await service.login(ada.email)
    for (let n = 0; n < 21; n++) await guess(service, ada.email)
    const confirm = (token: string, password: string) =>
      service.call('DELETE', '/v1/users/me', { token, body: { password } })
    for (let n = 0; n < 20; n++) {
      expect((await confirm(other.token, 'wrong horse')).status).toBe(401)
      clock.advance(6_001)
    }
    const thief = await confirm(other.token, 'correct horse')
    expect([thief.status, thief.headers.get('x-error-reason')]).toEqual([429, 'login_throttled'])
    expect((await confirm(ada.token, 'correct horse')).status).toBe(204)
  })

  test('from one network is not reset when the owner logs in from another', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, environment, listen: true })
    const { email } = await service.register('ada')
    const right = (from: string) => login(service, from, email, 'correct horse')
    expect((await right('2001:db8:1::5')).status).toBe(200)
    for (let n = 0; n < 19; n++) await guess(service, email)
    await login(service, '2001:db8:1::6', email, 'correct hoarse')
    expect((await right('2001:db8:1::7')).status).toBe(200)
    expect((await guess(service, email)).status).toBe(401)
    expect((await guess(service, email)).status).toBe(429)
    expect((await right('2001:db8:1::5')).status).toBe(200)
  })

  test('does not slow down a user who has set a new password there', async () => {
    await using started = await startWithMail({ environment, listen: true })
    const { service } = started
    const ada = await join(started, 'ada')
    for (let n = 0; n < 20; n++) await guess(service, ada.email)
    const [token, from] = [await forgot(started, ada), { 'x-forwarded-for': '198.51.100.7' }]
    const body = { token, password: 'brand new horse' }
    await service.call('POST', '/v1/auth/password/reset', { body, headers: from })
    const back = await login(service, '198.51.100.7', ada.email, 'brand new horse')
    expect([back.status, (await guess(service, ada.email)).status]).toEqual([200, 429])
  })

  test('is not slowed down when login limits are off', async () => {
    const service = await anyService()
    for (let n = 0; n < 22; n++) {
      expect((await guess(service, 'ada@example.com')).status).toBe(401)
    }
  })
})

describe('hashing', () => {
  /** Records passwords and hashes none until it is released. */
  function startHasher() {
    const asked: string[] = []
    const ends: Array<() => void> = []
    let isOpen = true
    const turn = async (password: string) => {
      asked.push(password)
      if (!isOpen) await new Promise<void>((resolve) => ends.push(resolve))
      return password
    }
    const hasher = {
      hash: async (password: string) => `$argon2id$${await turn(password)}`,
      verify: async (password: string, hash: string) => hash.endsWith(`$${await turn(password)}`),
    }
    const end = () => ends.shift()?.()
    const open = (value: boolean) => {
      isOpen = value
    }
    const passwordCost = { memoryKibibytes: 64, iterations: 1, hasher: hasher as never }
    return { asked, ends, end, open, passwordCost }
  }

  test('a login overtakes waiting confirmations', async () => {
    const { asked, ends, end, open, passwordCost } = startHasher()
    await using service = await startService({ passwordCost })
    const [ada, eve] = [await service.register('ada'), await service.register('eve')]
    open(false)
    asked.length = 0
    const call = (path: string, body: object, token?: string) =>
      service.call('POST', `/v1/auth/${path}`, { token, body })
    const waiting = Array.from({ length: 9 }, () => call('confirm', { password: 'x' }, eve.token))
    await waitFor(() => ends.length > 0)
    await call('login', {}) // meanwhile the others have come as far
    const login = call('login', { email: ada.email, password: 'correct horse' })
    await call('login', {})
    open(true)
    while (ends.length > 0) end()
    expect((await login).status).toBe(200)
    await Promise.all(waiting)
    expect(asked.indexOf('correct horse')).toBeLessThan(9)
  })

  test('takes as long for an empty password, which the runtime would refuse at once', async () => {
    const { asked, passwordCost } = startHasher()
    expect(await createPasswords(passwordCost).matches('', undefined)).toBe(false)
    expect(asked).toEqual([expect.stringMatching(/./s)])
  })

  test('during which the session ends is refused for that', async () => {
    const { ends, end, open, passwordCost } = startHasher()
    await using service = await startService({ passwordCost })
    const { token, refreshToken } = await service.register('ada')
    const call = (path: string, body: object) =>
      service.call('POST', `/v1/auth/${path}`, { token, body })
    open(false)
    const waiting = call('confirm', { password: 'correct horse' })
    await waitFor(() => ends.length > 0)
    await call('logout', { refresh_token: refreshToken })
    end()
    const { status, headers } = await waiting
    expect([status, headers.get('x-error-reason')]).toEqual([401, 'session_ended'])
  })

  test('during which the account is removed leaves no client address in the audit log', async () => {
    const { ends, end, open, passwordCost } = startHasher()
    await using service = await startService({ passwordCost })
    const admin = await service.registerAs('admin')
    const { id, email, token } = await service.register('ada')
    service.sqlite.run(
      "INSERT INTO totp_factors (user_id, secret, confirmed_at, created_at) VALUES (?, 'A', 1, 1)",
      [id],
    )
    open(false)
    const wrong = { email, password: 'wrong horse' }
    const proof = { password: 'correct horse', code: '123456' }
    const waiting = [
      service.call('POST', '/v1/auth/login', { body: wrong }),
      service.call('POST', '/v1/auth/confirm', { token, body: wrong }),
      service.call('DELETE', '/v1/auth/totp', { token, body: proof }),
    ]
    await waitFor(() => ends.length > 0)
    await service.call('POST', '/v1/auth/login', { body: {} }) // meanwhile the others have come as far
    await service.call('DELETE', `/v1/admin/users/${id}`, { token: admin.token })
    const isIdle = () => service.sqlite.query('SELECT 1 FROM outbox').get() === null
    await waitFor(isIdle)
    open(true)
    while (ends.length > 0) end()
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([401, 401, 401])
    const clear = "SELECT action FROM audit_log WHERE actor_id = ? AND ip = 'unknown'"
    expect(service.sqlite.query(clear).all(id)).toEqual([])
  })

  test('of a new password while the address changes is told to the new address', async () => {
    await using mail = await startMailServer()
    const { ends, end, open, passwordCost } = startHasher()
    await using service = await startService({ passwordCost, environment: { SMTP_URL: mail.url } })
    const { token } = await service.registerAs('user', 'ada')
    const wanted = { new_email: 'new@example.com', password: 'correct horse' }
    await service.call('POST', '/v1/auth/email/change', { token, body: wanted })
    const body = { token: tokenOf((await mail.next('new@example.com')).link) }
    open(false)
    const change = { current_password: 'correct horse', new_password: 'brand new horse' }
    const changing = service.call('POST', '/v1/auth/password/change', { token, body: change })
    await waitFor(() => ends.length > 0)
    await service.call('POST', '/v1/auth/email/confirm', { body })
    open(true)
    while (ends.length > 0) end()
    expect((await changing).status).toBe(204)
    expect((await mail.next('new@example.com')).text).toContain('password was changed')
  })

  test('during which registration is switched off creates no account', async () => {
    const { ends, end, open, passwordCost } = startHasher()
    await using service = await startService({ passwordCost })
    const { token } = await service.registerAs('admin')
    open(false)
    const body = { email: 'ada@example.com', password: 'correct horse' }
    const registering = service.call('POST', '/v1/auth/register', { body })
    await waitFor(() => ends.length > 0)
    const off = { registration: 'off' }
    await service.call('PATCH', '/v1/admin/settings', { token, body: off })
    open(true)
    end()
    const { status, headers } = await registering
    expect([status, headers.get('x-error-reason')]).toEqual([403, 'registration_closed'])
  })

  test('is skipped for requests over the quota', async () => {
    const { asked, passwordCost } = startHasher()
    await using service = await startService({ passwordCost })
    const call = async (path: string, body: object, token: string) => {
      const { status, headers } = await service.call('POST', `/v1/auth/${path}`, { token, body })
      return status === 204 ? 204 : [status, headers.get('x-error-reason')]
    }
    const [ada, bob, eve] = [
      await service.register(),
      await service.register(),
      await service.register(),
    ]
    const password = 'correct horse'
    const change = { current_password: password, new_password: password }
    const address = (n: number) => ({ new_email: `ada${n}@example.org`, password })
    for (let n = 0; n < 5; n++) {
      expect(await call('password/change', change, ada.token)).toBe(204)
      expect(await call('email/change', address(n), bob.token)).toBe(204)
    }
    for (let n = 0; n < 10; n++) expect(await call('confirm', { password }, eve.token)).toBe(204)
    const before = asked.length
    const refused = [429, 'quota_exceeded']
    expect(await call('password/change', change, ada.token)).toEqual(refused)
    expect(await call('email/change', address(5), bob.token)).toEqual(refused)
    expect(await call('confirm', { password }, eve.token)).toEqual(refused)
    expect(asked.length).toBe(before)
  })
})

test('three parallel logins succeed while the hash is being renewed', async () => {
  const service = await anyService()
  const { id, email } = await service.register()
  const old = await Bun.password.hash('correct horse', {
    algorithm: 'argon2id',
    memoryCost: 128,
    timeCost: 1,
  })
  service.sqlite.run('UPDATE users SET password_hash = ? WHERE id = ?', [old, id])
  const people = await Promise.all([
    service.login(email),
    service.login(email),
    service.login(email),
  ])
  expect(new Set(people.map(({ token }) => token)).size).toBe(3)
})

describe('mails', () => {
  const kinds = (service: Started['service']) =>
    service.sqlite
      .query<{ kind: string; n: number }, []>(
        'SELECT kind, count(*) AS n FROM sent_mails GROUP BY kind ORDER BY kind',
      )
      .all()
  const change = (service: Started['service'], token: string, from: string, to: string) =>
    service.call('POST', '/v1/auth/password/change', {
      token,
      body: { current_password: from, new_password: to },
    })

  test('about a change are sent to verified addresses only, once an hour; a sixth change in an hour is refused', async () => {
    const clock = createTestClock()
    await using started = await startWithMail({ clock })
    const { service, mail } = started
    const ada = await service.register('ada')
    await mail.next()
    let password = 'correct horse'
    const changeTo = async (next: string) => {
      const answer = await change(service, ada.token, password, next)
      if (answer.status === 204) password = next
      return answer
    }
    expect((await changeTo('second horse')).status).toBe(204)
    expect(kinds(service)).toEqual([{ kind: 'verify_email', n: 1 }])
    service.sqlite.run('UPDATE users SET email_verified = 1')
    for (const next of ['third horse', 'fourth horse', 'fifth horse', 'sixth horse']) {
      expect((await changeTo(next)).status).toBe(204)
    }
    const refused = await changeTo('seventh horse')
    expect([refused.status, refused.headers.get('x-error-reason')]).toEqual([429, 'quota_exceeded'])
    expect(kinds(service)).toContainEqual({ kind: 'password_changed', n: 1 })
    expect((await mail.next()).raw).toContain('Subject: Your password was changed')
    expect(mail.mails).toEqual([])
  })

  test('are counted by address: removing the account and registering again does not reset the count', async () => {
    const clock = createTestClock()
    await using started = await startWithMail({ clock })
    const { service, mail } = started
    for (let n = 0; n < 7; n++) {
      const ada = await service.register('ada')
      clock.advance(61_000)
      await service.call('DELETE', '/v1/users/me', {
        token: ada.token,
        body: { password: 'correct horse' },
      })
    }
    const ada = await service.register('ada')
    const resend = await service.call('POST', '/v1/auth/verify-email/resend', { token: ada.token })
    expect([resend.status, resend.headers.get('x-error-reason')]).toEqual([429, 'mail_throttled'])
    expect(kinds(service)).toEqual([{ kind: 'verify_email', n: 5 }])
    expect(mail.mails.length).toBeLessThanOrEqual(5)
  })

  test('with reset links have growing pauses, but never longer than the link is valid', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const { email } = await service.register('ada')
    const asked: number[] = []
    for (let minutes = 0; minutes < 120; minutes++) {
      await service.call('POST', '/v1/auth/password/forgot', { body: { email } })
      const [row] = kinds(service).filter(({ kind }) => kind === 'reset_password')
      if (row && row.n > asked.length) asked.push(minutes)
      clock.advance(60_000)
    }
    expect(asked).toEqual([0, 1, 5, 21, 51, 81, 111])
  })

  test('with reset links are sent again when a clock that was a month ahead is set right', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock })
    const { email } = await service.register('ada')
    const forgotten = () => service.call('POST', '/v1/auth/password/forgot', { body: { email } })
    const sent = () => kinds(service).find(({ kind }) => kind === 'reset_password')?.n
    clock.advance(30 * 86_400_000)
    await forgotten()
    clock.setBack(30 * 86_400_000)
    await forgotten()
    await forgotten()
    expect(sent()).toBe(2)
  })

  test('with a reset link count once in the audit log, however often they are tried', async () => {
    const clock = createTestClock()
    const environment = { SMTP_URL: 'smtp://127.0.0.1:1' }
    await using service = await startService({ clock, environment })
    const { id, email } = await service.registerAs('verified_user', 'ada')
    await service.call('POST', '/v1/auth/password/forgot', { body: { email } })
    const tries = "SELECT 1 FROM outbox WHERE kind = 'password_reset_mail' AND attempts = 2"
    await waitFor(() => {
      clock.advance(1_000)
      return service.sqlite.query(tries).get() !== null
    }, 'a second try')
    const requests =
      "SELECT ip FROM audit_log WHERE action = 'password_reset_requested' AND target_id = ?"
    expect(service.sqlite.query(requests).all(id)).toHaveLength(1)
  })

  test('a known and an unknown address write the same rows, so that responses take the same time', async () => {
    await using service = await startService({ environment: { SMTP_URL: 'smtp://127.0.0.1:1' } })
    await service.register('ada')
    const written = async (email: string) => {
      const count = () =>
        ['sent_mails', 'outbox'].map(
          (table) =>
            service.sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()
              ?.n ?? 0,
        )
      const before = count()
      const { status } = await service.call('POST', '/v1/auth/password/forgot', { body: { email } })
      return [status, ...count().map((n, index) => n - (before[index] ?? 0))]
    }
    expect(await written('ada@example.com')).toEqual([204, 1, 1])
    expect(await written('nobody@example.com')).toEqual([204, 1, 1])
  })
})

test('a reset removes what was set by a person who registered with an address and never verified it', async () => {
  const started = await anyWithMail()
  const { service } = started
  const thief = await join(started, 'vera')
  const as = (method: string, path: string, body?: object) =>
    service.call(method, path, { token: thief.token, body })
  const { secret } = (await as('POST', '/v1/auth/totp', { password: 'correct horse' })).body
  await as('POST', '/v1/auth/totp/confirm', { code: codeOf(secret, Date.now()) })
  await as('POST', '/v1/notifications/push-tokens', { token: 't', platform: 'ios' })
  await as('PATCH', '/v1/users/me', { display_name: 'Thief', locale: 'de' })
  const body = { token: await forgot(started, thief), password: 'purple elephant' }
  expect((await service.call('POST', '/v1/auth/password/reset', { body })).status).toBe(204)
  const login = { email: thief.email, password: 'purple elephant' }
  const owner = await service.call('POST', '/v1/auth/login', { body: login })
  expect([owner.status, owner.body.user.display_name]).toEqual([200, 'vera'])
  expect(service.sqlite.query('SELECT 1 FROM push_tokens').all()).toEqual([])
  expect(await isIn(started, thief)).toBe(false)
})

test('a reset verifies the address that received the mail', async () => {
  const started = await anyWithMail()
  const { service } = started
  const ada = await join(started)
  const token = await forgot(started, ada)
  const body = { token, password: 'brand new horse' }
  expect((await service.call('POST', '/v1/auth/password/reset', { body })).status).toBe(204)
  const login = { email: ada.email, password: 'brand new horse' }
  const { body: session } = await service.call('POST', '/v1/auth/login', { body: login })
  expect(session.user).toMatchObject({ email_verified: true, role: 'verified_user' })
})

test('a session ends 180 days after the login, however often it was refreshed', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const ada = await service.register()
  let token = ada.refreshToken
  const refresh = () => service.call('POST', '/v1/auth/refresh', { body: { refresh_token: token } })
  for (let days = 20; days < 180; days += 20) {
    clock.advance(20 * 86_400_000)
    const answer = await refresh()
    expect(answer.status).toBe(200)
    token = answer.body.refresh_token
  }
  clock.advance(19 * 86_400_000)
  const last = await refresh()
  token = last.body.refresh_token
  const list = () => service.call('GET', '/v1/auth/sessions', { token: last.body.access_token })
  expect((await list()).body.data).toHaveLength(1)
  clock.advance(86_400_000 + 1)
  expect((await refresh()).body.error.code).toBe('invalid_token')
})

test('the list of devices shows the last address and user agent; a change of both is audited', async () => {
  await using service = await startService({
    listen: true,
    environment: { TRUSTED_PROXIES: '127.0.0.1' },
  })
  const ada = await service.register()
  let token = ada.refreshToken
  const useFrom = async (ip: string, agent: string) => {
    const headers = { 'x-forwarded-for': ip, 'user-agent': agent }
    const body = { refresh_token: token }
    const answer = await service.call('POST', '/v1/auth/refresh', { headers, body })
    token = answer.body.refresh_token
    const list = await service.call('GET', '/v1/auth/sessions', { token: ada.token })
    const [{ ip: shown, user_agent }] = list.body.data
    return [shown, user_agent]
  }
  const moves = () =>
    service.sqlite.query("SELECT ip FROM audit_log WHERE action = 'session_moved'").all().length
  expect(await useFrom('198.51.100.1', 'one')).toEqual(['198.51.100.1', 'one'])
  const before = moves()
  expect(await useFrom('198.51.100.2', 'one')).toEqual(['198.51.100.2', 'one'])
  expect(await useFrom('198.51.100.2', 'two')).toEqual(['198.51.100.2', 'two'])
  expect(moves()).toBe(before)
  expect(await useFrom('198.51.100.3', 'three')).toEqual(['198.51.100.3', 'three'])
  expect(moves()).toBe(before + 1)
})

test('the first use of a session that the platform has opened is no move', async () => {
  const clock = createTestClock()
  await using service = await startService({
    clock,
    listen: true,
    environment: { TRUSTED_PROXIES: '127.0.0.1' },
  })
  const { token } = await service.issueKey(['sessions'])
  const { id } = await service.register()
  const opened = await service.call('POST', `/v1/service/users/${id}/sessions`, {
    token,
    headers: { 'x-forwarded-for': '203.0.113.1', 'user-agent': 'platform' },
  })
  let refresh_token = opened.body.refresh_token
  const useFrom = async (ip: string, agent: string) => {
    clock.advance(1_000)
    const headers = { 'x-forwarded-for': ip, 'user-agent': agent }
    const options = { headers, body: { refresh_token } }
    refresh_token = (await service.call('POST', '/v1/auth/refresh', options)).body.refresh_token
    return service.sqlite
      .query("SELECT ip FROM audit_log WHERE action = 'session_moved'")
      .values()
      .flat()
  }
  expect(await useFrom('198.51.100.1', 'phone')).toEqual([])
  expect(await useFrom('198.51.100.2', 'thief')).toEqual(['198.51.100.2'])
})

test('a failed login at an unknown address leaves only a keyed hash of it', async () => {
  await using service = await startService()
  const body = { email: 'nobody@example.com', password: 'wrong horse' }
  for (let n = 0; n < 2; n++) await service.call('POST', '/v1/auth/login', { body })
  const rows = service.sqlite
    .query<{ details: string }, []>(
      "SELECT DISTINCT details FROM audit_log WHERE action = 'login_failed'",
    )
    .all()
  expect(rows.map(({ details }) => JSON.parse(details))).toEqual([
    { address_hash: expect.stringMatching(/^[\w-]{43}$/) },
  ])
})

test('a mail of an account that is removed while its job begins leaves no address', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  const { sqlite, accounts } = service
  const { id, email } = await service.register()
  sqlite.run(
    `INSERT INTO outbox (id, kind, payload, created_at, run_at) SELECT 'due', 'verification_mail',
       json_object('user_id', ?, 'address_hash', address_hash), 0, ? FROM sent_mails`,
    [id, clock.now() + 1_000],
  )
  // The queue learns of it with the next job.
  await service.register()
  const by = { actor: { type: 'system' } } as const
  // The job reads the account, then this write removes it, then the job writes.
  const removed = service
    .write(() => {})
    .then(() => accounts.upsertUser({ email, external_id: 'p1' }, by))
  clock.advance(1_000)
  await removed
  const jobs = sqlite.query("SELECT 1 FROM outbox WHERE id = 'due' OR kind = 'erasure'")
  await waitFor(() => {
    clock.advance(500)
    return jobs.get() === null
  })
  const tokens = sqlite.query('SELECT email FROM one_time_tokens WHERE user_id = ?')
  expect(tokens.all(id)).toEqual([])
})
