import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { makeCertificate } from './support/certificate.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { startNode } from './support/nodes.ts'
import { startServer } from './support/process.ts'
import { startService } from './support/service.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

const { openssl } = tools
const workshop = temporaryDirectory()
const file = (name: string) => join(workshop.path, name)
afterAll(() => workshop[Symbol.dispose]())

/** A certificate for a name, valid for so many days; the files are `NAME.cert` and `NAME.key`. */
const make = (name: string, days: number) =>
  makeCertificate(workshop.path, { host: name, name, days })

/** Makes the pair of this name the server's certificate. */
function install(cert: string, key = cert) {
  copyFileSync(file(`${key}.key`), file('live.key'))
  copyFileSync(file(`${cert}.cert`), file('live.cert'))
}

const environment = { TLS_CERT: file('live.cert'), TLS_KEY: file('live.key') }

/** The name in the certificate that a server presents. */
function shownName(base: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const options = { host: '127.0.0.1', port: Number(new URL(base).port), rejectUnauthorized: false }
  const socket = connect(options, () => {
    resolve(String(socket.getPeerCertificate().subject.CN))
    socket.end()
  })
  socket.on('error', reject)
  return promise
}

describe.skipIf(!openssl)('a certificate', () => {
  beforeAll(async () => {
    await Promise.all([make('old', 100), make('new', 100), make('short', 3)])
  })

  test('is reloaded on SIGHUP while open connections stay', async () => {
    install('old')
    using directory = temporaryDirectory()
    await using server = await startServer({ dataDir: directory.path, environment })
    const base = server.base.replace('http', 'https')
    expect(await shownName(base)).toBe('old')
    const answer = await fetch(`${base}/healthz`, { tls: { rejectUnauthorized: false } })
    expect(answer.status).toBe(200)
    install('new')
    process.kill(server.pid, 'SIGHUP')
    await waitFor(() => server.output().includes('the certificate was renewed'))
    expect(await shownName(base)).toBe('new')

    install('old', 'short') // halfway through a renewal
    process.kill(server.pid, 'SIGHUP')
    await waitFor(() => server.output().includes('the certificate could not be renewed'))
    expect(await shownName(base)).toBe('new')
    const still = await fetch(`${base}/healthz`, { tls: { rejectUnauthorized: false } })
    expect(still.status).toBe(200)
    expect(await server.kill('SIGTERM')).toBe(0)
  })

  test('of a standby is reloaded on SIGHUP, too', async () => {
    install('old')
    using directory = temporaryDirectory()
    const bucket = 's3://KEY:SECRET@127.0.0.1:9/away?tls=off'
    const options = { dataDir: directory.path, bucket, args: ['standby'], environment }
    await using node = await startNode(options)
    await node.says('is a standby')
    expect(await shownName(node.base)).toBe('old')
    install('new')
    node.signal('SIGHUP')
    await node.says('the certificate was renewed')
    expect(await shownName(node.base)).toBe('new')
    expect(await node.end('SIGTERM')).toBe(0)
  })

  test('is tried again until it can be read, with one line for each reason', async () => {
    install('old')
    const clock = createTestClock()
    await using service = await startService({ clock, listen: true, environment })
    const base = service.base
    const failures = () => service.log().split('could not be renewed').length - 1
    const poll = () => clock.advance(10_000)

    renameSync(file('live.cert'), file('away.cert'))
    symlinkSync('live.cert', file('live.cert')) // a path that cannot be looked at, also for root
    poll()
    poll()
    expect(failures()).toBe(1)
    rmSync(file('live.cert'))
    install('new', 'old')
    utimesSync(file('live.key'), 1, 1)
    poll()
    expect([failures(), await shownName(base)]).toEqual([2, 'old'])

    // As a key that gets its owner after its content: neither time nor size tell.
    copyFileSync(file('new.key'), file('live.key'))
    utimesSync(file('live.key'), 1, 1)
    poll()
    expect([failures(), await shownName(base)]).toEqual([2, 'new'])
    expect(process.listenerCount('beforeExit')).toBe(0)
  })

  test('that does not match its key stops the start with an error naming both settings', async () => {
    install('old', 'new')
    using directory = temporaryDirectory()
    const options = { dataDir: directory.path, environment }
    const failure = await startServer(options).catch(({ message }: Error) => message)
    expect(failure).toContain('hostline: TLS_KEY is not the private key of TLS_CERT')
    const { exitCode, out } = await hostline(['check'], directory.path, { environment })
    expect([exitCode, out]).toEqual([
      1,
      expect.stringContaining('FAILED TLS: TLS_KEY is not the private key of TLS_CERT'),
    ])
  })

  test('that expires soon causes a warning at start and in check', async () => {
    install('short')
    using directory = temporaryDirectory()
    await using server = await startServer({ dataDir: directory.path, environment })
    expect(server.output()).toContain('the certificate expires in 2 days')
    const { out } = await hostline(['check'], directory.path, { environment })
    expect(out).toContain('warn   TLS: the certificate expires in 2 days')
  })

  test('that is invalid is reported in one line', async () => {
    install('old')
    writeFileSync(environment.TLS_CERT, 'nonsense')
    const { out } = await hostline(['check'], workshop.path, { environment })
    expect(out).toContain('FAILED TLS: TLS_CERT is not a usable PEM file: ')
  })
})

test('SIGHUP does not end a server without a certificate', async () => {
  using directory = temporaryDirectory()
  await using server = await startServer({ dataDir: directory.path })
  process.kill(server.pid, 'SIGHUP')
  expect((await fetch(`${server.base}/healthz`)).status).toBe(200)
})
