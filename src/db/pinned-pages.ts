import { Database } from 'bun:sqlite'
import { fstatSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { frameHeaderBytes, type WalIndex, type WalReader, walHeaderBytes } from './wal-reader.ts'

const framesAtOnce = 512
const databaseHeaderBytes = 100
const readFile = promisify(read)

/** The pages of a database at one moment, which stay readable until `release`. */
export type PinnedPages = ReturnType<typeof pinPages>

/** Pins the newest state: a read transaction keeps checkpoints from copying later frames into the database file, and the
 *  wal from being reset, unless all its frames were copied before. */
export function pinPages(databasePath: string, wal: WalReader) {
  const reader = new Database(databasePath)
  let isHeld = true
  function release(): void {
    if (isHeld) reader.close()
    isHeld = false
  }
  try {
    reader.run('BEGIN')
    reader.query('SELECT 1 FROM sqlite_schema').get()
    const index = wal.index()
    const { pageSize, pages } = sizeOf(wal, index)
    return {
      ...index,
      pageSize,
      pages,
      release,
      isHeld: () => isHeld,
      async *pieces(pagesAtOnce: number): AsyncGenerator<Buffer> {
        const newer = await indexFrames(wal, index)
        for (let first = 1; first <= pages; first += pagesAtOnce) {
          const count = Math.min(pagesAtOnce, pages - first + 1)
          yield await readPages(wal, { first, count, pageSize }, newer)
        }
      },
    }
  } catch (error) {
    release()
    throw error
  }
}

function sizeOf({ databaseFile }: WalReader, { frame, pageSize, pages }: WalIndex) {
  if (frame > 0) return { pageSize, pages }
  const header = Buffer.alloc(databaseHeaderBytes)
  readSync(databaseFile, header, 0, databaseHeaderBytes, 0)
  const size = header.readUInt16BE(16)
  const bytes = size === 1 ? 65_536 : size
  return { pageSize: bytes, pages: fstatSync(databaseFile).size / bytes }
}

async function indexFrames({ walFile }: WalReader, { frame, copiedFrames, pageSize }: WalIndex) {
  const newest = new Map<number, number>()
  // The database file contains the whole wal, which may be reset from here on.
  if (copiedFrames >= frame) return newest
  const frameBytes = frameHeaderBytes + pageSize
  const buffer = Buffer.alloc(framesAtOnce * frameBytes)
  for (let done = 0; done < frame; done += framesAtOnce) {
    const count = Math.min(framesAtOnce, frame - done)
    const at = walHeaderBytes + done * frameBytes
    await readFile(walFile, buffer, 0, count * frameBytes, at)
    for (let n = 0; n < count; n++) newest.set(buffer.readUInt32BE(n * frameBytes), done + n)
  }
  return newest
}

async function readPages(
  { databaseFile, walFile }: WalReader,
  { first, count, pageSize }: { first: number; count: number; pageSize: number },
  newer: Map<number, number>,
) {
  const bytes = Buffer.alloc(count * pageSize)
  await readFile(databaseFile, bytes, 0, bytes.length, (first - 1) * pageSize)
  for (let n = 0; n < count; n++) {
    const frame = newer.get(first + n)
    if (frame === undefined) continue
    const at = walHeaderBytes + frame * (frameHeaderBytes + pageSize) + frameHeaderBytes
    await readFile(walFile, bytes, n * pageSize, pageSize, at)
  }
  return bytes
}
