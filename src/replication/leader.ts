import { existsSync, fdatasync } from 'node:fs'
import { promisify } from 'node:util'
import { type PinnedPages, pinPages } from '../db/pinned-pages.ts'
import { openWalReader, type WalIndex, type WalPosition, type WalReader } from '../db/wal-reader.ts'
import type { Write } from '../db/writer.ts'
import { day } from '../lib/clock.ts'
import { AppError } from '../lib/errors.ts'
import { createAppender } from './appender.ts'
import { type Agreed, type LogPosition, pagesPerPiece } from './log.ts'
import type { Leadership, Node } from './node.ts'
import { createSnapshotKeeper } from './snapshot-keeper.ts'

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

/** Changes that become one commit in the log. */
type Batch = {
  /** The newest version of each changed page. */
  pages: Map<number, Buffer>
  bytes: number
  /** The time of the oldest change. */
  since: number | undefined
  stored: PromiseWithResolvers<void>
}

const newBatch = (): Batch => ({
  pages: new Map(),
  bytes: 0,
  since: undefined,
  stored: Promise.withResolvers<void>(),
})

/** Ships commits: reads the wal after each commit and appends the changed pages to the log. */
export function createLeader(node: Node, onFenced: (error: Error) => void) {
  const { databasePath, settings } = node
  const isByBucket = settings.ack === 'bucket'
  let wakeUp = () => {}
  const appender = createAppender(node, onFenced)
  const snapshots = createSnapshotKeeper(node, appender, () => wakeUp())
  let lead: Leadership | undefined
  let wal: WalReader | undefined
  /** The changes cannot be read from the wal, so the log must continue from a new snapshot. */
  let needsSnapshot = false
  /** Until the leader has attached to the wal, the log may lack anything. */
  let pending: Batch = { ...newBatch(), since: performance.now() }
  let shipping: Batch | undefined
  const waiting = new Set<(error: AppError) => void>()
  let proposal: Agreed | undefined
  let ending: { isRelease: boolean; resolve: () => void } | undefined
  let isOver = false
  let isEnded = false
  let isUploading = false
  /** It is not known yet whether the bucket has a snapshot of earlier leaders. */
  let isLooking = false
  let isServing = false
  /** When the lead began, or a snapshot for an entry was uploaded. The time before does not count as waiting. */
  let waitsSince = 0

  const heartbeatMilliseconds = () => appender.agreed().lease / 3
  const lagMilliseconds = () => {
    const since = shipping?.since ?? pending.since
    return since === undefined ? 0 : performance.now() - since
  }
  /** Whether no entry was stored for longer than this share of the lease. */
  const isSilentFor = (share: number) => {
    const { pair, lease } = appender.agreed()
    return lead !== undefined && pair && appender.silence() > lease * share
  }
  const hasLapsed = () => isSilentFor(acknowledgedShare)
  /** Whether the log may have no snapshot to start from, so that what it has is no safer than the disk. */
  const mayBeLost = () => isByBucket && (isLooking || !snapshots.isRestorable())

  /** Pending pages delay heartbeats too, so a leader of a pair ships at least that often. */
  function interval(): number {
    const own = isByBucket ? 1_000 / settings.putsPerSecond : diskIntervalMilliseconds
    return appender.agreed().pair ? Math.min(own, heartbeatMilliseconds()) : own
  }

  function isStalled(): boolean {
    if (hasLapsed() || ending || isEnded) return true
    if (!isByBucket) return false
    // A start waits for its first snapshot.
    if (lead && isUploading && !isServing) return false
    if (isServing && !snapshots.isRestorable()) return true
    const waited = Math.min(lagMilliseconds(), performance.now() - waitsSince)
    return !lead || waited > acknowledgeTimeoutMilliseconds
  }

  function put(number: number, from: Buffer): void {
    const known = pending.pages.get(number)
    if (known) return void from.copy(known)
    pending.pages.set(number, Buffer.from(from))
    pending.bytes += from.length
  }

  function capture(): void {
    const outcome = readWal()
    if (outcome === undefined || outcome === 'nothing') return
    pending.since ??= performance.now()
    if (outcome === 'gap' || pending.bytes > maxPendingBytes) needsSnapshot = true
    if (needsSnapshot) dropPages()
    wakeUp()
  }

  /** The next snapshot contains the dropped pages. */
  function dropPages(): void {
    pending.pages.clear()
    pending.bytes = 0
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
    if (!needsSnapshot) pending.since = undefined
  }

  async function run() {
    while (!isOver && !(await step().catch(restartFromSnapshot)));
  }

  /** @returns whether it was the last step */
  async function step(): Promise<boolean> {
    if (needsSnapshot) await shipSnapshot()
    else if (proposal) await propose(proposal)
    else if (pending.pages.size > 0) await shipAtInterval()
    else if (ending) return await end(ending)
    else await stayAlive()
    return false
  }

  async function restartFromSnapshot(error: unknown): Promise<boolean> {
    appender.fail(error as Error)
    needsSnapshot = true
    dropPages()
    returnBatch()
    await pause(restartMilliseconds, () => !!ending)
    return false
  }

  /** The failed batch is stored when the next one is. */
  function returnBatch() {
    if (!shipping) return
    pending.since = shipping.since
    void pending.stored.promise.then(shipping.stored.resolve)
    shipping = undefined
  }

  function takeBatch(): Batch {
    shipping = pending
    pending = newBatch()
    return shipping
  }

  function settleBatch() {
    shipping?.stored.resolve()
    shipping = undefined
  }

  async function shipAtInterval() {
    const rest = interval() - appender.silence()
    if (rest > 0 && !ending) await pause(rest, () => ending !== undefined || needsSnapshot)
    if (!needsSnapshot) await shipPages()
  }

  async function shipPages() {
    capture()
    const position = wal?.position()
    if (needsSnapshot || !wal || !position) return
    const batch = [...takeBatch().pages].sort(([a], [b]) => a - b)
    const pinned = pinForSnapshot(wal)
    for (let n = 0; n < batch.length; n += pagesPerPiece) {
      const part = batch.slice(n, n + pagesPerPiece)
      const partial = n + pagesPerPiece < batch.length
      const numbers = part.map(([number]) => number)
      // Replication cannot resume in the middle of a commit.
      const mark = partial ? undefined : walPositionOf(position)
      await appender.append(
        { kind: 'pages', partial, databasePages: position.pages, numbers, mark },
        { pages: part.map(([, bytes]) => bytes), syncWal },
      )
    }
    settleBatch()
    if (pinned?.isHeld()) void snapshots.take(pinned)
  }

  const syncWal = async () => {
    if (wal) await syncFile(wal.walFile)
  }

  /** Sends a heartbeat (pair), or one entry a day (single) so that an idle day still gets a snapshot. */
  async function stayAlive() {
    const due = appender.agreed().pair ? heartbeatMilliseconds() : day
    const rest = due - appender.silence()
    if (rest > 0 && !snapshots.isUrgent()) return await pause(rest, () => true)
    const pinned = wal && pinForSnapshot(wal)
    await appender.append({ kind: 'beat' })
    if (pinned?.isHeld()) void snapshots.take(pinned)
  }

  async function propose(agreed: Agreed) {
    // The log may have been silent for longer than the new lease.
    await appender.append({ kind: 'beat' })
    appender.announce(agreed)
    await appender.append({ kind: 'beat' })
    if (proposal === agreed) proposal = undefined
  }

  async function end({ isRelease, resolve }: NonNullable<typeof ending>): Promise<true> {
    if (isRelease) await appender.append({ kind: 'release' })
    resolve()
    return true
  }

  /** Waits for a time, or until a wake-up while `endsPause` returns true. */
  function pause(milliseconds: number, endsPause: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      wakeUp = () => {
        if (!endsPause()) return
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Pins the state for a due snapshot; a failure skips it. A pinned state lets the wal grow, so it is released when the
   *  bucket does not respond in time. */
  function pinForSnapshot(from: WalReader): PinnedPages | undefined {
    if (!snapshots.isDue()) return undefined
    try {
      const pinned = pinPages(databasePath, from)
      const release = () => snapshots.isRunning() || pinned.release()
      setTimeout(release, acknowledgeTimeoutMilliseconds).unref()
      return pinned
    } catch (error) {
      snapshots.postpone(error)
      return undefined
    }
  }

  /** Uploads a snapshot and continues the log from it. */
  async function shipSnapshot() {
    capture()
    const place = appender.next()
    const pinned = wal && pinPages(databasePath, wal)
    if (!pinned || !place) return await pause(pollMilliseconds, () => false)
    takeBatch()
    // Pages captured from here on are newer than the snapshot.
    needsSnapshot = false
    isUploading = true
    const upload = snapshots
      .takeForEntry(pinned, place)
      .then((taken) => {
        waitsSince = performance.now()
        return taken
      })
      .finally(() => {
        isUploading = false
        wakeUp()
      })
    upload.catch(() => {})
    await sendHeartbeatsWhile(() => isUploading && !isOver)
    const taken = await upload
    const mark = walPositionOf(pinned)
    await appender.append({ kind: 'base', snapshot: taken.name, mark }, { syncWal })
    snapshots.entered(taken)
    settleBatch()
  }

  async function sendHeartbeatsWhile(isBusy: () => boolean) {
    while (isBusy()) {
      const rest = heartbeatMilliseconds() - appender.silence()
      await pause(Math.max(pollMilliseconds, rest), () => !isBusy())
      if (isBusy() && appender.agreed().pair) await appender.append({ kind: 'beat' })
    }
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
      if (needsSnapshot) snapshots.expectFirst()
      else {
        isLooking = true
        void snapshots.start().finally(() => {
          isLooking = false
        })
      }
      void run()
    },

    /** Replaces the sync of the wal: resolves when every commit so far may be acknowledged. */
    async sync(real: () => Promise<void>): Promise<void> {
      capture()
      // The next snapshot contains commits that cannot be read yet.
      if (!wal) pending.since ??= performance.now()
      const batch = pending.since === undefined ? shipping : pending
      await Promise.all([real(), isByBucket && !isEnded && batch?.stored.promise])
      // Another node may lead by now. The next entry reveals it.
      while ((hasLapsed() || mayBeLost()) && !isEnded) await Bun.sleep(pollMilliseconds)
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

    /** Counts a failure that happened before the start. */
    fail: appender.fail,

    /** Called when the node serves clients: from then on writes are refused instead of waiting. */
    serve(): void {
      isServing = true
    },

    /** False while writes are refused. */
    isWritable: () => !isStalled(),
    hasLapsed,
    /** Whether a standby may lead by now, so that what is read here may be old. */
    isCutOff: () => isSilentFor(1),
    takeSnapshot: snapshots.request,
    agreed: appender.agreed,
    /** Tells all nodes what to go by. Resolves when the log has it, or this node stops. */
    async agree(agreed: Agreed): Promise<void> {
      proposal = agreed
      wakeUp()
      while (proposal === agreed && !isOver) await Bun.sleep(pollMilliseconds)
    },

    /** Ships the remaining commits.
     *  @param isRelease whether another node may lead at once
     *  @returns whether everything is stored */
    async drain(isRelease: boolean): Promise<boolean> {
      capture()
      snapshots.stop()
      const { promise, resolve } = Promise.withResolvers<boolean>()
      if (wal) ending = { isRelease, resolve: () => resolve(true) }
      else resolve(false)
      wakeUp()
      setTimeout(() => resolve(false), drainMilliseconds).unref()
      const isComplete = await promise
      refuseWaiting()
      isEnded = true
      settleBatch()
      pending.stored.resolve()
      return isComplete
    },

    /** Must be called after the database is closed.
     *  @returns the place of the last entry if the log is complete up to it, else undefined */
    close(): LogPosition | undefined {
      clearInterval(stallTimer)
      isOver = true
      appender.stop()
      wakeUp()
      const isComplete = wal?.isAtEnd() === true && pending.pages.size === 0 && !needsSnapshot
      // A running snapshot may still read from these files.
      if (!snapshots.isRunning()) wal?.close()
      return isComplete ? appender.last() : undefined
    },

    stats: () => ({
      place: appender.last(),
      lagMilliseconds: lagMilliseconds(),
      snapshotAt: snapshots.lastAt(),
      isRestorable: snapshots.isRestorable(),
      ...appender.stats(),
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
