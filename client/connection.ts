import type { ClientFrame, ServerFrame } from './contract.ts'
import type { Platform } from './platform.ts'

const heartbeatMilliseconds = 30_000
const answerMilliseconds = 10_000
/** The code that browsers give a connection that broke. */
const brokenCode = 1006

type ConnectionOptions = {
  url: string
  token: string
  onOpen: () => void
  onFrame: (frame: ServerFrame) => void
  /** Called once, also when the connection never opened; nothing is called after it. */
  onClose: (code: number) => void
}

export type Connection = ReturnType<typeof openConnection>

/** One socket. A heartbeat notices when the server is gone without closing it. */
export function openConnection({ timers, WebSocket }: Platform, options: ConnectionOptions) {
  // The token is sent in a header of the upgrade: addresses end up in logs.
  const socket = new WebSocket(options.url, ['hostline.v1', `bearer.${options.token}`])
  let cancelTimer = timers.after(answerMilliseconds, giveUp)

  function detach() {
    cancelTimer()
    socket.onopen = socket.onmessage = socket.onclose = null
  }

  function giveUp() {
    detach()
    socket.close()
    options.onClose(brokenCode)
  }

  function startTimer(milliseconds: number, work: () => void) {
    cancelTimer()
    cancelTimer = timers.after(milliseconds, work)
  }

  function send(frame: ClientFrame) {
    socket.send(JSON.stringify(frame))
  }

  function check() {
    startTimer(answerMilliseconds, giveUp)
    send({ type: 'ping' })
  }

  socket.onopen = () => {
    startTimer(heartbeatMilliseconds, check)
    options.onOpen()
  }
  socket.onmessage = ({ data }) => {
    startTimer(heartbeatMilliseconds, check)
    const frame = JSON.parse(String(data))
    if (frame.type !== 'pong') options.onFrame(frame)
  }
  socket.onclose = ({ code }) => {
    detach()
    options.onClose(code)
  }

  return {
    send,
    /** Asks the server for a sign of life. */
    check,
    close() {
      detach()
      socket.close(1000)
    },
  }
}
