import type { ServerWebSocket } from 'bun'
import type { Caller } from '../../http/exchange.ts'
import type { Locale } from '../../lib/messages.ts'
import { type Limit, SlidingWindow } from '../../lib/sliding-window.ts'
import { TokenBucket } from '../../lib/token-bucket.ts'
import type { CloseCode } from '../../realtime/close-codes.ts'
import type { Frame, Peer } from '../../realtime/hub.ts'

const burstFactor = 3
const expiryGraceMilliseconds = 30_000
const refusedLimit: Limit = { count: 49, windowMilliseconds: 60_000 }
const malformedLimit: Limit = { count: 19, windowMilliseconds: 60_000 }
const behindBytes = 64 * 1_024

/** One socket of a user: who it belongs to, how long, and how much it may still send. */
export class Connection implements Peer {
  readonly userId: string
  readonly locale: Locale
  #sessionId: string
  #expiresAt: number
  #socket: ServerWebSocket<Connection> | undefined
  readonly #bucket: TokenBucket | undefined
  readonly #refused = new SlidingWindow()
  readonly #malformed = new SlidingWindow()

  constructor(caller: Caller, locale: Locale, frameLimit: Limit | 'off', now: number) {
    this.userId = caller.userId
    this.locale = locale
    this.#sessionId = caller.sessionId
    this.#expiresAt = caller.expiresAt
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

  sendFrame(frame: Frame): boolean {
    return this.send(JSON.stringify(frame))
  }

  // The socket answers 0 for a dropped frame, and closes by itself when too much is unsent.
  send(text: string): boolean {
    return this.#socket !== undefined && this.#socket.send(text) !== 0
  }

  isBehind(): boolean {
    return (this.#socket?.getBufferedAmount() ?? 0) > behindBytes
  }

  close(code: CloseCode): void {
    this.#socket?.close(code)
  }
}
