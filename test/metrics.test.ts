import { expect, test } from 'bun:test'
import { startService } from './support/service.ts'

const read = async (service: Awaited<ReturnType<typeof startService>>, headers = {}) =>
  service.call('GET', '/metrics', { headers })

test('tell how outbox, sockets and commits stand, in Prometheus text', async () => {
  await using service = await startService({
    listen: true,
    environment: { SMTP_URL: 'smtp://127.0.0.1:1' },
  })
  const { a } = await service.pair()
  service.sqlite.run('UPDATE outbox SET dead_at = 1 WHERE id = (SELECT min(id) FROM outbox)')
  const socket = await service.connect(a)
  const { status, headers, body } = await read(service)
  expect(status).toBe(200)
  expect(headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
  for (const line of [
    'hostline_outbox_dead 1',
    'hostline_outbox_waiting 1',
    'hostline_sockets 1',
    '# TYPE hostline_commits_total counter',
  ]) {
    expect(body).toContain(line)
  }
  expect(Number(/^hostline_writes_total (\d+)$/m.exec(body)?.[1])).toBeGreaterThan(2)
  socket.close()
})

test('are for this machine alone, and not for what a proxy on it forwards', async () => {
  await using service = await startService({ listen: true })
  expect((await read(service)).status).toBe(200)
  const forwarded = await read(service, { 'x-forwarded-for': '203.0.113.1' })
  expect([forwarded.status, forwarded.body.error.code]).toEqual([401, 'unauthorized'])
})

test('with METRICS_TOKEN are for its bearer alone', async () => {
  await using service = await startService({
    listen: true,
    environment: { METRICS_TOKEN: 'secret' },
  })
  expect((await read(service)).status).toBe(401)
  expect((await read(service, { authorization: 'Bearer wrong' })).status).toBe(401)
  expect((await read(service, { authorization: 'Bearer secret' })).status).toBe(200)
})
