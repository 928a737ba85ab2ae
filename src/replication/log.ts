import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { zstdCompress } from 'bun'
import type { WalMark } from './wal-reader.ts'

/** Where an entry stands. A leader's term is an epoch: it is opened by an entry `begin`, which is the last one of the epoch
 *  before. So an entry that a former leader has sent late never lies in the way of its successor. */
export type Place = { epoch: number; position: number }

type Common = {
  format: 1
  /** Who wrote it. */
  node: string
  /** Milliseconds since the epoch, by the clock of the store. */
  at: number
  /** Whether another node may lead once this one is silent. */
  pair: boolean
  /** How long its writer may be silent before another node leads, in ms; absent in entries of 0.1. */
  lease?: number | undefined
  /** Up to where the log has the wal of that node. */
  mark?: WalMark | undefined
}
export type Entry = Common &
  (
    | { kind: 'begin' }
    /** Pages that changed; together with the entries before it that are `partial`. */
    | { kind: 'pages'; partial: boolean; databasePages: number; numbers: number[] }
    /** From here on the database is that snapshot, whatever was before. */
    | { kind: 'base'; snapshot: string }
    /** Nothing new, but somebody is there. */
    | { kind: 'beat' }
    /** The leader has ended its term: anybody may lead. */
    | { kind: 'release' }
  )
export type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

/** The sequence of entries that all nodes share. */
export type ReplicaLog = {
  /** Writes an entry at a place where there is none.
   *  @returns whether it stands there: false when another one does */
  append(place: Place, bytes: Uint8Array): Promise<boolean>
  /** @returns undefined while there is none */
  read(place: Place): Promise<Uint8Array | undefined>
  /** The places behind one, or all, in order. */
  listAfter(place: Place | undefined): AsyncGenerator<Place[]>
  /** Removes the entries before a place. */
  trim(before: Place): Promise<void>
}

export const origin: Place = { epoch: 0, position: 0 }
/** So many pages are packed at once. */
export const pagesOfPiece = 1_024
// The largest that SQLite knows.
const maxPageBytes = 65_536
const decompress = promisify(zstdDecompress)
const compressionLevel = 1

export function comparePlaces(a: Place, b: Place): number {
  return a.epoch - b.epoch || a.position - b.position
}

/** The place of the entry behind one. */
export function placeAfter(place: Place, { kind }: Pick<Entry, 'kind'>): Place {
  return { epoch: place.epoch + (kind === 'begin' ? 1 : 0), position: place.position + 1 }
}

/** Sorts as places do. */
export function placeName({ epoch, position }: Place): string {
  return `${String(epoch).padStart(8, '0')}-${String(position).padStart(12, '0')}`
}

/** @returns undefined for any other text */
export function parsePlace(name: string): Place | undefined {
  const [, epoch, position] = /^(\d{8})-(\d{12})$/.exec(name) ?? []
  return epoch === undefined ? undefined : { epoch: Number(epoch), position: Number(position) }
}

/** An entry as bytes: a line of JSON, then the pages, compressed. */
export async function encodeEntry(entry: Entry, pages: readonly Uint8Array[] = []) {
  const body =
    pages.length > 0 ? await zstdCompress(Buffer.concat(pages), { level: compressionLevel }) : ''
  const hash = Bun.hash.xxHash64(body).toString(16)
  return Buffer.concat([Buffer.from(`${JSON.stringify({ ...entry, hash })}\n`), Buffer.from(body)])
}

/** @returns the entry and the bytes of its pages
 *  @throws Error when it is no entry, damaged, or of a later version */
export async function decodeEntry(bytes: Uint8Array): Promise<{ entry: Entry; pages: Uint8Array }> {
  const { head, body } = split(bytes)
  const { hash, ...entry } = parseHead(head)
  if (entry.format !== 1) throw new Error('a later version wrote it: use a newer hostline')
  if (Bun.hash.xxHash64(body).toString(16) !== hash) throw new Error('it is damaged')
  return { entry, pages: body.length > 0 ? await unpack(body) : body }
}

/** Unpacks pages. A few kilobytes in the bucket, which somebody else may have written, could become gigabytes.
 *  @throws Error when they are no pages, or too many */
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
    // Said below.
  }
  throw new Error('hostline has not written it')
}
