import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { YAML } from 'bun'
import { createMetrics } from '../src/metrics.ts'
import { createTestClock } from './support/clock.ts'
import { temporaryDirectory } from './support/directory.ts'
import { replicatedTo, replicaWithStats } from './support/replica.ts'
import { startService, type TestService } from './support/service.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

const { promtool } = tools
const alerts = join(import.meta.dir, '../docs/alerts.yml')
const listening = { listen: true }

/** The values of all series that begin with `start`, by the rest of their name. */
async function scrape(service: TestService, start: string): Promise<Record<string, number>> {
  const { body } = await service.call('GET', '/metrics')
  return readSeries(body, start)
}

function readSeries(text: string, start: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line.startsWith(start))
  return Object.fromEntries(
    lines.map((line) => {
      const gap = line.lastIndexOf(' ')
      return [line.slice(start.length, gap), Number(line.slice(gap))]
    }),
  )
}

/** Polls until the metrics are as expected: some are counted just after a response. */
async function eventually(service: TestService, start: string, expected: Record<string, number>) {
  let found = {}
  await waitFor(async () => {
    found = await scrape(service, start)
    return Bun.deepEquals(found, expected)
  }).catch(() => expect(found).toEqual(expected))
}

describe('requests', () => {
  test('are counted once each, by route and status, for any status', async () => {
    await using service = await startService({
      listen: true,
      environment: { RATE_LIMIT_LOGIN: '1/1m', METRICS_TOKEN: 'secret' },
    })
    const { a, conversationId } = await service.pair()
    const messages = `/v1/chat/conversations/${conversationId}/messages`
    const login = { body: { email: a.email, password: 'wrong' } }
    const preflight = { origin: 'http://a.example', 'access-control-request-method': 'GET' }
    service.sqlite.run('DROP TABLE canned_replies')
    await service.say(a, conversationId, 'hi')
    await service.call('POST', messages, { token: a.token, body: { body: 'x'.repeat(70_000) } })
    await service.call('POST', messages, { token: a.token, body: {} })
    await service.call('GET', messages)
    await service.call('GET', '/v1/nothing/here')
    await service.call('OPTIONS', messages, { headers: preflight })
    await service.call('POST', '/v1/auth/login', login)
    await service.call('POST', '/v1/auth/login', login)
    await service.call('PUT', messages.replace('messages', 'read'), { token: a.token })
    await service.call('GET', '/v1/users/me/export', { token: a.token })
    const admin = await service.registerAs('admin')
    await service.call('GET', '/v1/admin/support/canned-replies', { token: admin.token })
    await service.call('HEAD', '/healthz')
    ;(await service.connect(a)).close()
    const headers = { authorization: 'Bearer secret' }
    const { body } = await service.call('GET', '/metrics', { headers })
    const series = (method: string, route: string, status: number) =>
      `{method="${method}",route="${route}",status="${status}"}`
    const pattern = '/v1/chat/conversations/:id/messages'
    expect(readSeries(body, 'hostline_http_request_duration_seconds_count')).toEqual({
      [series('POST', '/v1/auth/register', 201)]: 3,
      [series('POST', '/v1/chat/conversations', 201)]: 1,
      [series('POST', pattern, 201)]: 1,
      [series('POST', pattern, 413)]: 1,
      [series('POST', pattern, 400)]: 1,
      [series('GET', pattern, 401)]: 1,
      [series('GET', 'unknown', 404)]: 1,
      [series('OPTIONS', 'unknown', 204)]: 1,
      [series('POST', '/v1/auth/login', 401)]: 1,
      [series('POST', '/v1/auth/login', 429)]: 1,
      [series('PUT', '/v1/chat/conversations/:id/read', 204)]: 1,
      [series('GET', '/v1/users/me/export', 200)]: 1,
      [series('GET', '/v1/admin/support/canned-replies', 500)]: 1,
      [series('HEAD', '/healthz', 200)]: 1,
      [series('GET', '/v1/chat/ws', 101)]: 1,
    })
  })

  test('with unknown paths and methods are one series each', async () => {
    await using service = await startService(listening)
    for (let n = 0; n < 50; n++) await service.call('GET', `/wp-admin/${n}`)
    for (const method of ['PROPFIND', 'MKCOL', 'LOCK']) await service.call(method, '/')
    expect(await scrape(service, 'hostline_http_request_duration_seconds_count')).toEqual({
      '{method="GET",route="unknown",status="404"}': 50,
      '{method="other",route="unknown",status="404"}': 3,
    })
  })

  test('are timed, each one', async () => {
    await using service = await startService(listening)
    for (let n = 0; n < 7; n++) await service.call('GET', '/healthz')
    const duration = await scrape(service, 'hostline_http_request_duration_seconds')
    expect(duration['_bucket{le="+Inf",method="GET",route="/healthz",status="200"}']).toBe(7)
    expect(duration['_count{method="GET",route="/healthz",status="200"}']).toBe(7)
    expect(duration['_sum{method="GET",route="/healthz",status="200"}']).toBeWithin(0.00001, 5)
  })

  test('are counted without those for the metrics', async () => {
    await using service = await startService(listening)
    const asked = Array.from({ length: 20 }, () => service.call('GET', '/healthz'))
    const scrapes = Array.from({ length: 5 }, () => service.call('GET', '/metrics'))
    const answers = await Promise.all([...asked, ...scrapes])
    expect(answers.map(({ status }) => status)).toEqual(Array(25).fill(200))
    const total = await scrape(
      service,
      'hostline_http_request_duration_seconds_count{method="GET",route="/healthz"',
    )
    expect(total).toEqual({ ',status="200"}': 20 })
  })
})

describe('the channel', () => {
  test('counts client frames by type, and malformed and refused ones', async () => {
    await using service = await startService({
      listen: true,
      environment: { RATE_LIMIT_FRAMES: '1/1m' }, // a burst of three
    })
    const { a, conversationId } = await service.pair()
    const socket = await service.connect(a)
    socket.send({ type: 'read', conversation_id: conversationId })
    socket.send('{')
    await socket.settled()
    socket.send({ type: 'ping' })
    await socket.next('error')
    await socket.next('error')
    expect(await scrape(service, 'hostline_frames_received_total')).toEqual({
      '{type="read"}': 1,
      '{type="malformed"}': 1,
      '{type="ping"}': 1,
      '{type="refused"}': 1,
    })
  })

  test('counts sent and dropped frames', async () => {
    await using service = await startService(listening)
    const { a, conversationId } = await service.pair()
    const [one, two] = [await service.connect(a), await service.connect(a)]
    await service.say(a, conversationId, 'hi')
    await Promise.all([one.next('new_message'), two.next('new_message')])
    service.hub.add({
      userId: 'deaf',
      sessionId: '',
      role: 'user',
      mayAdminister: false,
      wants: () => true,
      send: () => false,
      isBehind: () => true,
      isExpired: () => false,
      drop() {},
      close() {},
    })
    service.hub.send(['deaf'], { type: 'new_message' })
    expect(await scrape(service, 'hostline_frames_sent')).toEqual({ _total: 2 })
    expect(await scrape(service, 'hostline_frames_dropped')).toEqual({ _total: 1 })
  })

  test('shows its sockets and their close codes, of which there is a fixed number', async () => {
    await using service = await startService(listening)
    const { a, b } = await service.pair()
    const admin = await service.registerAs('admin')
    const [one, two] = [await service.connect(a), await service.connect(a)]
    const three = await service.connect(b)
    const theirs = await service.connect(admin)
    expect(await scrape(service, 'hostline_socket')).toEqual({ s: 4, _users: 3 })
    one.close(1000)
    two.close(4321)
    theirs.close(4322)
    await service.call('POST', '/v1/auth/logout', {
      token: b.token,
      body: { refresh_token: b.refreshToken },
    })
    expect(await three.closed).toBe(4403)
    await eventually(service, 'hostline_sockets_closed_total', {
      '{code="1000"}': 1,
      '{code="other"}': 2,
      '{code="4403"}': 1,
    })
    expect(await scrape(service, 'hostline_socket_users')).toEqual({ '': 0 })
  })
})

describe('storage', () => {
  test('counts and times commits, their writes and syncs, and shows the file sizes', async () => {
    await using service = await startService(listening)
    const { a, conversationId } = await service.pair()
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => service.say(a, conversationId, `hi ${n}`)),
    )
    const waiting = service.sqlite.query("SELECT 1 FROM outbox WHERE kind <> 'unread_mail'")
    await waitFor(() => waiting.get() === null, 'the last mail')
    const { body } = await service.call('GET', '/metrics')
    const { _count: commits = 0, _sum: commitSeconds } = readSeries(
      body,
      'hostline_commit_duration_seconds',
    )
    const { _count: batches, _sum: writes = 0 } = readSeries(body, 'hostline_commit_writes')
    const { _count: syncs, _sum: syncSeconds } = readSeries(body, 'hostline_sync_duration_seconds')
    expect(batches).toBe(commits)
    expect(writes).toBeGreaterThanOrEqual(23)
    expect(syncs).toBeWithin(1, commits + 1)
    expect(commitSeconds).toBeGreaterThan(0)
    expect(syncSeconds).toBeGreaterThan(0)
    const { _bytes: database, _wal_bytes: wal } = readSeries(body, 'hostline_database')
    expect(database).toBe(Bun.file(join(service.directory, 'hostline.db')).size)
    expect(wal).toBe(Bun.file(join(service.directory, 'hostline.db-wal')).size)
  })

  test('counts failed commits', async () => {
    await using service = await startService(listening)
    const { a, conversationId } = await service.pair()
    expect(await scrape(service, 'hostline_commits_failed')).toEqual({ _total: 0 })
    service.sqlite.run('PRAGMA max_page_count = 1') // SQLite keeps it at the present size
    let answer = await service.say(a, conversationId, 'y'.repeat(5_000))
    for (let n = 0; answer.status === 201 && n < 50; n++) {
      answer = await service.say(a, conversationId, 'y'.repeat(5_000))
    }
    const { _total: failed } = await scrape(service, 'hostline_commits_failed')
    expect(answer.status).toBe(503)
    expect(failed).toBeGreaterThan(0)
  })
})

describe('jobs', () => {
  test('are counted by kind and outcome', async () => {
    await using service = await startService(listening)
    await service.register()
    await eventually(service, 'hostline_jobs_total', {
      '{kind="verification_mail",outcome="done"}': 1,
    })
  })

  test('that wait or have failed are shown, and the age of the oldest due one', async () => {
    await using service = await startService({
      listen: true,
      environment: { SMTP_URL: 'smtp://127.0.0.1:1' },
    })
    await service.pair()
    await eventually(service, 'hostline_jobs_total', {
      '{kind="verification_mail",outcome="failed"}': 2,
    })
    const [dead] = service.sqlite.query('SELECT min(id) FROM outbox').values()[0] ?? []
    service.sqlite.run('UPDATE outbox SET dead_at = 1 WHERE id = ?', [dead as string])
    // No job runner takes a kind that only a newer version knows.
    service.sqlite.run("UPDATE outbox SET kind = 'newer', run_at = ? - 90000", [Date.now()])
    const { _waiting, _dead, _oldest_seconds } = await scrape(service, 'hostline_outbox')
    expect([_waiting, _dead]).toEqual([1, 1])
    expect(_oldest_seconds).toBeWithin(90, 120)
  })
})

describe('the process', () => {
  test('shows the delay of the event loop, with several samples for a long stop', async () => {
    const clock = createTestClock()
    const metrics = createMetrics('1.2.3', clock)
    Bun.sleepSync(260)
    clock.advance(50)
    const read = async () => readSeries(await metrics.text(), 'hostline_event_loop_delay_seconds')
    const { _count: count = 0, '_bucket{le="0.1"}': short = 0 } = await read()
    expect(count).toBeGreaterThanOrEqual(5)
    expect(count - short).toBeGreaterThanOrEqual(3)
    metrics.stop()
    clock.advance(50)
    expect((await read())['_count']).toBe(count)
  })

  test('shows its version, memory, CPU time, files and start', async () => {
    await using service = await startService(listening)
    const metrics = await scrape(service, 'process_')
    const now = Date.now() / 1_000
    expect(metrics['cpu_seconds_total']).toBeWithin(0.01, 10_000)
    expect(metrics['resident_memory_bytes']).toBeWithin(10_000_000, 4_000_000_000)
    expect(metrics['start_time_seconds']).toBeWithin(now - 86_400, now)
    if (process.platform === 'linux') {
      const { open_fds: open, max_fds: max = 0 } = metrics
      expect(open).toBeWithin(5, max)
    }
    expect(await scrape(service, 'hostline_build_info')).toEqual({ '{version="0.2.0"}': 1 })
  })
})

describe('access to the metrics', () => {
  const read = (service: TestService, headers = {}) => service.call('GET', '/metrics', { headers })

  test('is open to this machine only, not through a proxy on it', async () => {
    await using service = await startService(listening)
    const { status, headers } = await read(service)
    expect([status, headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ])
    const forwarded = await read(service, { 'x-forwarded-for': '203.0.113.1' })
    expect([forwarded.status, forwarded.body.error.code]).toEqual([401, 'unauthorized'])
  })

  test('needs the bearer token when METRICS_TOKEN is set', async () => {
    await using service = await startService({
      listen: true,
      environment: { METRICS_TOKEN: 'secret' },
    })
    expect((await read(service)).status).toBe(401)
    expect((await read(service, { authorization: 'Bearer wrong' })).status).toBe(401)
    expect((await read(service, { authorization: 'Bearer secret' })).status).toBe(200)
  })
})

describe.skipIf(!promtool)('promtool', () => {
  async function check(what: string[], input = '') {
    const checking = Bun.spawn([promtool ?? '', 'check', ...what], {
      stdin: new Blob([input]),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const output = [checking.stdout, checking.stderr].map((stream) => new Response(stream).text())
    return { exitCode: await checking.exited, output: (await Promise.all(output)).join('') }
  }

  test('accepts the metrics of a standby', async () => {
    const metrics = createMetrics('1.0.0', createTestClock())
    const place = { epoch: 1, position: 42 }
    const failed = { failures: 3, failure: { at: 1, reason: 'away' } }
    const counts = { objects: 0, bytes: 0, isRestorable: true, ...failed }
    metrics.readReplica(() => ({ role: 'standby', place, lagMilliseconds: 2_500, ...counts }))
    const text = await metrics.text()
    metrics.stop()
    expect(readSeries(text, 'hostline_replica_')).toEqual({
      leader: 0,
      position: 42,
      lag_seconds: 2.5,
      restorable: 1,
      last_drill_timestamp_seconds: 0,
      drill_failed: 0,
      last_stored_timestamp_seconds: 0,
      last_snapshot_timestamp_seconds: 0,
      objects_total: 0,
      bytes_total: 0,
      failures_total: 3,
    })
    expect(await check(['metrics'], text)).toEqual({ exitCode: 0, output: '' })
  })

  test('accepts the metrics', async () => {
    await using service = await startService(listening)
    const { a } = await service.pair()
    const socket = await service.connect(a)
    await socket.settled()
    socket.close()
    await eventually(service, 'hostline_sockets_closed_total', { '{code="1000"}': 1 })
    const { body } = await service.call('GET', '/metrics')
    expect(await check(['metrics'], body)).toEqual({ exitCode: 0, output: '' })
  })

  test('accepts the example alerts, which use existing metrics', async () => {
    expect(await check(['rules', alerts])).toMatchObject({ exitCode: 0 })
    const tls = { TLS_CERT: '/none.pem', TLS_KEY: '/none.key' }
    const environment = { METRICS_TOKEN: 'secret', ...tls, ...replicatedTo }
    await using service = await startService({ environment, replica: replicaWithStats() })
    await service.call('GET', '/healthz')
    const headers = { authorization: 'Bearer secret' }
    const { body } = await service.call('GET', '/metrics', { headers })
    const named = (await Bun.file(alerts).text()).match(/\b(hostline|process)_\w+/g) ?? []
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((name) => !body.includes(name))).toEqual([])
  })

  test.each([
    ['while one of a pair leads, and its snapshots are its backups', 1, []],
    ['when no machine leads', 0, ['HostlineNoLeader']],
  ])('alerts fire when they should: %s', async (_, leads, expected) => {
    using folder = temporaryDirectory()
    const file = join(folder.path, 'tests.yml')
    const input_series = Object.entries({
      'replica_leader{instance="a"}': `${leads}+0x80`,
      'replica_leader{instance="b"}': '0+0x80',
      'replica_lag_seconds{instance="a"}': '1+0x80',
      'last_backup_timestamp_seconds{instance="a"}': '0+0x80',
      'replica_last_snapshot_timestamp_seconds{instance="a"}': '0+3600x80',
      'replica_last_snapshot_timestamp_seconds{instance="b"}': '0+0x80',
    }).map(([series, values]) => ({ series: `hostline_${series}`, values }))
    const alert_rule_test = rulesOf(await Bun.file(alerts).text()).map(
      ({ alert, annotations }) => ({
        eval_time: '80h',
        alertname: alert,
        exp_alerts: (expected as string[]).includes(alert)
          ? [{ exp_annotations: annotations }]
          : [],
      }),
    )
    const tests = [{ interval: '1h', input_series, alert_rule_test }]
    const all = { rule_files: [alerts], evaluation_interval: '1h', tests }
    await Bun.write(file, JSON.stringify(all))
    const { stdout, stderr } = Bun.spawnSync([promtool ?? '', 'test', 'rules', file])
    expect(`${stdout}${stderr}`).toEndWith('SUCCESS\n\n')
  })
})

type Rule = { alert: string; annotations: Record<string, string> }
type Rules = { groups: { rules: Rule[] }[] }

const rulesOf = (text: string) => (YAML.parse(text) as Rules).groups.flatMap(({ rules }) => rules)

test('scrapes within a second share one result', async () => {
  await using service = await startService({ listen: true, metricsSharedMilliseconds: 1_000_000 })
  const first = await service.call('GET', '/metrics')
  await service.register()
  expect((await service.call('GET', '/metrics')).body).toBe(first.body)
})
