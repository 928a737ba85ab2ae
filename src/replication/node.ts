import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { databaseFile } from '../db/open.ts'
import { StartError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createBucketLog } from './bucket-log.ts'
import { type Clocks, readClocks } from './clocks.ts'
import type { Lead } from './leader.ts'
import { openLocalState, stampOf } from './local-state.ts'
import {
  comparePlaces,
  decodeEntry,
  type Entry,
  encodeEntry,
  origin,
  type Place,
  placeAfter,
  placeName,
} from './log.ts'
import { openObjectStore } from './object-store.ts'
import { listSnapshots } from './snapshots.ts'

export type Head = { place: Place; entry: Entry }
/** The place of the `begin` entry that makes a node the leader, and when it was sent. */
export type Begun = { place: Place; sentAt: Clocks }
export type Replicated = NonNullable<Config['replica']>
export type Node = ReturnType<typeof openNode>

/** A data directory and the bucket that it is replicated to. */
export function openNode(dataDir: string, settings: Replicated, log: Log) {
  const store = openObjectStore(settings.bucket, timeoutOf(settings))
  const shared = createBucketLog(store)
  const state = openLocalState(dataDir)
  const databasePath = join(dataDir, databaseFile)

  /** Appends the entry that makes this node the leader.
   *  @returns its place and the time it was sent; undefined when another entry has that place
   *  @throws StoreError */
  async function begin(head: Head | undefined): Promise<Begun | undefined> {
    const place = head ? placeAfter(head.place, head.entry) : origin
    const mark = head?.entry.node === state.node ? head.entry.mark : undefined
    const { pair, leaseMilliseconds: lease } = settings
    const common = { format: 1, node: state.node, at: store.now(), pair, lease } as const
    const bytes = await encodeEntry({ ...common, kind: 'begin', mark })
    const sentAt = readClocks()
    return (await shared.append(place, bytes)) ? { place, sentAt } : undefined
  }

  /** Finds an entry near the end of the log: the place of the newest snapshot. */
  async function findLateEntry(): Promise<Place | undefined> {
    for (const { place } of (await listSnapshots(store)).reverse()) {
      if (await shared.read(place)) return place
    }
    return undefined
  }

  return {
    dataDir,
    settings,
    log,
    store,
    shared,
    state,
    databasePath,
    begin,

    /** A first start on a full disk leaves an empty file. */
    hasDatabase: () => existsSync(databasePath) && statSync(databasePath).size > 0,

    /** The fingerprint of the database, if it is the unchanged state after this entry. */
    stampAt(place: Place): string | undefined {
      const { place: own, stamp } = state.get()
      if (!own || !stamp || comparePlaces(own, place) !== 0) return undefined
      return stamp === stampOf(databasePath) ? stamp : undefined
    },

    /** @returns undefined when the log is empty
     *  @throws StoreError · Error (the last object is not an entry) */
    async findHead(): Promise<Head | undefined> {
      let last = await findLateEntry()
      for await (const places of shared.listAfter(last)) last = places.at(-1) ?? last
      const bytes = last && (await shared.read(last))
      if (!last || !bytes) return undefined
      const { entry } = await decodeEntry(bytes).catch((error: Error) => {
        throw new StartError(`log/${placeName(last)} in the bucket: ${error.message}`)
      })
      return { place: last, entry }
    },

    /** Makes this node the leader, continuing from its own database.
     *  @returns undefined when another entry came first, perhaps a late one of its own
     *  @throws StoreError */
    async claim(head: Head | undefined): Promise<Lead | undefined> {
      const stamp = head && this.hasDatabase() ? this.stampAt(head.place) : undefined
      const begun = await begin(head)
      if (!begun) return undefined
      remember(stamp === undefined ? {} : { place: begun.place, stamp })
      if (stamp !== undefined) return leadFrom(begun, { stamp })
      const mark = head?.entry.node === state.node ? head.entry.mark : undefined
      return leadFrom(begun, mark && { mark })
    },
  }

  /** On a full disk the old state stays. Its place no longer matches the log, so no node continues from it. */
  function remember(known: Parameters<typeof state.set>[0]) {
    try {
      state.set(known)
    } catch (error) {
      log.warn('the position of this node in the log cannot be stored', { error })
    }
  }
}

const longestTimeoutMilliseconds = 5_000
const leastTimeoutMilliseconds = 500

/** Short enough that a single hanging request does not lose the lease. */
function timeoutOf({ pair, leaseMilliseconds }: Replicated): number {
  if (!pair) return longestTimeoutMilliseconds
  return Math.min(
    longestTimeoutMilliseconds,
    Math.max(leastTimeoutMilliseconds, leaseMilliseconds / 3),
  )
}

/** The position from which a new leader continues. */
export function leadFrom({ place, sentAt }: Begun, from: Lead['from']): Lead {
  return { next: placeAfter(place, { kind: 'begin' }), sentAt, from }
}
