import { closeSync, openSync, readSync } from 'node:fs'

/** A position in a wal. The checksum covers all frames before it. */
export type WalPosition = { salts: string; frame: number; checksum: string }

export const walHeaderBytes = 32
export const frameHeaderBytes = 24
const framesAtOnce = 256
const indexHeaderBytes = 48
const wholeIndexBytes = 2 * indexHeaderBytes + 4
const maxTries = 1_000

/** The content of the wal-index (https://www.sqlite.org/walformat.html). */
export type WalIndex = WalPosition & {
  pageSize: number
  pages: number
  commits: number
  copiedFrames: number
}

export type WalReader = ReturnType<typeof openWalReader>

/** Reads the commits of every process from the wal of an open database.
 *
 *  When a process closes a file it loses all its POSIX locks on it, including those of SQLite. Therefore the files stay open
 *  until `close`, which must be called after closing the database. */
export function openWalReader(databasePath: string) {
  const indexFile = openSync(`${databasePath}-shm`, 'r')
  const walFile = openSync(`${databasePath}-wal`, 'r')
  const databaseFile = openSync(databasePath, 'r')
  const header = Buffer.alloc(wholeIndexBytes)
  const firstCopy = header.subarray(0, indexHeaderBytes)
  const secondCopy = header.subarray(indexHeaderBytes, 2 * indexHeaderBytes)
  let frames = Buffer.alloc(0)
  /** The next `read` starts after it. */
  let seen: WalIndex | undefined

  /** Reads both copies of the header until they are equal, because a committing process writes one after the other.
   *  @throws Error when a process died in between */
  function readHeader() {
    for (let n = 0; n < maxTries; n++) {
      readSync(indexFile, header, 0, wholeIndexBytes, 0)
      if (firstCopy.equals(secondCopy)) return
    }
    throw new Error('the index of the wal cannot be read')
  }

  function readIndex(): WalIndex {
    readHeader()
    const pageSize = header.readUInt16LE(14)
    return {
      commits: header.readUInt32LE(8),
      pageSize: pageSize === 1 ? 65_536 : pageSize,
      frame: header.readUInt32LE(16),
      pages: header.readUInt32LE(20),
      checksum: checksumOf(header.readUInt32LE(24), header.readUInt32LE(28)),
      salts: header.toString('hex', 32, 40),
      copiedFrames: header.readUInt32LE(2 * indexHeaderBytes),
    }
  }

  function readFrames({ pageSize, frame }: WalIndex, from: number, take: TakePage): number {
    const frameBytes = frameHeaderBytes + pageSize
    if (frames.length < framesAtOnce * frameBytes) frames = Buffer.alloc(framesAtOnce * frameBytes)
    let commits = 0
    for (let done = from; done < frame; ) {
      const count = Math.min(framesAtOnce, frame - done)
      readSync(walFile, frames, 0, count * frameBytes, walHeaderBytes + done * frameBytes)
      for (let at = 0; at < count * frameBytes; at += frameBytes) {
        if (frames.readUInt32BE(at + 4) > 0) commits++
        take(frames.readUInt32BE(at), frames.subarray(at + frameHeaderBytes, at + frameBytes))
      }
      done += count
    }
    return commits
  }

  function contains(index: WalIndex, position: WalPosition): boolean {
    if (position.salts !== index.salts || position.frame > index.frame) return false
    // Every empty wal has this position, so it proves nothing.
    if (position.frame === 0) return false
    const header = Buffer.alloc(frameHeaderBytes)
    const at = walHeaderBytes + (position.frame - 1) * (frameHeaderBytes + index.pageSize)
    readSync(walFile, header, 0, frameHeaderBytes, at)
    return checksumOf(header.readUInt32BE(16), header.readUInt32BE(20)) === position.checksum
  }

  return {
    databaseFile,
    walFile,
    index: readIndex,

    /** @returns whether this wal continues from the position of an earlier process */
    resume(position: WalPosition): boolean {
      const index = readIndex()
      const isPossible = contains(index, position)
      seen = isPossible ? { ...index, ...position } : undefined
      return isPossible
    },

    /** Reads the wal from its beginning: the database file alone is the state before it. */
    resumeAtBeginning(): void {
      seen = { ...readIndex(), frame: 0 }
    },

    /** Passes the pages of every commit since the last call to `take`. Of a page that changed twice, the newer version comes
     *  later.
     *  @returns `gap` when the wal no longer contains every commit in between; the next call continues after the gap */
    read(take: TakePage): 'nothing' | 'pages' | 'gap' {
      const last = seen
      const index = readIndex()
      seen = index
      const from = last?.salts === index.salts ? last.frame : 0
      const commits = readFrames(index, from, take)
      // The wal was reset during the read.
      const isTorn = readIndex().salts !== index.salts
      if (isTorn || !follows(last, index, commits)) return 'gap'
      return index.frame > from ? 'pages' : 'nothing'
    },

    isAtEnd: () => readIndex().commits === seen?.commits,

    position: () => seen,

    close() {
      for (const file of [indexFile, walFile, databaseFile]) closeSync(file)
    },
  }
}

/** Whether no frame is missing. After a reset of the wal, it must contain every commit since. */
function follows(last: WalIndex | undefined, next: WalIndex, commits: number): boolean {
  if (!last) return false
  return last.salts === next.salts || (next.commits - last.commits) >>> 0 === commits
}

type TakePage = (number: number, bytes: Buffer) => void

const checksumOf = (...halves: [number, number]) =>
  halves.map((half) => half.toString(16).padStart(8, '0')).join('')
