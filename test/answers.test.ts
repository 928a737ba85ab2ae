import { afterAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { createOpenAnswers } from '../src/http/open-answers.ts'
import { upload } from './support/files.ts'
import { startService } from './support/service.ts'
import { askFrom, headFrom } from './support/socket.ts'
import { waitFor } from './support/wait.ts'

const mebibyte = 1_048_576

test('the runtime tracks the connection of a request until its response was sent or the client is gone', async () => {
  const requests: Request[] = []
  await using server = Bun.serve({
    port: 0,
    fetch(request) {
      requests.push(request)
      return new Response('x'.repeat(20 * mebibyte))
    },
  })
  const isUnsent = () => requests[0] !== undefined && server.requestIP(requests[0]) !== null
  const socket = connect(server.port ?? 0, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await new Promise((resolve) => socket.once('data', resolve))
  socket.pause()
  expect(isUnsent()).toBe(true)
  socket.destroy()
  await waitFor(() => !isUnsent(), 'the end of the connection')
  requests.length = 0
  await (await fetch(server.url)).text()
  await waitFor(() => !isUnsent(), 'the end of the answer')
})

describe('unread responses', async () => {
  const service = await startService({ listen: true })
  afterAll(() => service[Symbol.asyncDispose]())
  const ada = await service.register()
  const { body: file } = await upload(service, ada, new Uint8Array(8 * mebibyte))
  const { pathname } = new URL(file.file_url)
  const statusFor = async (address: string, path = pathname) =>
    (await headFrom(address, service.base, path)).slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3)

  /** One reader from each address, which reads the beginning of a file and then stops. */
  async function hold(addresses: string[]) {
    const sockets = addresses.map((address) => askFrom(address, service.base, pathname))
    await Promise.all(sockets.map((it) => new Promise((resolve) => it.once('data', resolve))))
    for (const socket of sockets) socket.pause()
    return { [Symbol.dispose]: () => sockets.forEach((socket) => void socket.destroy()) }
  }

  test('are limited for each client: past the limit it gets 429, except for writes, until some are read', async () => {
    {
      using _ = await hold(Array(110).fill('127.0.0.1'))
      for (const path of [pathname, '/v1/openapi.json']) {
        const statuses = [await statusFor('127.0.0.1', path), await statusFor('127.0.0.2', path)]
        expect(statuses).toEqual(['429', '200'])
      }
      expect(await headFrom('127.0.0.1', service.base, pathname)).toMatch(/^retry-after: 5$/im)
      const change = { token: ada.token, body: { locale: 'de' } }
      expect((await service.call('PATCH', '/v1/users/me', change)).status).toBe(200)
    }
    await waitFor(async () => (await statusFor('127.0.0.1')) === '200', 'answers as before')
  })

  test('of a hundred clients lock out neither them nor others', async () => {
    using _ = await hold(Array.from({ length: 100 }, (_, n) => `127.0.1.${n + 1}`))
    expect([await statusFor('127.0.1.1'), await statusFor('127.0.0.1')]).toEqual(['200', '200'])
  })

  test('of clients that never return are forgotten', () => {
    let looks = 0
    const requestIP = () => {
      looks++
      return null
    }
    const answers = createOpenAnswers(() => ({ requestIP }))
    const request = new Request('http://localhost')
    for (let n = 0; n < 4_096; n++) {
      const context = { ip: `10.0.${n >> 8}.${n & 255}` }
      answers.add({ request, context } as never)
    }
    expect(looks).toBe(4_096) // each once
  })

  test('end with the idle timeout of the runtime', async () => {
    const answer = () => new Response('x'.repeat(20 * mebibyte))
    await using server = Bun.serve({ port: 0, idleTimeout: 1, fetch: answer })
    const socket = askFrom('127.0.0.1', server.url.href, '/')
    await new Promise((resolve) => socket.once('data', resolve))
    socket.pause()
    await waitFor(() => server.pendingRequests === 0, 'the end of the answer')
    socket.destroy()
  })
})

test('a connection that sends thousands of requests ahead is closed, since their answers would delay all others', async () => {
  await using service = await startService({ listen: true })
  const { hostname, port } = new URL(service.base)
  const socket = connect(Number(port), hostname)
  let answers = ''
  socket.on('data', (data) => (answers += data)).on('error', () => {})
  socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5_000))
  await new Promise((resolve) => socket.once('close', resolve))
  expect(answers.split('HTTP/1.1 200 ').length - 1).toBeWithin(1, 5_000)
})

test('a page of messages shows a hundred of the longest texts', async () => {
  await using service = await startService()
  const { a, conversationId } = await service.pair()
  for (let n = 0; n < 100; n++) await service.say(a, conversationId, '\u{1F600}'.repeat(5_000))
  const path = `/v1/chat/conversations/${conversationId}/messages`
  for (const query of ['per_page=100', 'limit=100']) {
    const { status, body } = await service.call('GET', `${path}?${query}`, { token: a.token })
    expect([status, body.data.length]).toEqual([200, 100])
  }
})
