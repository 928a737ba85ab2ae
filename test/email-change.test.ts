import { afterAll, beforeAll, expect, test } from 'bun:test'
import { locales, texts } from '../src/lib/i18n.ts'
import { defaultMailText } from '../src/lib/mail-texts.ts'
import { codeOf } from './support/authenticator.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { startMailServer } from './support/mail.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const clock = createTestClock()
const minute = 60_000
const day = 86_400_000
const password = 'correct horse'
const newPassword = 'purple elephant'
const badToken = { token: 'is not valid, has expired or was already used' }

let service: TestService

beforeAll(async () => {
  service = await startService({ clock })
})
afterAll(() => service[Symbol.asyncDispose]())

type SentMail = { to: string; subject: string; text: string }

/** Mails to an address, oldest first: without a mail server the log has them. */
function mailsTo(address: string): SentMail[] {
  const lines: (SentMail & { message: string })[] = service
    .log()
    .split('\n')
    .filter((line) => line.includes('"mail"'))
    .map((line) => JSON.parse(line))
  return lines.filter(({ to }) => to === address)
}

/** The next mail of a kind to an address. */
const mailed = (kind: keyof typeof texts.en.mails, to: string, nth = 1) =>
  waitFor(() => {
    clock.advance(500)
    const { subject } = defaultMailText(kind, 'en')
    return mailsTo(to).filter((mail) => mail.subject === subject)[nth - 1]
  }, `${kind} to ${to}`)

const tokenOf = ({ text }: SentMail) => /#token=([\w-]{43})/.exec(text)?.[1] ?? ''

const ask = (person: Person, new_email: string, with_password = password) =>
  service.call('POST', '/v1/auth/email/change', {
    token: person.token,
    body: { new_email, password: with_password },
  })
const follow = (what: 'confirm' | 'undo', token: string) =>
  service.call('POST', `/v1/auth/email/${what}`, { body: { token } })
const me = ({ token }: Person) => service.call('GET', '/v1/users/me', { token })
const login = (email: string, with_password = password, code?: string) =>
  service.call('POST', '/v1/auth/login', { body: { email, password: with_password, code } })

/** A user who has changed from `…@example.com`, which was verified, to `…@new.example`. */
const moved = async (name: string) => move(await service.registerAs('verified_user', name))

async function move(person: Person) {
  const address = person.email.replace('@example.com', '@new.example')
  await ask(person, address)
  const token = tokenOf(await mailed('change_email', address))
  const answer = await follow('confirm', token)
  return { person, address, token, answer, undo: await mailed('undo_email', person.email) }
}

test('the link changes the address of the account and verifies it', async () => {
  const person = await service.register('ada')
  service.sqlite.run('UPDATE users SET email_bounced_at = 1 WHERE id = ?', [person.id])
  expect((await ask(person, 'Ada@New.example')).status).toBe(204)
  const mail = await mailed('change_email', 'ada@new.example')
  expect(mail.text).toContain('http://localhost:0/change-email?lang=en#token=')
  expect((await me(person)).body.email).toBe('ada@example.com')
  const { status, body } = await follow('confirm', tokenOf(mail))
  expect([status, body.user]).toEqual([
    200,
    expect.objectContaining({ email: 'ada@new.example', email_verified: true }),
  ])
  expect((await me(person)).body).toMatchObject({ role: 'verified_user', email_bounced_at: null })
  expect((await login('ada@new.example')).status).toBe(200)
  expect((await login('ada@example.com')).status).toBe(401)
  expect((await follow('confirm', tokenOf(mail))).body.error.details).toEqual(badToken)
})

/** Sets a new password with the link mailed after an undo. */
async function resetByUndo(email: string) {
  const token = tokenOf(await mailed('reset_password', email))
  const body = { token, password: newPassword }
  expect((await service.call('POST', '/v1/auth/password/reset', { body })).status).toBe(204)
}

test('the former address gets a mail and can undo the change, which ends all sessions and the password', async () => {
  const { person, undo } = await moved('bob')
  expect(undo.text).toContain('http://localhost:0/undo-email?lang=en#token=')
  service.sqlite.run('UPDATE users SET email_verified = 0 WHERE id = ?', [person.id])
  expect((await follow('undo', tokenOf(undo))).status).toBe(204)
  expect((await me(person)).status).toBe(401)
  expect((await login(person.email)).status).toBe(401)
  await resetByUndo(person.email)
  expect((await login(person.email, newPassword)).body.user).toMatchObject({
    id: person.id,
    email: 'bob@example.com',
    email_verified: true,
  })
  expect((await follow('undo', tokenOf(undo))).body.error.details).toEqual(badToken)
})

/** Enables a second factor.
 *  @returns a function for its codes, a new one each time */
async function enrol(person: Person) {
  const as = async (path: string, body: object) =>
    (await service.call('POST', path, { token: person.token, body })).body
  const { secret } = await as('/v1/auth/totp', { password })
  expect(await as('/v1/auth/totp/confirm', { code: codeOf(secret, clock.now()) })).toHaveProperty(
    'recovery_codes',
  )
  return () => {
    clock.advance(30_000)
    return codeOf(secret, clock.now())
  }
}

test('an undo locks out a thief with the old password and a factor of their own, and lets the owner in', async () => {
  const { person, undo } = await moved('zoe')
  const code = await enrol(person)
  expect((await login('zoe@new.example', password, code())).status).toBe(200)
  await follow('undo', tokenOf(undo))
  expect((await login(person.email, password, code())).status).toBe(401)
  await resetByUndo(person.email)
  expect((await login(person.email, password, code())).status).toBe(401)
  expect((await login(person.email, newPassword)).body.user.id).toBe(person.id)
})

test('an undo keeps a factor that is older than the change', async () => {
  const person = await service.registerAs('verified_user', 'yan')
  const code = await enrol(person)
  clock.advance(1_000)
  const { undo } = await move(person)
  await follow('undo', tokenOf(undo))
  await resetByUndo(person.email)
  const without = await login(person.email, newPassword)
  expect(without.headers.get('x-error-reason')).toBe('totp_required')
  expect((await login(person.email, newPassword, code())).status).toBe(200)
})

test('the former address is reserved for 7 days from the commit of the change', async () => {
  const { person } = await moved('cleo')
  const register = () =>
    service.call('POST', '/v1/auth/register', { body: { email: 'cleo@example.com', password } })
  const refused = await register()
  expect([refused.status, refused.headers.get('x-error-reason')]).toEqual([409, 'email_taken'])
  const made = await hostline(
    ['user', 'create', '--email', 'cleo@example.com', '--role', 'user'],
    service.directory,
  )
  expect([made.exitCode, made.err]).toEqual([1, 'hostline: cleo@example.com is taken'])
  const dan = await service.register('dan')
  expect((await ask(dan, 'cleo@example.com')).status).toBe(204)
  expect((await mailed('email_taken', 'cleo@example.com')).text).not.toContain('token')
  clock.advance(7 * day + minute)
  expect((await register()).status).toBe(201)
  expect((await login('cleo@new.example')).body.user.id).toBe(person.id)
})

test('the address is reserved also while no mail can be sent', async () => {
  const down = 'smtp://127.0.0.1:1'
  await using own = await startService({ clock, environment: { SMTP_URL: down } })
  const { id, email } = await own.registerAs('verified_user', 'ada')
  // The hash that the mail's token would have.
  const sha256 = new Bun.CryptoHasher('sha256').update('token').digest('hex')
  own.sqlite.run(
    "INSERT INTO one_time_tokens VALUES (?, 'change_email', ?, 'new@example.com', ?, 0)",
    [sha256, id, clock.now() + day],
  )
  const body = { token: 'token' }
  expect((await own.call('POST', '/v1/auth/email/confirm', { body })).status).toBe(200)
  const again = await own.call('POST', '/v1/auth/register', { body: { email, password } })
  expect(again.status).toBe(409)
  const job = own.sqlite.query("SELECT attempts FROM outbox WHERE kind = 'email_changed_mail'")
  await waitFor(() => {
    clock.advance(500)
    return Number(job.values()[0]?.[0]) > 0
  }, 'a failed attempt, to be repeated')
})

test('a new address leaves no failed job and no bounce when it is permanently refused, and ends none when it is not', async () => {
  await using mail = await startMailServer({
    onRcptTo: ({ address }, _session, callback) =>
      callback(
        address.endsWith('.invalid.example')
          ? Object.assign(new Error('5.1.1 no such mailbox'), { responseCode: 550 })
          : null,
      ),
  })
  await using own = await startService({ clock, environment: { SMTP_URL: mail.url } })
  const { token } = await own.register('ada')
  const left = own.sqlite.query('SELECT 1 FROM outbox')
  /** Asks for a change and waits until all mails have been sent. */
  const bouncedAfter = async (new_email: string) => {
    await own.call('POST', '/v1/auth/email/change', { token, body: { new_email, password } })
    await waitFor(() => {
      clock.advance(500)
      return left.all().length === 0
    })
    return (await own.call('GET', '/v1/users/me', { token })).body.email_bounced_at
  }
  expect(await bouncedAfter('x@some.invalid.example')).toBeNull()
  own.sqlite.run('UPDATE users SET email_bounced_at = 1')
  expect(await bouncedAfter('x@new.example')).not.toBeNull()
})

test('the owner may change back, and then there is nothing to undo', async () => {
  const { person, undo } = await moved('emma')
  expect((await ask(person, 'emma@example.com')).status).toBe(204)
  const back = await mailed('change_email', 'emma@example.com')
  expect((await follow('confirm', tokenOf(back))).body.user.email).toBe('emma@example.com')
  expect((await follow('undo', tokenOf(undo))).status).toBe(400)
})

test('an address that the platform set and nobody verified cannot undo the change, and is free', async () => {
  const person = await service.registerAs('verified_user', 'edna')
  const { token } = await service.issueKey()
  const typo = { email: 'edna@typo.example' }
  const set = await service.call('PATCH', `/v1/service/users/${person.id}`, { token, body: typo })
  expect(set.body.email_verified).toBe(false)
  await ask(person, 'edna@new.example')
  await follow('confirm', tokenOf(await mailed('change_email', 'edna@new.example')))
  const undo = "SELECT 1 FROM one_time_tokens WHERE purpose = 'undo_email' AND user_id = ?"
  expect(service.sqlite.query(undo).all(person.id)).toEqual([])
  const body = { ...typo, password }
  expect((await service.call('POST', '/v1/auth/register', { body })).status).toBe(201)
})

test('a change back to a former address frees the address in between', async () => {
  const { person, address } = await moved('gwen')
  await ask(person, person.email)
  await follow('confirm', tokenOf(await mailed('change_email', person.email)))
  const body = { email: address, password }
  expect((await service.call('POST', '/v1/auth/register', { body })).status).toBe(201)
})

test('an undo also reverts later changes, including pending ones', async () => {
  const { person, undo } = await moved('finn')
  await ask(person, 'finn@thief.example')
  await follow('confirm', tokenOf(await mailed('change_email', 'finn@thief.example')))
  const later = await mailed('undo_email', 'finn@new.example')
  await ask(person, 'finn@third.example')
  const waiting = await mailed('change_email', 'finn@third.example')
  expect((await follow('undo', tokenOf(undo))).status).toBe(204)
  expect((await follow('undo', tokenOf(later))).status).toBe(400)
  expect((await follow('confirm', tokenOf(waiting))).status).toBe(400)
  expect((await me(person)).status).toBe(401)
})

test('a taken address gets the same response, and its owner a mail', async () => {
  const [gina, hugo] = [await service.register('gina'), await service.register('hugo')]
  const answer = await ask(gina, hugo.email)
  expect([answer.status, answer.body]).toEqual([204, ''])
  expect((await mailed('email_taken', hugo.email)).text).not.toContain('token')
  expect(mailsTo(hugo.email).filter(({ subject }) => /new e-mail/.test(subject))).toEqual([])
})

test('an address taken before the link is used is refused', async () => {
  const ines = await service.register('ines')
  await ask(ines, 'both@example.com')
  const token = tokenOf(await mailed('change_email', 'both@example.com'))
  await service.register('both')
  const answer = await follow('confirm', token)
  expect([answer.status, answer.headers.get('x-error-reason')]).toEqual([409, 'email_taken'])
})

test('nobody leaves a ban behind with the banned address, by a change before or after it', async () => {
  const person = await service.register('banned')
  await ask(person, 'banned@new.example')
  const token = tokenOf(await mailed('change_email', 'banned@new.example'))
  const root = await service.registerAs('admin')
  const ban = { kind: 'address', value: person.email }
  await service.call('POST', '/v1/admin/bans', { token: root.token, body: ban })
  const answers = [await ask(person, 'other@new.example'), await follow('confirm', token)]
  for (const { status, headers } of answers) {
    expect([status, headers.get('x-error-reason')]).toEqual([403, 'banned'])
  }
})

test('a second mail to an address waits a minute; the current address is no change', async () => {
  const [jo, kim] = [await service.register('jo'), await service.register('kim')]
  expect((await ask(jo, 'shared@new.example')).status).toBe(204)
  const second = await ask(kim, 'shared@new.example')
  expect([second.status, second.headers.get('x-error-reason')]).toEqual([429, 'mail_throttled'])
  clock.advance(minute)
  expect((await ask(kim, 'shared@new.example')).status).toBe(204)
  const own = await ask(kim, 'KIM@example.com')
  expect([own.status, Object.keys(own.body.error.details)]).toEqual([400, ['new_email']])
})

test('five requests an hour are allowed, for any addresses', async () => {
  const person = await service.register('lea')
  for (const n of [1, 2, 3, 4, 5]) await ask(person, `lea${n}@new.example`)
  const sixth = await ask(person, 'lea6@new.example')
  expect([sixth.status, sixth.headers.get('x-error-reason')]).toEqual([429, 'quota_exceeded'])
})

test('a change needs the password, and a changed password cancels it', async () => {
  const person = await service.register('mia')
  const refused = await ask(person, 'mia@new.example', 'wrong')
  expect([refused.status, refused.body.error.code]).toEqual([401, 'invalid_credentials'])
  await ask(person, 'mia@new.example')
  const token = tokenOf(await mailed('change_email', 'mia@new.example'))
  await service.call('POST', '/v1/auth/password/change', {
    token: person.token,
    body: { current_password: password, new_password: 'another horse' },
  })
  expect((await follow('confirm', token)).body.error.details).toEqual(badToken)
})

test('a later request, a day, or a disabled account invalidates the link', async () => {
  const person = await service.register('nina')
  await ask(person, 'nina1@new.example')
  const first = tokenOf(await mailed('change_email', 'nina1@new.example'))
  await ask(person, 'nina2@new.example')
  const second = tokenOf(await mailed('change_email', 'nina2@new.example'))
  expect((await follow('confirm', first)).status).toBe(400)
  clock.advance(day)
  expect((await follow('confirm', second)).status).toBe(400)
  const again = await service.login('nina@example.com')
  await ask(again, 'nina3@new.example')
  const third = tokenOf(await mailed('change_email', 'nina3@new.example'))
  await hostline(['user', 'disable', 'nina@example.com'], service.directory)
  expect((await follow('confirm', third)).status).toBe(400)
})

test('reset and verification links to the former address stop working', async () => {
  const person = await service.register('otto')
  const verify = await waitFor(() => {
    clock.advance(500)
    return mailsTo(person.email)[0]
  })
  await service.call('POST', '/v1/auth/password/forgot', { body: { email: person.email } })
  const reset = await waitFor(() => {
    clock.advance(500)
    return mailsTo(person.email)[1]
  })
  await ask(person, 'otto@new.example')
  await follow('confirm', tokenOf(await mailed('change_email', 'otto@new.example')))
  const post = (path: string, mail: SentMail) =>
    service.call('POST', path, { body: { token: tokenOf(mail), password: 'another horse' } })
  expect((await post('/v1/auth/verify-email', verify)).status).toBe(400)
  expect((await post('/v1/auth/password/reset', reset)).status).toBe(400)
})

test('a code mailed to the former address confirms nothing any more', async () => {
  const { email } = await service.registerAs('user', 'quinn')
  const person = await service.login(email)
  const as = (path: string, body?: object) =>
    service.call('POST', path, { token: person.token, body })
  expect((await as('/v1/auth/confirm/code')).status).toBe(204)
  const code = await waitFor(() => {
    clock.advance(500)
    return mailsTo(email).flatMap(({ text }) => /\b\d{6}\b/.exec(text)?.[0] ?? [])[0]
  })
  await ask(person, 'quinn@new.example')
  await follow('confirm', tokenOf(await mailed('change_email', 'quinn@new.example')))
  expect((await as('/v1/auth/confirm', { code })).headers.get('x-error-reason')).toBe(
    'code_invalid',
  )
})

test('tokens occur only in the mails, and each step is in the audit log', async () => {
  const { person, undo, token } = await moved('pia')
  await follow('undo', tokenOf(undo))
  const tables = ['one_time_tokens', 'outbox', 'audit_log']
  const stored = JSON.stringify(tables.map((t) => service.sqlite.query(`SELECT * FROM ${t}`).all()))
  expect([token, tokenOf(undo), 'pia@new.example'].filter((it) => stored.includes(it))).toEqual([])
  const actions = service.sqlite
    .query<{ action: string }, [string]>(
      "SELECT action FROM audit_log WHERE target_id = ? AND action LIKE 'email_change%' ORDER BY id",
    )
    .all(person.id)
  expect(actions.map(({ action }) => action)).toEqual([
    'email_change_requested',
    'email_changed',
    'email_change_undone',
  ])
})

test('each language has mails of its own', async () => {
  const subjects = locales.map((locale) => texts[locale].mails.undo_email.subject)
  expect(new Set(subjects).size).toBe(locales.length)
  const body = { email: 'rosa@example.com', password }
  const headers = { 'accept-language': 'de' }
  const { body: rosa } = await service.call('POST', '/v1/auth/register', { body, headers })
  await ask({ ...rosa.user, token: rosa.access_token }, 'rosa@new.example')
  const mail = await waitFor(() => {
    clock.advance(500)
    return mailsTo('rosa@new.example')[0]
  })
  expect([mail.subject, mail.text.includes('?lang=de#')]).toEqual([
    texts.de.mails.change_email.subject,
    true,
  ])
})

test('a pending address is in the export', async () => {
  const person = await service.register('waiting')
  await ask(person, 'waiting@new.example')
  const { body } = await service.call('GET', '/v1/users/me/export', { token: person.token })
  expect(body.pending_addresses).toEqual([
    { email: 'waiting@new.example', expires_at: new Date(clock.now() + day).toISOString() },
  ])
})
