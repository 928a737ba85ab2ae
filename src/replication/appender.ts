import type { Log } from '../lib/log.ts'
import { readClocks, silenceOf } from './clocks.ts'
import type { Lead } from './leader.ts'
import {
  comparePlaces,
  decodeEntry,
  type Entry,
  type EntryOf,
  encodeEntry,
  type Place,
  placeAfter,
  placeName,
  type ReplicaLog,
} from './log.ts'
import type { WalMark } from './wal-reader.ts'

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
type Own<Kind extends Entry['kind']> = Omit<
  EntryOf<Kind>,
  'format' | 'node' | 'at' | 'pair' | 'lease' | 'kind'
>

const firstRetryMilliseconds = 100
const lastRetryMilliseconds = 3_000
const toldFailures = 3
/** After a longer silence others may have led and their entries may have been trimmed, so that the next place is free
 *  again. Trimming takes at least a day; a signed request is valid for 15 minutes. */
const longSilenceMilliseconds = 5 * 60_000

export type Appender = ReturnType<typeof createAppender>

/** Appends the entries of one leader one by one, retrying each until it is stored. */
export function createAppender(options: AppenderOptions) {
  const { shared, now, node, pair, leaseMilliseconds, log, onFenced } = options
  const longestDelay = pair ? leaseMilliseconds / 8 : lastRetryMilliseconds
  const silenceMilliseconds = pair ? leaseMilliseconds : longSilenceMilliseconds
  let next: Place | undefined
  let last: Place | undefined
  let mark: WalMark | undefined
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
    // A single failure is not logged; it is retried at once.
    if (failuresInARow === toldFailures) {
      log.error('the bucket takes nothing: trying again', { error })
    }
  }

  async function tryOnce(place: Place, bytes: Uint8Array): Promise<void> {
    if (silenceOf(confirmed) > silenceMilliseconds) await mustStillLead(place)
    const sent = readClocks()
    sentAt = performance.now()
    if (!(await shared.append(place, bytes))) await fence(place)
    // The request may have taken long.
    if (silenceOf(sent) > silenceMilliseconds) await mustStillLead(place)
    confirmed = sent
  }

  /** @throws Fenced when another node has written an entry after this place */
  async function mustStillLead(place: Place) {
    for await (const places of shared.listAfter({ ...place, position: place.position - 1 })) {
      const later = places.find((one) => comparePlaces(one, place) > 0)
      if (later) throw new Fenced(`the log goes on at ${placeName(later)}`)
    }
  }

  /** @throws Fenced · Error (the object there is not an entry) */
  async function fence(place: Place): Promise<never> {
    const found = await shared.read(place)
    if (!found) throw new Error(`the place ${placeName(place)} is refused, and empty`)
    const { entry } = await decodeEntry(found).catch((error: Error) => {
      throw new Error(
        `an object lies in the way at log/${placeName(place)} (${error.message}): remove it`,
      )
    })
    throw new Fenced(`${entry.node} leads since ${placeName(place)}`)
  }

  async function tryUntilStored(place: Place, bytes: Uint8Array): Promise<void> {
    let delay = firstRetryMilliseconds
    while (!(await tryOnce(place, bytes).then(succeed, refused))) {
      // Nothing may follow the end, so this never resolves.
      if (isOver) await new Promise<never>(() => {})
      await Bun.sleep(delay)
      delay = Math.min(delay * 2, longestDelay)
    }
  }

  function succeed(): true {
    if (failuresInARow >= toldFailures) log.info('the bucket takes entries again')
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
    start({ next: place, sentAt: since, from }: Lead): void {
      next = place
      confirmed = since
      sentAt = since.steady
      mark = from && 'mark' in from ? from.mark : undefined
    },
    next: () => next,
    last: () => last,

    /** Resolves when the entry is stored, after any number of tries. Never resolves once another node leads. */
    async append<Kind extends Entry['kind']>(
      kind: Kind,
      own: Own<Kind>,
      pages?: readonly Uint8Array[],
    ): Promise<void> {
      const place = next
      if (!place) throw new Error('nothing is appended before the start')
      mark = own.mark ?? mark
      const common = {
        format: 1,
        node,
        at: now(),
        pair,
        lease: leaseMilliseconds,
        kind,
        mark,
      } as const
      // The compiler cannot see that `kind` and `own` match.
      const entry = { ...own, ...common } as unknown as Entry
      const bytes = await encodeEntry(entry, pages)
      await tryUntilStored(place, bytes)
      next = placeAfter(place, entry)
      last = place
      storedAt = entry.at
      counts.objects++
      counts.bytes += bytes.length
    },

    fail,
    /** When the last entry was sent, by `performance.now()`. */
    sentAt: () => sentAt,
    /** Milliseconds since the last confirmed entry. Uses two clocks, because one stops while the machine sleeps. */
    silence: () => silenceOf(confirmed),
    stats: () => ({ ...counts, storedAt, failure }),
    stop(): void {
      isOver = true
    },
  }
}

/** Another node leads: this one must not acknowledge any more writes. */
class Fenced extends Error {}
