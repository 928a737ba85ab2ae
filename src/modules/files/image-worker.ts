import { setPriority } from 'node:os'
import { inflateSync } from 'node:zlib'
import { rgbaToThumbHash } from 'thumbhash'

// A Worker, because pictures on the runtime's pool of threads would delay the syncs of the database.
declare const self: Worker

/** @param width of a thumbnail; undefined for a ThumbHash */
export type ImageRequest = { image: Blob; orientation: number; width: number | undefined }
/** WebP or ThumbHash; undefined when the image cannot be decoded. */
export type ImageReply = Uint8Array | undefined

/** A decoded picture takes up to 4 bytes per pixel: 200 MB. */
const maxPixels = 50_000_000
/** WebP has no larger pictures. */
const maxHeight = 16_383
const hashedPixels = 32

// Other systems know no priority of a single thread.
if (process.platform === 'linux') yieldToOthers()

self.onmessage = async ({ data }: MessageEvent<ImageRequest>) => {
  postMessage(await answer(data).catch(() => undefined))
}

function yieldToOthers() {
  try {
    setPriority(19)
  } catch {
    // A sandbox may forbid this.
  }
}

async function answer({ image, orientation, width }: ImageRequest): Promise<ImageReply> {
  const still = await firstPictureOf(image)
  if (!still) return undefined
  const decoded = turned(new Bun.Image(still, { maxPixels, autoOrient: false }), orientation)
  if (width !== undefined) {
    const fit = { fit: 'inside', withoutEnlargement: true } as const
    return encode(decoded.resize(width, maxHeight, fit).webp())
  }
  const small = decoded.resize(hashedPixels, hashedPixels, { fit: 'inside' })
  return hashOf(Buffer.from(await encode(small.png({ compressionLevel: 0 }))))
}

/** As a body, an image is encoded on this thread. */
const encode = (image: Bun.Image): Promise<Uint8Array> => new Response(image).bytes()

// The decoder rotates before it mirrors, in whatever order they are called.
function turned(image: Bun.Image, orientation: number): Bun.Image {
  image.rotate([0, 0, 0, 180, 0, 90, 90, 270, 270][orientation] ?? 0)
  if ([2, 5, 7].includes(orientation)) image.flop()
  return orientation === 4 ? image.flip() : image
}

const animationFlag = 0x02
const alphaFlag = 0x10

const bytesOf = async (image: Blob) => Buffer.from(await image.arrayBuffer())
const textAt = (bytes: Buffer, start: number) => bytes.toString('latin1', start, start + 4)

/** The first picture of an animated WebP, which the decoder cannot read, as a WebP of its own. Other images remain as they
 *  are: the decoder reads a file on this thread, whereas a large read of a Blob takes a thread of the runtime.
 *  @returns undefined when the first picture is only a part of the whole */
async function firstPictureOf(image: Blob): Promise<Blob | Buffer | undefined> {
  const head = await bytesOf(image.slice(0, 21))
  const isExtended = textAt(head, 8) === 'WEBP' && textAt(head, 12) === 'VP8X'
  const isAnimated = isExtended && ((head[20] ?? 0) & animationFlag) !== 0
  return isAnimated ? firstPictureIn(await bytesOf(image)) : image
}

function firstPictureIn(bytes: Buffer): Buffer | undefined {
  let at = 12
  while (at + 24 < bytes.length && textAt(bytes, at) !== 'ANMF') {
    const size = bytes.readUInt32LE(at + 4)
    at += 8 + size + (size & 1)
  }
  if (at + 24 >= bytes.length) return undefined
  const canvas = bytes.subarray(24, 30)
  if (!bytes.subarray(at + 14, at + 20).equals(canvas)) return undefined
  const picture = bytes.subarray(at + 24, at + 8 + bytes.readUInt32LE(at + 4))
  const head = Buffer.from('RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0', 'latin1')
  head.writeUInt32LE(head.length - 8 + picture.length, 4)
  head[20] = textAt(picture, 0) === 'VP8 ' ? 0 : alphaFlag
  head.set(canvas, 24)
  return Buffer.concat([head, picture])
}

/** @param png RGBA without compression, which the encoder writes without filters */
function hashOf(png: Buffer): Uint8Array {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    const type = png.toString('latin1', at + 4, at + 8)
    if (type === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  }
  const rows = inflateSync(Buffer.concat(parts))
  const pixels = Buffer.alloc(width * height * 4)
  // Each row begins with the number of its filter.
  for (let y = 0; y < height; y++) rows.copy(pixels, y * width * 4, y * (width * 4 + 1) + 1)
  return rgbaToThumbHash(width, height, pixels)
}
