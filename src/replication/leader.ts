import { existsSync } from 'node:fs'
import type { Write } from '../db/writer.ts'
import { AppError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { createAppender } from './appender.ts'
import type { Clocks } from './clocks.ts'
import { stampOf } from './local-state.ts'
import { type Place, pagesOfPiece, type ReplicaLog } from './log.ts'
import type { Replicated } from './node.ts'
import type { ObjectStore } from './object-store.ts'
import { createPageBuffer } from './page-buffer.ts'
import { createSnapshotTaker } from './snapshot-taker.ts'
import { pinState } from './snapshots.ts'
import { openWalReader, type WalMark, type WalPosition, type WalReader } from './wal-reader.ts'

export type LeaderOptions = {
  store: ObjectStore
  shared: ReplicaLog
  databasePath: string
  node: string
  settings: Replicated
  log: Log
  /** Called when another node leads: no more writes may be acknowledged. */
  onFenced: (error: Error) => void
}
/** The position from which a leader continues the log. */
export type Lead = {
  /** The first place after its `begin` entry, and when that entry was sent. */
  next: Place
  sentAt: Clocks
  /** The state that the log has: the database file with this fingerprint, or the wal up to this mark. Undefined when
   *  unknown. */
  from: { stamp: string } | { mark: WalMark } | undefined
}

const diskIntervalMilliseconds = 1_000
/** Writes that wait longer than this for the bucket are refused. */
const patienceMilliseconds = 5_000
/** Share of the lease in which a leader may acknowledge; the rest allows for clocks that drift. */
const acknowledgedShare = 0.75
const lapsePollMilliseconds = 50
const retryAfterSeconds = 2
const stallCheckMilliseconds = 200
const baseRetryMilliseconds = 2_000
const dayMilliseconds = 86_400_000
export const drainMilliseconds = 15_000

/** Ships commits: reads the wal after each commit and appends the changed pages to the log. */
export function createLeader(options: LeaderOptions) {
  const { store, databasePath, settings } = options
  const { ack, pair, leaseMilliseconds } = settings
  const appender = createAppender({ ...options, ...settings, now: store.now })
  const snapshots = createSnapshotTaker(options, appender)
  const beatMilliseconds = leaseMilliseconds / 3
  const ownInterval = ack === 'bucket' ? 1_000 / settings.putsPerSecond : diskIntervalMilliseconds
  // Pending pages delay heartbeats too, so ship at least that often.
  const interval = pair ? Math.min(ownInterval, beatMilliseconds) : ownInterval
  const pages = createPageBuffer()
  let lead: Lead | undefined
  let wal: WalReader | undefined
  /** The wal cannot show what changed, so the log must continue from a new snapshot. */
  let needsBase = false
  let captured = 0
  let stored = 0
  /** Unknown until the leader has attached to the wal. */
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
  /** From then on a standby may lead. */
  const hasLapsed = () => pair && appender.silence() > leaseMilliseconds * acknowledgedShare

  function isStalled(): boolean {
    if (hasLapsed() || ending || isEnded) return true
    if (ack === 'disk') return false
    // A start waits for its first snapshot.
    if (lead && isUploading && !isServing) return false
    return !lead || lagMilliseconds() > patienceMilliseconds
  }

  function capture(): void {
    const outcome = readWal()
    if (outcome === undefined || outcome === 'nothing') return
    captured++
    unstoredSince ??= performance.now()
    if (outcome === 'gap' || pages.isFull()) needsBase = true
    // The snapshot that follows contains these pages.
    if (needsBase) pages.clear()
    wakeUp()
  }

  /** An unreadable wal is not a failed disk: the log continues from a new snapshot. */
  function readWal() {
    try {
      if (lead && !wal) attach(lead)
      return wal?.read(pages.put)
    } catch (error) {
      appender.fail(error as Error)
      return 'gap'
    }
  }

  /** After a start on a full disk the wal has no shared index to read. The first commit creates one. */
  function attach({ from }: Lead) {
    if (!existsSync(`${databasePath}-shm`)) {
      needsBase = true
      return
    }
    wal = openWalReader(databasePath)
    if (needsBase) return
    needsBase = !goesOn(wal, from)
    if (!needsBase) unstoredSince = undefined
  }

  // The database is open: from now on every change of the file by another process leaves a trace in the wal.
  function goesOn(reader: WalReader, from: Lead['from']): boolean {
    if (!from) return false
    if ('mark' in from) return reader.resume(from.mark)
    reader.resumeAtBeginning()
    return from.stamp === stampOf(databasePath)
  }

  async function run() {
    while (!isOver && !(await step().catch(startAnew)));
  }

  /** @returns whether it was the last step */
  async function step(): Promise<boolean> {
    if (needsBase || !pages.isEmpty()) await shipInTime()
    else if (ending) return await end(ending)
    else await stayAlive()
    return false
  }

  async function startAnew(error: unknown): Promise<boolean> {
    appender.fail(error as Error)
    needsBase = true
    pages.clear()
    await pause(baseRetryMilliseconds, () => !!ending)
    return false
  }

  async function shipInTime() {
    if (needsBase) return await shipBase()
    const rest = interval - silentFor()
    if (rest > 0 && !ending) await pause(rest, () => ending !== undefined)
    await shipPages()
  }

  /** Sends a heartbeat (pair), or one entry a day (single) so that an idle day still gets a snapshot. */
  async function stayAlive() {
    const rest = (pair ? beatMilliseconds : dayMilliseconds) - silentFor()
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

  /** Waits for the time, or until a wake-up for which `isReason` is true. */
  function pause(milliseconds: number, isReason: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      wakeUp = () => {
        if (!isReason()) return
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async function shipPages() {
    capture()
    const position = wal?.position()
    if (needsBase || !wal || !position) return
    const [upTo, takenAt] = [captured, performance.now()]
    const batch = pages.take()
    const pinned = pinForSnapshot(wal)
    for (let n = 0; n < batch.length; n += pagesOfPiece) {
      const part = batch.slice(n, n + pagesOfPiece)
      const partial = n + pagesOfPiece < batch.length
      const own = {
        partial,
        databasePages: position.pages,
        numbers: part.map(({ number }) => number),
        // Replication cannot resume in the middle of a commit.
        mark: partial ? undefined : markOf(position),
      }
      const bytes = part.map((page) => page.bytes)
      await appender.append('pages', own, bytes)
    }
    settle(upTo, takenAt)
    if (pinned?.isHeld()) void snapshots.take(wal, pinned)
  }

  /** A pinned state makes the wal grow, so the pin is dropped when the bucket does not respond in time. */
  function pinForSnapshot(from: WalReader) {
    const pinned = snapshots.isDue() && !ending ? tryPin(from) : undefined
    if (!pinned) return undefined
    const release = () => snapshots.isRunning() || pinned.release()
    setTimeout(release, patienceMilliseconds).unref()
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
  async function shipBase() {
    capture()
    pages.clear()
    const [upTo, takenAt] = [captured, performance.now()]
    const pinned = wal && pinState(databasePath, wal)
    if (!wal || !pinned) return await pause(lapsePollMilliseconds, () => false)
    // Pages captured from now on come after the snapshot.
    needsBase = false
    isUploading = true
    const uploading = snapshots.takeBase(wal, pinned, beatBeside)
    const snapshot = await uploading.finally(() => {
      isUploading = false
    })
    await appender.append('base', { snapshot, mark: markOf(pinned) })
    settle(upTo, takenAt)
  }

  /** Sends heartbeats while a long upload runs. */
  async function beatBeside(work: Promise<unknown>) {
    let isDone = false
    const done = work.finally(() => {
      isDone = true
    })
    let beat: Promise<void> | undefined
    const send = async () => {
      await appender.append('beat', {})
      beat = undefined
    }
    try {
      while (pair && !isDone) {
        const rest = Math.max(lapsePollMilliseconds, beatMilliseconds - silentFor())
        // Unreferenced, so that it does not keep the process alive.
        const later = new Promise<void>((resolve) => setTimeout(resolve, rest).unref())
        await Promise.race([done, later])
        if (!isDone) beat ??= send()
      }
      await done
    } finally {
      // Only one entry may be in flight.
      await beat
    }
  }

  function settle(upTo: number, takenAt: number) {
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

  /** Ends shipping. Waiting writes are refused as unacknowledged. */
  function stopWaiting() {
    refuseWaiting()
    isEnded = true
    settle(captured, performance.now())
  }

  return {
    /** Must be called after each commit, of this process or another. */
    capture,

    /** Starts shipping; the database must be open. */
    begin(begun: Lead): void {
      lead = begun
      appender.start(begun)
      capture()
      void snapshots.start(begun.next)
      void run()
    },

    /** Replaces the sync of the wal: resolves when everything committed so far may be acknowledged. */
    async sync(real: () => Promise<void>): Promise<void> {
      capture()
      // A commit that cannot be read yet will be in the next base snapshot.
      if (!wal) captured++
      await Promise.all([real(), ack === 'bucket' && storedUpTo(captured)])
      // Another node may lead by now: the next entry shows it.
      while (hasLapsed() && !isEnded) await Bun.sleep(lapsePollMilliseconds)
    },

    /** Refuses writes with 503 while they cannot be acknowledged. A write already committed may still be stored; a retry
     *  with the same key returns it. */
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

    /** Clients are served from now on: writes are refused instead of waiting. */
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
      const whole =
        wal &&
        new Promise<true>((resolve) => {
          ending = { isRelease, resolve: () => resolve(true) }
          wakeUp()
        })
      const tooLong = new Promise<false>((resolve) => {
        setTimeout(() => resolve(false), drainMilliseconds).unref()
      })
      const isWhole = await Promise.race([whole ?? false, tooLong])
      stopWaiting()
      return isWhole
    },

    /** Must be called after the database is closed.
     *  @returns the place of the last entry if the log is complete up to it, else undefined */
    close(): Place | undefined {
      clearInterval(stallTimer)
      isOver = true
      appender.stop()
      wakeUp()
      const isWhole = wal?.isAtEnd() === true && pages.isEmpty() && !needsBase
      // A running snapshot may still read from these files.
      if (!snapshots.isRunning()) wal?.close()
      return isWhole ? appender.last() : undefined
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

const markOf = ({ salts, frame, checksum }: WalPosition): WalMark => ({ salts, frame, checksum })
const unavailable = () =>
  new AppError('unavailable', { retryAfterSeconds, cause: 'the bucket stores nothing' })
