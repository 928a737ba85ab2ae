import { heapStats } from 'bun:jsc'
import { describe, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { readConfig } from '../src/config.ts'
import type { Core } from '../src/core.ts'
import { openForServer } from '../src/db/open.ts'
import { createWriter } from '../src/db/writer.ts'
import { createDeliveryStore } from '../src/jobs/delivery-store.ts'
import { createOutbox } from '../src/jobs/outbox.ts'
import { type JobHandlers, startRunner } from '../src/jobs/runner.ts'
import { PermanentFailure } from '../src/lib/errors.ts'
import { createIds } from '../src/lib/ids.ts'
import { createSmtpMailer, trySmtp } from '../src/outside/mail/smtp.ts'
import { makeCertificate } from './support/certificate.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { migratedDirectory } from './support/database.ts'
import { temporaryDirectory } from './support/directory.ts'
import { size, testAtLength } from './support/faults.ts'
import { startMailServer } from './support/mail.ts'
import { call, startServer } from './support/process.ts'
import { startService } from './support/service.ts'
import { tools } from './support/tools.ts'
import { aWhile, waitFor } from './support/wait.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** A runner over a real database with a single handler. */
function startJobs(handle: (jobId: string) => Promise<unknown>) {
  const logged: string[] = []
  const commits: number[] = []
  const note = (message: string) => void logged.push(message)
  const log = { debug: note, info: note, warn: note, error: note }
  const directory = migratedDirectory()
  const connection = openForServer(directory.path)
  const clock = createTestClock()
  const { write, afterCommit } = createWriter({
    sqlite: connection.sqlite,
    sync: async () => {},
    onCommit: (size) => commits.push(size),
    onFatal: () => {},
    log: silent,
    maxBatchMilliseconds: Number.POSITIVE_INFINITY,
  })
  const { orm } = connection
  const outbox = createOutbox({ orm, newId: createIds(clock), clock, afterCommit })
  const deliveries = createDeliveryStore(orm, clock)
  const core = { outbox, deliveries, write, clock, log } as unknown as Core // the parts that a runner uses
  const nothing = async () => undefined
  const handlers: JobHandlers = {
    verification_mail: async (_, { id }) =>
      (await handle(id)) as { againAfterMilliseconds: number } | undefined,
    broadcast: nothing,
    reach_changed: nothing,
    erasure: nothing,
    guest_end: nothing,
    password_reset_mail: nothing,
    password_changed_mail: nothing,
    confirm_mail: nothing,
    totp_enabled_mail: nothing,
    totp_disabled_mail: nothing,
    email_change_mail: nothing,
    email_changed_mail: nothing,
    support_inbox_mail: nothing,
    assignee_mail: nothing,
    announcement: nothing,
    notification_mail: nothing,
    urgent_push: nothing,
    notification_push: nothing,
    message_push: nothing,
    unread_push: nothing,
    held_push: nothing,
    notification: nothing,
    unread_mail: nothing,
    file_removal: nothing,
    file_release: nothing,
    webhook_delivery: async ({ webhook_id }, { id }) =>
      (await handle(`${webhook_id} ${id}`)) as undefined,
  }
  const outcomes: string[] = []
  const start = () =>
    startRunner(core, {
      handlers,
      random: () => 0.5,
      onOutcome: (kind, outcome) => void outcomes.push(`${kind} ${outcome}`),
    })
  let runner = start()
  return {
    clock,
    outbox,
    outcomes,
    logged,
    commits,
    write,
    sqlite: connection.sqlite,
    add: () => write(() => outbox.add('verification_mail', { user_id: 'u', address_hash: 'h' })),
    /** Queues deliveries for a number of endpoints. */
    deliver: (endpoints: string[], each: number) =>
      write(() => {
        const event = { type: 'user.created', at: '' } as const
        for (const webhook_id of endpoints) {
          const job = { webhook_id, event }
          for (let n = 0; n < each; n++) {
            outbox.add('webhook_delivery', job, { receiver: webhook_id })
          }
        }
      }),
    restart() {
      runner = start()
    },
    /** Lets the runner poll and finish its jobs. */
    async turn(milliseconds = 1_000) {
      clock.advance(milliseconds)
      // Nothing here waits for more than the next turns of the event loop.
      for (let n = 0; n < 50; n++) await new Promise(setImmediate)
    },
    async [Symbol.asyncDispose]() {
      await runner.stop(4_000)
      connection.close()
      directory[Symbol.dispose]()
    },
  }
}

describe('a job', () => {
  test('runs once and leaves nothing behind', async () => {
    const done: string[] = []
    await using jobs = startJobs(async (id) => void done.push(id))
    await jobs.add()
    await jobs.turn()
    await jobs.turn()
    expect(done).toHaveLength(1)
    expect(jobs.outbox.stats()).toEqual({ waiting: 0, dead: 0, oldestAge: 0 })
  })

  test('of the many that one write adds is looked for once', async () => {
    await using jobs = startJobs(async () => {})
    const heads = spyOn(jobs.outbox, 'heads')
    await jobs.write(() => {
      for (let n = 0; n < 500; n++) jobs.outbox.add('file_removal', { key: `${n}` })
    })
    expect(heads).toHaveBeenCalledTimes(1)
  })

  test('is counted by kind, beside the many of webhooks', async () => {
    await using jobs = startJobs(async () => {})
    await jobs.deliver(['a', 'b'], 3)
    await jobs.add()
    const kept =
      "INSERT INTO outbox (id, kind, payload, created_at, run_at, dead_at) VALUES (?, ?, '{}', 0, 0, 1)"
    for (const [id, kind] of [
      ['1', 'webhook_delivery'],
      ['2', 'broadcast'],
    ] as const) {
      jobs.sqlite.run(kept, [id, kind])
    }
    expect(jobs.outbox.countByKind()).toEqual([
      { kind: 'verification_mail', count: 1, state: 'waiting' },
      { kind: 'webhook_delivery', count: 6, state: 'waiting' },
      { kind: 'broadcast', count: 1, state: 'dead' },
      { kind: 'webhook_delivery', count: 1, state: 'dead' },
    ])
    const page = { form: 'page', page: 1, perPage: 1, offset: 0 } as const
    const totals = [undefined, 'waiting', 'dead'] as const
    expect(totals.map((state) => jobs.outbox.list(state, page))).toMatchObject([
      { total: 9 },
      { total: 7 },
      { total: 2 },
    ])
  })

  test('that fails is retried with growing delays, and then kept as failed', async () => {
    let attempts = 0
    await using jobs = startJobs(async () => {
      attempts++
      throw new Error('no mail server')
    })
    await jobs.add()
    await jobs.turn()
    expect(attempts).toBe(1)
    await jobs.turn(4_000)
    expect(attempts).toBe(1)
    await jobs.turn(1_500)
    expect(attempts).toBe(2)
    await jobs.turn(6_000)
    expect(attempts).toBe(2)
    for (let n = 0; n < 30; n++) await jobs.turn(3_600_000)
    expect([attempts, jobs.outbox.stats()]).toEqual([12, { waiting: 0, dead: 1, oldestAge: 0 }])
    const row = jobs.sqlite.query('SELECT kind, attempts, last_error FROM outbox').get()
    expect(row).toEqual({ kind: 'verification_mail', attempts: 12, last_error: 'no mail server' })
  })

  test('with a permanent failure is given up at once', async () => {
    await using jobs = startJobs(async () => {
      throw new PermanentFailure('no such mailbox')
    })
    await jobs.add()
    await jobs.turn()
    expect(jobs.outbox.stats()).toMatchObject({ waiting: 0, dead: 1 })
  })

  test('of a kind that an older executable does not know waits for the newer one', async () => {
    await using jobs = startJobs(async () => {})
    const kind = 'later_kind' as 'verification_mail'
    await jobs.write(() => jobs.outbox.add(kind, { user_id: 'u', address_hash: 'h' }))
    await jobs.turn()
    await jobs.turn()
    expect([jobs.outcomes, jobs.outbox.stats().waiting]).toEqual([[], 1])
  })

  test('has an outcome for each run', async () => {
    const runs = [
      () => Promise.reject(new Error('not now')),
      async () => ({ againAfterMilliseconds: 1_000 }),
      async () => undefined,
      () => Promise.reject(new PermanentFailure('never')),
    ]
    await using jobs = startJobs(async () => runs.shift()?.())
    await jobs.add()
    for (let n = 0; n < 3; n++) await jobs.turn(10_000)
    await jobs.add()
    await jobs.turn()
    expect(jobs.outcomes).toEqual(
      ['failed', 'again', 'done', 'given_up'].map((outcome) => `verification_mail ${outcome}`),
    )
  })

  test('that hangs blocks no other, and is not started twice', async () => {
    const hanging = Promise.withResolvers<void>()
    const started: string[] = []
    await using jobs = startJobs((id) => {
      started.push(id)
      return started.length === 1 ? hanging.promise : Promise.resolve()
    })
    await jobs.add()
    await jobs.turn()
    await jobs.add()
    await jobs.turn(600_000)
    expect(new Set(started).size).toBe(2)
    expect(started).toHaveLength(2)
    hanging.resolve()
  })

  test('with a hanging receiver blocks no other receiver and no other kind', async () => {
    const started: string[] = []
    const hanging = Promise.withResolvers<void>()
    await using jobs = startJobs(async (name) => {
      started.push(name.split(' ')[0] ?? '')
      if (name.startsWith('hung')) await hanging.promise
    })
    const count = (receiver: string) => started.filter((name) => name === receiver).length
    await jobs.deliver(['hung'], 50)
    await waitFor(() => count('hung') === 4)
    await jobs.deliver(['well'], 100)
    await jobs.add()
    await waitFor(() => count('well') === 100)
    await waitFor(() => jobs.outcomes.includes('verification_mail done'))
    expect(count('hung')).toBe(4)
    hanging.resolve()
  })

  test('runs even when many receivers hang: 64 run at once, and each receiver gets one', async () => {
    const started: string[] = []
    const hanging = Promise.withResolvers<void>()
    await using jobs = startJobs(async (name) => {
      started.push(name)
      if (name.startsWith('hung')) await hanging.promise
    })
    const hung = Array.from({ length: 20 }, (_, n) => `hung${n}`)
    await jobs.deliver(hung, 10)
    await jobs.deliver(['well'], 3)
    await waitFor(() => started.filter((name) => name.startsWith('well')).length === 3)
    await waitFor(() => started.length === 3 + 16 * 4 + 4)
    hanging.resolve()
  })

  test('leaves no queue of its receiver in memory', async () => {
    await using jobs = startJobs(async () => {})
    const countSets = () => {
      Bun.gc(true)
      return heapStats().objectTypeCounts['Set'] ?? 0
    }
    const before = countSets()
    await jobs.deliver(
      Array.from({ length: 4_000 }, (_, n) => `removed${n}`),
      1,
    )
    await waitFor(() => jobs.outcomes.length === 4_000)
    // One collection may leave some, and earlier tests in this process make some.
    await waitFor(() => countSets() - before < 2_000)
  })

  test('behind 10,000 others for a hanging receiver costs no write while it waits, and one for each attempt', async () => {
    let answers: PromiseWithResolvers<void>[] = []
    await using jobs = startJobs(() => {
      const answer = Promise.withResolvers<void>()
      answers.push(answer)
      return answer.promise
    })
    const changed = () => jobs.sqlite.query('SELECT total_changes()').values()[0]?.[0] as number
    await jobs.deliver(['hung'], 10_000)
    await waitFor(() => answers.length === 4)
    const before = { changed: changed(), commits: jobs.commits.length }
    for (let n = 0; n < 30; n++) await jobs.turn(500)
    expect({ changed: changed(), commits: jobs.commits.length }).toEqual(before)
    for (const { reject } of answers.splice(0)) reject(new Error('no answer within 15 s'))
    await waitFor(() => jobs.outcomes.length === 4 && answers.length === 4)
    expect([changed() - before.changed, jobs.outcomes]).toEqual([
      4,
      Array(4).fill('webhook_delivery failed'),
    ])
    const tried = jobs.sqlite.query('SELECT attempts FROM outbox WHERE attempts > 0').values()
    expect(tried).toEqual(Array(4).fill([1]))
    for (const { resolve } of answers) resolve()
    answers = []
  })

  test('interrupted by a crash is resumed under the same id', async () => {
    const seen: string[] = []
    await using jobs = startJobs(async (id) => {
      seen.push(id)
      if (seen.length === 1) await new Promise(() => {})
    })
    await jobs.add()
    await waitFor(() => seen.length === 1)
    jobs.restart()
    await jobs.turn()
    await waitFor(() => jobs.outcomes.length === 1)
    expect([new Set(seen).size, jobs.outcomes]).toEqual([1, ['verification_mail done']])
  })

  test('is not run again when the disk refuses to store its outcome', async () => {
    let runs = 0
    await using jobs = startJobs(async () => {
      runs++
      jobs.sqlite.run('PRAGMA query_only = 1')
    })
    await jobs.add()
    await waitFor(() => jobs.logged.includes('the outcome of a job could not be stored yet'))
    for (let n = 0; n < 5; n++) await jobs.turn()
    jobs.sqlite.run('PRAGMA query_only = 0')
    await waitFor(() => jobs.outcomes.length > 0)
    expect([runs, jobs.outcomes]).toEqual([1, ['verification_mail done']])
  })

  test('that cannot be started while nothing can be written is logged once, and runs later', async () => {
    await using jobs = startJobs(async () => undefined)
    const job = { user_id: 'u', address_hash: 'h' }
    await jobs.write(() => jobs.outbox.add('verification_mail', job, { delayMilliseconds: 1_000 }))
    jobs.sqlite.run('PRAGMA query_only = 1')
    for (let n = 0; n < 5; n++) await jobs.turn()
    expect(jobs.logged).toEqual(['jobs cannot be started: trying again'])
    jobs.sqlite.run('PRAGMA query_only = 0')
    await jobs.turn()
    await waitFor(() => jobs.outcomes.length > 0)
    expect(jobs.outcomes).toEqual(['verification_mail done'])
  })

  test('that fails is logged once, also when the batch with its outcome is repeated', async () => {
    await using jobs = startJobs(async () => {
      queueRefused()
      throw new Error('no mail server')
    })
    // After the outcome, in the same turn of the loop.
    async function queueRefused() {
      for (let n = 0; n < 30; n++) await null
      const refuse = () => {
        throw new Error('no')
      }
      await jobs.write(refuse).catch(() => {})
    }
    await jobs.add()
    await waitFor(() => jobs.outcomes.length > 0)
    expect(jobs.logged).toEqual(['a job failed and will be retried'])
  })

  test('is counted in the queue up to 10,000, with the oldest of every kind', async () => {
    await using jobs = startJobs(async () => {})
    const insert = jobs.sqlite.prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
       INSERT INTO outbox (id, kind, payload, created_at, run_at) SELECT ?1 || i, ?1, '{}', 0, ?3 + i FROM n`,
    )
    const now = jobs.clock.now()
    insert.run('kind_b', 10_001, now)
    expect(jobs.outbox.stats()).toEqual({ waiting: 10_000, dead: 0, oldestAge: 0 })
    insert.run('kind_c', 1, now - 9_001)
    insert.run('kind_a', 1, now - 4_001)
    expect(jobs.outbox.stats()).toEqual({ waiting: 10_000, dead: 0, oldestAge: 9_000 })
    jobs.sqlite.run('UPDATE outbox SET dead_at = 1')
    expect(jobs.outbox.stats()).toEqual({ waiting: 0, dead: 10_000, oldestAge: 0 })
  })

  test('of a rolled back transaction never runs', async () => {
    await using jobs = startJobs(async () => {})
    const failing = jobs.write(() => {
      jobs.outbox.add('verification_mail', { user_id: 'u', address_hash: 'h' })
      throw new Error('no')
    })
    expect(failing).rejects.toThrow('no')
    await failing.catch(() => {})
    expect(jobs.outbox.stats().waiting).toBe(0)
  })
})

describe('mail', () => {
  const register = (base: string, name: string) =>
    call(base, 'POST', '/v1/auth/register', {
      body: { email: `${name}@example.com`, password: 'correct horse' },
    })

  test.skipIf(!tools.openssl)(
    'uses authentication and STARTTLS, and one connection for many mails',
    async () => {
      using directory = temporaryDirectory()
      const { key, cert } = await makeCertificate(directory.path)
      const sessions: Array<{ secure: boolean; user: unknown }> = []
      await using mail = await startMailServer({
        key: readFileSync(key, 'utf8'),
        cert: readFileSync(cert, 'utf8'),
        authOptional: false,
        onAuth: ({ username, password }, _session, callback) =>
          username === 'us' && password === 'p@ss'
            ? callback(null, { user: username })
            : callback(new Error('no')),
        onMailFrom(_address, session, callback) {
          sessions.push({ secure: session.secure, user: session.user })
          callback()
        },
      })
      const url = `smtp://us:p%40ss@127.0.0.1:${mail.port}?tls.rejectUnauthorized=false`
      await using service = await startService({ environment: { SMTP_URL: url } })
      for (const name of ['ada', 'bob', 'cleo', 'dan']) {
        await service.register(name)
        await mail.next()
      }
      expect(sessions).toEqual(Array(4).fill({ secure: true, user: 'us' }))
      expect(mail.connections()).toBeLessThanOrEqual(2)
    },
  )

  test('at a server that drips its answer fails in the end, and the one beside it does not', async () => {
    let [connections, drops, isClosed] = [0, 0, false]
    const accepted: Socket[] = []
    const drip = (socket: Socket) => {
      const timer = setInterval(() => {
        socket.write('2')
        drops++
      }, 10)
      socket.on('close', () => {
        clearInterval(timer)
        isClosed = true
      })
    }
    const answers = { EHLO: '250 x', MAIL: '250 ok', RCPT: '250 ok', DATA: '354 go' }
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('220 x\r\n')
      if (++connections === 1) return drip(socket.resume())
      socket.on('data', (data) => {
        const line = data.toString()
        const [, answer] = Object.entries(answers).find(([name]) => line.startsWith(name)) ?? []
        if (answer) socket.write(`${answer}\r\n`)
        if (line.endsWith('\r\n.\r\n')) accepted.push(socket)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`
    const timeout = new AbortController()
    using _ = spyOn(AbortSignal, 'timeout').mockReturnValueOnce(timeout.signal)
    const mailer = createSmtpMailer(url, 'us@example.com', 30_000)
    const mail = {
      to: 'ada@example.com',
      subject: 'a',
      text: 'b',
      html: 'c',
      locale: 'en',
    } as const
    const sent = { ...mail, fromName: 'Us', messageId: '<1@example.com>' }
    const first = mailer.send(sent)
    await waitFor(() => drops > 0)
    const second = mailer.send(sent)
    await waitFor(() => accepted.length > 0)
    timeout.abort()
    expect(first).rejects.toThrow('no answer within 30 s')
    await first.catch(() => {})
    await waitFor(() => isClosed)
    accepted[0]?.write('250 queued\r\n')
    expect(await second).toEqual({ state: 'sent', answer: '250 queued' })
    connections = 0
    expect(trySmtp(url, 500)).rejects.toThrow('no answer within 0.5 s')
    mailer.close()
    server.close()
  })

  test('is never sent in clear text, and waits until the server offers TLS', async () => {
    const heard: string[] = []
    await using mail = await startMailServer({
      allowInsecureAuth: true,
      onAuth(_, _session, callback) {
        heard.push('a password')
        callback(null, { user: 'us' })
      },
      onMailFrom(_, _session, callback) {
        heard.push('a mail')
        callback()
      },
    })
    // This machine, by an address that is not recognised as local.
    const SMTP_URL = `smtp://us:pass@0.0.0.0:${mail.port}?requireTLS=false`
    await using service = await startService({ environment: { SMTP_URL } })
    await service.register()
    const row = () =>
      service.sqlite
        .query<{ dead_at: number | null; last_error: string }, []>('SELECT * FROM outbox')
        .get()
    await waitFor(() => row()?.last_error)
    expect([row()?.dead_at, row()?.last_error]).toEqual([null, expect.stringContaining('STARTTLS')])
    const { out } = await hostline(['check'], service.directory, { environment: { SMTP_URL } })
    expect(out).toContain('FAILED mail: ')
    expect(heard).toEqual([])
  })

  test.each([
    ['0.0.0.0', 'true'],
    ['127.0.0.1', 'false'],
    ['[::ffff:127.0.0.1]', 'false'],
  ])('is sent to %s without TLS when SMTP_INSECURE is %s', async (host, SMTP_INSECURE) => {
    await using mail = await startMailServer()
    const SMTP_URL = `smtp://${host}:${mail.port}`
    await using service = await startService({ environment: { SMTP_URL, SMTP_INSECURE } })
    const { email } = await service.register()
    expect((await mail.next()).to).toBe(email)
  })

  test.each(['5.1.1 no such user', '5.1.10 null MX', '5.2.1 mailbox disabled'])(
    'a recipient refused with 550 %s has bounced',
    async (message) => {
      const refusal = Object.assign(new Error(message), { responseCode: 550 })
      await using mail = await startMailServer({
        onRcptTo: (_address, _session, callback) => callback(refusal),
      })
      await using service = await startService({ environment: { SMTP_URL: mail.url } })
      const { token } = await service.register()
      await waitFor(async () => {
        const { body } = await service.call('GET', '/v1/users/me', { token })
        return body.email_bounced_at !== null
      })
    },
  )

  test('to an invented person is skipped', async () => {
    await using mail = await startMailServer()
    const clock = createTestClock()
    await using service = await startService({
      clock,
      environment: { SMTP_URL: mail.url, DEMO: 'true' },
    })
    const body = { subject: 'a', body: 'b', answer: 'c' }
    const { left } = (await service.call('POST', '/demo/people', { body })).body
    const states = service.sqlite.query('SELECT user_id, state FROM deliveries')
    await waitFor(() => {
      clock.advance(60_000)
      return states.get() !== null
    })
    expect([states.values(), mail.mails]).toEqual([[[left.user.id, 'skipped']], []])
  })

  test('a bounce and its end are events, which the platform can follow', async () => {
    const refusal = Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 })
    let answer: Error | null = refusal
    await using mail = await startMailServer({
      onRcptTo: (_address, _session, callback) => callback(answer),
    })
    const clock = createTestClock()
    await using service = await startService({ clock, environment: { SMTP_URL: mail.url } })
    const seen: (number | null | undefined)[] = []
    service.events.subscribe(({ type, ids }) => {
      if (type === 'user.updated')
        seen.push(service.accounts.findUser(ids['user_id'] ?? '')?.emailBouncedAt)
    })
    const { id, token } = await service.register()
    const until = (hasBounced: boolean) =>
      waitFor(() => {
        clock.advance(500)
        return (service.accounts.findUser(id)?.emailBouncedAt !== null) === hasBounced
      })
    await until(true)
    answer = null
    clock.advance(60_000)
    await service.call('POST', '/v1/auth/verify-email/resend', { token })
    await until(false)
    expect(seen).toEqual([expect.any(Number), null])
  })

  test('bounces only when the server says that the address is wrong; any other refusal is retried', async () => {
    let answer = { responseCode: 554, message: '5.7.1 <ada@example.com>: Relay access denied' }
    await using mail = await startMailServer({
      onRcptTo: ({ address }, _session, callback) =>
        address === 'ada@example.com'
          ? callback(Object.assign(new Error(answer.message), answer))
          : callback(),
    })
    const clock = createTestClock()
    await using service = await startService({ clock, environment: { SMTP_URL: mail.url } })
    const admin = await service.registerAs('admin')
    clock.advance(1_000)
    await waitFor(() => service.sqlite.query('SELECT 1 FROM outbox').get() === null)
    const { id, token } = await service.register('ada')
    const outbox = () =>
      service.sqlite
        .query<{ attempts: number; dead: number; last_error: string }, []>(
          'SELECT attempts, dead_at IS NOT NULL dead, last_error FROM outbox',
        )
        .get()
    clock.advance(1_000)
    await waitFor(() => outbox()?.last_error)
    for (const [responseCode, message] of [
      [550, 'no such mailbox'],
      [550, '5.2.2 mailbox full'],
      [550, '5.1.8 Bad sender address'],
      [451, '4.7.1 come back later'],
    ] as const) {
      const { attempts = 0 } = outbox() ?? {}
      answer = { responseCode, message }
      clock.advance(60_000)
      await waitFor(() => outbox()?.attempts === attempts + 1)
      expect(outbox()).toMatchObject({ dead: 0, last_error: expect.stringContaining(message) })
      await waitFor(() => service.log().includes(message))
    }
    expect((await service.call('GET', '/v1/users/me', { token })).body.email_bounced_at).toBeNull()
    const warningsOf = async () =>
      (await service.call('GET', '/v1/admin/system', { token: admin.token })).body.warnings
    const warning = `Mails fail and are tried again: Can't send mail - all recipients were rejected: 451 4.7.1 come back later`
    expect(await warningsOf()).toContainEqual({ code: 'mail_failing', message: warning })
    const checked = await hostline(['check'], service.directory)
    expect(checked.out).toMatch(
      /warn {3}delivery by email: fails, the last time with: .* come back later/,
    )
    answer = { responseCode: 550, message: '5.1.1 <ada@example.com>: no such mailbox' }
    clock.advance(600_000)
    await waitFor(() => outbox() === null)
    const bounced = await service.call('GET', '/v1/users/me', { token })
    expect(bounced.body.email_bounced_at).toBe(new Date(clock.now()).toISOString())
    expect(service.log()).toContain('a mail server permanently refused an address')
    expect(service.log()).toContain('550 5.1.1')
    expect(service.log()).not.toContain('ada@')
    expect(await warningsOf()).not.toContainEqual(expect.objectContaining({ code: 'mail_failing' }))
    const path = `/v1/admin/users/${id}/deliveries`
    const { body } = await service.call('GET', path, { token: admin.token })
    expect(body.data).toEqual([
      {
        id: expect.any(String),
        channel: 'email',
        kind: 'verification_mail',
        state: 'bounced',
        attempts: 6,
        answer: expect.stringMatching(/550 5\.1\.1 <…@…>: no such mailbox$/),
        at: new Date(clock.now()).toISOString(),
      },
    ])
  })

  test('is skipped when its waiting job is discarded', async () => {
    const clock = createTestClock()
    const environment = { SMTP_URL: 'smtp://127.0.0.1:1' }
    await using service = await startService({ clock, environment })
    const { token } = await service.registerAs('admin')
    const { id } = await service.register('ada')
    const delivery = async () =>
      (await service.call('GET', `/v1/admin/users/${id}/deliveries`, { token })).body.data[0]
    await waitFor(async () => {
      clock.advance(500)
      return (await delivery())?.state === 'waiting'
    })
    await service.call('DELETE', `/v1/admin/jobs/${(await delivery()).id}`, { token })
    expect((await delivery()).state).toBe('skipped')
  })

  test('counts as failed when its job is discarded during an attempt that fails', async () => {
    let refuse: (() => void) | undefined
    await using mail = await startMailServer({
      onRcptTo({ address }, _session, callback) {
        if (address !== 'ada@example.com') return callback()
        refuse = () => callback(Object.assign(new Error('busy'), { responseCode: 451 }))
      },
    })
    await using service = await startService({ environment: { SMTP_URL: mail.url } })
    const { token } = await service.registerAs('admin')
    await service.register('ada')
    const answer = await waitFor(() => refuse)
    const [job] = (await service.call('GET', '/v1/admin/jobs', { token })).body.data
    await service.call('DELETE', `/v1/admin/jobs/${job.id}`, { token })
    answer()
    const state = () =>
      service.sqlite
        .query<{ state: string }, [string]>('SELECT state FROM deliveries WHERE id = ?')
        .get(job.id)?.state
    expect(await waitFor(state)).toBe('failed')
  })

  test('is logged with its receipt for 30 days, exported, and forgotten with the account', async () => {
    await using mail = await startMailServer()
    const clock = createTestClock()
    await using service = await startService({ clock, environment: { SMTP_URL: mail.url } })
    const [ada, bob] = [await service.register('ada'), await service.register('bob')]
    const left = () =>
      service.sqlite.query('SELECT user_id FROM deliveries ORDER BY 1').values().flat()
    await waitFor(() => {
      clock.advance(500)
      return left().length === 2
    })
    const exported = await service.call('GET', '/v1/users/me/export', { token: ada.token })
    expect(exported.body.deliveries).toEqual([
      {
        id: expect.any(String),
        channel: 'email',
        kind: 'verification_mail',
        state: 'sent',
        attempts: 1,
        answer: expect.stringMatching(/^250 /),
        at: expect.any(String),
      },
    ])
    const body = { password: 'correct horse' }
    await service.call('DELETE', '/v1/users/me', { token: ada.token, body })
    await waitFor(() => left().length < 2)
    expect(left()).toEqual([bob.id])
    clock.advance(31 * 86_400_000)
    await waitFor(() => left().length === 0)
  })

  test('is not logged when its user was removed during the attempt', async () => {
    let refuse: (() => void) | undefined
    await using mail = await startMailServer({
      onRcptTo(_address, _session, callback) {
        refuse = () => callback(Object.assign(new Error('busy'), { responseCode: 451 }))
      },
    })
    await using service = await startService({ environment: { SMTP_URL: mail.url } })
    const { token } = await service.register('ada')
    const answer = await waitFor(() => refuse)
    const body = { password: 'correct horse' }
    await service.call('DELETE', '/v1/users/me', { token, body })
    const jobs = service.sqlite.query('SELECT kind FROM outbox')
    await waitFor(() => jobs.get() === null)
    answer()
    await waitFor(() => service.log().includes('a job was given up'))
    expect(service.sqlite.query('SELECT * FROM deliveries').all()).toEqual([])
  })

  test('that arrives ends the mark of a bounce', async () => {
    await using mail = await startMailServer()
    await using service = await startService({ environment: { SMTP_URL: mail.url } })
    const { email, token } = await service.register('ada')
    await mail.next()
    service.sqlite.run('UPDATE users SET email_bounced_at = 1')
    await service.call('POST', '/v1/auth/password/forgot', { body: { email } })
    await mail.next()
    const bouncedAt = async () =>
      (await service.call('GET', '/v1/users/me', { token })).body.email_bounced_at
    await waitFor(async () => (await bouncedAt()) === null)
  })

  test('that ends the mark of a bounce is sent once, although the disk was full when it arrived', async () => {
    let accept: (() => void) | undefined
    await using mail = await startMailServer({
      onRcptTo(_address, _session, callback) {
        if (accept) return callback()
        accept = callback
      },
    })
    const clock = createTestClock()
    await using service = await startService({ clock, environment: { SMTP_URL: mail.url } })
    const { sqlite, log } = service
    await service.register()
    sqlite.run('UPDATE users SET email_bounced_at = 1')
    const answer = await waitFor(() => {
      clock.advance(500)
      return accept
    })
    sqlite.run('PRAGMA query_only = ON')
    answer()
    await waitFor(() => log().includes('the outcome of a job could not be stored yet'))
    sqlite.run('PRAGMA query_only = OFF')
    await waitFor(() => {
      clock.advance(60_000)
      return sqlite.query('SELECT 1 FROM outbox').get() === null
    })
    expect(mail.mails).toHaveLength(1)
  })

  test('to a permanently refused unknown address is given up', async () => {
    await using mail = await startMailServer({
      onRcptTo: (_address, _session, callback) =>
        callback(Object.assign(new Error('5.1.1 no such mailbox'), { responseCode: 550 })),
    })
    const clock = createTestClock()
    const environment = { SMTP_URL: mail.url, SUPPORT_INBOX: 'desk@example.com' }
    await using service = await startService({ clock, environment })
    const { token } = await service.register('ada')
    const body = { subject: 's', body: 'b' }
    await service.call('POST', '/v1/support/tickets', { token, body })
    const dead = () =>
      service.sqlite.query('SELECT kind FROM outbox WHERE dead_at IS NOT NULL').values()
    await waitFor(() => {
      clock.advance(60_000)
      return dead().length > 0
    })
    expect(dead()).toEqual([['support_inbox_mail']])
  })

  test('that the server refuses from us is retried: the operator can fix that', async () => {
    await using mail = await startMailServer({
      onMailFrom: (_address, _session, callback) =>
        callback(Object.assign(new Error('sender refused'), { responseCode: 550 })),
    })
    const clock = createTestClock()
    await using service = await startService({ clock, environment: { SMTP_URL: mail.url } })
    await service.register()
    clock.advance(1_000)
    const row = () =>
      service.sqlite
        .query<{ last_error: string | null; dead: number }, []>(
          'SELECT last_error, dead_at IS NOT NULL dead FROM outbox',
        )
        .get()
    await waitFor(() => row()?.last_error)
    expect(row()?.dead).toBe(0)
  })

  testAtLength('survives kill -9 at any moment: each person gets one', async () => {
    using directory = temporaryDirectory()
    await using mail = await startMailServer()
    const environment = { SMTP_URL: mail.url }
    const names = Array.from({ length: size(60, 24) }, (_, n) => `person${n}`)
    const acknowledged: string[] = []
    while (names.length > 0) {
      const server = await startServer({ dataDir: directory.path, environment })
      const registrations = names.splice(0, 6).map(async (name) => {
        const { status } = await register(server.base, name)
        if (status === 201) acknowledged.push(`${name}@example.com`)
      })
      await Promise.all(registrations)
      await aWhile(200)
      await server.kill('SIGKILL')
    }
    await using last = await startServer({ dataDir: directory.path, environment })
    const people = () => new Set(mail.mails.map(({ to }) => to))
    await waitFor(() => people().size >= acknowledged.length, 'a mail for everybody')
    expect([...people()].sort()).toEqual(acknowledged.sort())
    // A mail accepted just before the process died may be sent again, with the same Message-ID, so that mailboxes can
    // detect it.
    expect(new Set(mail.mails.map(({ messageId }) => messageId)).size).toBe(acknowledged.length)
    expect(last.output()).not.toContain('given up')
  })

  test('without SMTP_URL is logged with its link, and the start says so', async () => {
    using directory = temporaryDirectory()
    await using server = await startServer({ dataDir: directory.path })
    await register(server.base, 'ada')
    await waitFor(() => server.output().includes('/verify-email?lang=en#token='))
    expect(server.output()).toContain('/verify-email?lang=en#token=')
    expect(server.output()).toContain('no SMTP_URL')
    expect(server.output()).toMatch(/there is no admin yet.*\/set-up#token=[\w-]{43}/)
  })

  test('is logged without its token or code when the service uses https', async () => {
    const environment = { PUBLIC_URL: 'https://chat.example.com' }
    await using service = await startService({ environment })
    const { token } = await service.register()
    await waitFor(() => service.log().includes('/verify-email?lang=en#token='))
    expect(service.log()).toContain('https://chat.example.com/verify-email?lang=en#token=…')
    expect(service.log()).not.toMatch(/token=[\w-]/)
    service.sqlite.run('UPDATE users SET email_verified = 1')
    await service.call('POST', '/v1/auth/confirm/code', { token })
    await waitFor(() => service.log().includes('Your code: '))
    expect(service.log()).toContain('"subject":"Your code: …","text":"Enter this code')
    expect(service.log()).not.toMatch(/code[^"]*: \d/)
  })
})

test('expired rows are deleted', async () => {
  const clock = createTestClock()
  await using service = await startService({ clock })
  await service.register()
  const rows = (table: string) =>
    service.sqlite.query<{ n: number }, []>(`SELECT count(*) n FROM ${table}`).get()?.n
  expect([rows('sessions'), rows('refresh_tokens')]).toEqual([1, 1])
  clock.advance(32 * 86_400_000)
  await waitFor(() => rows('sessions') === 0)
  expect([rows('sessions'), rows('refresh_tokens'), rows('users')]).toEqual([0, 0, 1])
})

test('readConfig refuses mail URLs of other protocols', () => {
  expect(() => readConfig({ SMTP_URL: 'http://mail' }, false)).toThrow(
    'SMTP_URL must be an address such as smtp://',
  )
})
