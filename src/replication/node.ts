import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { databaseFile, replicaCopyFile } from '../db/open.ts'
import type { WalPosition } from '../db/wal-reader.ts'
import type { Log } from '../lib/log.ts'
import { openBucket } from '../outside/bucket.ts'
import { openIdentity } from './identity.ts'
import {
  type Agreed,
  type Entry,
  encodeEntry,
  type LogPosition,
  nextPosition,
  openLog,
  origin,
} from './log.ts'
import { listSnapshots } from './snapshots.ts'

/** Two clocks at one moment: `steady` stops while the machine sleeps, `wall` can be set. */
export type Clocks = { wall: number; steady: number }
export type Head = { place: LogPosition; entry: Entry }
/** The entries appended to the log, and the failed requests. */
export type Counts = {
  objects: number
  bytes: number
  failures: number
  /** When the last entry was stored. */
  storedAt?: number
  /** The last one. */
  failure?: { at: number; reason: string }
}
export type Settings = NonNullable<Config['replica']>
export type Node = ReturnType<typeof openNode>
/** The start of a leader's epoch. */
export type Leadership = {
  /** The place of its `begin` entry. */
  place: LogPosition
  start: string
  agreed: Agreed
  /** The time at which the `begin` entry was sent. */
  sentAt: Clocks
  /** The local state that the log contains: the database file alone, or the wal up to this position. Undefined when
   *  unknown. */
  from: 'file' | WalPosition | undefined
}

const longestTimeoutMilliseconds = 5_000
const leastTimeoutMilliseconds = 500

/** A data directory and the bucket that it is replicated to. */
export function openNode(dataDir: string, settings: Settings, log: Log) {
  const bucket = openBucket(settings.bucket, timeoutOf(settings))
  const shared = openLog(bucket)
  const identity = openIdentity(dataDir)
  const databasePath = join(dataDir, databaseFile)
  const counts: Counts = { objects: 0, bytes: 0, failures: 0 }
  const copyPath = join(dataDir, replicaCopyFile)
  // A first start on a full disk leaves an empty file.
  const hasDatabase = () => existsSync(databasePath) && statSync(databasePath).size > 0
  const hasCopy = () => existsSync(copyPath)

  return {
    dataDir,
    settings,
    log,
    bucket,
    shared,
    identity,
    databasePath,
    copyPath,

    /** The totals of this process, for the operator. */
    counts,
    /** Counts a failure of the bucket. */
    fail({ message }: Error): void {
      counts.failures++
      counts.failure = { at: Date.now(), reason: message }
    },

    hasDatabase,
    hasCopy,

    /** The last entry, searched from the newest snapshot on; undefined when the log is empty.
     *  @throws BucketError · LogError */
    async findHead(): Promise<Head | undefined> {
      const near = await findLateEntry()
      const place = (await shared.findLast(near)) ?? near
      return place && (await shared.read(place))
    },

    /** Appends the entry that makes this node the leader.
     *  @returns undefined when another entry was stored first, perhaps a late one of this node
     *  @throws BucketError */
    async claim(
      head: Head | undefined,
      {
        agreed = agreedAt(head),
        // Another node's position says nothing about the wal here.
        from = head && identity.wrote(head.entry) ? head.entry.mark : undefined,
      }: Partial<Pick<Leadership, 'agreed' | 'from'>> = {},
    ): Promise<Leadership | undefined> {
      const place = placeAfter(head)
      const start = identity.begin(head?.entry.start, agreed.pair)
      const mark = typeof from === 'object' ? from : undefined
      const common = { format: 1, node: identity.node, start, at: Date.now(), ...agreed } as const
      const bytes = await encodeEntry({ ...common, kind: 'begin', mark })
      await identity.note(place)
      const sentAt = readClocks()
      if (!(await shared.append(place, bytes))) return undefined
      if (identity.get().adopts) identity.set({ adopts: undefined })
      return { place, start, agreed, sentAt, from }
    },
  }

  function agreedAt(head: Head | undefined): Agreed {
    const difference = head && differenceOf(settings, head.entry)
    if (difference) log.warn(difference)
    const { pair, lease } = head?.entry ?? agreedOf(settings)
    return { pair, lease }
  }

  /** The entry of the newest snapshot. Its leader may have died before writing it. */
  async function findLateEntry(): Promise<LogPosition | undefined> {
    for (const { place } of (await listSnapshots(bucket)).reverse()) {
      if (await shared.read(place)) return place
    }
    return undefined
  }

  /** In an emptied bucket the log goes on at the position that this node knows, where other nodes expect it. Without data
   *  the position is that of a lost claim, which began the log. */
  function placeAfter(head: Head | undefined): LogPosition {
    if (head) return nextPosition(head.place, head.entry)
    const note = hasDatabase() || hasCopy() ? identity.readNote() : undefined
    return note ? nextPosition(note, { kind: 'beat' }) : origin
  }
}

export const agreedOf = ({ pair, leaseMilliseconds }: Settings): Agreed => ({
  pair,
  lease: leaseMilliseconds,
})

export const agreedText = ({ pair, lease }: Agreed) => `pair ${pair}, lease ${lease / 1_000} s`

/** Two machines go by the log, whatever their configurations say. */
export function differenceOf(settings: Settings, { pair, lease }: Agreed): string | undefined {
  const ours = agreedOf(settings)
  if (ours.pair === pair && (ours.lease === lease || !pair)) return undefined
  return `REPLICA_PAIR and REPLICA_LEASE differ from the log, which says ${agreedText({ pair, lease })} and counts: hostline replica init --pair ${ours.pair} --lease ${ours.lease / 1_000} changes it`
}

export const readClocks = (): Clocks => ({ wall: Date.now(), steady: performance.now() })

/** The longest time in ms that may have passed since then. */
export const silenceSince = ({ wall, steady }: Clocks): number =>
  Math.max(Date.now() - wall, performance.now() - steady)

/** A timeout so short that a single hanging request does not lose the lease. */
function timeoutOf({ leaseMilliseconds }: Settings): number {
  const third = Math.max(leastTimeoutMilliseconds, leaseMilliseconds / 3)
  return Math.min(longestTimeoutMilliseconds, third)
}
