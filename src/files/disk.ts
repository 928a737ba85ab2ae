import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createPacedQueue } from '../lib/concurrency.ts'
import { type FileStorage, mustBeFileKey } from './storage.ts'

/** Larger syncs would delay the syncs of the database. */
const syncChunkBytes = 1_024 * 1_024

// Syncs of the database find the disk free half of the time, and always a thread of the runtime.
const paced = createPacedQueue()

export function createDiskStorage(directory: string): FileStorage {
  const pathOf = (key: string) => join(directory, mustBeFileKey(key))
  const unfinishedPathOf = (key: string) => `${pathOf(key)}.part`

  return {
    async write(key, bytes) {
      const made = await mkdir(directory, { recursive: true, mode: 0o700 })
      if (made !== undefined) await sync(dirname(made))
      await writeBytes(unfinishedPathOf(key), bytes)
      await rename(unfinishedPathOf(key), pathOf(key))
      await sync(directory)
    },
    async read(key, start, end) {
      // A response that cannot open its file would be a plain 500.
      const file = await open(pathOf(key)).catch(unlessMissing)
      await file?.close()
      return file && Bun.file(pathOf(key)).slice(start, end)
    },
    async delete(key) {
      for (const path of [unfinishedPathOf(key), pathOf(key)]) await rm(path, { force: true })
    },
  }
}

async function writeBytes(path: string, bytes: Parameters<FileStorage['write']>[1]) {
  // Replaces what a killed process has left of a thumbnail.
  await using file = await open(path, 'w', 0o600)
  let unsyncedBytes = 0
  for await (const chunk of bytes) {
    // `writeFile` would block the event loop until the bytes are in the page cache.
    for (let at = 0; at < chunk.byteLength; ) at += (await file.write(chunk, at)).bytesWritten
    unsyncedBytes += chunk.byteLength
    if (unsyncedBytes < syncChunkBytes) continue
    await paced(() => file.datasync())
    unsyncedBytes = 0
  }
  await paced(() => file.sync())
}

function unlessMissing(error: unknown): undefined {
  if ((error as { code?: string }).code !== 'ENOENT') throw error
}

async function sync(path: string) {
  await using file = await open(path)
  await paced(() => file.sync())
}
