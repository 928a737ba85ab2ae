import { afterAll, describe, expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { isPublicAddress } from '../src/lib/ip-network.ts'
import { createPost } from '../src/modules/webhooks/post.ts'
import { unlessAborted } from '../src/outside/exchange.ts'
import { makeCertificate } from './support/certificate.ts'
import { temporaryDirectory } from './support/directory.ts'
import { tools } from './support/tools.ts'

// The addresses allowed for webhooks, and that requests go to a checked address.

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '2001:4860:4860::8888',
  '2606:4700::1111',
])('%s is public', (ip) => expect(isPublicAddress(ip)).toBe(true))

test.each<string[]>([
  ['unspecified', '0.0.0.0', '0.1.2.3', '::'],
  ['loopback', '127.0.0.1', '127.255.255.254', '::1'],
  ['private', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fd00::1', 'fc00::1'],
  ['link-local', '169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'fec0::1'],
  ['shared by a carrier', '100.64.0.1', '100.127.255.255'],
  ['multicast and broadcast', '224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1'],
  ['reserved', '192.0.0.1', '192.0.2.1', '198.18.0.1', '203.0.113.1', '240.0.0.1', '2001:db8::1'],
  ['documentation and discard', '3fff::1', '100::1', '5f00::1', '4000::1'],
  ['IPv4 in IPv6', '::ffff:8.8.8.8', '::8.8.8.8', '::ffff:0:8.8.8.8', '64:ff9b::808:808'],
  ['a tunnel', '2002:808:808::1', '2001::1', '64:ff9b:1::1', '192.88.99.1'],
  ['no address', '', 'localhost', '1.2.3.4.5', '8.8.8.8 '],
])('%s is not public', (_, ...ips) => {
  expect(ips.filter(isPublicAddress)).toEqual([])
})

const { openssl } = tools
const directory = temporaryDirectory()
afterAll(() => directory[Symbol.dispose]())

type Seen = { host: string | undefined; name: string | false | undefined; from: number | undefined }

/** A server that records the requested names. */
async function startHttps(name: string) {
  const made = await makeCertificate(directory.path, { host: name, name })
  const [key, cert] = [readFileSync(made.key, 'utf8'), readFileSync(made.cert, 'utf8')]
  const seen: Seen[] = []
  const server = https.createServer({ key, cert }, ({ headers, socket }, response) => {
    const { servername } = socket as { servername?: string }
    seen.push({ host: headers.host, name: servername, from: socket.remotePort })
    response.end('ok')
  })
  const port = await listen(server)
  return { cert, seen, port, [Symbol.dispose]: () => void server.close() }
}

async function listen(server: http.Server, host = '127.0.0.1') {
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return (server.address() as AddressInfo).port
}

const at = (...addresses: string[]) =>
  addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
const anything = { headers: {}, body: '{}' }

describe('a request', () => {
  test.skipIf(!openssl)(
    'goes to the checked address with the name of its host: Host, SNI and certificate',
    async () => {
      using server = await startHttps('hooks.example.com')
      const checked: string[] = []
      const post = createPost({
        resolve: async () => at('127.0.0.1'),
        isAllowed: (address) => checked.push(address) > 0,
        ca: server.cert,
      })
      const url = `https://hooks.example.com:${server.port}/in`
      for (let n = 0; n < 2; n++) expect((await post(url, anything)).status).toBe(200)
      expect(checked).toEqual(['127.0.0.1', '127.0.0.1'])
      const [first, second] = server.seen
      expect(first).toMatchObject({
        host: `hooks.example.com:${server.port}`,
        name: 'hooks.example.com',
      })
      // One connection serves both.
      expect(second?.from).toBe(first?.from)
      const other = post(`https://other.example.com:${server.port}/in`, anything)
      expect(other).rejects.toThrow(/altname|certificate/i)
      await other.catch(() => {})
    },
  )

  test.skipIf(!openssl)(
    'is not sent without a trusted certificate, whatever the environment says',
    async () => {
      using server = await startHttps('hooks.example.com')
      const post = createPost({ resolve: async () => at('127.0.0.1'), isAllowed: () => true })
      const name = 'NODE_TLS_REJECT_UNAUTHORIZED'
      process.env[name] = '0'
      const sent = post(`https://hooks.example.com:${server.port}/`, anything)
      expect(sent).rejects.toThrow(/certificate|self.signed/i)
      await sent.catch(() => {})
      delete process.env[name]
      expect(server.seen).toEqual([])
    },
  )

  test('resolves a name once, so that a second DNS answer cannot redirect it; the next request resolves again', async () => {
    await using server = await startHttp()
    const answers = [at('127.0.0.1'), at('10.0.0.1')]
    const post = createPost({
      resolve: async () => answers.shift() ?? at('10.0.0.1'),
      isAllowed: (address) => address === '127.0.0.1',
    })
    const url = `http://hooks.example.com:${server.port}/`
    expect((await post(url, anything)).status).toBe(200)
    expect(answers).toHaveLength(1)
    const second = post(url, anything)
    expect(second).rejects.toThrow('the host has an address that is not public')
    await second.catch(() => {})
    expect(server.count()).toBe(1)
  })

  test('goes to the next address when one does not respond', async () => {
    await using server = await startHttp()
    const post = createPost({
      resolve: async () => at('127.0.0.2', '127.0.0.1'),
      isAllowed: () => true,
    })
    expect((await post(`http://hooks.example.com:${server.port}/`, anything)).status).toBe(200)
  })

  test('fails with the reason of the last address, and without one', async () => {
    await using server = await startHttp()
    const failureAt = (path: string, ...addresses: string[]) =>
      createPost({ resolve: async () => at(...addresses), isAllowed: () => true })(
        `http://hooks.example.com:${server.port}${path}`,
        anything,
      ).catch((error: Error) => error.message)
    expect(await failureAt('/', '127.0.0.3', '127.0.0.2')).toBe('ECONNREFUSED')
    expect(await failureAt('/')).toBe('the host has no address')
    // The first address may have processed the request.
    expect(await failureAt('/closed', '127.0.0.1', '127.0.0.1')).toBe('ECONNRESET')
    expect(server.count()).toBe(1)
  })

  test.skipIf(!networkInterfaces()['lo']?.some(({ family }) => family === 'IPv6'))(
    'goes over IPv6, by name and by number',
    async () => {
      await using server = await startHttp('::1')
      const post = createPost({ resolve: async () => at('::1'), isAllowed: () => true })
      for (const host of ['hooks.example.com', '[::1]']) {
        expect((await post(`http://${host}:${server.port}/`, anything)).status).toBe(200)
      }
    },
  )

  test.each(['/silent', '/trickling-head'])('to %s times out', async (path) => {
    await using server = await startHttp()
    const post = createPost({
      resolve: async () => at('127.0.0.1'),
      isAllowed: () => true,
      timeoutMilliseconds: 100,
    })
    const sent = post(`http://hooks.example.com:${server.port}${path}`, anything)
    expect(sent).rejects.toThrow('no answer within 0.1 s')
    await sent.catch(() => {})
  })

  test('to an endless body ends with the status of its head', async () => {
    await using server = await startHttp()
    const timeoutMilliseconds = 2_000 // the head must come within it, also on a busy machine
    const allowed = { resolve: async () => at('127.0.0.1'), isAllowed: () => true }
    const post = createPost({ ...allowed, timeoutMilliseconds })
    const url = `http://hooks.example.com:${server.port}/trickling-body`
    expect((await post(url, anything)).status).toBe(200)
  })

  test('to a name with an unresponsive DNS server times out, too', async () => {
    const post = createPost({
      resolve: () => new Promise(() => {}),
      isAllowed: () => true,
      timeoutMilliseconds: 50,
    })
    const sent = post('https://hooks.example.com/', anything)
    expect(sent).rejects.toThrow('no answer within 0.05 s')
    await sent.catch(() => {})
  })

  test('over a connection that was closed meanwhile is repeated over a new one', async () => {
    await using server = await startHttp()
    const post = createPost({ resolve: async () => at('127.0.0.1'), isAllowed: () => true })
    const url = `http://hooks.example.com:${server.port}/`
    await post(url, anything)
    server.forget()
    expect((await post(url, anything)).status).toBe(200)
  })

  test('ignores the proxies of the environment', async () => {
    await using server = await startHttp()
    const code = `
      const { createPost } = await import('./src/modules/webhooks/post.ts')
      const post = createPost({ resolve: async () => [{ address: '127.0.0.1', family: 4 }], isAllowed: () => true })
      console.log((await post('http://hooks.example.com:${server.port}/', { headers: {}, body: '{}' })).status)
      process.exit()`
    const nobody = 'http://127.0.0.1:9'
    const child = Bun.spawn(['bun', '-e', code], {
      cwd: join(import.meta.dir, '..'),
      env: { ...process.env, HTTP_PROXY: nobody, HTTPS_PROXY: nobody, http_proxy: nobody },
    })
    expect((await child.stdout.text()).trim()).toBe('200')
  })
})

/** A server that answers at once, or byte by byte. */
async function startHttp(host?: string) {
  let count = 0
  const timers = new Set<Timer>()
  const repeat = (work: () => void) => void timers.add(setInterval(work, 10))
  const server = http.createServer((request, response) => {
    count++
    request.resume()
    if (request.url === '/silent') return
    if (request.url === '/closed') return void request.socket.destroy()
    if (request.url === '/trickling-head') {
      const { socket } = request
      socket.write('HTTP/1.1 200 OK\r\n')
      repeat(() => socket.write('x: y\r\n'))
      return
    }
    if (request.url !== '/trickling-body') return void response.end('ok')
    response.writeHead(200)
    repeat(() => response.write('y'))
  })
  const port = await listen(server, host)
  return {
    port,
    count: () => count,
    forget: () => server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      for (const timer of timers) clearInterval(timer)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('a wait for what cannot be cancelled leaves nothing on its signal, which lasts as long as the process', async () => {
  const stop = new AbortController()
  const { signal } = stop
  expect(await unlessAborted(signal, Promise.resolve('done'))).toBe('done')
  expect(unlessAborted(signal, Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(getEventListeners(signal, 'abort')).toEqual([])
  const waiting = unlessAborted(signal, new Promise(() => {}))
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  stop.abort(new Error('stopped'))
  expect(waiting).rejects.toThrow('stopped')
})
