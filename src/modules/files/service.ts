import { randomBytes } from 'node:crypto'
import type { Core } from '../../core.ts'
import type { ByUser } from '../../db/audit-trail.ts'
import type { FileBytes, FileStorage } from '../../files/storage.ts'
import { AppError, fileTooLarge, invalidField, problem } from '../../lib/errors.ts'
import { isShownInline, sniffedBytes } from './inline.ts'
import { fileNameOf, fileTypeOf } from './model.ts'
import type { FileRow, FileStore } from './store.ts'

export type IncomingFile = {
  /** The size, or an upper bound of it, if the request says so. */
  announcedBytes: number | undefined
  /** Whether the size is exactly `announcedBytes`. */
  isExact: boolean
  /** Calls `save` once. */
  receive: (
    save: (file: { name: string; type: string; bytes: AsyncIterable<Uint8Array> }) => Promise<void>,
  ) => Promise<void>
}

type Reserved = { id: string; bytes: number }
type Bound = { most: number; tooMuch: () => AppError }
type Seen = { bytes: number; head: Buffer }

type Parts = {
  store: FileStore
  storage: FileStorage
  /** Whether uploads would take the disk space that the database needs. */
  isDiskShort: () => boolean
  /** Inside a `write`: the user is shown with the generated picture from now on. */
  dropPicture: (userId: string) => void
}

export type FileService = ReturnType<typeof createFileService>

/** Every file counts at least this much, so that the quota also bounds the number of files, and with it the cost of
 *  summing them up. */
const leastBytes = 16_384
const retryAfterSeconds = 5
const retryWithRoomSeconds = 60
/** Each of these uploads holds a chunk of 1 MiB, and Bun buffers as much again: 32 MiB in all. Slow senders hold
 *  hardly anything, however many they are. */
const maxLargeChunks = 16
const largeChunkBytes = 262_144
/** As long as messages that were removed can be reported. */
const keptForReports = 30 * 86_400_000
/** Same as the retention rule for unused files. */
const keptUnused = 86_400_000

/** Uploads and their bytes. The row is written before the first byte and completed after the last: a crash leaves a
 *  row that counts for the quota and is deleted after a day. */
export function createFileService(core: Core, parts: Parts) {
  const { store, storage, isDiskShort, dropPicture } = parts
  const { write, clock, log, outbox, audit } = core
  const { maxBytes, quotaBytes } = core.config.files
  let largeChunks = 0

  /** @throws storage_full */
  function reserve(
    ownerId: string,
    { announcedBytes = maxBytes, isExact }: IncomingFile,
  ): Reserved {
    const free = quotaBytes - store.countBytes(ownerId, leastBytes)
    if (free < leastBytes || (isExact && announcedBytes > free)) throw new AppError('storage_full')
    const id = randomBytes(32).toString('base64url')
    const size = Math.min(announcedBytes, maxBytes, free)
    const now = clock.now()
    const times = { storedAt: null, unusedSince: now, removedAt: null, createdAt: now }
    store.insert({ id, ownerId, name: '', size, type: '', isInline: false, ...times })
    return { id, bytes: size }
  }

  /** Inside a `write`: deletes the row and queues the removal of the bytes. Also ends an upload that is still
   *  running. */
  function remove(id: string): void {
    store.delete(id)
    outbox.add('file_removal', { key: id })
  }

  /** Inside a `write`: everybody gets 404 from now on. A file shown in a message stays visible to the desk for a
   *  while. */
  function withdraw(file: FileRow): void {
    const isSaid = store.isSaid(file.id)
    if (store.deleteUsesOf(file.id).includes(file.ownerId)) dropPicture(file.ownerId)
    const removed = { ...file, removedAt: clock.now() }
    store.update(file.id, { removedAt: removed.removedAt })
    if (store.isUsed(file.id)) return
    if (isSaid) expire(removed)
    else remove(file.id)
  }

  /** Inside a `write`: retention deletes the file once it is unused and the time for reports is over. */
  function expire({ id, removedAt }: FileRow): void {
    const unusedSince = removedAt === null ? clock.now() : removedAt + keptForReports - keptUnused
    store.update(id, { unusedSince })
  }

  function mustFind(id: string): FileRow {
    const file = store.find(id)
    if (!file) throw new AppError('not_found')
    return file
  }

  async function* measured(bytes: AsyncIterable<Uint8Array>, { most, tooMuch }: Bound, seen: Seen) {
    for await (const chunk of whole(bytes)) {
      seen.bytes += chunk.byteLength
      if (seen.bytes > most) throw tooMuch()
      if (seen.head.byteLength < sniffedBytes) {
        seen.head = Buffer.concat([seen.head, chunk.subarray(0, sniffedBytes)])
      }
      if (chunk.byteLength < largeChunkBytes) yield chunk
      else yield* inPlace(chunk)
    }
  }

  // Bounds the memory: chunks are large when the disk is slower than the sender.
  function* inPlace(chunk: Uint8Array) {
    if (largeChunks >= maxLargeChunks) throw new AppError('unavailable', { retryAfterSeconds })
    largeChunks++
    try {
      yield chunk
    } finally {
      largeChunks--
    }
  }

  let wasShort = false

  /** @throws unavailable */
  function mustHaveRoom() {
    const isShort = isDiskShort()
    if (isShort !== wasShort) {
      log.warn(
        isShort
          ? 'uploads are refused: less than MIN_FREE_MB is free'
          : 'uploads are accepted again',
      )
    }
    wasShort = isShort
    if (isShort) throw new AppError('unavailable', { retryAfterSeconds: retryWithRoomSeconds })
  }

  function boundOf({ isExact }: IncomingFile, { bytes: most }: Reserved): Bound {
    if (isExact) return { most, tooMuch: brokenOff }
    if (most === maxBytes) return { most, tooMuch: () => fileTooLarge(maxBytes) }
    return { most, tooMuch: () => new AppError('storage_full') }
  }

  async function take(incoming: IncomingFile, reserved: Reserved) {
    const seen: Seen = { bytes: 0, head: Buffer.alloc(0) }
    const bound = boundOf(incoming, reserved)
    let [name, type] = ['', '']
    await incoming.receive(async (file) => {
      name = fileNameOf(file.name)
      type = fileTypeOf(file.type)
      await storage.write(reserved.id, measured(file.bytes, bound, seen))
    })
    if (incoming.isExact && seen.bytes !== incoming.announcedBytes) throw brokenOff()
    return { name, type, size: seen.bytes, isInline: await isShownInline(type, seen.head) }
  }

  function asRefusal(error: unknown): AppError {
    if (error instanceof AppError) return error
    log.error('a file cannot be stored or read', { error })
    return new AppError('unavailable', { retryAfterSeconds, cause: error })
  }

  return {
    /** Stores a file; it is durable on the disk or in the bucket when this resolves.
     *  @param mayStill throws when its owner may not upload any more
     *  @throws body_too_large · storage_full · validation_error (name, type, broken off) · unavailable */
    async upload(ownerId: string, incoming: IncomingFile, mayStill: () => void): Promise<FileRow> {
      mustHaveRoom()
      const { announcedBytes = 0, isExact } = incoming
      if (isExact && announcedBytes > maxBytes) throw fileTooLarge(maxBytes)
      const reserved = await write(() => reserve(ownerId, incoming))
      try {
        const file = await take(incoming, reserved)
        return await write(() => {
          mayStill()
          const times = { storedAt: clock.now(), unusedSince: clock.now() }
          const row = store.update(reserved.id, { ...file, ...times })
          // The upload took more than a day, and retention has deleted its row.
          if (!row) throw brokenOff()
          return row
        })
      } catch (error) {
        // If this fails too, retention deletes the row after a day.
        await write(() => remove(reserved.id)).catch(() => {})
        throw asRefusal(error)
      }
    },

    /** @param isForDesk whether removed files that the desk may still see count
     *  @throws not_found */
    get(id: string, isForDesk: boolean): FileRow {
      return (isForDesk && store.findKept(id)) || mustFind(id)
    },

    /** Removes an upload of the user's own, also from messages and the profile.
     *  @throws not_found (also for files of others, and removed ones) */
    withdrawOwn: (ownerId: string, id: string): Promise<void> =>
      write(() => {
        const file = mustFind(id)
        if (file.ownerId !== ownerId) throw new AppError('not_found')
        withdraw(file)
      }),

    /** Removes a file with its bytes, also from reports.
     *  @throws not_found */
    removeAny: (id: string, by: ByUser): Promise<void> =>
      write(() => {
        const file = store.findKept(id)
        if (!file) throw new AppError('not_found')
        if (store.deleteUsesOf(id).includes(file.ownerId)) dropPicture(file.ownerId)
        remove(id)
        const details = { owner_id: file.ownerId }
        audit.record({ action: 'file_removed', ...by, target: { type: 'file', id }, details })
      }),

    /** A range of bytes, read at the pace of the receiver.
     *  @throws not_found (removed meanwhile) · unavailable */
    async read(id: string, { start, end }: { start: number; end: number }): Promise<FileBytes> {
      if (start === end) return new Blob([])
      const bytes = await storage.read(id, start, end).catch((error: unknown) => {
        throw asRefusal(error)
      })
      if (bytes === undefined) throw new AppError('not_found')
      return bytes
    },

    withdraw,
    expire,

    /** Removes files of a removed user, even those in use. */
    erase(ownerId: string, limit: number) {
      const ids = store.listIdsOf(ownerId, limit)
      ids.forEach(remove)
      return ids.at(-1)
    },
  }
}

const brokenOff = (cause?: unknown) =>
  cause === undefined
    ? invalidField('body', 'invalid')
    : new AppError('validation_error', { details: { body: problem('invalid') }, cause })

/** An upload that breaks off is the client's error, not ours. */
async function* whole(bytes: AsyncIterable<Uint8Array>) {
  try {
    yield* bytes
  } catch (cause) {
    throw cause instanceof AppError ? cause : brokenOff(cause)
  }
}
