import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { join } from 'node:path'
import { temporaryDirectory } from './support/directory.ts'
import { call, meet, startServer } from './support/process.ts'
import { caddy, nginx, startCaddy, startNginx } from './support/proxies.ts'
import { TestSocket } from './support/socket.ts'

/** The remaining limit for a client at a loopback address with an X-Forwarded-For header. */
async function remaining(base: string, localAddress: string, forwardedFor: string) {
  const { hostname, port } = new URL(base)
  const socket = connect({ host: hostname, port: Number(port), localAddress })
  socket.write(
    `GET /v1/nope HTTP/1.1\r\nHost: x.example\r\nX-Forwarded-For: ${forwardedFor}\r\nConnection: close\r\n\r\n`,
  )
  let head = ''
  for await (const chunk of socket) head += String(chunk)
  return Number(/x-ratelimit-remaining: (\d+)/i.exec(head)?.[1])
}

test.skipIf(!nginx)(
  'behind nginx every client has rate limits of its own, over HTTP and wss',
  async () => {
    using directory = temporaryDirectory()
    await using server = await startServer({
      dataDir: join(directory.path, 'data'),
      environment: { TRUSTED_PROXIES: '127.0.0.9', RATE_LIMIT_ANONYMOUS: '3/1m' },
    })
    await using proxy = await startNginx(join(directory.path, 'nginx'), [server.base])
    // nginx appends the address that it sees; entries before it come from the client and are not trusted.
    expect(await remaining(proxy.base, '127.0.0.2', '203.0.113.1')).toBe(2)
    expect(await remaining(proxy.base, '127.0.0.2', '203.0.113.2')).toBe(1)
    expect(await remaining(proxy.base, '127.0.0.3', '203.0.113.1')).toBe(2)
    expect(await remaining(server.base, '127.0.0.2', '203.0.113.3')).toBe(0)
    expect(await remaining(server.base, '127.0.0.9', '2001:db8::1')).toBe(2)
    expect(await remaining(server.base, '127.0.0.9', '2001:db8::ffff')).toBe(1)

    const { a, b, conversationId } = await meet(proxy.base)
    const url = (token: string) =>
      `${proxy.secureBase.replace('http', 'ws')}/v1/chat/ws?token=${token}`
    const [ada, bob] = [await TestSocket.open(url(a.token)), await TestSocket.open(url(b.token))]
    ada.send({ type: 'message', conversation_id: conversationId, body: 'through nginx' })
    expect((await bob.next('new_message')).message.body).toBe('through nginx')
    ada.close()
    bob.close()
  },
)

for (const [name, program, startProxy] of [
  ['nginx', nginx, startNginx],
  ['Caddy', caddy, startCaddy],
] as const) {
  test.skipIf(!program)(
    `behind ${name} a file as large as allowed arrives, a larger one does not, and sockets pass`,
    async () => {
      using directory = temporaryDirectory()
      await using server = await startServer({
        dataDir: join(directory.path, 'data'),
        environment: { TRUSTED_PROXIES: '127.0.0.9' },
      })
      await using proxy = await startProxy(join(directory.path, 'proxy'), [server.base])
      const { a, b, conversationId } = await meet(proxy.base)
      const upload = async (bytes: number) => {
        const headers = { authorization: `Bearer ${a.token}` }
        const body = new Uint8Array(bytes)
        return (await fetch(`${proxy.base}/v1/files`, { method: 'POST', headers, body })).status
      }
      expect(await upload(25_000_000)).toBe(201)
      expect(await upload(28_000_000)).toBe(413)
      const socket = await TestSocket.open(
        `${proxy.base.replace('http', 'ws')}/v1/chat/ws?token=${b.token}`,
      )
      const path = `/v1/chat/conversations/${conversationId}/messages`
      await call(proxy.base, 'POST', path, { token: a.token, body: { body: `through ${name}` } })
      expect((await socket.next('new_message')).message.body).toBe(`through ${name}`)
      socket.close()
    },
  )
}
