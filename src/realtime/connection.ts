import type { ServerWebSocket } from 'bun'
import type { Locale } from '../lib/i18n.ts'
import { type Limit, SlidingWindow, type TokenBucket } from '../lib/limits.ts'
import type { UserPrincipal } from '../lib/principal.ts'
import type { Role } from '../lib/vocabulary.ts'
import type { Frame } from './frames.ts'
import type { CloseCode, Peer } from './hub.ts'

/** Missed messages, oldest first. */
export type ReplayPart = ReadonlyArray<{ id: string; frame: Frame }>

/** Each piece of work has a turn of the event loop to itself. */
export type InTurn = <T>(work: () => T) => Promise<T>

export type ConnectionOptions = {
  locale: Locale
  /** Frame types of groups that the client did not subscribe to. */
  withheld: ReadonlySet<string>
  since: string | undefined
  /** The socket's own bucket and its user's; empty without a limit. */
  buckets: readonly TokenBucket[]
  onSent: () => void
  onUnsent: (connection: Connection, bytes: number, hasRead: boolean) => void
}

const expiryGraceMilliseconds = 30_000
const refusedLimit: Limit = { count: 49, windowMilliseconds: 60_000 }
const malformedLimit: Limit = { count: 19, windowMilliseconds: 60_000 }
const behindBytes = 64 * 1_024
const maxHeldFrames = 1_000

/** `before` is the next message of the replay: a frame that says "all so far" must not come after it. */
type HeldFrame = { text: string; before?: string }

export class Connection implements Peer {
  readonly userId: string
  readonly role: Role
  readonly mayAdminister: boolean
  readonly locale: Locale
  readonly since: string | undefined
  sessionId: string
  /** Resolves once each read mark is stored or refused. A stored mark has no answer, so the next pong waits for it. */
  marked: Promise<void> = Promise.resolve()
  readonly #options: ConnectionOptions
  readonly #refused = new SlidingWindow()
  readonly #malformed = new SlidingWindow()
  #expiresAt: number
  #socket: ServerWebSocket<Connection> | undefined
  #whenDrained = () => {}
  #position: string
  #held: HeldFrame[] | undefined

  constructor(principal: UserPrincipal, options: ConnectionOptions) {
    const { since } = options
    this.userId = principal.userId
    this.role = principal.role
    this.mayAdminister = principal.mayAdminister
    this.locale = options.locale
    this.since = since
    this.sessionId = principal.sessionId
    this.#options = options
    this.#expiresAt = principal.expiresAt
    this.#position = since ?? ''
    if (since !== undefined) this.#held = []
  }

  attach(socket: ServerWebSocket<Connection>): void {
    this.#socket = socket
  }

  extend({ sessionId, expiresAt }: UserPrincipal): void {
    this.sessionId = sessionId
    this.#expiresAt = expiresAt
  }

  isExpired(now: number): boolean {
    return now >= this.#expiresAt + expiryGraceMilliseconds
  }

  /** @returns 0, or for a frame over the limit the milliseconds until the next is accepted */
  countFrame(now: number): number {
    const full = this.#options.buckets.find((bucket) => !bucket.take(now))
    return full?.waitMilliseconds ?? 0
  }

  countRefused(now: number): boolean {
    return this.#refused.take(refusedLimit, now)
  }

  countMalformed(now: number): boolean {
    return this.#malformed.take(malformedLimit, now)
  }

  /** Sends at once, even during a replay. */
  sendFrame(frame: Frame): boolean {
    return this.#transmit(JSON.stringify(frame))
  }

  wants(type: string, id: string | undefined): boolean {
    if (this.#options.withheld.has(type)) return false
    if (id === undefined) return true
    if (!this.#held) return id > this.#position
    for (const frame of this.#held) frame.before ??= id
    return false
  }

  send(text: string): boolean {
    if (!this.#held) return this.#transmit(text)
    if (this.#held.length >= maxHeldFrames) this.drop()
    this.#held.push({ text })
    return true
  }

  isBehind(): boolean {
    return this.#held !== undefined || this.#unsentBytes() > behindBytes
  }

  /** Sends missed messages as fast as the client reads, then the live frames. All replays of the service share one
   *  `inTurn`, so that other requests are served in between. */
  async replay(parts: Iterable<ReplayPart>, inTurn: InTurn): Promise<void> {
    const reader = parts[Symbol.iterator]()
    for (;;) {
      const part = await inTurn(() => this.#readPart(reader))
      if (!part || !this.#socket) return
      for (const { id, frame } of part) {
        this.#sendHeldBefore(id)
        this.sendFrame(frame)
        this.#position = id
        if (this.#unsentBytes() > behindBytes) {
          await new Promise<void>((resolve) => (this.#whenDrained = resolve))
        }
      }
    }
  }

  #sendHeldBefore(id: string) {
    const held = this.#held ?? []
    for (let [next] = held; next?.before !== undefined && next.before <= id; [next] = held) {
      held.shift()
      this.#transmit(next.text)
    }
  }

  // Goes live in the same turn as the last read; otherwise a message could be missed in between.
  #readPart(reader: Iterator<ReplayPart>): ReplayPart | undefined {
    const { done, value } = reader.next()
    if (!done) return value
    this.goLive()
    return undefined
  }

  goLive(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const { text } of held) this.#transmit(text)
  }

  drained(): void {
    this.#options.onUnsent(this, this.#unsentBytes(), true)
    this.#whenDrained()
  }

  detach(): void {
    this.#socket = undefined
    this.#whenDrained()
  }

  // `send` returns 0 for a dropped frame and -1 for a queued one. The socket closes itself when too much is unsent.
  #transmit(text: string): boolean {
    const sent = this.#socket?.send(text) ?? 0
    if (sent === -1) this.#options.onUnsent(this, this.#unsentBytes(), false)
    if (sent !== 0) this.#options.onSent()
    return sent !== 0
  }

  #unsentBytes() {
    return this.#socket?.getBufferedAmount() ?? 0
  }

  /** Terminates the connection of a slow reader: the client reconnects and catches up. */
  drop(): void {
    this.#socket?.terminate()
  }

  close(code: CloseCode): void {
    this.#socket?.close(code)
  }
}
