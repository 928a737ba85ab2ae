import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { databaseFile } from '../db/open.ts'
import { StartError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createBucketLog } from './bucket-log.ts'
import { type Clocks, readClocks } from './clocks.ts'
import type { Leadership } from './leader.ts'
import { fingerprintOf, openLocalState } from './local-state.ts'
import {
  comparePositions,
  decodeEntry,
  type Entry,
  encodeEntry,
  type LogPosition,
  nextPosition,
  origin,
  positionName,
} from './log.ts'
import { openObjectStore } from './object-store.ts'
import { listSnapshots } from './snapshots.ts'

export type Head = { place: LogPosition; entry: Entry }
/** The position of the `begin` entry of a leadership, and the time at which it was sent. */
export type TermStart = { place: LogPosition; sentAt: Clocks }
export type Replicated = NonNullable<Config['replica']>
export type Node = ReturnType<typeof openNode>

/** A data directory and the bucket that it is replicated to. */
export function openNode(dataDir: string, settings: Replicated, log: Log) {
  const store = openObjectStore(settings.bucket, timeoutOf(settings))
  const shared = createBucketLog(store)
  const state = openLocalState(dataDir)
  const databasePath = join(dataDir, databaseFile)

  /** Appends the entry that makes this node the leader.
   *  @returns undefined when another entry has the position
   *  @throws StoreError */
  async function begin(head: Head | undefined): Promise<TermStart | undefined> {
    const place = head ? nextPosition(head.place, head.entry) : origin
    const mark = head?.entry.node === state.node ? head.entry.mark : undefined
    const { pair, leaseMilliseconds: lease } = settings
    const common = { format: 1, node: state.node, at: store.now(), pair, lease } as const
    const bytes = await encodeEntry({ ...common, kind: 'begin', mark })
    const sentAt = readClocks()
    return (await shared.append(place, bytes)) ? { place, sentAt } : undefined
  }

  /** Finds an entry near the end of the log, by the newest snapshot. */
  async function findLateEntry(): Promise<LogPosition | undefined> {
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

    /** The fingerprint of the database, if it is unchanged since the entry at `place`. */
    fingerprintAt(place: LogPosition): string | undefined {
      const { place: stored, stamp: fingerprint } = state.get()
      if (!stored || !fingerprint || comparePositions(stored, place) !== 0) return undefined
      return fingerprint === fingerprintOf(databasePath) ? fingerprint : undefined
    },

    /** @returns undefined when the log is empty
     *  @throws StoreError · Error (the last object is not an entry) */
    async findHead(): Promise<Head | undefined> {
      let last = await findLateEntry()
      for await (const places of shared.listAfter(last)) last = places.at(-1) ?? last
      const bytes = last && (await shared.read(last))
      if (!last || !bytes) return undefined
      const { entry } = await decodeEntry(bytes).catch((error: Error) => {
        throw new StartError(`log/${positionName(last)} in the bucket: ${error.message}`)
      })
      return { place: last, entry }
    },

    /** Makes this node the leader, which continues from its local database.
     *  @returns undefined when another entry was stored first, perhaps a late one of this node
     *  @throws StoreError */
    async claim(head: Head | undefined): Promise<Leadership | undefined> {
      const fingerprint = head && this.hasDatabase() ? this.fingerprintAt(head.place) : undefined
      const start = await begin(head)
      if (!start) return undefined
      saveState(fingerprint === undefined ? {} : { place: start.place, stamp: fingerprint })
      if (fingerprint !== undefined) return leadershipFrom(start, { fingerprint })
      const walPosition = head?.entry.node === state.node ? head.entry.mark : undefined
      return leadershipFrom(start, walPosition && { walPosition })
    },
  }

  /** On a full disk the old state stays. It no longer matches the end of the log, so no start continues from it. */
  function saveState(changed: Parameters<typeof state.set>[0]) {
    try {
      state.set(changed)
    } catch (error) {
      log.warn('the position of this node in the log cannot be stored', { error })
    }
  }
}

const longestTimeoutMilliseconds = 5_000
const leastTimeoutMilliseconds = 500

/** A timeout so short that a single hanging request does not lose the lease. */
function timeoutOf({ pair, leaseMilliseconds }: Replicated): number {
  if (!pair) return longestTimeoutMilliseconds
  return Math.min(
    longestTimeoutMilliseconds,
    Math.max(leastTimeoutMilliseconds, leaseMilliseconds / 3),
  )
}

export function leadershipFrom({ place, sentAt }: TermStart, from: Leadership['from']): Leadership {
  return { next: nextPosition(place, { kind: 'begin' }), sentAt, from }
}
