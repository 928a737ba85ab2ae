import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { zstdCompress } from 'bun'
import type { WalPosition } from './wal-reader.ts'

/** The position of an entry in the log. Each leadership is an epoch. Its `begin` entry is the last entry of the previous
 *  epoch, so a late entry of a former leader never takes a position of its successor. */
export type LogPosition = { epoch: number; position: number }

type Common = {
  format: 1
  node: string
  /** Milliseconds since the epoch, by the store's clock. */
  at: number
  /** Whether another node may lead after a silence of this one. */
  pair: boolean
  /** The silence, in ms, after which another node may lead; absent in entries of 0.1. */
  lease?: number | undefined
  /** The position in that node's wal up to which the log is complete. */
  mark?: WalPosition | undefined
}
export type Entry = Common &
  (
    | { kind: 'begin' }
    /** Changed pages. A commit consists of this entry and the `partial` ones before it. */
    | { kind: 'pages'; partial: boolean; databasePages: number; numbers: number[] }
    /** A snapshot that replaces all entries before. */
    | { kind: 'base'; snapshot: string }
    /** A heartbeat. */
    | { kind: 'beat' }
    /** The leader has released the lead, so any node may lead. */
    | { kind: 'release' }
  )
export type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

/** The sequence of entries that all nodes share. */
export type ReplicaLog = {
  /** Writes an entry at a free position.
   *  @returns whether this entry is stored there; false when another one is */
  append(place: LogPosition, bytes: Uint8Array): Promise<boolean>
  /** @returns undefined when there is no entry */
  read(place: LogPosition): Promise<Uint8Array | undefined>
  /** The positions after a given one, or all of them, in order. */
  listAfter(place: LogPosition | undefined): AsyncGenerator<LogPosition[]>
  trim(before: LogPosition): Promise<void>
}

export const origin: LogPosition = { epoch: 0, position: 0 }
/** Pages per compressed piece. */
export const pagesPerPiece = 1_024
// The largest page size that SQLite supports.
const maxPageBytes = 65_536
const decompress = promisify(zstdDecompress)
const compressionLevel = 1

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
  const body =
    pages.length > 0 ? await zstdCompress(Buffer.concat(pages), { level: compressionLevel }) : ''
  const hash = Bun.hash.xxHash64(body).toString(16)
  return Buffer.concat([Buffer.from(`${JSON.stringify({ ...entry, hash })}\n`), Buffer.from(body)])
}

/** @returns the entry and the bytes of its pages
 *  @throws Error when it is not an entry, damaged, or from a later version */
export async function decodeEntry(bytes: Uint8Array): Promise<{ entry: Entry; pages: Uint8Array }> {
  const { head, body } = split(bytes)
  const { hash, ...entry } = parseHead(head)
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

function split(bytes: Uint8Array) {
  const end = bytes.indexOf(0x0a)
  return { head: Buffer.from(bytes.subarray(0, end)).toString(), body: bytes.subarray(end + 1) }
}

function parseHead(text: string): Entry & { hash: string } {
  try {
    const head = JSON.parse(text)
    if (typeof head.format === 'number' && typeof head.node === 'string') return head
  } catch {
    // The error below replaces it.
  }
  throw new Error('it was not written by hostline')
}
