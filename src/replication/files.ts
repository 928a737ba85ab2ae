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

const reconcileMilliseconds = 3_600_000
/** Pause after a failure. */
const retryMilliseconds = 30_000
const idsAtOnce = 256
const whole = Number.MAX_SAFE_INTEGER
const keyOf = (id: string) => `files/${id}`
const tombstoneOf = (id: string) => `files/${id}.removed`

/** Stores uploaded files on the disk, with a copy of each in the bucket. A removed file stays in the bucket with a tombstone
 *  as long as a restore may need it. */
export function createReplicatedFiles(options: Options): FileStorage & { stop: () => void } {
  const { store, directory, disk, waitsForBucket, log } = options
  const oneByOne = createKeyedSemaphore(1)
  const row = options.sqlite.prepare('SELECT 1 FROM files WHERE id = ? AND stored_at IS NOT NULL')
  const isListed = (id: string) => row.get(id) !== null
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
    if (foreign > 0) log.warn('unknown objects under files/ in the bucket', { foreign })
    return found
  }

  /** Yields to the event loop regularly. */
  async function* paced(ids: Iterable<string>) {
    let count = 0
    for (const id of ids) {
      if (++count % idsAtOnce === 0) await Bun.sleep(0)
      if (isStopped) return
      yield id
    }
  }

  /** Reconciles the disk, the bucket and the database after a crash, an outage or a change of leader. */
  async function reconcile() {
    const names = await readdir(directory).catch(() => [] as string[])
    const local = new Set(names.filter(isFileKey))
    const remote = await listBucket()
    const others = [...remote.keys()].map((name) => name.replace('.removed', ''))
    let failure: unknown
    for await (const id of paced(new Set([...local, ...others]))) {
      const removedAt = remote.get(`${id}.removed`)
      const state = { isLocal: local.has(id), isRemote: remote.has(id), removedAt }
      await reconcileFile(id, state).catch((error: unknown) => {
        failure = error
      })
    }
    if (failure !== undefined) throw failure
  }

  type FileState = { isLocal: boolean; isRemote: boolean; removedAt: number | undefined }

  function reconcileFile(id: string, state: FileState): Promise<void> {
    return isListed(id) ? keep(id, state) : drop(id, state)
  }

  async function keep(id: string, { isLocal, isRemote, removedAt }: FileState) {
    if (!isLocal) await download(id)
    else if (!isRemote) await upload(id)
    // A restore has restored the removed file.
    if (removedAt !== undefined) await store.delete(tombstoneOf(id))
  }

  async function drop(id: string, { isLocal, isRemote, removedAt }: FileState) {
    // The file may still be uploading; otherwise retention removes it.
    if (removedAt === undefined && isLocal) return
    if (removedAt === undefined) return await store.put(tombstoneOf(id), new Uint8Array())
    await disk.delete(id)
    if (removedAt > store.now() - options.keepMilliseconds) return
    if (isRemote) await store.delete(keyOf(id))
    await store.delete(tombstoneOf(id))
  }

  function scheduleReconcile(milliseconds: number) {
    if (isStopped) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      reconcile().then(
        () => scheduleReconcile(reconcileMilliseconds),
        (error: unknown) => {
          log.warn('some uploaded files are not in the bucket yet', { error })
          scheduleReconcile(retryMilliseconds)
        },
      )
    }, milliseconds)
  }
  scheduleReconcile(0)

  return {
    async write(id, bytes) {
      await disk.write(id, bytes)
      const uploading = upload(id)
      if (waitsForBucket) return await uploading
      uploading.catch(() => scheduleReconcile(retryMilliseconds))
    },
    async read(id, start, end) {
      const local = await disk.read(id, start, end)
      if (local) return local
      await download(id)
      return disk.read(id, start, end)
    },
    async delete(id) {
      // Delete locally first, without waiting for the bucket. After a crash in between, both steps run again.
      await disk.delete(id)
      await store.put(tombstoneOf(id), new Uint8Array())
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
