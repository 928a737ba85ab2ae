import { rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { zstdCompress } from 'bun'
import type { PinnedPages } from '../db/pinned-pages.ts'
import { day, hour } from '../lib/clock.ts'
import type { OpenBucket } from '../outside/bucket.ts'
import {
  comparePositions,
  LogError,
  type LogPosition,
  origin,
  pagesPerPiece,
  parsePosition,
  positionName,
  type ReplicaLog,
  unpack,
} from './log.ts'

export type Source = { bucket: OpenBucket; shared: ReplicaLog }

/** A snapshot is the database after a log entry, in pieces under `snapshots/<position>-<attempt>/`. The manifest is written
 *  last; without it the snapshot does not exist. */
export type Manifest = {
  format: 1
  place: LogPosition
  /** Milliseconds since the epoch. */
  at: number
  /** Whether the snapshot replaces all earlier entries; then a `base` entry at its position contains its name. */
  isBase: boolean
  pageSize: number
  pages: number
  /** xxHash64 of each piece. */
  pieces: string[]
}
export type Snapshot = Awaited<ReturnType<typeof listAll>>[number]
/** `bytes` is its size in the bucket. */
export type TakenSnapshot = { name: string; manifest: Manifest; bytes: number }

const manifestOf = (name: string) => `snapshots/${name}/manifest`
const pieceOf = (name: string, n: number) => `snapshots/${name}/${String(n).padStart(6, '0')}`
const snapshotKey = /^snapshots\/((\d{8}-\d{12})-\w+)\/(manifest|\d{6})$/

/** All snapshots, oldest first, also incomplete ones. */
async function listAll(bucket: OpenBucket) {
  const objects = (await Array.fromAsync(bucket.list('snapshots/'))).flat()
  const byName = Map.groupBy(objects, ({ key }) => snapshotKey.exec(key)?.[1])
  byName.delete(undefined)
  const found = [...byName].map(([name = '', parts]) => {
    const manifest = parts.find(({ key }) => key === manifestOf(name))
    const place = parsePosition(name.replace(/-\w+$/, '')) ?? origin
    const keys = parts.map(({ key }) => key)
    return { name, place, keys, modifiedAt: manifest?.modifiedAt ?? 0 }
  })
  return found.sort((a, b) => comparePositions(a.place, b.place))
}

/** The complete snapshots, oldest first. */
export const listSnapshots = async (bucket: OpenBucket) => (await listAll(bucket)).filter(isWhole)

const isWhole = ({ name, keys }: Snapshot) => keys.includes(manifestOf(name))

/** A snapshot that is gone or damaged. */
export class LostSnapshot extends LogError {}

/** @throws LostSnapshot when it is not a manifest · Error when it is of a later version */
async function readManifest(bucket: OpenBucket, name: string): Promise<Manifest> {
  const bytes = await bucket.get(manifestOf(name))
  if (!bytes) throw new LostSnapshot(`the snapshot ${name} is gone from the bucket`)
  const text = Buffer.from(bytes).toString()
  const manifest: Manifest = await Promise.try(JSON.parse, text).catch(() => undefined)
  if (!manifest) throw new LostSnapshot(`${manifestOf(name)} was not written by hostline`)
  if (manifest.format === 1) return manifest
  throw new Error(`the snapshot ${name} is from a later version: use a newer hostline`)
}

/** The newest snapshot that was taken until a moment and from which the log continues.
 *  @throws LostSnapshot when only damaged ones are there */
export async function findUsable(
  { bucket, shared }: Source,
  snapshots: Snapshot[],
  until = Number.POSITIVE_INFINITY,
) {
  let lost: LostSnapshot | undefined
  for (const { name, place, keys } of snapshots.toReversed()) {
    const manifest = await readWhole(bucket, name, keys).catch(unlessLost)
    // An older one serves as well: the log continues from each.
    if (manifest instanceof LostSnapshot) lost ??= manifest
    else if (manifest.at > until) continue
    else if (!manifest.isBase || (await isEntered(shared, name, place))) {
      return { name, place, manifest }
    }
  }
  if (lost) throw lost
  return undefined
}

/** @throws LostSnapshot also when a piece is missing */
async function readWhole(bucket: OpenBucket, name: string, keys: readonly string[]) {
  const manifest = await readManifest(bucket, name)
  const missing = manifest.pieces.findIndex((_, n) => !keys.includes(pieceOf(name, n)))
  if (missing < 0) return manifest
  throw new LostSnapshot(`piece ${missing} of the snapshot ${name} is missing`)
}

/** Whether the bucket still has all objects of a snapshot.
 *  @throws LostSnapshot */
export async function mustBeThere(bucket: OpenBucket, name: string): Promise<void> {
  const pages = await Array.fromAsync(bucket.list(`snapshots/${name}/`))
  await readWhole(
    bucket,
    name,
    pages.flat().map(({ key }) => key),
  )
}

export function unlessLost(error: unknown): LostSnapshot {
  if (error instanceof LostSnapshot) return error
  throw error
}

/** Whether the log has the entry of a snapshot, before which only heartbeats may stand: its leader may have died before
 *  writing it. */
async function isEntered(shared: ReplicaLog, name: string, place: LogPosition): Promise<boolean> {
  for await (const { entry } of shared.readFrom(place)) {
    if (entry.kind !== 'beat') return entry.kind === 'base' && entry.snapshot === name
  }
  return false
}

type Upload = Pick<Manifest, 'place' | 'isBase'> & {
  /** Called after each piece with its duration; it may delay or throw. */
  afterPiece?: (milliseconds: number) => Promise<void>
}

/** Uploads the pages of a state, and then the manifest. */
export async function uploadSnapshot(
  bucket: OpenBucket,
  pinned: PinnedPages,
  { place, isBase, afterPiece }: Upload,
): Promise<TakenSnapshot> {
  const { pageSize, pages } = pinned
  const name = `${positionName(place)}-${crypto.randomUUID().slice(0, 8)}`
  const at = Date.now()
  const pieces: string[] = []
  let bytes = 0
  try {
    let startedAt = performance.now()
    for await (const piece of pinned.pieces(pagesPerPiece)) {
      const packed = await zstdCompress(piece, { level: 1 })
      await bucket.put(pieceOf(name, pieces.length), packed)
      pieces.push(Bun.hash.xxHash64(packed).toString(16))
      bytes += packed.length
      await afterPiece?.(performance.now() - startedAt)
      startedAt = performance.now()
    }
  } finally {
    pinned.release()
  }
  const manifest: Manifest = { format: 1, place, at, isBase, pageSize, pages, pieces }
  await bucket.put(manifestOf(name), Buffer.from(JSON.stringify(manifest)))
  return { name, manifest, bytes }
}

/** Downloads a snapshot into a new database file.
 *  @throws LostSnapshot when a piece is missing or damaged */
export async function loadSnapshot(bucket: OpenBucket, name: string, path: string): Promise<void> {
  const { pieces } = await readManifest(bucket, name)
  rmSync(path, { force: true })
  const file = await open(path, 'wx', 0o600)
  try {
    for (const [n, hash] of pieces.entries()) {
      await file.writeFile(await readPiece(bucket, name, { n, hash }))
    }
    await file.datasync()
  } finally {
    await file.close()
  }
}

type Piece = { n: number; hash: string }

async function readPiece(bucket: OpenBucket, name: string, { n, hash }: Piece) {
  const packed = await bucket.get(pieceOf(name, n))
  const isWhole = packed && Bun.hash.xxHash64(packed).toString(16) === hash
  const bytes = isWhole ? await unpack(packed).catch(() => undefined) : undefined
  if (bytes) return bytes
  throw new LostSnapshot(`piece ${n} of the snapshot ${name} is ${packed ? 'damaged' : 'missing'}`)
}

/** Removes what no restore to a moment since `since` needs: older snapshots except the newest of them, all but one per
 *  hour after a day, incomplete ones, and the entries before the first snapshot left. */
export async function trim({ bucket, shared }: Source, since: number): Promise<void> {
  const all = await listAll(bucket)
  const left = await thin(bucket, all.filter(isWhole))
  const old = left.filter(({ modifiedAt }) => modifiedAt <= since)
  const first = await findUsable({ bucket, shared }, old)
  for (const one of all) {
    const isOld = first && comparePositions(one.place, first.place) < 0
    if (!isOld && (left.includes(one) || !isWhole(one))) continue
    // The manifest goes first, so that an interrupted removal leaves no incomplete snapshot behind.
    for (const key of one.keys.toSorted().toReversed()) await bucket.delete(key)
  }
  if (first) await shared.trim(first.place)
}

/** Leaves the first snapshot of each hour, and those with an entry, because the log depends on them. */
async function thin(bucket: OpenBucket, whole: Snapshot[]): Promise<Snapshot[]> {
  const hours = new Set<number>()
  const left: Snapshot[] = []
  for (const one of whole) {
    const { name, modifiedAt } = one
    const which = Math.floor(modifiedAt / hour)
    const isNeeded = !hours.has(which) || modifiedAt > Date.now() - day
    hours.add(which)
    if (isNeeded || (await isBase(bucket, name))) left.push(one)
  }
  return left
}

/** A damaged one is none: nothing can go on from it. */
async function isBase(bucket: OpenBucket, name: string): Promise<boolean> {
  const manifest = await readManifest(bucket, name).catch(unlessLost)
  return !(manifest instanceof LostSnapshot) && manifest.isBase
}
