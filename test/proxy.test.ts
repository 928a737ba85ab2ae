import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { join } from 'node:path'
import { temporaryDirectory } from './support/directory.ts'
import { meet, startServer } from './support/process.ts'
import { nginx, startNginx } from './support/proxies.ts'
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
