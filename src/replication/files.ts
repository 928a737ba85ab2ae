import { readdir } from 'node:fs/promises'
import type { FileStorage } from '../files/storage.ts'
import { createKeyedSemaphore } from '../lib/concurrency.ts'
import type { Log } from '../lib/log.ts'
import type { ObjectStore } from './object-store.ts'

type Options = {
  store: ObjectStore
  /** Where they lie on the disk, and how. */
  directory: string
  disk: FileStorage
  /** Whether a file is stored only when it is in the bucket. */
  waitsForBucket: boolean
  keepMilliseconds: number
  log: Log
}

const compareMilliseconds = 3_600_000
const whole = Number.MAX_SAFE_INTEGER
const keyOf = (id: string) => `files/${id}`
const removedSuffix = '.removed'

/** Files of people on the disk, each with a copy in the bucket. One that is removed stays in the bucket, marked, for as long as
 *  a restore may need it. */
export function createReplicatedFiles(options: Options): FileStorage & { stop: () => void } {
  const { store, directory, disk, waitsForBucket, log } = options
  const oneByOne = createKeyedSemaphore(1)
  let isStopped = false

  async function upload(id: string) {
    const bytes = await disk.read(id, 0, whole)
    if (bytes instanceof Blob) await store.put(keyOf(id), bytes)
  }

  /** What another leader has stored, or a restore left in the bucket. */
  async function download(id: string) {
    await oneByOne(id, async () => {
      if (await disk.read(id, 0, 0)) return
      const object = await store.open(keyOf(id))
      // A crash may have left a part of it.
      await disk.delete(id)
      if (object?.body) await disk.write(id, object.body)
    })
  }

  async function listBucket() {
    const found = new Map<string, number>()
    for await (const page of store.list('files/')) {
      for (const { key, modifiedAt } of page) found.set(key.slice('files/'.length), modifiedAt)
    }
    return found
  }

  /** Makes the disk and the bucket hold the same files: what a crash or an outage has left undone. */
  async function compare() {
    const names = await readdir(directory).catch(() => [] as string[])
    const local = new Set(names.filter((name) => !name.includes('.')))
    const remote = await listBucket()
    for (const id of local) if (!remote.has(id)) await upload(id)
    // A restore has brought them back.
    const returned = [...local].filter((id) => remote.has(id + removedSuffix))
    for (const id of returned) await store.delete(keyOf(id) + removedSuffix)
    const others = [...remote.keys()].filter((id) => !id.endsWith(removedSuffix) && !local.has(id))
    for (const id of others) {
      if (isStopped) return
      await fetchOrForget(id, remote.get(id + removedSuffix))
    }
  }

  async function fetchOrForget(id: string, removedAt: number | undefined) {
    if (removedAt === undefined) return await download(id)
    if (removedAt > store.now() - options.keepMilliseconds) return
    await store.delete(keyOf(id))
    await store.delete(keyOf(id) + removedSuffix)
  }

  const compareNow = () =>
    compare().catch((error: unknown) => {
      log.warn('files of people are not all in the bucket yet', { error })
    })
  const timer = setInterval(compareNow, compareMilliseconds)
  setTimeout(compareNow)

  return {
    async write(id, bytes) {
      await disk.write(id, bytes)
      const uploading = upload(id)
      if (waitsForBucket) return await uploading
      uploading.catch((error: unknown) => log.warn('a file is not in the bucket yet', { error }))
    },
    async read(id, start, end) {
      const local = await disk.read(id, start, end)
      if (local) return local
      await download(id)
      return disk.read(id, start, end)
    },
    async delete(id) {
      await disk.delete(id)
      await store.put(keyOf(id) + removedSuffix, new Uint8Array())
    },
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}
