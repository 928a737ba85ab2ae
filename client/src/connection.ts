import type { ClientFrame, ServerFrame } from './contract.ts'
import type { Socket, Timers } from './platform.ts'

const heartbeatMilliseconds = 30_000
const pongMilliseconds = 10_000
/** The time that the service has to confirm a close. */
const closingMilliseconds = 1_000
/** The close code that browsers report for a broken connection. */
const brokenCode = 1006

type ConnectionOptions = {
  onOpen: () => void
  onFrame: (frame: ServerFrame) => void
  /** Called once, even if the connection never opened; no callback follows it. */
  onClose: (code: number) => void
}

export type Connection = ReturnType<typeof watchConnection>

/** Watches one socket. A heartbeat detects a server that is gone without a close. */
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

  // Node's sockets throw without an error listener. The close event that follows is enough.
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
    /** Sends a ping; without a pong the connection counts as broken. */
    check,
    /** Ends the connection as if it had broken. */
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
