import { setImmediate } from 'node:timers/promises'
import { invalidBody } from '../../lib/errors.ts'

const takesAtOnce = 1_000
const pieceBytes = 65_536
/** Images with more parts must have that many bytes for each part, on average: a GIF has 128. */
const freeTakes = 10_000
const leastBytesPerTake = 64

/** Reads bytes that arrive in chunks. A chunk is valid only until the next one is requested. */
export class ByteReader {
  private readonly chunks: AsyncIterator<Uint8Array>
  private chunk: Uint8Array = new Uint8Array()
  private at = 0
  private takes = 0
  private readBytes = 0

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.chunks = bytes[Symbol.asyncIterator]()
  }

  /** Reads a few bytes into memory; fewer at the end.
   *  @throws validation_error (`body`) for a file of tiny parts, which would take seconds */
  async take(count: number): Promise<Buffer> {
    if (++this.takes % takesAtOnce === 0) await setImmediate()
    if (this.takes > freeTakes && this.takes * leastBytesPerTake > this.readBytes) {
      throw invalidBody()
    }
    const taken = Buffer.alloc(count)
    let size = 0
    while (size < count && (this.at < this.chunk.length || (await this.readChunk()))) {
      const piece = this.chunk.subarray(this.at, this.at + count - size)
      taken.set(piece, size)
      size += piece.length
      this.at += piece.length
    }
    return taken.subarray(0, size)
  }

  putBack(bytes: Uint8Array) {
    this.chunk = Buffer.concat([bytes, this.chunk.subarray(this.at)])
    this.at = 0
  }

  async *pass(count = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array> {
    let left = count
    while (left > 0 && (this.at < this.chunk.length || (await this.readChunk()))) {
      const piece = this.chunk.subarray(this.at, this.at + left)
      left -= piece.length
      this.at += piece.length
      yield piece
    }
  }

  async skip(count?: number): Promise<void> {
    for await (const _ of this.pass(count));
  }

  async *passUntilMarker(): AsyncGenerator<Uint8Array> {
    while (this.at < this.chunk.length || (await this.readChunk())) {
      const { chunk, at: start } = this
      const end = markerIn(chunk, start)
      this.at = end
      if (end > start) yield chunk.subarray(start, end)
      if (end < chunk.length - 1) return
      // The second byte of the marker is in the next chunk.
      if (end < chunk.length && !(await this.readChunk())) yield* this.pass()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.chunks.return?.()
  }

  private async readChunk(): Promise<boolean> {
    const rest = Buffer.from(this.chunk.subarray(this.at))
    const { done, value } = await this.chunks.next()
    if (done) this.chunk = rest
    else this.chunk = rest.length === 0 ? value : Buffer.concat([rest, value])
    this.readBytes += this.chunk.length - rest.length
    this.at = 0
    return !done
  }
}

/** The start of the next JPEG marker, or of a possible one where the chunk ends. Stuffed bytes and restarts belong to the
 *  data, and so does a second start of an image. */
function markerIn(chunk: Uint8Array, start: number): number {
  for (let at = start; at < chunk.length; at++) {
    at = chunk.indexOf(0xff, at)
    if (at === -1) return chunk.length
    const code = chunk[at + 1] ?? 0xc0
    if (code >= 0xc0 && code < 0xff && (code < 0xd0 || code > 0xd8)) return at
  }
  return chunk.length
}

/** Joins small pieces, because each costs a write to the disk. A piece is valid until the next one is requested. */
export async function* joinSmall(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const joined = Buffer.alloc(pieceBytes)
  let size = 0
  for await (const piece of pieces) {
    if (size > 0 && size + piece.length > pieceBytes) {
      yield joined.subarray(0, size)
      size = 0
    }
    if (piece.length < pieceBytes) {
      joined.set(piece, size)
      size += piece.length
    } else yield piece
  }
  if (size > 0) yield joined.subarray(0, size)
}
