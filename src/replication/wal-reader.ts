import { closeSync, openSync, readSync } from 'node:fs'

/** Where a wal was read to: the state of the database after that frame. The checksum covers all frames before it. */
export type WalMark = { salts: string; frame: number; checksum: string }

const walHeaderBytes = 32
const frameHeaderBytes = 24
const framesAtOnce = 256
const indexHeaderBytes = 48
const wholeIndexBytes = 2 * indexHeaderBytes + 4

/** What the wal-index says (https://www.sqlite.org/walformat.html). */
export type WalPosition = WalMark & {
  pageSize: number
  /** Size of the database, in pages. */
  pages: number
  /** How many commits there were since it was made. */
  commits: number
  /** So many frames are in the database file as well. */
  copiedFrames: number
}

export type WalReader = ReturnType<typeof openWalReader>

/** Reads what was committed, by whatever process, from the wal of a database that this process has open.
 *
 *  A process that closes a file loses every lock that it has on it, those of SQLite too. So the files stay open until `close`,
 *  which comes after SQLite has closed the database. */
export function openWalReader(databasePath: string) {
  const indexFile = openSync(`${databasePath}-shm`, 'r')
  const walFile = openSync(`${databasePath}-wal`, 'r')
  const databaseFile = openSync(databasePath, 'r')
  const buffer = Buffer.alloc(wholeIndexBytes)
  let frames = Buffer.alloc(0)
  let seen: WalPosition | undefined

  /** @returns undefined while another process is changing it */
  function readIndex(): WalPosition | undefined {
    readSync(indexFile, buffer, 0, wholeIndexBytes, 0)
    if (buffer.compare(buffer, indexHeaderBytes, 2 * indexHeaderBytes, 0, indexHeaderBytes) !== 0)
      return undefined
    const pageSize = buffer.readUInt16LE(14)
    return {
      commits: buffer.readUInt32LE(8),
      pageSize: pageSize === 1 ? 65_536 : pageSize,
      frame: buffer.readUInt32LE(16),
      pages: buffer.readUInt32LE(20),
      checksum: checksumOf(buffer.readUInt32LE(24), buffer.readUInt32LE(28)),
      salts: buffer.toString('hex', 32, 40),
      copiedFrames: buffer.readUInt32LE(2 * indexHeaderBytes),
    }
  }

  /** @returns how many commits these frames are */
  function readFrames({ pageSize, frame }: WalPosition, from: number, take: TakePage): number {
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

  const isSeen = ({ salts, frame }: WalPosition) => seen?.salts === salts && seen.frame === frame

  /** Whether the wal has that mark in its past. */
  function contains(index: WalPosition, mark: WalMark): boolean {
    if (mark.salts !== index.salts || mark.frame > index.frame) return false
    if (mark.frame === 0) return true
    const header = Buffer.alloc(frameHeaderBytes)
    const at = walHeaderBytes + (mark.frame - 1) * (frameHeaderBytes + index.pageSize)
    readSync(walFile, header, 0, frameHeaderBytes, at)
    return checksumOf(header.readUInt32BE(16), header.readUInt32BE(20)) === mark.checksum
  }

  return {
    databaseFile,
    walFile,
    index: readIndex,

    /** Reads on from a mark of an earlier process.
     *  @returns whether this wal goes on from there */
    resume(mark: WalMark): boolean {
      const index = readIndex()
      if (!index || !contains(index, mark)) return false
      seen = { ...index, ...mark }
      return true
    },

    /** Reads the wal from its beginning on: the database file alone is the state before it. */
    resumeAtBeginning(): void {
      const index = readIndex()
      seen = index && { ...index, frame: 0, commits: index.commits }
    },

    /** Hands out the pages of everything that was committed since the last call; of a page that changed twice, the newer comes
     *  later.
     *  @returns `gap` when what was committed in between is not in the wal any more; the next call goes on behind it */
    read(take: TakePage): 'nothing' | 'pages' | 'gap' {
      const index = readIndex()
      if (!index || isSeen(index)) return 'nothing'
      const last = seen
      const goesOn = last?.salts === index.salts
      const commits = readFrames(index, goesOn ? last.frame : 0, take)
      // Started again while it was read.
      const isTorn = readIndex()?.salts !== index.salts
      // Frames of the former wal were lost unless all commits since are in this one.
      const isWhole = goesOn || (last && (index.commits - last.commits) >>> 0 === commits)
      seen = isTorn ? undefined : index
      return isWhole && !isTorn ? 'pages' : 'gap'
    },

    /** Whether nothing was committed since the last call of `read`. */
    isAtEnd(): boolean {
      const index = readIndex()
      return index !== undefined && isSeen(index)
    },

    /** Up to where `read` came. */
    position: () => seen,

    close() {
      for (const file of [indexFile, walFile, databaseFile]) closeSync(file)
    },
  }
}

type TakePage = (number: number, bytes: Buffer) => void

const checksumOf = (...halves: [number, number]) =>
  halves.map((half) => half.toString(16).padStart(8, '0')).join('')
