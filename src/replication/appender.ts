import type { Log } from '../lib/log.ts'
import { readClocks, silenceOf } from './clocks.ts'
import type { Leadership } from './leader.ts'
import {
  comparePositions,
  decodeEntry,
  type Entry,
  type EntryOf,
  encodeEntry,
  type LogPosition,
  nextPosition,
  positionName,
  type ReplicaLog,
} from './log.ts'
import type { WalPosition } from './wal-reader.ts'

type AppenderOptions = {
  shared: ReplicaLog
  /** Milliseconds since the epoch, by the store's clock. */
  now: () => number
  node: string
  pair: boolean
  leaseMilliseconds: number
  log: Log
  /** Called when another node leads. */
  onFenced: (error: Error) => void
}
/** The fields of an entry that its kind requires; the appender adds the others. */
type EntryFields<Kind extends Entry['kind']> = Omit<
  EntryOf<Kind>,
  'format' | 'node' | 'at' | 'pair' | 'lease' | 'kind'
>

const firstRetryMilliseconds = 100
const lastRetryMilliseconds = 3_000
/** The number of consecutive failures after which one is logged. */
const loggedFailures = 3
/** After a longer silence another node may have led and its entries may have been trimmed, so the next place may be free
 *  again. Trimming takes at least a day, and a signed request is valid for 15 minutes. */
const longSilenceMilliseconds = 5 * 60_000

export type Appender = ReturnType<typeof createAppender>

/** Appends the entries of a leader one at a time. Retries each until it is stored. */
export function createAppender(options: AppenderOptions) {
  const { shared, now, node, pair, leaseMilliseconds, log, onFenced } = options
  const longestDelay = pair ? leaseMilliseconds / 8 : lastRetryMilliseconds
  const silenceMilliseconds = pair ? leaseMilliseconds : longSilenceMilliseconds
  let next: LogPosition | undefined
  let last: LogPosition | undefined
  let walPosition: WalPosition | undefined
  let isOver = false
  /** When the last stored entry was sent. */
  let confirmed = readClocks()
  let sentAt = Number.NEGATIVE_INFINITY
  const counts = { objects: 0, bytes: 0, failures: 0 }
  let storedAt: number | undefined
  let failuresInARow = 0
  let failure: { at: number; reason: string } | undefined

  function fail(error: Error) {
    counts.failures++
    failuresInARow++
    failure = { at: now(), reason: error.message }
    // Single failures are not logged, because the retry follows at once.
    if (failuresInARow === loggedFailures) {
      log.error('the bucket stores nothing: trying again', { error })
    }
  }

  async function tryOnce(place: LogPosition, bytes: Uint8Array): Promise<void> {
    if (silenceOf(confirmed) > silenceMilliseconds) await mustStillLead(place)
    const sent = readClocks()
    sentAt = performance.now()
    if (!(await shared.append(place, bytes))) await fence(place)
    // The request itself may have taken too long.
    if (silenceOf(sent) > silenceMilliseconds) await mustStillLead(place)
    confirmed = sent
  }

  /** @throws Fenced when the log has an entry after this place, which another node has written */
  async function mustStillLead(place: LogPosition) {
    for await (const places of shared.listAfter({ ...place, position: place.position - 1 })) {
      const later = places.find((one) => comparePositions(one, place) > 0)
      if (later) throw new Fenced(`the log continues at ${positionName(later)}`)
    }
  }

  /** @throws Fenced · Error (the object there is not an entry) */
  async function fence(place: LogPosition): Promise<never> {
    const found = await shared.read(place)
    if (!found) throw new Error(`log/${positionName(place)} was refused but does not exist`)
    const { entry } = await decodeEntry(found).catch((error: Error) => {
      throw new Error(
        `log/${positionName(place)} is not an entry (${error.message}): remove this object`,
      )
    })
    throw new Fenced(`${entry.node} leads since ${positionName(place)}`)
  }

  async function tryUntilStored(place: LogPosition, bytes: Uint8Array): Promise<void> {
    let delay = firstRetryMilliseconds
    while (!(await tryOnce(place, bytes).then(succeed, refused))) {
      // No entry may follow the end, so this never resolves.
      if (isOver) await new Promise<never>(() => {})
      await Bun.sleep(delay)
      delay = Math.min(delay * 2, longestDelay)
    }
  }

  function succeed(): true {
    if (failuresInARow >= loggedFailures) log.info('the bucket stores entries again')
    failuresInARow = 0
    return true
  }

  function refused(error: Error): false {
    if (error instanceof Fenced && !isOver) end(error)
    else fail(error)
    return false
  }

  function end(error: Fenced) {
    isOver = true
    onFenced(error)
  }

  return {
    /** Continues after the entry that made this node the leader. */
    start({ next: place, sentAt: since, from }: Leadership): void {
      next = place
      confirmed = since
      sentAt = since.steady
      walPosition = from && 'walPosition' in from ? from.walPosition : undefined
    },
    next: () => next,
    last: () => last,

    /** Resolves when the entry is stored, after any number of attempts. Never resolves if another node leads. */
    async append<Kind extends Entry['kind']>(
      kind: Kind,
      fields: EntryFields<Kind>,
      pages?: readonly Uint8Array[],
    ): Promise<void> {
      const place = next
      if (!place) throw new Error('append before start')
      walPosition = fields.mark ?? walPosition
      const common = {
        format: 1,
        node,
        at: now(),
        pair,
        lease: leaseMilliseconds,
        kind,
        mark: walPosition,
      } as const
      // The compiler cannot see that `kind` and `fields` match.
      const entry = { ...fields, ...common } as unknown as Entry
      const bytes = await encodeEntry(entry, pages)
      await tryUntilStored(place, bytes)
      next = nextPosition(place, entry)
      last = place
      storedAt = entry.at
      counts.objects++
      counts.bytes += bytes.length
    },

    fail,
    /** The time of the last sent entry, by `performance.now()`. */
    sentAt: () => sentAt,
    /** Milliseconds since the last stored entry was sent. Uses two clocks, because one stops while the machine sleeps. */
    silence: () => silenceOf(confirmed),
    stats: () => ({ ...counts, storedAt, failure }),
    stop(): void {
      isOver = true
    },
  }
}

/** Another node leads, so this one must not acknowledge any more writes. */
class Fenced extends Error {}
