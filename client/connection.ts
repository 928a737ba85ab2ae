import type { ClientFrame, ServerFrame } from './contract.ts'
import type { Timers } from './timers.ts'

const heartbeatMilliseconds = 30_000
const answerMilliseconds = 10_000
/** What a browser shows for a connection that broke. */
const broken = 1006

export type WebSocketClass = typeof WebSocket

type ConnectionOptions = {
  url: string
  token: string
  WebSocket: WebSocketClass
  timers: Timers
  onOpen: () => void
  onFrame: (frame: ServerFrame) => void
  /** Called once, also when the connection never opened. */
  onClose: (code: number) => void
}

export type Connection = ReturnType<typeof openConnection>

/** One socket. A heartbeat notices when the other end is gone without a word; nothing is heard of it after `onClose`. */
export function openConnection(options: ConnectionOptions) {
  const { url, token, WebSocket, timers, onOpen, onFrame, onClose } = options
  // The token travels in a header of the upgrade: addresses end up in logs.
  const socket = new WebSocket(url, ['hostline.v1', `bearer.${token}`])
  let cancelTimer = timers.after(answerMilliseconds, giveUp)

  function finish(code: number) {
    cancelTimer()
    socket.onopen = socket.onmessage = socket.onclose = null
    onClose(code)
  }

  function giveUp() {
    socket.close()
    finish(broken)
  }

  function check() {
    cancelTimer()
    cancelTimer = timers.after(answerMilliseconds, giveUp)
    send({ type: 'ping' })
  }

  function send(frame: ClientFrame) {
    socket.send(JSON.stringify(frame))
  }

  function alive() {
    cancelTimer()
    cancelTimer = timers.after(heartbeatMilliseconds, check)
  }

  socket.onopen = () => {
    alive()
    onOpen()
  }
  socket.onmessage = ({ data }) => {
    alive()
    const frame = JSON.parse(String(data))
    if (frame.type !== 'pong') onFrame(frame)
  }
  socket.onclose = ({ code }) => finish(code)

  return {
    send,
    /** Asks the other end for a sign of life. */
    check,
    close() {
      cancelTimer()
      socket.onopen = socket.onmessage = socket.onclose = null
      socket.close(1000)
    },
  }
}
