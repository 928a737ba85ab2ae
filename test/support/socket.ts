import { connect as connectTcp } from 'node:net'
import { waitFor } from './wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: frames are judged by the assertions on them
type Frame = any

/** A socket client that keeps its frames, in order. */
export class TestSocket {
  readonly frames: Frame[] = []
  readonly #socket: WebSocket
  readonly closed: Promise<number>

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      this.frames.push(JSON.parse(String(data)))
    }
    this.closed = new Promise((resolve) => {
      socket.onclose = ({ code }) => resolve(code)
    })
  }

  static async open(url: string, protocols: string[] = []): Promise<TestSocket> {
    // Test certificates are not trusted.
    const options = { protocols, tls: { rejectUnauthorized: false } }
    const socket = new WebSocket(url, options as never)
    const client = new TestSocket(socket)
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve()
      socket.onerror = () => reject(new Error('the socket was refused'))
    })
    return client
  }

  get protocol(): string {
    return this.#socket.protocol
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN
  }

  send(frame: unknown): void {
    this.#socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  sendBinary(bytes: Uint8Array<ArrayBuffer>): void {
    this.#socket.send(bytes)
  }

  /** Takes the oldest frame of a type, and waits for it if needed. */
  next(type: string): Promise<Frame> {
    return waitFor(() => {
      const index = this.frames.findIndex((frame) => frame.type === type)
      return index >= 0 && this.frames.splice(index, 1)[0]
    }, `a ${type} frame`)
  }

  /** Resolves when everything sent before has been answered, so that no frame is missing. */
  async settled(): Promise<void> {
    this.send({ type: 'ping' })
    await this.next('pong')
  }

  close(code = 1000): void {
    this.#socket.close(code)
  }
}

export const handshake = {
  connection: 'upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

/** A socket that reads nothing once it is open. */
export async function stuckReader(base: string, path: string) {
  const socket = openUpgrade(base, path)
  await new Promise((resolve) => socket.once('data', resolve))
  socket.pause()
  return socket
}

/** The TCP connection of an upgrade request. */
export function openUpgrade(base: string, path: string, more: Record<string, string> = {}) {
  const { hostname, port } = new URL(base)
  const socket = connectTcp(Number(port), hostname)
  const headers = Object.entries({ ...handshake, ...more }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${headers.join('')}\r\n`)
  return socket
}

/** Sends a request from one of this machine's addresses, which count as different clients. */
export function askFrom(address: string, base: string, path: string) {
  const { port, hostname } = new URL(base)
  const socket = connectTcp({ host: hostname, port: Number(port), localAddress: address })
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  return socket
}

/** The head of the response. */
export async function headFrom(address: string, base: string, path: string): Promise<string> {
  const socket = askFrom(address, base, path)
  const head = await new Promise<string>((resolve) => socket.once('data', (it) => resolve(`${it}`)))
  socket.destroy()
  return head.split('\r\n\r\n')[0] ?? ''
}
