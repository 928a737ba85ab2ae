import type { ServerWebSocket } from 'bun'
import type { Locale } from '../lib/i18n.ts'
import { type Limit, SlidingWindow, type TokenBucket } from '../lib/limits.ts'
import type { UserPrincipal } from '../lib/principal.ts'
import type { Role } from '../lib/vocabulary.ts'
import type { Frame } from './frames.ts'
import type { CloseCode, Peer } from './hub.ts'

/** A part of what a client missed, oldest first. */
export type ReplayPart = ReadonlyArray<{ id: string; frame: Frame }>

/** Runs a piece of work when nobody else's runs, in a turn of the event loop of its own. */
export type InTurn = <T>(work: () => T) => Promise<T>

export type ConnectionOptions = {
  locale: Locale
  /** Types of frames that this client did not ask for. */
  withheld: ReadonlySet<string>
  /** The id after which a replay begins; without it there is none. */
  since: string | undefined
  /** What counts the frames of this socket, and those of all sockets of the user; none without a limit. */
  buckets: readonly TokenBucket[]
  /** Told of each frame that the socket took. */
  onSent: () => void
  /** Told how much is unsent, when frames wait and when the peer has read some. */
  onUnsent: (connection: Connection, bytes: number, hasRead: boolean) => void
}

const expiryGraceMilliseconds = 30_000
const refusedLimit: Limit = { count: 49, windowMilliseconds: 60_000 }
const malformedLimit: Limit = { count: 19, windowMilliseconds: 60_000 }
const behindBytes = 64 * 1_024
const maxHeldFrames = 1_000

/** One socket of a user: whose it is, for how long, and how much it may still send. */
export class Connection implements Peer {
  readonly userId: string
  readonly role: Role
  readonly mayAdminister: boolean
  readonly locale: Locale
  readonly #withheld: ReadonlySet<string>
  readonly #onSent: () => void
  readonly #onUnsent: ConnectionOptions['onUnsent']
  readonly #buckets: readonly TokenBucket[]
  readonly #refused = new SlidingWindow()
  readonly #malformed = new SlidingWindow()
  #sessionId: string
  #expiresAt: number
  #socket: ServerWebSocket<Connection> | undefined
  #isClosed = false
  #whenDrained = () => {}
  /** The newest message that the client has or had replayed. */
  #position: string
  /** What must wait until the replay is through; undefined while frames go out as they come. */
  #held: string[] | undefined

  constructor(principal: UserPrincipal, options: ConnectionOptions) {
    const { since } = options
    this.userId = principal.userId
    this.role = principal.role
    this.mayAdminister = principal.mayAdminister
    this.locale = options.locale
    this.#withheld = options.withheld
    this.#onSent = options.onSent
    this.#onUnsent = options.onUnsent
    this.#sessionId = principal.sessionId
    this.#expiresAt = principal.expiresAt
    this.#position = since ?? ''
    if (since !== undefined) this.#held = []
    this.#buckets = options.buckets
  }

  get sessionId(): string {
    return this.#sessionId
  }

  /** The id after which the replay begins; undefined when there is none. */
  get replaysAfter(): string | undefined {
    return this.#held && this.#position
  }

  attach(socket: ServerWebSocket<Connection>): void {
    this.#socket = socket
  }

  /** Continues with a newer token of the same user. */
  extend({ sessionId, expiresAt }: UserPrincipal): void {
    this.#sessionId = sessionId
    this.#expiresAt = expiresAt
  }

  isExpired(now: number): boolean {
    return now >= this.#expiresAt + expiryGraceMilliseconds
  }

  /** Counts a frame.
   *  @returns 0, or for a frame too many the milliseconds until the next one is taken */
  countFrame(now: number): number {
    const full = this.#buckets.find((bucket) => !bucket.take(now))
    return full ? Math.max(1, full.waitMilliseconds) : 0
  }

  /** Counts a refused frame; false at the 50th within a minute. */
  countRefused(now: number): boolean {
    return this.#refused.take(refusedLimit, now)
  }

  /** Counts a malformed frame; false at the 20th within a minute. */
  countMalformed(now: number): boolean {
    return this.#malformed.take(malformedLimit, now)
  }

  /** Answers this client, also in the middle of a replay. */
  sendFrame(frame: Frame): boolean {
    return this.#transmit(JSON.stringify(frame))
  }

  wants(type: string, id: string | undefined): boolean {
    if (this.#withheld.has(type)) return false
    return id === undefined || (!this.#held && id > this.#position)
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

  /** Sends what the client missed at the pace at which it reads, then lets live frames through. Each part is read
   *  `inTurn`, as all replays of the service together must leave time for others. */
  async replay(parts: Iterable<ReplayPart>, inTurn: InTurn): Promise<void> {
    const reader = parts[Symbol.iterator]()
    for (;;) {
      const part = await inTurn(() => this.#readPart(reader))
      if (!part || this.#isClosed) return
      for (const { id, frame } of part) {
        this.sendFrame(frame)
        this.#position = id
        if (this.#unsentBytes() > behindBytes) await this.#drained()
      }
    }
  }

  // Nothing may come between the end of the parts and the first live frame.
  #readPart(reader: Iterator<ReplayPart>): ReplayPart | undefined {
    const { done, value } = reader.next()
    if (!done) return value
    this.goLive()
    return undefined
  }

  /** Lets live frames through, those first that waited for the replay. */
  goLive(): void {
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

  /** The peer has read of what was unsent. */
  drained(): void {
    this.#onUnsent(this, this.#unsentBytes(), true)
    this.#whenDrained()
  }

  /** The socket is gone. */
  detach(): void {
    this.#isClosed = true
    this.#socket = undefined
    this.#whenDrained()
  }

  // The socket answers 0 for a dropped frame and -1 for one that waits, and closes by itself when too much is unsent.
  #transmit(text: string): boolean {
    const sent = this.#socket?.send(text) ?? 0
    if (sent === -1) this.#onUnsent(this, this.#unsentBytes(), false)
    if (sent !== 0) this.#onSent()
    return sent !== 0
  }

  #unsentBytes() {
    return this.#socket?.getBufferedAmount() ?? 0
  }

  /** Breaks the connection, as with a reader that is too slow: the client reconnects and catches up. */
  drop(): void {
    this.#isClosed = true
    this.#socket?.terminate()
  }

  close(code: CloseCode): void {
    this.#isClosed = true
    this.#socket?.close(code)
  }
}
