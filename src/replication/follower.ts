import { writeSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { isoTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import {
  comparePositions,
  type EntryOf,
  type LogEntry,
  type LogPosition,
  nextPosition,
  positionName,
} from './log.ts'
import type { Head, Node } from './node.ts'
import { findUsable, listSnapshots, loadSnapshot, type Source, unlessLost } from './snapshots.ts'

type Part = { entry: EntryOf<'pages'>; pages: Uint8Array }
type From = {
  /** The position of the copy; without it, the copy is created from the newest snapshot taken until `until`. */
  at?: LogPosition | undefined
  /** Milliseconds since the epoch; later entries are not applied. */
  until?: number | undefined
}
export type Follower = Awaited<ReturnType<typeof openFollower>>

/** Brings a copy of the database to the end of the log, and keeps it there. No connection has the copy open.
 *  @throws Error when there is no snapshot to start from · BucketError · LogError */
export async function openFollower(
  { bucket, shared }: Source,
  path: string,
  { at, until = Number.POSITIVE_INFINITY }: From = {},
) {
  let place = at ?? (await loadNewest({ bucket, shared }, path, until))
  const known = await shared.read(place)
  if (!known) throw new Error(`the log does not reach back to ${positionName(place)}`)
  let last: Head = { place, entry: known.entry }
  let parts: Part[] = []
  let applied = 0
  let file = await open(path, 'r+')

  async function loadSnapshotOf({ snapshot }: EntryOf<'base'>) {
    await loadSnapshot(bucket, snapshot, `${path}.new`)
    await file.close()
    await rename(`${path}.new`, path)
    file = await open(path, 'r+')
  }

  /** @returns the parts of an incomplete commit; parts that a leader never completed are dropped */
  async function apply({ entry, pages }: LogEntry): Promise<Part[]> {
    if (entry.kind === 'base') await loadSnapshotOf(entry)
    if (entry.kind !== 'pages') return []
    const all = [...parts, { entry, pages }]
    if (entry.partial) return all
    const pageSize = pages.length / entry.numbers.length
    for (const part of all) {
      for (const [n, number] of part.entry.numbers.entries()) {
        writeSync(file.fd, part.pages, n * pageSize, pageSize, (number - 1) * pageSize)
      }
    }
    await file.truncate(entry.databasePages * pageSize)
    return []
  }

  /** Applies the new entries of the log.
   *  @returns the number of entries
   *  @throws BucketError · LogError */
  async function advance(): Promise<number> {
    const before = applied
    for await (const one of shared.readFrom(nextPosition(last.place, last.entry))) {
      if (one.entry.at > until) break
      parts = await apply(one)
      last = { place: one.place, entry: one.entry }
      if (parts.length === 0) place = one.place
      applied++
    }
    return applied - before
  }

  const close = () => file.close()
  await advance().catch(async (error: unknown) => {
    await close()
    throw error
  })
  return {
    /** The position of the last entry applied to the copy. */
    place: () => place,
    /** The last entry read. */
    last: () => last,
    applied: () => applied,
    advance,
    /** Makes the copy safe against a power cut. */
    sync: () => file.datasync(),
    close,
  }
}
async function loadNewest(source: Source, path: string, until: number): Promise<LogPosition> {
  let snapshots = await listSnapshots(source.bucket)
  let lost: Error | undefined
  for (;;) {
    const found = await findUsable(source, snapshots, until)
    if (!found) throw lost ?? new Error('there is no snapshot in the bucket to start from')
    const damage = await loadSnapshot(source.bucket, found.name, path).catch(unlessLost)
    if (!damage) return found.place
    // An older one serves as well.
    lost ??= damage
    snapshots = snapshots.filter(({ place }) => comparePositions(place, found.place) < 0)
  }
}

/** The moments that can be restored, in ms since the epoch, and an entry that is missing since the newest snapshot;
 *  undefined when there is no snapshot. */
export async function findRange(node: Node, head: Head | undefined) {
  const snapshots = await listSnapshots(node.bucket)
  const newest = await findUsable(node, snapshots)
  if (!newest || !head) return undefined
  const to = Math.max(head.entry.at, newest.manifest.at)
  const missing = await node.shared.findMissing(newest.place)
  for (const one of snapshots) {
    const oldest = await findUsable(node, [one]).catch(unlessLost)
    if (oldest && 'manifest' in oldest) return { from: oldest.manifest.at, to, missing, snapshots }
  }
  return undefined
}

/** Creates a database file from the bucket.
 *  @param until the moment to restore in ms since the epoch; default: the newest state
 *  @throws StartError · BucketError · Error */
export async function restoreDatabase(node: Node, path: string, until?: number) {
  const head = await node.findHead()
  const range = await findRange(node, head)
  if (!head || !range) throw new StartError('there is nothing to restore in the bucket')
  if (until !== undefined && (until < range.from || until > Math.max(Date.now(), range.to))) {
    throw new StartError(
      `any moment from ${isoTime(range.from)} to ${isoTime(range.to)} can be restored`,
    )
  }
  const follower = await openFollower(node, path, { until })
  try {
    await follower.sync()
    const { place, entry } = follower.last()
    const isShort = until === undefined || head.entry.at <= until
    if (isShort && comparePositions(place, head.place) < 0) {
      const missing = positionName(nextPosition(place, entry))
      throw new Error(
        `log/${missing} is missing in the bucket: --at ${isoTime(entry.at)} restores what was before it`,
      )
    }
    return { head, at: entry.at, entries: follower.applied() }
  } finally {
    await follower.close()
  }
}
