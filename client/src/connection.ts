import type { ClientFrame, ServerFrame } from './contract.ts'
import type { Platform, Socket } from './platform.ts'
import { type Deferred, deferred } from './waiting.ts'

/** A dead network shows within the sum of both, 10 seconds, or 15 with a read mark; where nobody looks, within 35. */
const heartbeatMilliseconds = 5_000
const pongMilliseconds = 5_000
/** Before its answer to another frame the service waits for its disk or, for five seconds, for its bucket. */
const answerMilliseconds = 10_000
const hiddenHeartbeatMilliseconds = 30_000
const openingMilliseconds = 10_000
/** The time that the service has to confirm a close. */
const closingMilliseconds = 1_000
/** The close code that browsers report for a broken connection. */
const brokenCode = 1006

type ConnectionOptions = {
  onFrame: (frame: ServerFrame) => void
  /** Called once, even if the connection never opened; no callback follows it. */
  onClose: (code: number) => void
}

export type Connection = ReturnType<typeof watchConnection>

/** Watches one socket. A heartbeat detects a server that is gone without a close. */
export function watchConnection(
  { timers, isHidden }: Platform,
  socket: Socket,
  options: ConnectionOptions,
) {
  let isOver = false
  let cancelTimer = timers.after(openingMilliseconds, giveUp)
  /** Waits for the next pong. */
  let checked: Deferred<boolean> | undefined
  let limitMilliseconds = pongMilliseconds
  /** Whether the service has refused a frame since the ping. */
  let wasRefused = false

  function settle(isReceived: boolean) {
    checked?.resolve(isReceived)
    checked = undefined
  }

  function detach() {
    isOver = true
    cancelTimer()
    settle(false)
    socket.onmessage = socket.onclose = null
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

  /** Sends a ping, after another frame if one is given; without an answer the connection counts as broken. Frames are read in
   *  order: the pong follows the answer to the other frame.
   *  @returns whether the service has received both and refused neither */
  async function check(frame?: ClientFrame): Promise<boolean> {
    while (checked) await checked.promise
    if (isOver) return false
    checked = deferred()
    wasRefused = false
    limitMilliseconds = frame ? answerMilliseconds : pongMilliseconds
    startTimer(limitMilliseconds, giveUp)
    if (frame) send(frame)
    send({ type: 'ping' })
    return checked.promise
  }

  // In Node 22 no close event follows the error of a socket that never opened.
  socket.onerror = giveUp
  socket.onmessage = ({ data }: { data: unknown }) => {
    const frame = JSON.parse(String(data))
    if (frame.type === 'error') wasRefused = true
    // A refused ping shows, too, that the connection works.
    if (frame.type === 'pong' || frame.request?.type === 'ping') settle(!wasRefused)
    if (checked) startTimer(limitMilliseconds, giveUp)
    else
      startTimer(
        isHidden() ? hiddenHeartbeatMilliseconds : heartbeatMilliseconds,
        () => void check(),
      )
    if (frame.type !== 'pong') options.onFrame(frame)
  }
  socket.onclose = ({ code }: { code: number }) => {
    detach()
    options.onClose(code)
  }

  return {
    send,
    check,
    close() {
      if (isOver) return
      detach()
      socket.close(1000)
      const timer = setTimeout(() => socket.terminate?.(), closingMilliseconds)
      socket.onclose = () => clearTimeout(timer)
    },
  }
}
