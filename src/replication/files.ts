import type { Database } from 'bun:sqlite'
import { readdir } from 'node:fs/promises'
import { type FileStorage, isFileKey } from '../files/storage.ts'
import { createKeyedSemaphore } from '../lib/concurrency.ts'
import type { Log } from '../lib/log.ts'
import type { ObjectStore } from './object-store.ts'

type Options = {
  store: ObjectStore
  /** The directory of the files on the disk, and the storage over it. */
  directory: string
  disk: FileStorage
  /** The database that lists the files. */
  sqlite: Database
  /** Whether a file counts as stored only once it is in the bucket. */
  waitsForBucket: boolean
  keepMilliseconds: number
  log: Log
}

const compareMilliseconds = 3_600_000
/** Pause after a failure. */
const retryMilliseconds = 30_000
const idsAtOnce = 256
const whole = Number.MAX_SAFE_INTEGER
const keyOf = (id: string) => `files/${id}`
const markOf = (id: string) => `files/${id}.removed`

/** Uploaded files on the disk, each with a copy in the bucket. A removed file stays in the bucket, with a tombstone, as
 *  long as a restore may need it. */
export function createReplicatedFiles(options: Options): FileStorage & { stop: () => void } {
  const { store, directory, disk, waitsForBucket, log } = options
  const oneByOne = createKeyedSemaphore(1)
  const row = options.sqlite.prepare('SELECT 1 FROM files WHERE id = ? AND stored_at IS NOT NULL')
  const isNamed = (id: string) => row.get(id) !== null
  let timer: Timer | undefined
  let isStopped = false

  async function upload(id: string) {
    const bytes = await disk.read(id, 0, whole)
    if (bytes instanceof Blob) await store.put(keyOf(id), bytes)
  }

  /** Fetches a file stored by another leader or left in the bucket by a restore. */
  const download = (id: string) =>
    oneByOne(id, async () => {
      if (await disk.read(id, 0, 0)) return
      const object = await store.open(keyOf(id))
      // A crash may have left a partial file.
      await disk.delete(id)
      if (object?.body) await disk.write(id, object.body)
    })

  async function listBucket() {
    const found = new Map<string, number>()
    let foreign = 0
    for await (const page of store.list('files/')) {
      for (const { key, modifiedAt } of page) {
        const name = key.slice('files/'.length)
        if (isFileKey(name.replace(/\.removed$/, ''))) found.set(name, modifiedAt)
        else foreign++
      }
    }
    if (foreign > 0) log.warn('objects under files/ in the bucket are none of ours', { foreign })
    return found
  }

  /** Yields to the event loop now and then. */
  async function* inTurns(ids: Iterable<string>) {
    let count = 0
    for (const id of ids) {
      if (++count % idsAtOnce === 0) await Bun.sleep(0)
      if (isStopped) return
      yield id
    }
  }

  /** Reconciles the disk, the bucket and the database after a crash, an outage or a change of leader. */
  async function compare() {
    const names = await readdir(directory).catch(() => [] as string[])
    const local = new Set(names.filter(isFileKey))
    const remote = await listBucket()
    const others = [...remote.keys()].map((name) => name.replace('.removed', ''))
    let failure: unknown
    for await (const id of inTurns(new Set([...local, ...others]))) {
      const found = { isLocal: local.has(id), isRemote: remote.has(id) }
      await settle(id, { ...found, removedAt: remote.get(`${id}.removed`) }).catch((error) => {
        failure = error
      })
    }
    if (failure !== undefined) throw failure
  }

  type Found = { isLocal: boolean; isRemote: boolean; removedAt: number | undefined }

  function settle(id: string, found: Found): Promise<void> {
    return isNamed(id) ? keep(id, found) : drop(id, found)
  }

  async function keep(id: string, { isLocal, isRemote, removedAt }: Found) {
    if (!isLocal) await download(id)
    else if (!isRemote) await upload(id)
    // A restore has brought the file back.
    if (removedAt !== undefined) await store.delete(markOf(id))
  }

  async function drop(id: string, { isLocal, isRemote, removedAt }: Found) {
    // It may still be uploading; otherwise retention removes it.
    if (removedAt === undefined && isLocal) return
    if (removedAt === undefined) return await store.put(markOf(id), new Uint8Array())
    await disk.delete(id)
    if (removedAt > store.now() - options.keepMilliseconds) return
    if (isRemote) await store.delete(keyOf(id))
    await store.delete(markOf(id))
  }

  function compareIn(milliseconds: number) {
    if (isStopped) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      compare().then(
        () => compareIn(compareMilliseconds),
        (error: unknown) => {
          log.warn('some uploaded files are not in the bucket yet', { error })
          compareIn(retryMilliseconds)
        },
      )
    }, milliseconds)
  }
  compareIn(0)

  return {
    async write(id, bytes) {
      await disk.write(id, bytes)
      const uploading = upload(id)
      if (waitsForBucket) return await uploading
      uploading.catch(() => compareIn(retryMilliseconds))
    },
    async read(id, start, end) {
      const local = await disk.read(id, start, end)
      if (local) return local
      await download(id)
      return disk.read(id, start, end)
    },
    async delete(id) {
      // Delete locally first: that must not wait for the bucket. After a crash in between, both steps run again.
      await disk.delete(id)
      await store.put(markOf(id), new Uint8Array())
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
