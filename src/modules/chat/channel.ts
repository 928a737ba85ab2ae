import type { WebSocketHandler } from 'bun'
import type { Caller } from '../../http/exchange.ts'
import type { Clock } from '../../lib/clock.ts'
import { asAppError } from '../../lib/error-body.ts'
import { AppError } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { Limit } from '../../lib/sliding-window.ts'
import { closeCodes } from '../../realtime/close-codes.ts'
import type { Hub } from '../../realtime/hub.ts'
import { Connection, type ConnectionWishes } from './connection.ts'
import { type ClientFrame, decodeFrame, errorFrame, type MessageFrame } from './frames.ts'
import { draftOf } from './model.ts'
import { ackFrame } from './server-frames.ts'
import type { ChatService } from './service.ts'

type ChatChannelOptions = {
  chat: ChatService
  hub: Hub
  clock: Clock
  log: Log
  frameLimit: Limit | 'off'
  /** The person behind an access token, unless it is invalid or they are shut out. */
  authenticate: (token: string) => Promise<Caller | undefined>
  counts: ChannelCounts
}

/** Told of what passes. */
type ChannelCounts = {
  received: (type: ClientFrame['type'] | 'malformed' | 'refused') => void
  sent: () => void
  closed: (code: number) => void
}

export type ChatChannel = ReturnType<typeof createChatChannel>

const maxFrameBytes = 64 * 1_024
const maxUnsentBytes = 1_024 * 1_024
// A peer that answers no ping for this long is gone (decisions 6: within a minute).
const idleSeconds = 45
const sweepMilliseconds = 1_000

/** The chat channel of spec 6.1: one connection per socket, frames in their order, errors as frames. */
export function createChatChannel(options: ChatChannelOptions) {
  const { chat, hub, clock, log, frameLimit, authenticate, counts } = options
  const connections = new Set<Connection>()
  const running = new Set<Promise<void>>()
  let draining = false

  // Synchronous up to the queued write: the order of a connection's frames is the order of its messages.
  function receive(connection: Connection, data: string | Buffer) {
    if (draining) return
    const now = clock.now()
    const waitMilliseconds = connection.countFrame(now)
    if (waitMilliseconds > 0) {
      counts.received('refused')
      refuse(connection, parseFrame(data), rateLimited(waitMilliseconds))
      if (connection.isFlooding(now)) connection.close(closeCodes.tooManyFrames)
      return
    }
    const value = parseFrame(data)
    const frame = decode(connection, value)
    if (!frame) return
    counts.received(frame.type)
    const work = perform(connection, frame)
      .catch((error: unknown) => refuse(connection, frame, error))
      .finally(() => running.delete(work))
    running.add(work)
  }

  function decode(connection: Connection, value: unknown): ClientFrame | undefined {
    try {
      return decodeFrame(value)
    } catch (error) {
      counts.received('malformed')
      refuse(connection, value, error)
      if (connection.isGibberish(clock.now())) connection.close(closeCodes.malformedFrames)
      return undefined
    }
  }

  async function perform(connection: Connection, frame: ClientFrame): Promise<void> {
    const { userId } = connection
    switch (frame.type) {
      case 'message':
        return send(connection, frame)
      case 'read':
        return chat.markRead(userId, frame.conversation_id, connection)
      case 'typing':
        return chat.typing(userId, frame.conversation_id)
      case 'auth':
        return extend(connection, frame.token)
      case 'ping':
        connection.sendFrame({ type: 'pong' })
    }
  }

  async function send(connection: Connection, frame: MessageFrame) {
    const draft = draftOf(frame, frame.message_type)
    const { message } = await chat.send(connection.userId, frame.conversation_id, draft)
    const ack = ackFrame(message)
    if (connection.wants(ack)) connection.sendFrame(ack)
  }

  async function extend(connection: Connection, token: string) {
    const caller = await authenticate(token)
    if (caller?.userId !== connection.userId) throw new AppError('unauthorized')
    connection.extend(caller)
  }

  function refuse(connection: Connection, refused: unknown, error: unknown) {
    const refusal = asAppError(error)
    if (refusal.kind === 'internal_error') log.error('a frame failed', { error })
    connection.sendFrame(errorFrame(refusal, connection.locale, refused))
  }

  const stopSweeping = clock.every(sweepMilliseconds, () => {
    const now = clock.now()
    for (const connection of connections) {
      if (connection.isExpired(now)) connection.close(closeCodes.tokenExpired)
    }
  })

  const handlers: WebSocketHandler<Connection> = {
    maxPayloadLength: maxFrameBytes,
    backpressureLimit: maxUnsentBytes,
    closeOnBackpressureLimit: true,
    idleTimeout: idleSeconds,
    sendPings: true,
    open(socket) {
      const connection = socket.data
      connection.attach(socket)
      connections.add(connection)
      hub.add(connection)
      connection
        .replay((after) => chat.missedFrames(connection.userId, after))
        .catch((error: unknown) => {
          log.error('a replay failed', { error })
          connection.drop()
        })
    },
    message: (socket, data) => receive(socket.data, data),
    drain: (socket) => socket.data.drained(),
    close(socket, code) {
      counts.closed(code)
      socket.data.detach()
      connections.delete(socket.data)
      hub.remove(socket.data)
    },
  }

  return {
    handlers,
    /** What a new connection starts with. */
    connect: (caller: Caller, wishes: ConnectionWishes) =>
      new Connection(caller, wishes, { frameLimit, now: clock.now(), onSent: counts.sent }),
    /** Takes no more frames, waits until those taken are answered, and closes every socket with 1001. */
    async drain() {
      draining = true
      stopSweeping()
      await Promise.all(running)
      hub.closeAll(closeCodes.goingAway)
    },
    isDraining: () => draining,
  }
}

function parseFrame(data: string | Buffer): unknown {
  if (typeof data !== 'string') return undefined
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}

function rateLimited(waitMilliseconds: number) {
  return new AppError('rate_limited', { retryAfterSeconds: Math.ceil(waitMilliseconds / 1_000) })
}
