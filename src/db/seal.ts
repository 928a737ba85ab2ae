import { type FileHandle, open } from 'node:fs/promises'
import { pieceBytes, throttled } from './pieces.ts'

/** A backup ends with a page that SQLite does not read: the checksum of all pages before it. */

const mark = 'hostline sha256 '
const hashCharacters = 64
const pageSizeOffset = 16

export async function seal(path: string): Promise<void> {
  await using file = await open(path, 'r+')
  const { size } = await file.stat()
  const page = Buffer.alloc(await readPageSize(file))
  page.write(mark + (await hashOf(file, size)))
  await file.write(page, 0, page.length, size)
  await file.sync()
}

/** @throws Error when the pages are not those that were sealed */
export async function unseal(path: string): Promise<void> {
  await using file = await open(path, 'r+')
  const { size } = await file.stat()
  const end = size - (await readPageSize(file))
  const text = Buffer.alloc(mark.length + hashCharacters)
  if (end <= 0) return
  await file.read(text, 0, text.length, end)
  if (!text.toString('latin1').startsWith(mark)) return
  if (text.toString('latin1', mark.length) !== (await hashOf(file, end))) {
    throw new Error('it is damaged: its content has changed since it was made')
  }
  await file.truncate(end)
}

/** https://www.sqlite.org/fileformat.html, 1.3.2 */
async function readPageSize(file: FileHandle): Promise<number> {
  const header = Buffer.alloc(2)
  await file.read(header, 0, header.length, pageSizeOffset)
  const size = header.readUInt16BE()
  return size === 1 ? 65_536 : size
}

async function hashOf(file: FileHandle, bytes: number): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  const part = { start: 0, end: bytes - 1, autoClose: false, highWaterMark: pieceBytes }
  for await (const piece of throttled(file.createReadStream(part))) hash.update(piece)
  return hash.digest('hex')
}
