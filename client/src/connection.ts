import type { ClientFrame, ServerFrame } from './contract.ts'
import type { Socket, Timers } from './platform.ts'

const heartbeatMilliseconds = 30_000
const pongMilliseconds = 10_000
/** How long the service may take to confirm the end of a connection. */
const closingMilliseconds = 1_000
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
  let isOver = false
  let cancelTimer = timers.after(pongMilliseconds, giveUp)

  function detach() {
    isOver = true
    cancelTimer()
    socket.onopen = socket.onmessage = socket.onclose = null
  }

  function giveUp() {
    if (isOver) return
    detach()
    if (socket.terminate) socket.terminate()
    else socket.close()
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
    startTimer(pongMilliseconds, giveUp)
    send({ type: 'ping' })
  }

  // Node's sockets throw without a listener. The close that follows tells enough.
  socket.onerror = () => {}
  socket.onopen = () => {
    startTimer(heartbeatMilliseconds, check)
    options.onOpen()
  }
  socket.onmessage = ({ data }: { data: unknown }) => {
    startTimer(heartbeatMilliseconds, check)
    const frame = JSON.parse(String(data))
    if (frame.type !== 'pong') options.onFrame(frame)
  }
  socket.onclose = ({ code }: { code: number }) => {
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
      if (isOver) return
      detach()
      socket.close(1000)
      const timer = setTimeout(() => socket.terminate?.(), closingMilliseconds)
      socket.onclose = () => clearTimeout(timer)
    },
  }
}
