import type { WalPosition } from '../db/wal-reader.ts'
import {
  type Agreed,
  type Content,
  type Entry,
  encodeEntry,
  type LogPosition,
  nextPosition,
  origin,
  positionName,
} from './log.ts'
import { type Clocks, type Leadership, type Node, readClocks, silenceSince } from './node.ts'

const firstRetryMilliseconds = 100
const lastRetryMilliseconds = 3_000
/** The number of consecutive failures after which one is logged. */
const loggedFailures = 3
/** After a longer silence another node may have led and its entries may have been trimmed, so the next place may be free
 *  again. Trimming takes at least a day, and a signed request is valid for 15 minutes. */
const longSilenceMilliseconds = 5 * 60_000

export type Appender = ReturnType<typeof createAppender>
type Attachment = {
  /** The pair and lease that the entry announces; by default they stay. */
  agreed?: Agreed
  pages?: Uint8Array[]
  /** The log is complete up to here with this entry. */
  mark?: WalPosition | undefined
  /** Makes the commits in this entry safe on the disk. */
  syncWal?: () => Promise<void>
}

/** Appends the entries of a leader one at a time. Retries each until it is stored. */
export function createAppender(
  { shared, identity, counts, log, ...node }: Node,
  /** Called when another node leads. */
  onFenced: (error: Error) => void,
) {
  let lead: Leadership | undefined
  /** The last stored entry. */
  let last: { place: LogPosition; kind: Entry['kind'] } | undefined
  let mark: WalPosition | undefined
  let isOver = false
  let agreed: Agreed = { pair: false, lease: longSilenceMilliseconds }
  /** When the last stored entry was sent. */
  let confirmed: Clocks = readClocks()
  let failuresInARow = 0

  function fail(error: Error): void {
    node.fail(error)
    failuresInARow++
    // Single failures are not logged, because the retry follows at once.
    if (failuresInARow === loggedFailures) {
      log.error('the bucket stores nothing: trying again', { error })
    }
  }

  function succeed() {
    if (failuresInARow >= loggedFailures) log.info('the bucket stores entries again')
    failuresInARow = 0
  }

  const next = () => (last ? nextPosition(last.place, last) : origin)

  async function untilStored(store: () => Promise<void>) {
    const longest = () => (agreed.pair ? agreed.lease / 8 : lastRetryMilliseconds)
    for (let delay = firstRetryMilliseconds; ; delay = Math.min(delay * 2, longest())) {
      const error = await store().catch((caught: Error) => caught)
      if (!error) return succeed()
      if (error instanceof Fenced) end(error)
      else fail(error)
      // No entry may follow the end, so this never resolves.
      if (isOver) await new Promise<never>(() => {})
      await Bun.sleep(delay)
    }
  }

  function end(reason: Fenced) {
    if (!isOver) onFenced(reason)
    isOver = true
  }

  async function store(place: LogPosition, bytes: Uint8Array, { syncWal }: Attachment) {
    // The disk has everything that the log has, and then knows where it wrote: a copy of the disk must not know more.
    await syncWal?.()
    await identity.note(place)
    const sent = readClocks()
    if (!(await shared.append(place, bytes))) await fence(place)
    const longest = agreed.pair ? agreed.lease : longSilenceMilliseconds
    const later = silenceSince(confirmed) > longest && (await shared.findLast(place))
    if (later) throw new Fenced(`the log continues at ${positionName(later)}`)
    confirmed = sent
  }

  /** @throws Fenced · LogError (the object there is not an entry) */
  async function fence(place: LogPosition): Promise<never> {
    const found = await shared.read(place)
    if (!found) throw new Error(`log/${positionName(place)} was refused but does not exist`)
    throw new Fenced(`${found.entry.node} leads since ${positionName(place)}`)
  }

  /** Resolves when the entry is stored, after any number of attempts. Never resolves if another node leads. */
  async function append(content: Content, attachment: Attachment = {}): Promise<void> {
    const place = next()
    const said = attachment.agreed ?? agreed
    mark = attachment.mark ?? mark
    const common = { format: 1, node: identity.node, start: lead?.start, at: Date.now() } as const
    const entry: Entry = { ...content, ...common, ...said, mark }
    const bytes = await encodeEntry(entry, attachment.pages)
    await untilStored(() => store(place, bytes, attachment))
    last = { place, kind: entry.kind }
    agreed = said
    counts.storedAt = entry.at
    counts.objects++
    counts.bytes += bytes.length
  }

  return {
    /** Continues after the entry that made this node the leader. */
    start(leadership: Leadership): void {
      lead = leadership
      last = { place: leadership.place, kind: 'begin' }
      confirmed = leadership.sentAt
      agreed = leadership.agreed
      mark = typeof leadership.from === 'object' ? leadership.from : undefined
    },
    next,
    last: () => last?.place,
    agreed: () => agreed,

    append,

    /** Changes what the entries say. Until one says it, this node goes by the stricter values. */
    async agree(changed: Agreed): Promise<void> {
      // The log may have been silent for longer than the new lease.
      await append({ kind: 'beat' })
      const lease = Math.min(agreed.lease, changed.lease)
      agreed = { pair: agreed.pair || changed.pair, lease }
      await append({ kind: 'beat' }, { agreed: changed })
    },

    fail,
    /** Whether the bucket still has this node's last entry. */
    async hasLast(): Promise<boolean> {
      const found = last && (await shared.read(last.place))
      return !last || (found !== undefined && identity.wrote(found.entry))
    },
    /** Whether another node has begun a log of its own after this one's was removed. Ends the lead then. */
    async isReplaced(): Promise<boolean> {
      const begun = lead && (await shared.read(lead.place))
      if (begun && identity.wrote(begun.entry)) return false
      // When that entry was trimmed, the first one left is this node's.
      const start = await shared.findFirst()
      const first = start && (await shared.read(start))
      if (!first || identity.wrote(first.entry)) return false
      end(new Fenced(`another log is in the bucket: ${first.entry.node} writes it`))
      return true
    },
    /** Milliseconds since the last stored entry was sent. */
    silence: () => silenceSince(confirmed),
    stop(): void {
      isOver = true
    },
  }
}

/** Another node leads, so this one must not acknowledge any more writes. */
class Fenced extends Error {}
