import { writeSync } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import {
  comparePositions,
  decodeEntry,
  type Entry,
  type EntryOf,
  type LogPosition,
  nextPosition,
  positionName,
  type ReplicaLog,
} from './log.ts'
import type { ObjectStore } from './object-store.ts'
import { isUsable, listSnapshots, loadSnapshot, readManifest } from './snapshots.ts'

const readAhead = 8

type FollowerOptions = {
  store: ObjectStore
  shared: ReplicaLog
  /** The path of the copy of the database, which no connection has open. */
  path: string
  /** Called with each entry before it is applied; `false` stops before it. */
  onEntry?: ((entry: Entry) => boolean) | undefined
}

type Part = { entry: EntryOf<'pages'>; pages: Uint8Array }

export type Follower = Awaited<ReturnType<typeof openFollower>>

/** Keeps a copy of the database up to date with the log.
 *  @param at the position of the copy; without it, the copy is created from the newest snapshot taken until `until` (ms
 *  since the epoch)
 *  @throws Error when there is no snapshot to start from */
export async function openFollower(
  options: FollowerOptions,
  { at, until = Number.POSITIVE_INFINITY }: { at?: LogPosition | undefined; until?: number },
) {
  const { store, shared, path, onEntry = () => true } = options
  let place = at ?? (await loadNewest(options, until))
  let last = place
  let newest = await entryAt(place)
  let next = nextPosition(last, newest)
  let parts: Part[] = []
  // Open the file last, so that no failure can occur between opening and `close`.
  let file = await open(path, 'r+')

  async function entryAt(one: LogPosition): Promise<Entry> {
    const bytes = await shared.read(one)
    if (!bytes) throw new Error(`the log does not reach back to ${positionName(one)}`)
    return (await decode(bytes, one)).entry
  }

  async function loadSnapshotOf({ snapshot }: EntryOf<'base'>) {
    await loadSnapshot(store, snapshot, `${path}.new`)
    await file.close()
    await rename(`${path}.new`, path)
    file = await open(path, 'r+')
  }

  /** @returns the parts of an incomplete commit; parts that a leader never completed are dropped */
  async function apply(entry: Entry, pages: Uint8Array): Promise<Part[]> {
    if (entry.kind === 'base') await loadSnapshotOf(entry)
    if (entry.kind !== 'pages') return []
    const part = { entry, pages }
    const all = [...parts, part]
    if (entry.partial) return all
    for (const one of all) writePages(file, one)
    await file.truncate(entry.databasePages * pageSizeOf(part))
    return []
  }

  /** @returns whether to continue */
  async function take(bytes: Uint8Array): Promise<boolean> {
    const { entry, pages } = await decode(bytes, next)
    if (!onEntry(entry)) return false
    parts = await apply(entry, pages)
    if (parts.length === 0) place = next
    last = next
    newest = entry
    next = nextPosition(next, entry)
    return true
  }

  return {
    /** The position of the last entry applied to the copy. */
    place: () => place,
    /** The position of the next entry. */
    next: () => next,
    last: () => last,
    newest: () => newest,

    /** Applies the new entries of the log.
     *  @returns the number of entries
     *  @throws StoreError · Error (an unreadable entry) */
    async advance(): Promise<number> {
      for (let count = 0; ; count++) {
        const bytes = await shared.read(next)
        if (!bytes || !(await take(bytes))) return count
      }
    },

    /** Like `advance`, but faster over a long log. */
    async catchUp(): Promise<void> {
      for await (const [one, bytes] of readAll(shared, place)) {
        const order = comparePositions(one, next)
        if (order > 0) throw new Error(`log/${positionName(next)} is missing in the bucket`)
        // Entries at earlier positions are late entries of former leaders.
        if (order === 0 && !(await take(bytes))) return
      }
    },

    /** Makes the copy safe against a power cut. */
    sync: () => file.datasync(),
    close: () => file.close(),
  }
}

/** Reads the entries after a position, several at a time. */
async function* readAll(shared: ReplicaLog, behind: LogPosition) {
  for await (const places of shared.listAfter(behind)) {
    for (let n = 0; n < places.length; n += readAhead) {
      const some = places.slice(n, n + readAhead)
      const found = await Promise.all(some.map((one) => shared.read(one)))
      for (const [m, one] of some.entries()) {
        const bytes = found[m]
        if (bytes) yield [one, bytes] as const
      }
    }
  }
}

async function decode(bytes: Uint8Array, place: LogPosition) {
  return await decodeEntry(bytes).catch((error: Error) => {
    throw new Error(`log/${positionName(place)} in the bucket cannot be read: ${error.message}`)
  })
}

const pageSizeOf = ({ entry, pages }: Part) => pages.length / entry.numbers.length

function writePages(file: FileHandle, part: Part) {
  const pageSize = pageSizeOf(part)
  for (const [n, number] of part.entry.numbers.entries()) {
    writeSync(file.fd, part.pages, n * pageSize, pageSize, (number - 1) * pageSize)
  }
}

async function loadNewest(
  { store, shared, path }: FollowerOptions,
  until: number,
): Promise<LogPosition> {
  for (const { name } of (await listSnapshots(store)).reverse()) {
    const manifest = await readManifest(store, name)
    if (manifest.at > until || !(await isUsable(shared, name, manifest))) continue
    await loadSnapshot(store, name, path)
    return manifest.place
  }
  throw new Error('there is no snapshot in the bucket to start from')
}
