import type { ServerWebSocket } from 'bun'
import type { Caller } from '../../http/exchange.ts'
import type { Locale } from '../../lib/i18n.ts'
import { type Limit, SlidingWindow } from '../../lib/sliding-window.ts'
import { TokenBucket } from '../../lib/token-bucket.ts'
import type { CloseCode } from '../../realtime/close-codes.ts'
import type { Frame, Peer } from '../../realtime/hub.ts'
import {
  type EventGroup,
  eventGroupOf,
  isNewMessage,
  type NewMessageFrame,
} from './server-frames.ts'

/** How a client wants its connection: in which language, with which frames beyond those of spec 6.1, and from which
 *  message on when it catches up first. */
export type ConnectionWishes = {
  locale: Locale
  events: ReadonlySet<EventGroup>
  since: string | undefined
}

/** What holds for every connection; `onSent` is told of each frame that the socket took. */
type Terms = { frameLimit: Limit | 'off'; now: number; onSent: () => void }

const burstFactor = 3
const expiryGraceMilliseconds = 30_000
const refusedLimit: Limit = { count: 49, windowMilliseconds: 60_000 }
const malformedLimit: Limit = { count: 19, windowMilliseconds: 60_000 }
const behindBytes = 64 * 1_024
const maxHeldFrames = 1_000

/** One socket of a user: who it belongs to, how long, and how much it may still send. */
export class Connection implements Peer {
  readonly userId: string
  readonly isAdmin: boolean
  readonly locale: Locale
  readonly #events: ReadonlySet<EventGroup>
  /** The newest message that the client has or had replayed. */
  #position: string
  /** What must wait until the replay is through; undefined while frames go out as they come. */
  #held: string[] | undefined
  #isClosed = false
  #whenDrained = () => {}
  #sessionId: string
  #expiresAt: number
  #socket: ServerWebSocket<Connection> | undefined
  readonly #onSent: () => void
  readonly #bucket: TokenBucket | undefined
  readonly #refused = new SlidingWindow()
  readonly #malformed = new SlidingWindow()

  constructor(caller: Caller, wishes: ConnectionWishes, { frameLimit, now, onSent }: Terms) {
    this.userId = caller.userId
    this.isAdmin = caller.role === 'admin'
    this.locale = wishes.locale
    this.#events = wishes.events
    this.#position = wishes.since ?? ''
    if (wishes.since !== undefined) this.#held = []
    this.#sessionId = caller.sessionId
    this.#expiresAt = caller.expiresAt
    this.#onSent = onSent
    if (frameLimit === 'off') return
    const { count, windowMilliseconds } = frameLimit
    const rule = {
      burst: burstFactor * count,
      millisecondsPerToken: windowMilliseconds / count,
    }
    this.#bucket = new TokenBucket(rule, now)
  }

  get sessionId(): string {
    return this.#sessionId
  }

  attach(socket: ServerWebSocket<Connection>): void {
    this.#socket = socket
  }

  /** Goes on with a newer token of the same user. */
  extend({ sessionId, expiresAt }: Caller): void {
    this.#sessionId = sessionId
    this.#expiresAt = expiresAt
  }

  isExpired(now: number): boolean {
    return now >= this.#expiresAt + expiryGraceMilliseconds
  }

  /** Counts a frame.
   *  @returns 0, or for a frame too many the milliseconds until the next one is taken */
  countFrame(now: number): number {
    if (!this.#bucket || this.#bucket.take(now)) return 0
    return Math.max(1, this.#bucket.waitMilliseconds)
  }

  /** Counts a refused frame; true at the 50th within a minute. */
  isFlooding(now: number): boolean {
    return !this.#refused.take(refusedLimit, now)
  }

  /** Counts a malformed frame; true at the 20th within a minute. */
  isGibberish(now: number): boolean {
    return !this.#malformed.take(malformedLimit, now)
  }

  /** Answers this client, also in the middle of a replay. */
  sendFrame(frame: Frame): boolean {
    return this.#transmit(JSON.stringify(frame))
  }

  /** Messages wait for the replay, which comes to them, and are not told twice after it. */
  wants(frame: Frame): boolean {
    const group = eventGroupOf(frame.type)
    if (group && !this.#events.has(group)) return false
    return !isNewMessage(frame) || (!this.#held && frame.message.id > this.#position)
  }

  send(text: string): boolean {
    if (!this.#held) return this.#transmit(text)
    if (this.#held.length >= maxHeldFrames) this.drop()
    this.#held.push(text)
    return true
  }

  isBehind(): boolean {
    return this.#held !== undefined || this.#unsentBytes() > behindBytes
  }

  /** Sends what the client missed, oldest first, in small parts at the pace at which it reads; then lets live frames
   *  through. `read` gives the messages after an id: nothing may come between its last, empty answer and that. */
  async replay(read: (after: string) => readonly NewMessageFrame[]): Promise<void> {
    while (this.#held && !this.#isClosed) {
      const frames = read(this.#position)
      if (frames.length === 0) return this.#goLive()
      for (const frame of frames) {
        this.sendFrame(frame)
        this.#position = frame.message.id
        if (this.#unsentBytes() > behindBytes) await this.#drained()
      }
      await new Promise(setImmediate)
    }
  }

  #goLive() {
    const held = this.#held ?? []
    this.#held = undefined
    for (const text of held) this.#transmit(text)
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isClosed) resolve()
      else this.#whenDrained = resolve
    })
  }

  /** The peer has read what was unsent. */
  drained(): void {
    this.#whenDrained()
  }

  /** The socket is gone. */
  detach(): void {
    this.#isClosed = true
    this.#socket = undefined
    this.#whenDrained()
  }

  // The socket answers 0 for a dropped frame, and closes by itself when too much is unsent.
  #transmit(text: string): boolean {
    const isSent = this.#socket !== undefined && this.#socket.send(text) !== 0
    if (isSent) this.#onSent()
    return isSent
  }

  #unsentBytes() {
    return this.#socket?.getBufferedAmount() ?? 0
  }

  /** Breaks the connection, as with a reader that is too slow: the client comes back and catches up. */
  drop(): void {
    this.#isClosed = true
    this.#socket?.terminate()
  }

  close(code: CloseCode): void {
    this.#isClosed = true
    this.#socket?.close(code)
  }
}
