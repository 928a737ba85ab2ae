import { crc32, deflateSync, inflateSync } from 'node:zlib'
import { ByteReader, joinSmall } from './byte-reader.ts'

export type ImageFacts = { width: number; height: number; orientation: number; scans: number }

type Strip = (reader: ByteReader, facts: ImageFacts) => AsyncGenerator<Uint8Array>

/** Larger metadata is dropped unread. */
const maxHeldBytes = 2 * 1_024 * 1_024

/** Removes what describes the making of a JPEG, PNG, WebP or GIF: EXIF but the orientation, XMP, IPTC, texts, thumbnails,
 *  and everything after the end of the image. Keeps pixels, animation and colour profile as they are; passes other files on.
 *  A truncated image keeps what can be read. */
export async function* stripMetadata(
  bytes: AsyncIterable<Uint8Array>,
  facts: ImageFacts,
): AsyncGenerator<Uint8Array> {
  await using reader = new ByteReader(bytes)
  const head = await reader.take(12)
  reader.putBack(head)
  const strip = formatOf(head.toString('latin1'))
  yield* strip ? joinSmall(strip(reader, facts)) : reader.pass()
  await reader.skip()
}

function formatOf(head: string): Strip | undefined {
  if (head.startsWith('\xff\xd8\xff')) return stripJpeg
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return stripPng
  if (/^GIF8[79]a/.test(head)) return stripGif
  return /^RIFF.{4}WEBP/s.test(head) ? stripWebp : undefined
}

/** ITU-T T.81, annex B. */
async function* stripJpeg(reader: ByteReader, facts: ImageFacts): AsyncGenerator<Uint8Array> {
  yield await reader.take(2)
  const profile: Buffer[] = []
  for (;;) {
    // Decoders ignore bytes between segments.
    for await (const _ of reader.passUntilMarker());
    const marker = await reader.take(2)
    const [, code = endOfImage] = marker
    if (code === endOfImage) return yield marker
    const data = await takeSegment(reader)
    if (!data) return
    yield* keptSegments({ marker, data }, facts, profile)
    if (code === startOfScan) yield* reader.passUntilMarker()
  }
}

const endOfImage = 0xd9
const startOfScan = 0xda
const profileCode = 0xe2
/** For extensions, which do not exist. */
const reserved = 0xc8

async function takeSegment(reader: ByteReader): Promise<Buffer | undefined> {
  const length = await reader.take(2)
  const size = length.length < 2 ? -1 : length.readUInt16BE() - 2
  if (size < 0) return undefined
  const data = await reader.take(size)
  return data.length < size ? undefined : data
}

/** @param profile collects the parts of the colour profile, which follow one another */
function* keptSegments(
  { marker, data }: Record<'marker' | 'data', Buffer>,
  facts: ImageFacts,
  profile: Buffer[],
): Generator<Buffer> {
  const [, code = endOfImage] = marker
  if (code === profileCode && starts(data, 'ICC_PROFILE\0')) {
    if (profile.length < maxHeldBytes / 65_536) profile.push(data)
    return
  }
  yield* profileSegments(profile.splice(0))
  const kept = keptSegment(code, data, facts)
  if (kept) yield segment(marker, kept)
}

function segment(marker: Buffer, data: Buffer): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(data.length + 2)
  return Buffer.concat([marker, length, data])
}

function keptSegment(code: number, data: Buffer, facts: ImageFacts): Buffer | undefined {
  const isOfJpegLs = code === 0xf7 || code === 0xf8
  if (code === startOfScan) facts.scans++
  if (code === reserved) return undefined
  if (code >= 0xe0 && !isOfJpegLs) return keptApplicationData[code]?.(data, facts)
  const isFrame = code <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(code)
  if (isFrame && data.length >= 6) setSize(facts, data.readUInt16BE(3), data.readUInt16BE(1))
  return data
}

const keptApplicationData: Record<number, typeof keptExif> = {
  // Without the thumbnail.
  224: (data) => (starts(data, 'JFIF\0') ? withZeros(data.subarray(0, 14), 12, 14) : undefined),
  225: keptExif,
  238: (data) => (starts(data, 'Adobe') ? data.subarray(0, 12) : undefined),
}

const starts = (data: Buffer, text: string) => data.indexOf(text, 0, 'latin1') === 0

function keptExif(data: Buffer, facts: ImageFacts): Buffer | undefined {
  if (!starts(data, 'Exif\0\0') || facts.orientation > 1) return undefined
  facts.orientation = orientationIn(data)
  const isTurned = facts.orientation > 1
  return isTurned ? Buffer.concat([data.subarray(0, 6), exifOf(facts.orientation)]) : undefined
}

function* profileSegments(parts: Buffer[]): Generator<Buffer> {
  parts.sort((a, b) => (a[12] ?? 0) - (b[12] ?? 0))
  anonymousParts(parts.map((part) => part.subarray(14)))
  for (const part of parts) yield segment(Buffer.of(0xff, profileCode), part)
}

const keptPngChunks =
  /^(PLTE|IDAT|tRNS|gAMA|cHRM|sRGB|cICP|mDCV|cLLI|sBIT|bKGD|hIST|pHYs|acTL|fcTL|fdAT)$/

/** https://www.w3.org/TR/png-3/ */
async function* stripPng(reader: ByteReader, facts: ImageFacts): AsyncGenerator<Uint8Array> {
  yield await reader.take(8)
  // Each is edited once: a profile of 2 KB may unpack to 2 MB.
  const edited = new Set(['IHDR', 'iCCP', 'eXIf'])
  for (;;) {
    const head = await reader.take(8)
    const type = head.toString('latin1', 4)
    if (head.length < 8) return
    if (type === 'IEND') return yield pngChunk(type, Buffer.alloc(0))
    const size = head.readUInt32BE()
    if (keptPngChunks.test(type)) {
      yield head
      yield* reader.pass(size + 4)
      continue
    }
    const isHeld = edited.delete(type) && size <= maxHeldBytes
    const kept = keptPngData(type, await takePngData(reader, size, isHeld), facts)
    if (kept) yield pngChunk(type, kept)
  }
}

async function takePngData(reader: ByteReader, size: number, isHeld: boolean) {
  const data = isHeld ? await reader.take(size) : undefined
  await reader.skip(data ? 4 : size + 4)
  return data?.length === size ? data : undefined
}

function keptPngData(type: string, data: Buffer | undefined, facts: ImageFacts) {
  if (!data) return undefined
  if (type === 'iCCP') return anonymousPngProfile(data)
  if (type === 'IHDR') {
    if (data.length >= 8) setSize(facts, data.readUInt32BE(0), data.readUInt32BE(4))
    return data
  }
  facts.orientation = orientationIn(data)
  return facts.orientation > 1 ? exifOf(facts.orientation) : undefined
}

function anonymousPngProfile(data: Buffer): Buffer | undefined {
  try {
    const packed = data.subarray(data.indexOf(0) + 2)
    const profile = inflateSync(packed, { maxOutputLength: maxHeldBytes })
    return Buffer.concat([Buffer.from('icc\0\0'), deflateSync(anonymous(profile))])
  } catch {
    return undefined
  }
}

function pngChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(data.length + 12)
  chunk.writeUInt32BE(data.length)
  chunk.write(type, 4, 'latin1')
  chunk.set(data, 8)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), data.length + 8)
  return chunk
}

/** RFC 9649. Every chunk keeps its size, because the file starts with the sum: zeros replace what is removed. */
async function* stripWebp(reader: ByteReader, facts: ImageFacts): AsyncGenerator<Uint8Array> {
  const riff = await reader.take(12)
  yield riff
  for (let left = riff.readUInt32LE(4) - 4; left > 0; ) {
    const head = await reader.take(Math.min(8, left))
    if (head.length < 8) return yield Buffer.alloc(head.length)
    const type = head.toString('latin1', 0, 4)
    const size = head.readUInt32LE(4)
    // The chunks of a frame follow its own 16 bytes as if they were outside.
    const padded = Math.min(type === 'ANMF' ? 16 : size + (size & 1), left - 8)
    left -= 8 + padded
    yield* stripWebpChunk(reader, { head, type, padded }, facts)
  }
}

async function* stripWebpChunk(
  reader: ByteReader,
  { head, type, padded }: { head: Buffer; type: string; padded: number },
  facts: ImageFacts,
): AsyncGenerator<Uint8Array> {
  const isEdited = type === 'EXIF' || type === 'ICCP'
  const start = await reader.take(Math.min(padded, isEdited ? maxHeldBytes : 128))
  const kept = keptWebpStart(type, start, facts)
  if (!kept) head.write('JUNK', 'latin1')
  yield Buffer.concat([head, kept ?? Buffer.alloc(start.length)])
  const isBlank = !kept || isEdited
  for await (const piece of reader.pass(padded - start.length)) {
    yield isBlank ? Buffer.alloc(piece.length) : piece
  }
}

/** @param data the first bytes of the chunk
 *  @returns undefined to blank the chunk */
function keptWebpStart(type: string, data: Buffer, facts: ImageFacts): Buffer | undefined {
  if (type === 'EXIF') {
    facts.orientation = orientationIn(data)
    const kept = Buffer.alloc(data.length)
    exifOf(facts.orientation).copy(kept)
    return kept
  }
  if (type === 'ICCP') return anonymous(data)
  if (type === 'VP8X' && data.length >= 10) {
    setSize(facts, data.readUIntLE(4, 3) + 1, data.readUIntLE(7, 3) + 1)
    data[0] = (data[0] ?? 0) & ~webpXmpFlag
  }
  if (type === 'VP8 ' && data.length >= 10) {
    setSize(facts, data.readUInt16LE(6) & 0x3fff, data.readUInt16LE(8) & 0x3fff)
  }
  if (type === 'VP8L' && data.length >= 5) {
    const bits = data.readUInt32LE(1)
    setSize(facts, (bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)
  }
  return /^(VP8[ LX]|ALPH|ANIM|ANMF)$/.test(type) ? data : undefined
}

const webpXmpFlag = 0x04

/** https://www.w3.org/Graphics/GIF/spec-gif89a.txt */
async function* stripGif(reader: ByteReader, facts: ImageFacts): AsyncGenerator<Uint8Array> {
  const colours = (flags = 0) => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0)
  const head = await reader.take(13)
  yield head
  if (head.length < 13) return
  setSize(facts, head.readUInt16LE(6), head.readUInt16LE(8))
  yield* reader.pass(colours(head[10]))
  for (;;) {
    const kind = await reader.take(1)
    if (kind.length === 0 || kind[0] === 0x3b) return yield kind
    if (kind[0] === 0x2c) {
      const frame = await reader.take(9)
      yield Buffer.concat([kind, frame])
      // The smallest code size follows the colours.
      yield* reader.pass(colours(frame[8]) + 1)
      for await (const block of gifBlocks(reader)) yield block
    }
    if (kind[0] === 0x21) yield* stripGifExtension(reader)
  }
}

async function* stripGifExtension(reader: ByteReader): AsyncGenerator<Uint8Array> {
  const label = await reader.take(1)
  const isControl = label[0] === 0xf9
  let name: string | undefined
  const profile: Buffer[] = []
  for await (const block of gifBlocks(reader)) {
    const isFirst = name === undefined
    name ??= block.toString('latin1', 1)
    if (!isControl && !/^(NETSCAPE2\.0|ANIMEXTS1\.0|ICCRGBG1012)/.test(name)) continue
    if (isFirst) yield Buffer.concat([Buffer.of(0x21), label])
    if (isFirst || !name.startsWith('ICC')) yield block
    else if (block.length <= 1 || profile.length < maxHeldBytes / 256) profile.push(block)
  }
  anonymousParts(profile.map((block) => block.subarray(1)))
  yield* profile
}

/** The blocks up to the empty one, each with the byte of its size. */
async function* gifBlocks(reader: ByteReader): AsyncGenerator<Buffer> {
  for (;;) {
    const size = await reader.take(1)
    const block = Buffer.concat([size, await reader.take(size[0] ?? 0)])
    yield block
    if (block.length <= 1) return
  }
}

function setSize(facts: ImageFacts, width: number, height: number) {
  // The first size of a file is that of the whole image.
  if (facts.width === 0) Object.assign(facts, { width, height })
}

const orientationTag = 0x0112

/** The orientation in EXIF data (TIFF 6.0, section 2): 1 to 8; 1 by default. */
function orientationIn(exif: Buffer): number {
  const tiff = exif.toString('latin1', 0, 6) === 'Exif\0\0' ? exif.subarray(6) : exif
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const read16 = (at: number) => (isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at))
  try {
    const start = isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4)
    for (let n = 0; n < read16(start); n++) {
      const entry = start + 2 + n * 12
      if (read16(entry) !== orientationTag) continue
      const orientation = read16(entry + 8)
      return orientation >= 1 && orientation <= 8 ? orientation : 1
    }
  } catch {
    // It ends too early.
  }
  return 1
}

function exifOf(orientation: number): Buffer {
  const exif = Buffer.from('4d4d002a00000008000101120003000000010000000000000000', 'hex')
  exif[19] = orientation
  return exif
}

function anonymousParts(parts: readonly Buffer[]) {
  const profile = anonymous(Buffer.concat(parts))
  let at = 0
  for (const part of parts) at += profile.copy(part, 0, at, at + part.length)
}

/** Removes date, device and creator of a colour profile (ICC.1:2022, 7.2), and the content of texts and dates among its tags
 *  (7.3): profiles of screens have the serial number. */
function anonymous(profile: Buffer): Buffer {
  for (const [start, end] of profileFields) withZeros(profile, start, end)
  const tags = profile.length < 132 ? 0 : Math.min(profile.readUInt32BE(128), maxProfileTags)
  for (let at = 132; at < 132 + 12 * tags && at + 12 <= profile.length; at += 12) {
    const start = profile.readUInt32BE(at + 4)
    const type = profile.toString('latin1', start, start + 4)
    const end = start + profile.readUInt32BE(at + 8)
    if (!numberTypes.has(type)) withZeros(profile, start + (headSizes[type] ?? 8), end)
  }
  return profile
}

const profileFields = [
  [24, 36],
  [40, 44],
  [48, 56],
  [80, 100],
] as const

/** Bounds the work of a malicious profile. Real ones have fewer than 30. */
const maxProfileTags = 100

/** Types of tags that contain only numbers. All others may contain texts or dates. */
const numberTypes = new Set(
  'XYZ ,curv,para,sf32,uf32,ui08,ui16,ui32,ui64,mft1,mft2,mAB ,mBA ,mpet,sig ,chrm,clro,meas,view,vcgt,cicp'.split(
    ',',
  ),
)

/** Bytes before the text, in types whose head ends with a number. */
const headSizes: Record<string, number> = { desc: 12, mluc: 16 }

function withZeros(bytes: Buffer, start: number, end: number): Buffer {
  const within = (at: number) => Math.max(0, Math.min(at, bytes.length))
  return bytes.fill(0, within(start), within(end))
}
