import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { pictureView } from '../../api/fields.ts'
import type { Core } from '../../core.ts'
import type { ByUser } from '../../db/audit-trail.ts'
import type { Chunks, FileBytes, FileStorage, Upload } from '../../files/storage.ts'
import type { OutboxJobs } from '../../jobs/outbox.ts'
import { day, minute, timeLeft } from '../../lib/clock.ts'
import { createSemaphore } from '../../lib/concurrency.ts'
import { AppError, fileTooLarge, invalidBody, invalidField } from '../../lib/errors.ts'
import { type FileUrls, fileNameOf, fileTypeOf, isShownInline, sniffedBytes } from './model.ts'
import { type FileRow, type FileStore, logoUse } from './store.ts'
import { type ImageFacts, stripMetadata } from './strip-metadata.ts'
import { createThumbnails, type StoredImage } from './thumbnails.ts'

type Reserved = { id: string; bytes: number }
type Bound = { bytes: number; exceeded: () => AppError }
type Progress = { received: number; stored: number; head: Buffer }

export type FileParts = {
  store: FileStore
  urls: FileUrls
  storage: FileStorage
  imageWorker: URL
  isDiskShort: () => boolean
  /** Called inside a `write`. */
  dropPicture: (userId: string) => void
}

export type FileService = ReturnType<typeof createFileService>

/** Every file counts at least this much, so that the quota also bounds the number of files and the cost of summing them. */
const leastBytes = 16_384
const retryAfterSeconds = 5
const retryWithRoomSeconds = 60
/** Concurrent uploads with a large chunk. Each holds up to 1 MiB, and Bun buffers as much again: 32 MiB in all. Chunks of
 *  slow senders are small. */
const maxLargeChunks = 16
const largeChunkBytes = 262_144
/** All uploads together get one piece of that size per turn of the event loop, so that requests of others wait for little. */
const pieceBytes = 131_072
const oneAtOnce = createSemaphore(1)
/** A decoder goes through all pixels for each scan of a JPEG. Cameras and editors write at most 14. */
const maxScans = 100
const keptForReports = 30 * day
/** The same as in the retention rule for unused files. */
const keptUnused = day
/** Each takes 40 µs, and a purge removes a hundred files in one write. */
const releasedAtOnce = 10
const erasedAtOnce = 10

/** Uploaded files. The row is inserted before the first byte and completed after the last. After a crash in between, the row
 *  counts towards the quota until the next start deletes it. */
export function createFileService(core: Core, parts: FileParts) {
  const { store, urls, storage, isDiskShort, dropPicture } = parts
  const { write, clock, log, outbox, audit, settings } = core
  const { maxBytes, quotaBytes } = core.config.files
  const thumbnails = createThumbnails(parts)
  let largeChunks = 0

  /** @throws storage_full */
  function reserve(ownerId: string, { announcedBytes = maxBytes, isExact }: Upload): Reserved {
    const free = quotaBytes - store.countBytes(ownerId, leastBytes)
    if (free < leastBytes || (isExact && announcedBytes > free)) throw new AppError('storage_full')
    const id = randomBytes(32).toString('base64url')
    const size = Math.min(announcedBytes, maxBytes, free)
    const now = clock.now()
    const times = { storedAt: null, unusedSince: now, removedAt: null, createdAt: now }
    const unknown = { name: '', type: '', isInline: false, picture: null, orientation: 1 }
    store.insert({ id, ownerId, size, ...unknown, ...times })
    return { id, bytes: size }
  }

  /** Deletes the row and queues the removal of the bytes, inside a `write`. A running upload of the file fails at its end. */
  function remove(id: string): void {
    const isImage = store.delete(id)?.picture !== null
    outbox.add('file_removal', { key: id, isImage })
  }

  /** Called inside a `write`. Also hides it in its owner's profile and as the platform's logo. A job takes it from most of
   *  the texts that show it: thousands of messages may.
   *  @param changes hide it from the desk, too */
  function hide(file: FileRow, changes: Partial<FileRow>): void {
    const { id, ownerId } = file
    const isInMessage = store.isInMessage(id)
    store.update(id, { removedAt: clock.now(), ...changes })
    if (store.deleteUse(ownerId, id)) dropPicture(ownerId)
    const actor = { type: 'system' } as const
    if (store.deleteUse(logoUse, id)) settings.change({ logo_url: null }, { actor })
    const release = { key: id, isInMessage }
    if (releaseSome(release, releasedAtOnce)) outbox.add('file_release', release)
  }

  /** Called inside a `write`. In the end deletes the file or lets it expire.
   *  @returns true; undefined when no more texts are left */
  function releaseSome({ key, isInMessage }: OutboxJobs['file_release'], limit: number) {
    const file = store.findAny(key)
    if (!file) return undefined
    const isErased = file.storedAt === null
    if (store.releaseSome(key, { limit, isWithReports: isErased }, urls.idIn)) return true
    if (store.isUsed(key)) return undefined
    if (isInMessage && !isErased) expire(file)
    else remove(key)
    return undefined
  }

  /** Called inside a `write`. The desk can still read a file of a message for a while. */
  function withdraw(file: FileRow): void {
    if (file.removedAt === null) hide(file, {})
  }

  /** Retention deletes it, after the time for reports if it was removed. Called inside a `write`. */
  function expire({ id, removedAt }: FileRow): void {
    const unusedSince = removedAt === null ? clock.now() : removedAt + keptForReports - keptUnused
    store.update(id, { unusedSince })
  }

  function mustFind(id: string): FileRow {
    const file = store.find(id)
    if (!file) throw new AppError('not_found')
    return file
  }

  /** Removes a file, also from removed messages, which can still be reported. Called inside a `write`. */
  function erase(file: FileRow): void {
    store.clearRemoved(file.id)
    hide(file, { storedAt: null, unusedSince: null })
  }

  function purge(ownerId: string, limit: number) {
    const some = store.listSomeOf(ownerId, limit)
    some.forEach(erase)
    const last = some.at(-1)?.id
    return last === undefined ? undefined : { last, count: some.length }
  }

  async function* limit(bytes: Chunks, bound: Bound, progress: Progress) {
    for await (const chunk of bytes) {
      progress.received += chunk.byteLength
      if (progress.received > bound.bytes) throw bound.exceeded()
      if (chunk.byteLength < largeChunkBytes) yield* inTurns(chunk)
      else yield* limitLargeChunks(chunk)
    }
  }

  async function* inTurns(chunk: Uint8Array) {
    for (let at = 0; at < chunk.byteLength; at += pieceBytes) {
      await oneAtOnce(() => setImmediate())
      yield chunk.subarray(at, at + pieceBytes)
    }
  }

  // Bounds the memory. Chunks are large when the disk is slower than the sender.
  async function* limitLargeChunks(chunk: Uint8Array) {
    if (largeChunks >= maxLargeChunks) throw new AppError('unavailable', { retryAfterSeconds })
    largeChunks++
    try {
      yield* inTurns(chunk)
    } finally {
      largeChunks--
    }
  }

  let wasShort = false

  /** @throws unavailable */
  function mustHaveRoom() {
    const isShort = isDiskShort()
    if (isShort !== wasShort) {
      const refused = 'uploads are refused: less than MIN_FREE_MB is free'
      log.warn(isShort ? refused : 'uploads are accepted again')
    }
    wasShort = isShort
    if (isShort) throw new AppError('unavailable', { retryAfterSeconds: retryWithRoomSeconds })
  }

  function boundOf({ isExact }: Upload, { bytes }: Reserved): Bound {
    if (isExact) return { bytes, exceeded: invalidBody }
    if (bytes === maxBytes) return { bytes, exceeded: () => fileTooLarge(maxBytes) }
    return { bytes, exceeded: () => new AppError('storage_full') }
  }

  async function receive(incoming: Upload, reserved: Reserved, mustGoOn: () => void) {
    const progress: Progress = { received: 0, stored: 0, head: Buffer.alloc(0) }
    const facts: ImageFacts = { width: 0, height: 0, orientation: 1, scans: 0 }
    const bound = boundOf(incoming, reserved)
    let [name, type] = ['', '']
    await incoming.receive(async (file) => {
      name = fileNameOf(file.name)
      type = fileTypeOf(file.type)
      const stripped = stripMetadata(limit(file.bytes, bound, progress), facts)
      await storage.write(reserved.id, measure(stripped, progress, mustGoOn))
    })
    if (incoming.isExact && progress.received !== incoming.announcedBytes) throw invalidBody()
    const isInline = await isShownInline(type, progress.head)
    return { file: { name, type, size: progress.stored, isInline }, facts }
  }

  async function pictureOf(image: StoredImage, facts: ImageFacts) {
    if (facts.width * facts.height === 0 || facts.scans > maxScans) return null
    const placeholder = await thumbnails.hash(image)
    const { width, height, orientation } = facts
    const isUpright = orientation < firstTurned
    const shown = isUpright ? { width, height } : { width: height, height: width }
    return JSON.stringify({ ...shown, placeholder })
  }

  let failureLoggedAt: number | undefined

  function refuse(error: unknown): never {
    if (error instanceof AppError) throw error
    // Each of the many pictures of an app fails while the bucket is away.
    if (timeLeft(failureLoggedAt, minute, clock.now()) === 0) {
      failureLoggedAt = clock.now()
      log.error('a file cannot be stored or read', { error })
    }
    throw new AppError('unavailable', { retryAfterSeconds, cause: error })
  }

  return {
    /** Stores a file, durably on the disk or in the bucket when this resolves.
     *  @param reauthorize throws when the owner may no longer upload
     *  @throws body_too_large · storage_full · validation_error (name, type, incomplete body) · unavailable */
    async upload(ownerId: string, incoming: Upload, reauthorize: () => void): Promise<FileRow> {
      mustHaveRoom()
      const { announcedBytes = 0, isExact } = incoming
      if (isExact && announcedBytes > maxBytes) throw fileTooLarge(maxBytes)
      const reserved = await write(() => reserve(ownerId, incoming))
      try {
        const { file, facts } = await receive(incoming, reserved, () => {
          reauthorize()
          if (!store.findAny(reserved.id)) throw invalidBody()
        })
        const { orientation } = facts
        const image = { id: reserved.id, ownerId, size: file.size, orientation }
        const picture = await pictureOf(image, facts)
        return await write(() => {
          reauthorize()
          const times = { storedAt: clock.now(), unusedSince: clock.now() }
          const row = store.update(reserved.id, { ...file, picture, orientation, ...times })
          // Retention has deleted the row of an upload that took more than a day.
          if (!row) throw invalidBody()
          return row
        })
      } catch (error) {
        // If this fails too, the upload may have filled the disk: without its bytes the database can write again. Retention
        // deletes the row after a day.
        const { id } = reserved
        await write(() => remove(id)).catch(() => thumbnails.delete(id, false).catch(() => {}))
        // The removal of the account also takes away the bytes of its uploads.
        reauthorize()
        refuse(error)
      }
    },

    /** @param isForDesk whether to include removed files that are kept for reports
     *  @throws not_found */
    get(id: string, isForDesk: boolean): FileRow {
      return (isForDesk && store.findKept(id)) || mustFind(id)
    },

    /** @throws not_found (unknown, removed or of another user) */
    withdrawOwn: (ownerId: string, id: string): Promise<void> =>
      write(() => {
        const file = mustFind(id)
        if (file.ownerId !== ownerId) throw new AppError('not_found')
        withdraw(file)
      }),

    /** @throws not_found */
    removeAny: (id: string, by: ByUser): Promise<void> =>
      write(() => {
        const file = store.findKept(id)
        if (!file) throw new AppError('not_found')
        erase(file)
        const details = { owner_id: file.ownerId }
        audit.record({ action: 'file_removed', ...by, target: { type: 'file', id }, details })
      }),

    /** At the consumer's pace.
     *  @throws not_found (removed since) · unavailable */
    async read(id: string, { start, end }: { start: number; end: number }): Promise<FileBytes> {
      if (start === end) return new Blob([])
      const bytes = await storage.read(id, start, end).catch(refuse)
      if (bytes === undefined) throw new AppError('not_found')
      return bytes
    },

    list: store.list,
    /** The bytes that the user's files count, and how many they may. Removed files that are kept for reports count, too. */
    roomOf: (ownerId: string) => ({
      used: store.countBytes(ownerId, leastBytes),
      quota: quotaBytes,
    }),

    /** The thumbnail of an image as WebP; undefined when there is only the image itself.
     *  @throws validation_error (`w`) for other files · unavailable */
    async readThumbnail(file: FileRow, width: number): Promise<Uint8Array | undefined> {
      const { placeholder } = pictureView(file.picture)
      if (file.picture === null && !file.type.startsWith('image/')) {
        throw invalidField('w', 'no_image')
      }
      if (placeholder === undefined) return undefined
      const isStored = () => store.findKept(file.id) !== undefined
      return thumbnails.get(file, width, isStored).catch(refuse)
    },

    deleteBytes: thumbnails.delete,

    withdraw,
    releaseSome,
    expire,

    erase: (ownerId: string) => purge(ownerId, erasedAtOnce)?.last,
    purge,
  }
}

/** The first byte may come after the row was deleted and the job that removes the bytes has run: a kill would then leave
 *  bytes that nothing removes. The storage asks for bytes when it has opened the file, so a later job finds that. */
async function* measure(bytes: Chunks, progress: Progress, mustGoOn: () => void) {
  mustGoOn()
  for await (const chunk of bytes) {
    progress.stored += chunk.byteLength
    if (progress.head.byteLength < sniffedBytes) {
      progress.head = Buffer.concat([progress.head, chunk.subarray(0, sniffedBytes)])
    }
    yield chunk
  }
}

const firstTurned = 5
