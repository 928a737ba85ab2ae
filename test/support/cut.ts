import { connect, createServer, type Socket } from 'node:net'

/** A way to a server that can be cut: then open connections end, and no new one is answered. */
export async function startCut(port: number) {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((client) => {
    sockets.add(client)
    client.on('close', () => sockets.delete(client)).on('error', () => {})
    if (isCut) return
    const upstream = connect(port, '127.0.0.1')
    client.pipe(upstream).pipe(client)
    upstream.on('error', () => client.destroy())
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    mend() {
      isCut = false
      for (const socket of sockets) socket.destroy()
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
