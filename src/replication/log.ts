import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { zstdCompress } from 'bun'
import type { WalPosition } from '../db/wal-reader.ts'
import { StartError } from '../lib/errors.ts'
import { BucketError, type OpenBucket } from '../outside/bucket.ts'

/** The position of an entry in the log. Each leadership is an epoch. Its `begin` entry is the last entry of the previous
 *  epoch, so a late entry of a former leader never takes a position of its successor. */
export type LogPosition = { epoch: number; position: number }

/** The rules for all nodes: whether another node may lead, and after how many ms without an entry. */
export type Agreed = { pair: boolean; lease: number }
type Common = Agreed & {
  format: 1
  node: string
  /** The start of the process that wrote it; absent in entries of 0.1. */
  start?: string | undefined
  /** Milliseconds since the epoch. */
  at: number
  /** The position in that node's wal up to which the log is complete. */
  mark?: WalPosition | undefined
}
/** The part of an entry that depends on its kind. The names are those of the stored format. */
export type Content =
  | { kind: 'begin' }
  /** Changed pages. A commit consists of this entry and the `partial` ones before it. */
  | { kind: 'pages'; partial: boolean; databasePages: number; numbers: number[] }
  /** The snapshot entry: a snapshot that replaces all entries before. */
  | { kind: 'base'; snapshot: string }
  /** A heartbeat. */
  | { kind: 'beat' }
  /** The leader has released the lead, so any node may lead. */
  | { kind: 'release' }
export type Entry = Common & Content
export type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>
export type LogEntry = { place: LogPosition; entry: Entry; pages: Uint8Array }
export type ReplicaLog = ReturnType<typeof openLog>

/** An object of the log, or of a snapshot, that cannot be read. */
export class LogError extends StartError {}

/** Whether the bucket cannot be read, which may pass. */
export const isOfBucket = (error: unknown): error is BucketError | LogError =>
  error instanceof BucketError || error instanceof LogError

/** For a `catch`: undefined when the bucket cannot be read. */
export function unlessOfBucket(error: unknown): undefined {
  if (!isOfBucket(error)) throw error
}

export const origin: LogPosition = { epoch: 0, position: 0 }
/** Pages per compressed piece. */
export const pagesPerPiece = 1_024
/** Entries that are read at once. */
const readAhead = 8
const deletedAtOnce = 8
// The largest page size that SQLite supports.
const maxPageBytes = 65_536
// 0.1 did not write its lease.
const defaultLeaseMilliseconds = 10_000
const decompress = promisify(zstdDecompress)
const keyOf = (place: LogPosition) => `log/${positionName(place)}`

/** The sequence of entries that all nodes share: an object per entry, whose name is its position. */
export function openLog(bucket: OpenBucket) {
  async function read(place: LogPosition): Promise<LogEntry | undefined> {
    const bytes = await bucket.get(keyOf(place))
    if (!bytes) return undefined
    const decoded = await decodeEntry(bytes).catch((error: Error) => {
      throw new LogError(`${keyOf(place)} in the bucket cannot be read: ${error.message}`)
    })
    return { place, ...decoded }
  }

  const readAtOnce = ({ epoch, position }: LogPosition, count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => read({ epoch, position: position + n })))

  async function* listAfter(place?: LogPosition) {
    for await (const page of bucket.list('log/', place && keyOf(place))) {
      yield page.flatMap(({ key }) => parsePosition(key.slice('log/'.length)) ?? [])
    }
  }

  return {
    /** Writes an entry at a free position.
     *  @returns whether this entry is stored there; false when another one is */
    append: (place: LogPosition, bytes: Uint8Array) => bucket.create(keyOf(place), bytes),

    /** The entries from a position on, in order.
     *  @throws LogError */
    async *readFrom(place: LogPosition): AsyncGenerator<LogEntry> {
      let next = place
      let ahead: (LogEntry | undefined)[] = []
      for (let n = 0; ; n++) {
        // A standby mostly finds one entry, so reading ahead begins with the third.
        const count = Math.min(2 ** Math.max(0, n - 1), readAhead)
        if (ahead.length === 0) ahead = await readAtOnce(next, count)
        const found = ahead.shift()
        if (!found) return
        yield found
        next = nextPosition(found.place, found.entry)
        // The rest in this epoch is of a former leader.
        if (found.entry.kind === 'begin') ahead = []
      }
    },

    async findFirst(): Promise<LogPosition | undefined> {
      for await (const [first] of listAfter()) return first
      return undefined
    },

    /** The last position that is taken, listed from `after` on. */
    async findLast(after?: LogPosition): Promise<LogPosition | undefined> {
      let last: LogPosition | undefined
      for await (const places of listAfter(after)) last = places.at(-1) ?? last
      return last
    },

    /** The name of the first entry after `start` that is missing, while later ones are there. A late entry of a former leader
     *  has a position of its successor. */
    async findMissing({ epoch, position }: LogPosition): Promise<string | undefined> {
      let next = position + 1
      for await (const places of listAfter({ epoch, position })) {
        for (const place of places) {
          if (place.position > next) return keyOf({ epoch: place.epoch, position: next })
          next = place.position + 1
        }
      }
      return undefined
    },

    /** Removes the entries before a position. */
    async trim(before: LogPosition): Promise<void> {
      for await (const places of listAfter()) {
        const old = places.filter((one) => comparePositions(one, before) < 0)
        for (let n = 0; n < old.length; n += deletedAtOnce) {
          await Promise.all(old.slice(n, n + deletedAtOnce).map((one) => bucket.delete(keyOf(one))))
        }
        if (old.length < places.length) return
      }
    },
    read,
  }
}

export function comparePositions(a: LogPosition, b: LogPosition): number {
  return a.epoch - b.epoch || a.position - b.position
}

/** The position after an entry. */
export function nextPosition(place: LogPosition, { kind }: Pick<Entry, 'kind'>): LogPosition {
  return { epoch: place.epoch + (kind === 'begin' ? 1 : 0), position: place.position + 1 }
}

/** A text that sorts in the order of positions. */
export function positionName({ epoch, position }: LogPosition): string {
  return `${String(epoch).padStart(8, '0')}-${String(position).padStart(12, '0')}`
}

/** @returns undefined for any other text */
export function parsePosition(name: string): LogPosition | undefined {
  const [, epoch, position] = /^(\d{8})-(\d{12})$/.exec(name) ?? []
  return epoch === undefined ? undefined : { epoch: Number(epoch), position: Number(position) }
}

/** Encodes an entry: a line of JSON, then the compressed pages. */
export async function encodeEntry(entry: Entry, pages: readonly Uint8Array[] = []) {
  const body = pages.length > 0 ? await zstdCompress(Buffer.concat(pages), { level: 1 }) : ''
  const hash = Bun.hash.xxHash64(body).toString(16)
  return Buffer.concat([Buffer.from(`${JSON.stringify({ ...entry, hash })}\n`), Buffer.from(body)])
}

/** @returns the entry and the bytes of its pages
 *  @throws Error when it is not an entry, damaged, or from a later version */
export async function decodeEntry(bytes: Uint8Array): Promise<{ entry: Entry; pages: Uint8Array }> {
  const end = bytes.indexOf(0x0a)
  const body = bytes.subarray(end + 1)
  const { hash, ...entry } = parseHead(Buffer.from(bytes.subarray(0, end)).toString())
  if (entry.format !== 1) throw new Error('it is from a later version: use a newer hostline')
  if (Bun.hash.xxHash64(body).toString(16) !== hash) throw new Error('it is damaged')
  return { entry, pages: body.length > 0 ? await unpack(body) : body }
}

/** Decompresses pages. The size is bounded, because objects in the bucket are untrusted and a few kilobytes could expand
 *  to gigabytes.
 *  @throws Error when the content is not compressed pages, or too large */
export async function unpack(packed: Uint8Array): Promise<Uint8Array> {
  try {
    return await decompress(packed, { maxOutputLength: pagesPerPiece * maxPageBytes })
  } catch (cause) {
    throw new Error('it is damaged', { cause })
  }
}

function parseHead(text: string): Entry & { hash: string } {
  try {
    const head = JSON.parse(text)
    if (typeof head.format === 'number' && typeof head.node === 'string') {
      return { lease: defaultLeaseMilliseconds, ...head }
    }
  } catch {
    // The error below replaces it.
  }
  throw new Error('it was not written by hostline')
}
