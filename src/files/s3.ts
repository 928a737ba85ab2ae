import { readdir } from 'node:fs/promises'
import { minute } from '../lib/clock.ts'
import { createSemaphore } from '../lib/concurrency.ts'
import type { Log } from '../lib/log.ts'
import { type Bucket, BucketError, openBucket } from '../outside/bucket.ts'
import { type FileStorage, isFileKey, joined, mustBeFileKey } from './storage.ts'

/** Each upload may hold its file in memory. */
const concurrentUploads = 4
const pieceBytes = 512 * 1_024
const chunkBytes = 64 * 1_024
const retryMilliseconds = minute
const whole = Number.MAX_SAFE_INTEGER

export type S3Storage = FileStorage & {
  take(key: string): Promise<void>
  list(): AsyncIterable<string[]>
  drop(name: string): Promise<void>
}

/** Spools uploads to the disk first, because clients are slow. Files on the disk, of a time without the bucket, are served
 *  from there. */
export function createS3Storage(bucket: Bucket, spool: FileStorage): S3Storage {
  const { put, get, list, delete: remove } = openBucket(bucket)
  const limited = createSemaphore(concurrentUploads)

  const take = (key: string) =>
    limited(async () => {
      const spooled = await spool.read(mustBeFileKey(key), 0, whole)
      if (spooled instanceof Blob) await put(key, spooled)
      await spool.delete(key)
    })

  // A client may read slowly, so the object is fetched in pieces.
  async function* piecesOf(key: string, start: number, end: number) {
    let isShort = false
    for (let at = start; at < end && !isShort; at += pieceBytes) {
      const wanted = Math.min(end - at, pieceBytes)
      const piece = await get(key, { start: at, end: at + wanted })
      isShort = piece?.byteLength !== wanted
      // The client is told the length: it would take a part for the whole, or wait for the rest.
      if (isShort && end < whole && (piece || at > start)) {
        throw new Error('the bucket has less of a file than was stored')
      }
      for (let cut = 0; piece && cut < piece.byteLength; cut += chunkBytes) {
        yield piece.subarray(cut, cut + chunkBytes)
      }
    }
  }

  return {
    take,
    async *list() {
      for await (const page of list('')) yield page.map(({ key }) => key)
    },
    drop: remove,
    async write(key, bytes) {
      await spool.write(key, bytes)
      await take(key)
    },
    async read(key, start, end) {
      const onDisk = await spool.read(mustBeFileKey(key), start, end)
      if (onDisk) return onDisk
      const pieces = piecesOf(key, start, end)
      const first = await pieces.next()
      return first.done ? undefined : joined(first, pieces)
    },
    async delete(key) {
      await spool.delete(mustBeFileKey(key))
      await remove(key)
    },
  }
}

/** @throws Error with the reason for the operator */
export async function tryBucket(bucket: Bucket): Promise<void> {
  const { put, get, delete: remove } = openBucket(bucket)
  const key = `check-${crypto.randomUUID()}`
  const bytes = Buffer.from('hostline check')
  await put(key, bytes)
  const found = await get(key).finally(() => remove(key))
  if (found && bytes.equals(found)) return
  throw new Error('what is written there is not what is read: is it an S3 store?')
}

type Moving = {
  directory: string
  storage: S3Storage
  isListed: (key: string) => boolean
  log: Log
}

/** One after the other; tries again after a failure.
 *  @returns the function that stops it */
export function startMovingFiles({ directory, storage, isListed, log }: Moving): () => void {
  let isStopped = false
  let timer: Timer | undefined

  async function move() {
    const names = await readdir(directory).catch(() => [])
    let failure: unknown
    for (const key of names.filter(isFileKey)) failure = (await tryMove(key)) ?? failure
    for await (const found of storage.list()) {
      for (const name of found) await (isStopped || dropTombstone(name))
    }
    if (failure) throw failure
  }

  /** @returns why the file cannot be read or removed, which is no reason to leave the others
   *  @throws BucketError */
  async function tryMove(key: string): Promise<unknown> {
    try {
      if (!isStopped && isListed(key)) await storage.take(key)
      // It may have been deleted during the upload.
      if (!isStopped && !isListed(key)) await storage.delete(key)
      return undefined
    } catch (error) {
      if (error instanceof BucketError) throw error
      return error
    }
  }

  /** Hostline 0.1 kept a removed file, with this mark beside it. */
  async function dropTombstone(name: string) {
    const [, key = ''] = /^(.*)\.removed$/.exec(name) ?? []
    if (!isFileKey(key)) return
    if (!isListed(key)) await storage.delete(key)
    await storage.drop(name)
  }

  function run() {
    move().catch((error: unknown) => {
      log.warn('some files on the disk are not in the bucket yet', { error })
      if (!isStopped) timer = setTimeout(run, retryMilliseconds)
    })
  }
  run()
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
