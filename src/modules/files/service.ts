import { randomBytes } from 'node:crypto'
import type { Core } from '../../core.ts'
import type { ByUser } from '../../db/audit-trail.ts'
import type { FileBytes, FileStorage } from '../../files/storage.ts'
import { AppError, fileTooLarge, invalidField, problem } from '../../lib/errors.ts'
import { isShownInline, sniffedBytes } from './inline.ts'
import { fileNameOf, fileTypeOf } from './model.ts'
import type { FileRow, FileStore } from './store.ts'

/** A file that is on its way. */
export type IncomingFile = {
  /** How many bytes it has at most, where that is known. */
  announcedBytes: number | undefined
  /** Whether it has exactly that many. */
  isExact: boolean
  /** Gives it to `save`, once. */
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
  /** Whether so little room is left on the disk that the database may need it. */
  isDiskShort: () => boolean
  /** Somebody shows the generated picture from now on; inside a `write`. */
  dropPicture: (userId: string) => void
}

export type FileService = ReturnType<typeof createFileService>

/** What the smallest file counts: so a quota also bounds how many there are, and what it takes to add them up. */
const leastBytes = 16_384
const retryAfterSeconds = 5
const retryWithRoomSeconds = 60
const erasedAtOnce = 100
/** Each of these uploads holds a chunk of 1 MiB, and as much is in the runtime: 32 MiB in all. Those of slow senders hold next to
 *  nothing, however many there are. */
const maxLargeChunks = 16
const largeChunkBytes = 262_144
/** As long as messages that were removed can be reported. */
const keptForReports = 30 * 86_400_000
/** As the rule of retention says. */
const keptUnused = 86_400_000

/** Uploads and their bytes. A row is there before the first byte and after the last one: what a crash leaves in between
 *  is known, counts for the quota, and goes after a day. */
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

  /** Inside a `write`: the file is gone, its bytes will be. Also one whose row went while it was still being written. */
  function remove(id: string): void {
    store.delete(id)
    outbox.add('file_removal', { key: id })
  }

  /** Inside a `write`: nothing shows it any more, and everybody gets 404. Where a message showed it, the desk can still see it
   *  for a while. */
  function withdraw(file: FileRow): void {
    const isSaid = store.isSaid(file.id)
    if (store.deleteUsesOf(file.id).includes(file.ownerId)) dropPicture(file.ownerId)
    const removed = { ...file, removedAt: clock.now() }
    store.update(file.id, { removedAt: removed.removedAt })
    if (store.isUsed(file.id)) return
    if (isSaid) expire(removed)
    else remove(file.id)
  }

  /** Inside a `write`: the clean-up takes what nothing uses, when the time for reports of it is over. */
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

  // Chunks are large where the disk is slower than the sender.
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
      log.warn(isShort ? 'uploads are refused: less than MIN_FREE_MB is free' : 'uploads go on')
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
    /** Keeps a file, which is safe on the disk or in the bucket by then.
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
          // It took more than a day.
          if (!row) throw brokenOff()
          return row
        })
      } catch (error) {
        // When that fails as well, it goes after a day.
        await write(() => remove(reserved.id)).catch(() => {})
        throw asRefusal(error)
      }
    },

    /** @param isForDesk whether it may be one that only the desk still sees
     *  @throws not_found */
    get(id: string, isForDesk: boolean): FileRow {
      return (isForDesk && store.findKept(id)) || mustFind(id)
    },

    /** Removes an upload of one's own, whatever shows it.
     *  @throws not_found (also somebody else's, and one that is removed) */
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

    /** Some bytes of a file, at the pace of whoever takes them.
     *  @throws not_found (it went meanwhile) · unavailable */
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

    /** Everything of somebody who is gone, whatever uses it, in pieces. */
    *erase(ownerId: string): Generator<() => void> {
      for (let ids = some(ownerId); ids.length > 0; ids = some(ownerId)) {
        const piece = ids
        yield () => piece.forEach(remove)
      }
    },
  }

  function some(ownerId: string) {
    return store.listIdsOf(ownerId, erasedAtOnce)
  }
}

const brokenOff = (cause?: unknown) =>
  cause === undefined
    ? invalidField('body', 'invalid')
    : new AppError('validation_error', { details: { body: problem('invalid') }, cause })

/** What breaks off is no failure of ours. */
async function* whole(bytes: AsyncIterable<Uint8Array>) {
  try {
    yield* bytes
  } catch (cause) {
    throw cause instanceof AppError ? cause : brokenOff(cause)
  }
}
