import { describe, expect, test } from 'bun:test'
import { existsSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { filesIn, upload } from './support/files.ts'
import { type Person, startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const day = 86_400_000
const large = '🙂'.repeat(5_000)
const outcome = (answer: Awaited<ReturnType<TestService['call']>>) => [
  answer.status,
  answer.headers.get('x-error-reason'),
]
const refused = [403, 'quota_exceeded']

/** Counts so many bytes as stored on the day of `now`. */
function countAsStored(service: TestService, { id }: Person, bytes: number, now: number) {
  const row = [id, now - (now % day), bytes] as const
  service.sqlite.run('INSERT INTO text_usage (user_id, day, bytes) VALUES (?, ?, ?)', [...row])
}

describe('the daily text quota of a user', () => {
  test('is 5 MB until the address is verified, over REST and the socket, and 50 MB from then on', async () => {
    const clock = createTestClock()
    await using service = await startService({ clock, listen: true })
    const { a, b, conversationId } = await service.pair()
    const say = (text: string) => service.say(a, conversationId, text)
    countAsStored(service, a, 4_980_000, clock.now())
    expect((await say(large)).status).toBe(201)
    expect(outcome(await say('x'))).toEqual(refused)
    const socket = await service.connect(a)
    socket.send({ type: 'message', conversation_id: conversationId, body: 'x' })
    expect(await socket.next('error')).toMatchObject({ reason: 'quota_exceeded' })
    expect((await service.say(b, conversationId, 'x')).status).toBe(201)
    service.sqlite.run('UPDATE users SET email_verified = 1 WHERE id = ?', [a.id])
    expect((await say('x')).status).toBe(201)
    socket.close()
  })

  test('continues after a restart, except for the last 64 KiB, and starts again on the next day', async () => {
    using directory = temporaryDirectory()
    const [dataDir, clock] = [directory.path, createTestClock()]
    const first = await startService({ dataDir, clock })
    const { a, conversationId } = await first.pair()
    for (let n = 0; n < 4; n++) await first.say(a, conversationId, large)
    await first.stop()
    await using next = await startService({ dataDir, clock })
    const kept = next.sqlite.query<{ bytes: number }, []>('SELECT bytes FROM text_usage')
    expect(kept.get()?.bytes).toBe(80_000)
    next.sqlite.run('UPDATE text_usage SET bytes = 5000000')
    expect(outcome(await next.say(a, conversationId, 'x'))).toEqual(refused)
    clock.advance(day)
    const renewed = await next.login(a.email)
    expect((await next.say(renewed, conversationId, 'x')).status).toBe(201)
    clock.advance(2 * day)
    await waitFor(() => kept.get() === null)
  })

  test('includes tickets, reports and broadcasts; repeated messages do not count', async () => {
    // A request takes time: no two readings of the clock are alike.
    let now = Math.ceil(Date.now() / day) * day
    const clock = { ...createTestClock(), now: () => ++now }
    await using service = await startService({ clock })
    const host = await service.registerAs('host')
    const { a, b, conversationId } = await service.pair()
    countAsStored(service, a, 4_999_998, now)
    countAsStored(service, b, 4_999_998, now)
    countAsStored(service, host, 50_000_000, now)
    const ask = async (person: Person, path: string, body: object) =>
      service.call('POST', path, { token: person.token, body })
    const messages = `/v1/chat/conversations/${conversationId}/messages`
    const once = { body: 'Hi', client_id: 'one' }
    for (const _ of [1, 2]) expect((await ask(a, messages, once)).status).toBe(201)
    const { body: ticket } = await ask(b, '/v1/support/tickets', { subject: 's', body: 'b' })
    const report = { user_id: b.id, reason: 'spam', body: 'b' }
    for (const [person, path, body] of [
      [a, '/v1/support/tickets', { subject: 's', body: 'b' }],
      [a, '/v1/reports', report],
      [b, `/v1/support/tickets/${ticket.id}/messages`, { body: 'c' }],
      [host, '/v1/chat/broadcast', { body: 'b' }],
    ] as const) {
      expect([path, ...outcome(await ask(person, path, body))]).toEqual([path, ...refused])
    }
    expect((await ask(a, '/v1/reports', { ...report, body: undefined })).status).toBe(201)
  })
})

describe('a disk with less than MIN_FREE_MB', () => {
  test('accepts no uploads until there is room, and everything else', async () => {
    let freeBytes = 2_000_000_000
    const environment = { MIN_FREE_MB: '1000' }
    await using service = await startService({ environment, freeBytes: () => freeBytes })
    const { a, conversationId } = await service.pair()
    const put = async () => {
      const { status, headers } = await upload(service, a, 'x')
      return [status, headers.get('retry-after')]
    }
    expect(await put()).toEqual([201, null])
    freeBytes = 999_999_999
    expect(await put()).toEqual([503, '60'])
    expect(filesIn(service)).toHaveLength(1)
    expect((await service.say(a, conversationId, 'Hi')).status).toBe(201)
    freeBytes = 1_000_000_000
    expect(await put()).toEqual([201, null])
    expect(service.log()).toContain('uploads are refused')
    expect(service.log()).toContain('uploads are accepted again')
  })

  test('makes no backup', async () => {
    await using service = await startService()
    using directory = temporaryDirectory()
    const target = join(directory.path, 'backup.db')
    const environment = { MIN_FREE_MB: '1000000000' }
    const { exitCode, err } = await hostline(['backup', target], service.directory, { environment })
    expect([exitCode, existsSync(target)]).toEqual([1, false])
    expect(err).toMatch(
      /^hostline: no backup was made in \S+: only \d+ MB are free there, less than MIN_FREE_MB$/,
    )
    expect((await hostline(['backup', target], service.directory)).exitCode).toBe(0)
  })

  test('fails the check, which shows the unit of MIN_FREE_MB', async () => {
    await using service = await startService()
    const environment = { MIN_FREE_MB: '1000000000' }
    const { out } = await hostline(['check'], service.directory, { environment })
    const [, left] = /^FAILED free disk: only (\d+) MB left$/m.exec(out) ?? []
    const { bavail, bsize } = statfsSync(service.directory)
    expect((Number(left) * 1_000_000) / (bavail * bsize)).toBeCloseTo(1, 1)
  })
})
