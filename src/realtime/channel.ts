import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { WebSocketHandler } from 'bun'
import { Sample } from '../api/fields.ts'
import { samples } from '../api/samples.ts'
import type { Core } from '../core.ts'
import { createKeyedSemaphore, createSemaphore } from '../lib/concurrency.ts'
import { asAppError } from '../lib/error-body.ts'
import { AppError, throttled } from '../lib/errors.ts'
import type { Locale } from '../lib/i18n.ts'
import { parseId } from '../lib/ids.ts'
import { type Limit, TokenBucket } from '../lib/limits.ts'
import { createLru } from '../lib/lru.ts'
import type { UserPrincipal } from '../lib/principal.ts'
import { parseJson } from '../lib/text.ts'
import { Connection, type InTurn, type ReplayPart } from './connection.ts'
import {
  type ClientFrames,
  channelFrames,
  clientFrame,
  createDecoder,
  type Decoded,
  errorFrame,
  type ReadyFrame,
  type ServerFrames,
} from './frames.ts'
import { closeCodes, type Peer } from './hub.ts'

export type Replay = {
  /** @throws resync when more messages are missing than a replay sends */
  read(reader: Peer, since: string): Iterable<ReplayPart>
  position(userId: string): string
}

type ChannelOptions = {
  frames: ClientFrames
  serverFrames: ServerFrames
  replay: Replay
  unread: (userId: string) => ReadyFrame['unread']
  /** Called for each frame that a client does not send by itself. */
  onActive: (userId: string) => void
  /** @throws unauthorized, with its reason */
  authenticate: (token: string) => Promise<UserPrincipal>
  counts: { received: (type: string) => void; sent: () => void; closed: (code: number) => void }
}

export type Channel = ReturnType<typeof createChannel>

/** Frames that a client sends by itself, also in a forgotten tab. */
const ownFrames: readonly string[] = ['ping', 'auth', 'viewing']
const maxFrameBytes = 64 * 1_024
const maxUnsentBytes = 1_024 * 1_024
// Bun closes a socket that has been silent for this long, and pings it 16 seconds before: many proxies cut it after 30.
const idleSeconds = 40
const sweepMilliseconds = 1_000
const maxReplaysPerUser = 2
/** As many as sockets. Those of sockets that have closed since wait, too. */
const maxWaitingReplays = 50
const burstFactor = 3
// All sockets of a user together may send as many frames as three sockets.
const userFactor = 3
const rememberedUsers = 100_000

const AuthFrame = Type.Object(
  {
    type: Type.Literal('auth'),
    token: Sample(samples.accessToken, 'A newer access token of the same user.'),
  },
  { description: 'Continues with a newer access token of the same user.' },
)
const PingFrame = Type.Object({ type: Type.Literal('ping') }, { description: 'Asks for a pong.' })

export function createChannel({ hub, clock, log, config }: Core, options: ChannelOptions) {
  const { replay, unread, authenticate, counts, onActive } = options
  const received: ClientFrames = {
    ...options.frames,
    auth: clientFrame(AuthFrame, extend),
    ping: clientFrame(PingFrame, async (_, connection) => {
      await connection.marked
      connection.sendFrame({ type: 'pong' })
    }),
  }
  const sent: ServerFrames = { ...channelFrames, ...options.serverFrames }
  const decode = createDecoder(received)
  const inReplay = createKeyedSemaphore(maxReplaysPerUser, {
    maxWaiting: maxWaitingReplays,
    refused: () => new AppError('resync'),
  })
  const oneAtATime = createSemaphore(1)
  const inTurn: InTurn = (work) =>
    oneAtATime(async () => {
      await new Promise(setImmediate)
      return work()
    })
  const userBuckets = createLru<TokenBucket>(rememberedUsers)
  let running = 0
  let whenIdle = () => {}
  let draining = false

  function bucketsOf(userId: string): TokenBucket[] {
    const limit = config.limits.frames
    if (limit === 'off') return []
    const now = clock.now()
    const userBucket = userBuckets.get(userId) ?? createBucket(limit, userFactor, now)
    userBuckets.set(userId, userBucket)
    return [createBucket(limit, 1, now), userBucket]
  }

  async function extend({ token }: Static<typeof AuthFrame>, connection: Connection) {
    const principal = await authenticate(token)
    if (principal.userId !== connection.userId) throw new AppError('token_invalid')
    connection.extend(principal)
  }

  // Synchronous until the write is queued, so that messages are stored in the order of their frames.
  function receive(connection: Connection, value: unknown) {
    const now = clock.now()
    const waitMilliseconds = connection.countFrame(now)
    if (waitMilliseconds > 0) {
      counts.received('refused')
      refuse(connection, value, throttled('rate_limited', waitMilliseconds))
      if (!connection.countRefused(now)) connection.close(closeCodes.tooManyFrames)
      return
    }
    let decoded: Decoded
    try {
      decoded = decode(value)
      if (!ownFrames.includes(decoded.type)) onActive(connection.userId)
    } catch (error) {
      counts.received('malformed')
      refuse(connection, value, error)
      if (!connection.countMalformed(now)) connection.close(closeCodes.malformedFrames)
      return
    }
    counts.received(decoded.type)
    void handle(decoded, connection, value)
  }

  async function handle({ handle, frame }: Decoded, connection: Connection, value: unknown) {
    running++
    try {
      await handle(frame, connection)
    } catch (error) {
      refuse(connection, value, error)
    } finally {
      running--
      if (running === 0) whenIdle()
    }
  }

  function refuse(connection: Connection, refused: unknown, error: unknown) {
    const refusal = asAppError(error)
    if (refusal.kind === 'internal_error') log.error('a frame failed', { error })
    connection.sendFrame(errorFrame(refusal, connection.locale, refused))
  }

  const readyFrame = (userId: string): ReadyFrame => ({
    type: 'ready',
    newest_message_id: replay.position(userId),
    unread: unread(userId),
  })

  async function catchUp(connection: Connection, since: string) {
    const { userId } = connection
    try {
      await inReplay(userId, () => connection.replay(replay.read(connection, since), inTurn))
    } catch (error) {
      if (error instanceof AppError && error.kind === 'resync') {
        connection.sendFrame({ type: 'resync', newest_message_id: replay.position(userId) })
        connection.goLive()
        return
      }
      log.error('a replay failed', { error })
      connection.drop()
    }
  }

  const stopSweeping = clock.every(sweepMilliseconds, () => {
    const now = clock.now()
    hub.dropStuck(now)
    hub.closeExpired(now)
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
      hub.add(connection)
      if (connection.wants('ready', undefined)) connection.sendFrame(readyFrame(connection.userId))
      if (connection.since !== undefined) void catchUp(connection, connection.since)
    },
    message(socket, data) {
      const value = typeof data === 'string' ? parseJson(data) : undefined
      if (!draining) receive(socket.data, value)
    },
    drain: (socket) => socket.data.drained(),
    close(socket, code) {
      counts.closed(code)
      socket.data.detach()
      hub.remove(socket.data)
    },
  }

  const groups = [...new Set(Object.values(sent).flatMap(({ group }) => group ?? []))]

  type Subscription = { locale: Locale; groups: readonly string[]; since?: string }

  return {
    handlers,
    groups,
    schemas: { received: schemasOf(received), sent: schemasOf(sent) },
    connect(principal: UserPrincipal, { locale, groups: subscribed, since }: Subscription) {
      const withheld = Object.entries(sent).flatMap(([type, { group }]) =>
        group === undefined || subscribed.includes(group) ? [] : [type],
      )
      return new Connection(principal, {
        locale,
        withheld: new Set(withheld),
        since: since === undefined ? undefined : parseId(since),
        buckets: bucketsOf(principal.userId),
        onSent: counts.sent,
        onUnsent: (connection, bytes, hasRead) =>
          hub.noteUnsent(connection, bytes, { now: clock.now(), hasRead }),
      })
    },
    /** Ignores new frames, waits for the answers to earlier ones, and closes every socket with 1001. */
    async drain() {
      draining = true
      stopSweeping()
      if (running > 0) await new Promise<void>((resolve) => (whenIdle = resolve))
      hub.closeAll(closeCodes.goingAway)
    },
    disconnect: () => hub.closeAll(closeCodes.goingAway),
    isDraining: () => draining,
  }
}

function createBucket({ count, windowMilliseconds }: Limit, factor: number, now: number) {
  const perWindow = factor * count
  const millisecondsPerToken = windowMilliseconds / perWindow
  return new TokenBucket({ burst: burstFactor * perWindow, millisecondsPerToken }, now)
}

function schemasOf(frames: Record<string, { schema: TSchema }>) {
  return Object.fromEntries(Object.entries(frames).map(([type, { schema }]) => [type, schema]))
}
