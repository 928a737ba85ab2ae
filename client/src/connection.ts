import type { ClientFrame, ServerFrame } from './contract.ts'
import type { Socket, Timers } from './platform.ts'

const heartbeatMilliseconds = 30_000
const answerMilliseconds = 10_000
/** The code that browsers give a connection that broke. */
const brokenCode = 1006

type ConnectionOptions = {
  onOpen: () => void
  onFrame: (frame: ServerFrame) => void
  /** Called once, also when the connection never opened; nothing is called after it. */
  onClose: (code: number) => void
}

export type Connection = ReturnType<typeof watchConnection>

/** Watches one socket. A heartbeat notices when the server is gone without closing it. */
export function watchConnection(timers: Timers, socket: Socket, options: ConnectionOptions) {
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

  // Node's sockets throw without a listener. What follows is told by the close.
  socket.onerror = () => {}
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
    /** Ends it as if it had broken. */
    drop: giveUp,
    close() {
      detach()
      socket.close(1000)
    },
  }
}
