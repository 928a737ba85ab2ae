import { Database } from 'bun:sqlite'
import { fstatSync, read, readSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { zstdCompress } from 'bun'
import {
  comparePositions,
  decodeEntry,
  type LogPosition,
  origin,
  pagesPerPiece,
  parsePosition,
  positionName,
  type ReplicaLog,
  unpack,
} from './log.ts'
import type { ObjectStore } from './object-store.ts'
import type { WalIndex as Position, WalReader } from './wal-reader.ts'

/** A snapshot is the database after a log entry, in pieces under `snapshots/<position>-<attempt>/`. The manifest is written
 *  last; without it the snapshot does not exist. */
type Manifest = {
  format: 1
  place: LogPosition
  /** Milliseconds since the epoch, by the store's clock. */
  at: number
  /** Whether the snapshot replaces all earlier entries; then a `base` entry at its position contains its name. */
  isBase: boolean
  pageSize: number
  pages: number
  /** xxHash64 of each piece. */
  pieces: string[]
}
type Snapshot = { name: string; place: LogPosition; modifiedAt: number }

const framesAtOnce = 512
const hourMilliseconds = 3_600_000
const dayMilliseconds = 24 * hourMilliseconds
const walHeaderBytes = 32
const frameHeaderBytes = 24
const databaseHeaderBytes = 100
const readFile = promisify(read)

const manifestOf = (name: string) => `snapshots/${name}/manifest`
const pieceOf = (name: string, n: number) => `snapshots/${name}/${String(n).padStart(6, '0')}`

export const snapshotName = (place: LogPosition) =>
  `${positionName(place)}-${crypto.randomUUID().slice(0, 8)}`
const positionOf = (name: string) => parsePosition(name.slice(0, positionName(origin).length))
const snapshotKey = /^snapshots\/(\d{8}-\d{12}-\w+)\/(manifest|\d{6})$/

/** The complete snapshots, oldest first. */
export async function listSnapshots(store: ObjectStore): Promise<Snapshot[]> {
  const found: Snapshot[] = []
  for await (const page of store.list('snapshots/')) {
    for (const { key, modifiedAt } of page) {
      const [, name = '', part] = snapshotKey.exec(key) ?? []
      const place = positionOf(name)
      if (part === 'manifest' && place) found.push({ name, place, modifiedAt })
    }
  }
  return found.sort((a, b) => comparePositions(a.place, b.place))
}

/** @throws Error when it is not a manifest, or of a later version */
export async function readManifest(store: ObjectStore, name: string): Promise<Manifest> {
  const bytes = await store.get(manifestOf(name))
  if (!bytes) throw new Error(`the snapshot ${name} does not exist`)
  const manifest = parseManifest(bytes)
  if (!manifest) throw new Error(`${manifestOf(name)} was not written by hostline`)
  if (manifest.format === 1) return manifest
  throw new Error(`the snapshot ${name} is from a later version: use a newer hostline`)
}

function parseManifest(bytes: Uint8Array): Manifest | undefined {
  try {
    return JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
}

/** Whether the log continues from a snapshot. That of a `base` entry counts only if the entry exists, because its leader may
 *  have died before writing it. */
export async function isUsable(shared: ReplicaLog, name: string, manifest: Manifest) {
  if (!manifest.isBase) return true
  const bytes = await shared.read(manifest.place)
  if (!bytes) return false
  const { entry } = await decodeEntry(bytes)
  return entry.kind === 'base' && entry.snapshot === name
}

/** A state of the database that stays readable until `release`. */
export type PinnedState = Position & { release: () => void; isHeld: () => boolean }

/** Pins the state up to which `wal` was read. Until it is released, no checkpoint copies later frames into the database
 *  file, and the wal is reset only if all its frames were copied before.
 *  @returns undefined when another process has committed since */
export function pinState(databasePath: string, wal: WalReader): PinnedState | undefined {
  const reader = new Database(databasePath)
  let isHeld = true
  const release = () => {
    if (isHeld) reader.close()
    isHeld = false
  }
  try {
    reader.run('BEGIN')
    reader.query('SELECT 1 FROM sqlite_schema').get()
    const index = wal.index()
    const pinned = { ...index, ...sizeOf(wal, index), release, isHeld: () => isHeld }
    if (wal.isAtEnd()) return pinned
    release()
    return undefined
  } catch (error) {
    release()
    throw error
  }
}

/** Reads the page size and count, from the database file if the wal is empty. */
function sizeOf({ databaseFile }: WalReader, { frame, pageSize, pages }: Position) {
  if (frame > 0) return { pageSize, pages }
  const header = Buffer.alloc(databaseHeaderBytes)
  readSync(databaseFile, header, 0, databaseHeaderBytes, 0)
  const size = header.readUInt16BE(16)
  const bytes = size === 1 ? 65_536 : size
  return { pageSize: bytes, pages: fstatSync(databaseFile).size / bytes }
}

type Upload = {
  store: ObjectStore
  wal: WalReader
  name: string
  afterPiece: (milliseconds: number) => Promise<void>
}

/** Uploads the pages of a state.
 *  @param upload `afterPiece` is called after each piece with its duration; it may delay or throw
 *  @returns the fields for the manifest, and the size in the bucket */
export async function uploadState(state: Position, { store, wal, name, afterPiece }: Upload) {
  const { pageSize, pages } = state
  const newer = await indexFrames(wal, state)
  const pieces: string[] = []
  let bytes = 0
  for (let first = 1; first <= pages; first += pagesPerPiece) {
    const startedAt = performance.now()
    const count = Math.min(pagesPerPiece, pages - first + 1)
    const piece = await readPages(wal, { first, count, pageSize }, newer)
    const packed = await zstdCompress(piece, { level: 1 })
    await store.put(pieceOf(name, pieces.length), packed)
    pieces.push(Bun.hash.xxHash64(packed).toString(16))
    bytes += packed.length
    await afterPiece(performance.now() - startedAt)
  }
  return { content: { pageSize, pages, pieces }, bytes }
}

/** Completes an uploaded snapshot. */
export async function writeManifest(
  store: ObjectStore,
  name: string,
  manifest: Omit<Manifest, 'format'>,
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify({ format: 1, ...manifest }))
  await store.put(manifestOf(name), bytes)
}

/** Finds the newest frame of each page that the database file may lack. */
async function indexFrames({ walFile }: WalReader, { frame, copiedFrames, pageSize }: Position) {
  const newest = new Map<number, number>()
  // The database file contains the whole wal, which may be reset from here on.
  if (copiedFrames >= frame) return newest
  const frameBytes = frameHeaderBytes + pageSize
  const buffer = Buffer.alloc(framesAtOnce * frameBytes)
  for (let done = 0; done < frame; done += framesAtOnce) {
    const count = Math.min(framesAtOnce, frame - done)
    const at = walHeaderBytes + done * frameBytes
    await readFile(walFile, buffer, 0, count * frameBytes, at)
    for (let n = 0; n < count; n++) newest.set(buffer.readUInt32BE(n * frameBytes), done + n)
  }
  return newest
}

type Range = { first: number; count: number; pageSize: number }

async function readPages(wal: WalReader, { first, count, pageSize }: Range, newer: FrameIndex) {
  const bytes = Buffer.alloc(count * pageSize)
  await readFile(wal.databaseFile, bytes, 0, bytes.length, (first - 1) * pageSize)
  for (let n = 0; n < count; n++) {
    const frame = newer.get(first + n)
    if (frame === undefined) continue
    const at = walHeaderBytes + frame * (frameHeaderBytes + pageSize) + frameHeaderBytes
    await readFile(wal.walFile, bytes, n * pageSize, pageSize, at)
  }
  return bytes
}

type FrameIndex = Map<number, number>

/** Downloads a snapshot into a new database file.
 *  @throws Error when a piece is missing or damaged */
export async function loadSnapshot(store: ObjectStore, name: string, path: string) {
  const manifest = await readManifest(store, name)
  rmSync(path, { force: true })
  const file = await open(path, 'wx', 0o600)
  try {
    for (const [n, hash] of manifest.pieces.entries()) {
      await file.writeFile(await readPiece(store, name, { n, hash }))
    }
    await file.datasync()
  } finally {
    await file.close()
  }
  return manifest
}

async function readPiece(store: ObjectStore, name: string, { n, hash }: Piece) {
  const packed = await store.get(pieceOf(name, n))
  const isWhole = packed && Bun.hash.xxHash64(packed).toString(16) === hash
  const bytes = isWhole ? await unpack(packed).catch(() => undefined) : undefined
  if (bytes) return bytes
  throw new Error(`piece ${n} of the snapshot ${name} is ${packed ? 'damaged' : 'missing'}`)
}

type Piece = { n: number; hash: string }

/** Removes the snapshots that no restore to a moment since `since` needs: older ones except the newest of them, all but
 *  one per hour after a day, and incomplete ones.
 *  @returns the first log position that is still needed */
export async function trimSnapshots(
  store: ObjectStore,
  shared: ReplicaLog,
  since: number,
): Promise<LogPosition | undefined> {
  await thinOut(store, await listSnapshots(store))
  const whole = await listSnapshots(store)
  const first = await findUsable(
    store,
    shared,
    whole.filter(({ modifiedAt }) => modifiedAt <= since),
  )
  if (!first) return undefined
  const older = whole.filter(({ place }) => comparePositions(place, first.place) < 0)
  // Delete the manifests first, so that an interrupted removal leaves no incomplete snapshot behind.
  for (const { name } of older) await store.delete(manifestOf(name))
  for await (const page of store.list('snapshots/')) {
    const rest = page.filter(({ key }) => key < `snapshots/${positionName(first.place)}`)
    for (const { key } of rest.filter((one) => snapshotKey.test(one.key))) await store.delete(key)
    if (rest.length < page.length) break
  }
  return first.place
}

/** Keeps only the first snapshot of each hour among those older than a day. Snapshots of `base` entries stay, because the
 *  log depends on them. */
async function thinOut(store: ObjectStore, whole: Snapshot[]) {
  const kept = new Set<number>()
  for (const { name, modifiedAt } of whole) {
    const hour = Math.floor(modifiedAt / hourMilliseconds)
    const isFirst = !kept.has(hour)
    kept.add(hour)
    if (isFirst || modifiedAt > store.now() - dayMilliseconds) continue
    const { isBase, pieces } = await readManifest(store, name)
    if (isBase) continue
    await store.delete(manifestOf(name))
    for (const n of pieces.keys()) await store.delete(pieceOf(name, n))
  }
}

/** The newest snapshot from which the log continues. */
async function findUsable(store: ObjectStore, shared: ReplicaLog, snapshots: Snapshot[]) {
  for (const snapshot of snapshots.toReversed()) {
    const manifest = await readManifest(store, snapshot.name)
    if (await isUsable(shared, snapshot.name, manifest)) return snapshot
  }
  return undefined
}
