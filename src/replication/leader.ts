import { existsSync, fdatasync } from 'node:fs'
import { promisify } from 'node:util'
import { pinPages } from '../db/pinned-pages.ts'
import { openWalReader, type WalIndex, type WalPosition, type WalReader } from '../db/wal-reader.ts'
import type { Write } from '../db/writer.ts'
import { day } from '../lib/clock.ts'
import { AppError } from '../lib/errors.ts'
import { createAppender } from './appender.ts'
import { type Agreed, type LogPosition, pagesPerPiece } from './log.ts'
import type { Leadership, Node } from './node.ts'
import { createSnapshotKeeper } from './snapshot-keeper.ts'
import { uploadSnapshot } from './snapshots.ts'

const diskIntervalMilliseconds = 1_000
/** Writes that wait longer than this for the bucket are refused. */
const acknowledgeTimeoutMilliseconds = 5_000
/** The part of the lease in which a leader may acknowledge; the rest allows for clock drift. */
const acknowledgedShare = 0.75
const pollMilliseconds = 50
const retryAfterSeconds = 2
const stallCheckMilliseconds = 200
const restartMilliseconds = 2_000
const maxPendingBytes = 64 * 1_048_576
export const drainMilliseconds = 15_000
const syncFile = promisify(fdatasync)

/** Ships commits: reads the wal after each commit and appends the changed pages to the log. */
export function createLeader(node: Node, onFenced: (error: Error) => void) {
  const { bucket, databasePath, settings } = node
  const isByBucket = settings.ack === 'bucket'
  const shipping = createPause()
  const acknowledging = createPause()
  const appender = createAppender(node, onFenced)
  const snapshots = createSnapshotKeeper(node, appender, shipping.end)
  let lead: Leadership | undefined
  let wal: WalReader | undefined
  /** The changes cannot be read from the wal, so the log must continue from a new snapshot. */
  let needsSnapshot = false
  /** The newest version of each page that changed since the last batch was taken. A batch becomes one commit in the log. */
  let pages = new Map<number, Buffer>()
  let pendingBytes = 0
  /** The times of the oldest change in `pages`, and of the oldest one in the batches that are taken but not stored. Until the
   *  leader has attached to the wal, the log may lack anything. */
  let changedAt: number | undefined = performance.now()
  let takenAt: number | undefined
  const batches = { taken: 0, stored: 0 }
  const waiting = new Set<(error: AppError) => void>()
  let proposal: Agreed | undefined
  let running = Promise.resolve(false)
  let ending: 'close' | 'release' | undefined
  let isWhole = false
  let isOver = false
  let isUploading = false
  let isServing = false
  /** When the lead began, or a snapshot for an entry was uploaded. The time before does not count as waiting. */
  let waitsSince = 0

  const heartbeatMilliseconds = () => appender.agreed().lease / 3
  const lagMilliseconds = () => {
    const since = takenAt ?? changedAt
    return since === undefined ? 0 : performance.now() - since
  }
  /** Whether no entry was stored for longer than this share of the lease. */
  const isSilentFor = (share: number) => {
    const { pair, lease } = appender.agreed()
    return lead !== undefined && pair && appender.silence() > lease * share
  }
  const hasLapsed = () => isSilentFor(acknowledgedShare)

  function isStalled(): boolean {
    if (hasLapsed() || ending) return true
    if (!isByBucket) return false
    // A start waits for its first snapshot.
    if (lead && isUploading && !isServing) return false
    if (isServing && snapshots.isMissing()) return true
    return !lead || waitMilliseconds() > acknowledgeTimeoutMilliseconds
  }

  /** How long a write may have waited. Until a snapshot is known, stored ones wait, too. */
  function waitMilliseconds(): number {
    const longest = performance.now() - waitsSince
    return snapshots.isThere() ? Math.min(lagMilliseconds(), longest) : longest
  }

  /** Another node may lead by now, which the next entry reveals. Without a snapshot to start from, the log is no safer than
   *  the disk. */
  const isAcknowledged = (batch: number) =>
    !hasLapsed() && (!isByBucket || (batches.stored >= batch && snapshots.isThere()))

  function put(number: number, from: Buffer): void {
    const known = pages.get(number)
    if (known) return void from.copy(known)
    pages.set(number, Buffer.from(from))
    pendingBytes += from.length
  }

  function capture(): void {
    const outcome = readWal()
    if (outcome === undefined || outcome === 'nothing') return
    changedAt ??= performance.now()
    if (outcome === 'gap' || pendingBytes > maxPendingBytes) needsSnapshot = true
    if (needsSnapshot) dropPages()
    shipping.end()
  }

  /** The next snapshot contains the dropped pages. */
  function dropPages(): void {
    pages = new Map()
    pendingBytes = 0
  }

  /** If the wal cannot be read, the log continues from a new snapshot. */
  function readWal() {
    try {
      if (lead && !wal) attach(lead)
      return wal?.read(put)
    } catch (error) {
      appender.fail(error as Error)
      return 'gap'
    }
  }

  /** Before the first commit there may be no index of the wal. */
  function attach({ from }: Leadership) {
    if (!existsSync(`${databasePath}-shm`)) {
      needsSnapshot = true
      return
    }
    wal = openWalReader(databasePath)
    if (needsSnapshot) return
    if (from === 'file') wal.resumeAtBeginning()
    else needsSnapshot = !from || !wal.resume(from)
    if (!needsSnapshot) changedAt = undefined
  }

  /** @returns whether everything is stored */
  async function run(): Promise<boolean> {
    while (!isOver) {
      try {
        if (await step()) return true
      } catch (error) {
        appender.fail(error as Error)
        needsSnapshot = true
        dropPages()
        await Bun.sleep(restartMilliseconds)
      }
    }
    return false
  }

  /** @returns whether it was the last step */
  async function step(): Promise<boolean> {
    if (needsSnapshot) await shipSnapshot()
    else if (proposal) await settle(proposal)
    else if (ending && pages.size === 0) return await release(ending)
    else await shipWhenDue()
    return false
  }

  async function settle(agreed: Agreed) {
    await appender.agree(agreed)
    if (proposal === agreed) proposal = undefined
  }

  async function release(how: 'close' | 'release'): Promise<true> {
    if (how === 'release') await appender.append({ kind: 'release' })
    return true
  }

  async function shipWhenDue() {
    const rest = (pages.size > 0 ? shippingInterval() : idleInterval()) - appender.silence()
    if (rest > 0 && !ending && !snapshots.isUrgent()) await shipping.begin(rest)
    else await ship()
  }

  /** Pending pages delay heartbeats too, so a leader of a pair ships at least that often. */
  function shippingInterval(): number {
    const own = isByBucket ? 1_000 / settings.putsPerSecond : diskIntervalMilliseconds
    return appender.agreed().pair ? Math.min(own, heartbeatMilliseconds()) : own
  }

  /** An idle day of a single server gets a snapshot, too. */
  const idleInterval = () => (appender.agreed().pair ? heartbeatMilliseconds() : day)

  function takeBatch() {
    const batch = [...pages].sort(([a], [b]) => a - b)
    dropPages()
    takenAt ??= changedAt
    changedAt = undefined
    batches.taken++
    return batch
  }

  /** Batches that failed before are part of this one. */
  function settleBatch() {
    takenAt = undefined
    batches.stored = batches.taken
    acknowledging.end()
  }

  /** Ships the pending pages, or a heartbeat. */
  async function ship() {
    capture()
    const position = wal?.position()
    if (needsSnapshot || !wal || !position) return
    const batch = takeBatch()
    const upload = snapshots.pinIfDue(wal)
    if (batch.length === 0) await appender.append({ kind: 'beat' })
    for (let n = 0; n < batch.length; n += pagesPerPiece) {
      const part = batch.slice(n, n + pagesPerPiece)
      const partial = n + pagesPerPiece < batch.length
      const numbers = part.map(([number]) => number)
      await appender.append(
        { kind: 'pages', partial, databasePages: position.pages, numbers },
        {
          pages: part.map(([, bytes]) => bytes),
          // Replication cannot resume in the middle of a commit.
          mark: partial ? undefined : walPositionOf(position),
          syncWal,
        },
      )
    }
    settleBatch()
    upload()
  }

  const syncWal = async () => {
    if (wal) await syncFile(wal.walFile)
  }

  /** Uploads a snapshot and continues the log from it. Writes, or a stopping server, wait for it, so it does not pause. */
  async function shipSnapshot() {
    capture()
    const pinned = wal && pinPages(databasePath, wal)
    if (!pinned) return await Bun.sleep(pollMilliseconds)
    takeBatch()
    // Pages captured from here on are newer than the snapshot.
    needsSnapshot = false
    isUploading = true
    const upload = uploadSnapshot(bucket, pinned, { place: appender.next(), isBase: true }).finally(
      () => {
        isUploading = false
        waitsSince = performance.now()
        shipping.end()
      },
    )
    upload.catch(() => {})
    while (isUploading && !isOver) {
      const rest = idleInterval() - appender.silence()
      if (rest > 0) await shipping.begin(rest)
      else await appender.append({ kind: 'beat' })
    }
    const taken = await upload
    const mark = walPositionOf(pinned)
    await appender.append({ kind: 'base', snapshot: taken.name }, { mark, syncWal })
    snapshots.entered(taken)
    settleBatch()
  }

  function refuseWaiting() {
    for (const refuse of waiting) refuse(unavailable())
    waiting.clear()
  }
  const stallTimer = setInterval(() => {
    if (isStalled()) refuseWaiting()
  }, stallCheckMilliseconds)

  return {
    /** Must be called after each commit. */
    capture,

    /** Starts shipping; the database must be open. */
    begin(leadership: Leadership): void {
      lead = leadership
      waitsSince = performance.now()
      appender.start(leadership)
      capture()
      snapshots.start(needsSnapshot)
      running = run()
    },

    /** Replaces the sync of the wal: resolves when every commit so far may be acknowledged. */
    async sync(real: () => Promise<void>): Promise<void> {
      capture()
      const batch = batches.taken + (changedAt === undefined ? 0 : 1)
      await real()
      while (!isOver && !isAcknowledged(batch)) await acknowledging.begin(pollMilliseconds)
    },

    /** Refuses writes with 503 while they cannot be acknowledged. A committed write may still be stored; a retry with the
     *  same key returns it. */
    guard(write: Write): Write {
      return <T>(work: () => T): Promise<T> => {
        if (!isByBucket && !appender.agreed().pair) return write(work)
        if (isStalled()) return Promise.reject(unavailable())
        return new Promise<T>((resolve, reject) => {
          waiting.add(reject)
          write(work)
            .then(resolve, reject)
            .finally(() => waiting.delete(reject))
        })
      }
    },

    /** Called when the node serves clients: from then on writes are refused instead of waiting. */
    serve(): void {
      isServing = true
    },

    /** False while writes are refused. */
    isWritable: () => !isStalled(),
    /** Whether a standby may lead by now, so that what is read here may be old. */
    isCutOff: () => isSilentFor(1),
    takeSnapshot: snapshots.request,
    /** Tells all nodes what to go by. Resolves when the log has it, or this node stops. */
    async agree(agreed: Agreed): Promise<void> {
      proposal = agreed
      shipping.end()
      while (proposal === agreed && !isOver) await Bun.sleep(pollMilliseconds)
    },

    /** Ships the remaining commits.
     *  @returns whether everything is stored */
    async drain(how: 'close' | 'release'): Promise<boolean> {
      capture()
      snapshots.stop()
      ending = how
      shipping.end()
      const { promise: timeout, resolve } = Promise.withResolvers<false>()
      setTimeout(() => resolve(false), drainMilliseconds).unref()
      isWhole = wal !== undefined && (await Promise.race([running, timeout]))
      isOver = true
      appender.stop()
      refuseWaiting()
      acknowledging.end()
      return isWhole
    },

    /** Must be called after the database is closed.
     *  @returns the place of the last entry if a standby could go on from there, else undefined */
    close(): LogPosition | undefined {
      clearInterval(stallTimer)
      const isComplete = isWhole && wal?.isAtEnd() && pages.size === 0 && !needsSnapshot
      // A running snapshot may still read from these files.
      if (!isUploading && !snapshots.isRunning()) wal?.close()
      return isComplete && appender.agreed().pair ? appender.last() : undefined
    },

    stats: () => ({
      role: hasLapsed() ? ('standby' as const) : ('leader' as const),
      place: appender.last(),
      agreed: appender.agreed(),
      lagMilliseconds: lagMilliseconds(),
      snapshotAt: snapshots.lastAt(),
      isRestorable: !snapshots.isMissing(),
      ...node.counts,
    }),
  }
}

/** A pause that can be ended early. */
function createPause() {
  let end = () => {}
  return {
    end: () => end(),
    begin: (milliseconds: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, milliseconds)
        end = () => {
          clearTimeout(timer)
          resolve()
        }
      }),
  }
}

const walPositionOf = ({ salts, frame, checksum }: WalIndex): WalPosition => ({
  salts,
  frame,
  checksum,
})
const unavailable = () =>
  new AppError('unavailable', { retryAfterSeconds, cause: 'the bucket stores nothing' })
