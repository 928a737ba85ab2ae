import { existsSync } from 'node:fs'
import type { Write } from '../db/writer.ts'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createAppender } from './appender.ts'
import type { Clocks } from './clocks.ts'
import { fingerprintOf } from './local-state.ts'
import { type LogPosition, pagesPerPiece, type ReplicaLog } from './log.ts'
import type { Replicated } from './node.ts'
import type { ObjectStore } from './object-store.ts'
import { createPageBuffer } from './page-buffer.ts'
import { createSnapshotTaker } from './snapshot-taker.ts'
import { pinState } from './snapshots.ts'
import { openWalReader, type WalIndex, type WalPosition, type WalReader } from './wal-reader.ts'

export type LeaderOptions = {
  store: ObjectStore
  shared: ReplicaLog
  databasePath: string
  node: string
  settings: Replicated
  log: Log
  /** Called when another node leads, so that this node acknowledges no more writes. */
  onFenced: (error: Error) => void
}
/** The start of a leader's epoch. */
export type Leadership = {
  /** The first place after its `begin` entry. */
  next: LogPosition
  /** The time at which the `begin` entry was sent. */
  sentAt: Clocks
  /** The local state that the log contains: the database file with this fingerprint, or the wal up to this position.
   *  Undefined when unknown. */
  from: { fingerprint: string } | { walPosition: WalPosition } | undefined
}

const diskIntervalMilliseconds = 1_000
/** Writes that wait longer than this for the bucket are refused. */
const acknowledgeTimeoutMilliseconds = 5_000
/** The part of the lease in which a leader may acknowledge; the rest allows for clock drift. */
const acknowledgedShare = 0.75
const lapsePollMilliseconds = 50
const retryAfterSeconds = 2
const stallCheckMilliseconds = 200
const restartMilliseconds = 2_000
const dayMilliseconds = 86_400_000
export const drainMilliseconds = 15_000

/** Ships commits: reads the wal after each commit and appends the changed pages to the log. */
export function createLeader(options: LeaderOptions) {
  const { store, databasePath, settings } = options
  const { ack, pair, leaseMilliseconds } = settings
  const appender = createAppender({ ...options, ...settings, now: store.now })
  const snapshots = createSnapshotTaker(options, appender)
  const heartbeatMilliseconds = leaseMilliseconds / 3
  const ownInterval = ack === 'bucket' ? 1_000 / settings.putsPerSecond : diskIntervalMilliseconds
  // Pending pages delay heartbeats too, so ship at least that often.
  const interval = pair ? Math.min(ownInterval, heartbeatMilliseconds) : ownInterval
  const pages = createPageBuffer()
  let lead: Leadership | undefined
  let wal: WalReader | undefined
  /** The changes cannot be read from the wal, so the log must continue from a new snapshot. */
  let needsSnapshot = false
  let captured = 0
  let stored = 0
  /** The start of the process, until the leader has attached to the wal. */
  let unstoredSince: number | undefined = performance.now()
  let storing: { upTo: number; resolve: () => void }[] = []
  const waiting = new Set<(error: AppError) => void>()
  let wakeUp = () => {}
  let ending: { isRelease: boolean; resolve: () => void } | undefined
  let isOver = false
  let isEnded = false
  let isUploading = false
  let isServing = false

  const silentFor = () => performance.now() - appender.sentAt()
  const lagMilliseconds = () =>
    unstoredSince === undefined ? 0 : performance.now() - unstoredSince
  /** Whether this node may no longer acknowledge writes, because a standby may lead. */
  const hasLapsed = () => pair && appender.silence() > leaseMilliseconds * acknowledgedShare

  function isStalled(): boolean {
    if (hasLapsed() || ending || isEnded) return true
    if (ack === 'disk') return false
    // A start waits for its first snapshot.
    if (lead && isUploading && !isServing) return false
    return !lead || lagMilliseconds() > acknowledgeTimeoutMilliseconds
  }

  function capture(): void {
    const outcome = readWal()
    if (outcome === undefined || outcome === 'nothing') return
    captured++
    unstoredSince ??= performance.now()
    if (outcome === 'gap' || pages.isFull()) needsSnapshot = true
    // The next snapshot contains these pages.
    if (needsSnapshot) pages.clear()
    wakeUp()
  }

  /** If the wal cannot be read, the log continues from a new snapshot. */
  function readWal() {
    try {
      if (lead && !wal) attach(lead)
      return wal?.read(pages.put)
    } catch (error) {
      appender.fail(error as Error)
      return 'gap'
    }
  }

  /** The first commit may have yet to create the index of the wal. */
  function attach({ from }: Leadership) {
    if (!existsSync(`${databasePath}-shm`)) {
      needsSnapshot = true
      return
    }
    wal = openWalReader(databasePath)
    if (needsSnapshot) return
    needsSnapshot = !continuesFrom(wal, from)
    if (!needsSnapshot) unstoredSince = undefined
  }

  // The database is open, so every later change of the file by another process is in the wal too.
  function continuesFrom(reader: WalReader, from: Leadership['from']): boolean {
    if (!from) return false
    if ('walPosition' in from) return reader.resume(from.walPosition)
    reader.resumeAtBeginning()
    return from.fingerprint === fingerprintOf(databasePath)
  }

  async function run() {
    while (!isOver && !(await step().catch(restartFromSnapshot)));
  }

  /** @returns whether it was the last step */
  async function step(): Promise<boolean> {
    if (needsSnapshot || !pages.isEmpty()) await shipAtInterval()
    else if (ending) return await end(ending)
    else await stayAlive()
    return false
  }

  async function restartFromSnapshot(error: unknown): Promise<boolean> {
    appender.fail(error as Error)
    needsSnapshot = true
    pages.clear()
    await pause(restartMilliseconds, () => !!ending)
    return false
  }

  async function shipAtInterval() {
    if (needsSnapshot) return await shipSnapshot()
    const rest = interval - silentFor()
    if (rest > 0 && !ending) await pause(rest, () => ending !== undefined)
    await shipPages()
  }

  /** Sends a heartbeat (pair), or one entry a day (single) so that an idle day still gets a snapshot. */
  async function stayAlive() {
    const rest = (pair ? heartbeatMilliseconds : dayMilliseconds) - silentFor()
    if (rest > 0) return await pause(rest, () => true)
    const pinned = wal && pinForSnapshot(wal)
    await appender.append('beat', {})
    if (wal && pinned?.isHeld()) void snapshots.take(wal, pinned)
  }

  async function end({ isRelease, resolve }: NonNullable<typeof ending>): Promise<true> {
    if (isRelease) await appender.append('release', {})
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

  async function shipPages() {
    capture()
    const position = wal?.position()
    if (needsSnapshot || !wal || !position) return
    const [upTo, takenAt] = [captured, performance.now()]
    const batch = pages.take()
    const pinned = pinForSnapshot(wal)
    for (let n = 0; n < batch.length; n += pagesPerPiece) {
      const part = batch.slice(n, n + pagesPerPiece)
      const partial = n + pagesPerPiece < batch.length
      const fields = {
        partial,
        databasePages: position.pages,
        numbers: part.map(({ number }) => number),
        // Replication cannot resume in the middle of a commit.
        mark: partial ? undefined : walPositionOf(position),
      }
      const bytes = part.map((page) => page.bytes)
      await appender.append('pages', fields, bytes)
    }
    markStored(upTo, takenAt)
    if (pinned?.isHeld()) void snapshots.take(wal, pinned)
  }

  /** A pinned state lets the wal grow, so it is released when the bucket does not respond in time. */
  function pinForSnapshot(from: WalReader) {
    const pinned = snapshots.isDue() && !ending ? tryPin(from) : undefined
    if (!pinned) return undefined
    const release = () => snapshots.isRunning() || pinned.release()
    setTimeout(release, acknowledgeTimeoutMilliseconds).unref()
    return pinned
  }

  /** A failure here only skips the due snapshot. */
  function tryPin(from: WalReader) {
    try {
      return pinState(databasePath, from)
    } catch (error) {
      snapshots.postpone(error)
      return undefined
    }
  }

  /** Uploads a snapshot and continues the log from it. */
  async function shipSnapshot() {
    capture()
    pages.clear()
    const [upTo, takenAt] = [captured, performance.now()]
    const pinned = wal && pinState(databasePath, wal)
    if (!wal || !pinned) return await pause(lapsePollMilliseconds, () => false)
    // Pages captured from here on are newer than the snapshot.
    needsSnapshot = false
    isUploading = true
    const uploading = snapshots.takeForEntry(wal, pinned, sendHeartbeatsDuring)
    const snapshot = await uploading.finally(() => {
      isUploading = false
    })
    await appender.append('base', { snapshot, mark: walPositionOf(pinned) })
    markStored(upTo, takenAt)
  }

  /** Sends heartbeats while a long upload runs. */
  async function sendHeartbeatsDuring(work: Promise<unknown>) {
    let isDone = false
    const done = work.finally(() => {
      isDone = true
    })
    let heartbeat: Promise<void> | undefined
    const send = async () => {
      await appender.append('beat', {})
      heartbeat = undefined
    }
    try {
      while (pair && !isDone) {
        const rest = Math.max(lapsePollMilliseconds, heartbeatMilliseconds - silentFor())
        // Unreferenced, so that it does not keep the process alive.
        const later = new Promise<void>((resolve) => setTimeout(resolve, rest).unref())
        await Promise.race([done, later])
        if (!isDone) heartbeat ??= send()
      }
      await done
    } finally {
      // Only one entry may be in flight.
      await heartbeat
    }
  }

  function markStored(upTo: number, takenAt: number) {
    stored = upTo
    unstoredSince = captured > upTo ? takenAt : undefined
    const covered = storing.filter((one) => one.upTo <= upTo)
    storing = storing.filter((one) => one.upTo > upTo)
    for (const { resolve } of covered) resolve()
  }

  async function storedUpTo(upTo: number) {
    if (upTo > stored && !isEnded)
      await new Promise<void>((resolve) => storing.push({ upTo, resolve }))
  }

  function refuseWaiting() {
    for (const refuse of waiting) refuse(unavailable())
    waiting.clear()
  }
  const stallTimer = setInterval(() => {
    if (isStalled()) refuseWaiting()
  }, stallCheckMilliseconds)

  /** Ends shipping, and refuses waiting writes, which are not acknowledged. */
  function stopWaiting() {
    refuseWaiting()
    isEnded = true
    markStored(captured, performance.now())
  }

  return {
    /** Must be called after each commit, of this process or another. */
    capture,

    /** Starts shipping; the database must be open. */
    begin(leadership: Leadership): void {
      lead = leadership
      appender.start(leadership)
      capture()
      void snapshots.start(leadership.next)
      void run()
    },

    /** Replaces the sync of the wal: resolves when every commit so far may be acknowledged. */
    async sync(real: () => Promise<void>): Promise<void> {
      capture()
      // The next snapshot contains commits that cannot be read yet.
      if (!wal) captured++
      await Promise.all([real(), ack === 'bucket' && storedUpTo(captured)])
      // Another node may lead by now. The next entry reveals it.
      while (hasLapsed() && !isEnded) await Bun.sleep(lapsePollMilliseconds)
    },

    /** Refuses writes with 503 while they cannot be acknowledged. A committed write may still be stored; a retry with the
     *  same key returns it. */
    guard(write: Write): Write {
      if (ack === 'disk' && !pair) return write
      return <T>(work: () => T): Promise<T> => {
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

    /** Ships the remaining commits.
     *  @param isRelease whether another node may lead at once
     *  @returns whether everything is stored */
    async drain(isRelease: boolean): Promise<boolean> {
      capture()
      snapshots.stop()
      const ended =
        wal &&
        new Promise<true>((resolve) => {
          ending = { isRelease, resolve: () => resolve(true) }
          wakeUp()
        })
      const timedOut = new Promise<false>((resolve) => {
        setTimeout(() => resolve(false), drainMilliseconds).unref()
      })
      const isComplete = await Promise.race([ended ?? false, timedOut])
      stopWaiting()
      return isComplete
    },

    /** Must be called after the database is closed.
     *  @returns the place of the last entry if the log is complete up to it, else undefined */
    close(): LogPosition | undefined {
      clearInterval(stallTimer)
      isOver = true
      appender.stop()
      wakeUp()
      const isComplete = wal?.isAtEnd() === true && pages.isEmpty() && !needsSnapshot
      // A running snapshot may still read from these files.
      if (!snapshots.isRunning()) wal?.close()
      return isComplete ? appender.last() : undefined
    },

    stats: () => ({
      role: 'leader' as const,
      place: appender.last(),
      lagMilliseconds: lagMilliseconds(),
      snapshotAt: snapshots.lastAt(),
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
