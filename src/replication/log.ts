import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { zstdCompress } from 'bun'
import type { WalMark } from './wal-reader.ts'

/** The position of an entry in the log. Each leader's term is an epoch. The entry `begin` opens it and is the last one
 *  of the previous epoch, so a late entry of a former leader never occupies a place of its successor. */
export type Place = { epoch: number; position: number }

type Common = {
  format: 1
  node: string
  /** Milliseconds since the epoch, by the store's clock. */
  at: number
  /** Whether another node may lead once this one is silent. */
  pair: boolean
  /** The silence, in ms, after which another node may lead; absent in entries of 0.1. */
  lease?: number | undefined
  /** The position in that node's wal up to which the log is complete. */
  mark?: WalMark | undefined
}
export type Entry = Common &
  (
    | { kind: 'begin' }
    /** Changed pages. A commit consists of this entry and the `partial` ones before it. */
    | { kind: 'pages'; partial: boolean; databasePages: number; numbers: number[] }
    /** From here on the state is that of the snapshot, replacing everything before. */
    | { kind: 'base'; snapshot: string }
    /** A heartbeat: the leader is alive. */
    | { kind: 'beat' }
    /** The leader has ended its term: any node may lead. */
    | { kind: 'release' }
  )
export type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

/** The sequence of entries that all nodes share. */
export type ReplicaLog = {
  /** Writes an entry at a free place.
   *  @returns whether this entry is stored there; false when another one is */
  append(place: Place, bytes: Uint8Array): Promise<boolean>
  /** @returns undefined when there is no entry */
  read(place: Place): Promise<Uint8Array | undefined>
  /** The places after a given one, or all of them, in order. */
  listAfter(place: Place | undefined): AsyncGenerator<Place[]>
  trim(before: Place): Promise<void>
}

export const origin: Place = { epoch: 0, position: 0 }
/** Pages per compressed piece. */
export const pagesOfPiece = 1_024
// The largest page size that SQLite supports.
const maxPageBytes = 65_536
const decompress = promisify(zstdDecompress)
const compressionLevel = 1

export function comparePlaces(a: Place, b: Place): number {
  return a.epoch - b.epoch || a.position - b.position
}

/** The place that follows an entry. */
export function placeAfter(place: Place, { kind }: Pick<Entry, 'kind'>): Place {
  return { epoch: place.epoch + (kind === 'begin' ? 1 : 0), position: place.position + 1 }
}

/** Text that sorts in the order of places. */
export function placeName({ epoch, position }: Place): string {
  return `${String(epoch).padStart(8, '0')}-${String(position).padStart(12, '0')}`
}

/** @returns undefined for any other text */
export function parsePlace(name: string): Place | undefined {
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
 *  @throws Error when it is not an entry, damaged, or of a later version */
export async function decodeEntry(bytes: Uint8Array): Promise<{ entry: Entry; pages: Uint8Array }> {
  const { head, body } = split(bytes)
  const { hash, ...entry } = parseHead(head)
  if (entry.format !== 1) throw new Error('a later version wrote it: use a newer hostline')
  if (Bun.hash.xxHash64(body).toString(16) !== hash) throw new Error('it is damaged')
  return { entry, pages: body.length > 0 ? await unpack(body) : body }
}

/** Decompresses pages. The size is bounded, because objects in the bucket are untrusted and a few kilobytes could expand
 *  to gigabytes.
 *  @throws Error when the content is not compressed pages, or too large */
export async function unpack(packed: Uint8Array): Promise<Uint8Array> {
  try {
    return await decompress(packed, { maxOutputLength: pagesOfPiece * maxPageBytes })
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
  throw new Error('hostline has not written it')
}
