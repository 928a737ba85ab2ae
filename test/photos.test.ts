import { afterAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync, inflateSync } from 'node:zlib'
import { thumbHashToRGBA } from 'thumbhash'
import type { FileStorage } from '../src/files/storage.ts'
import { stripMetadata } from '../src/modules/files/strip-metadata.ts'
import { createThumbnails } from '../src/modules/files/thumbnails.ts'
import { createTestClock } from './support/clock.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { fetchFile, filesIn, upload } from './support/files.ts'
import { startService } from './support/service.ts'
import { watchRuns } from './support/statements.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

const service = await startService({ environment: { PUBLIC_URL: 'https://chat.example.com' } })
afterAll(() => service[Symbol.asyncDispose]())
const ada = await service.register('ada')
const secret = 'SECRET 52.5200 N, 2021:02:03 04:05:06'

/** A picture with a red left and a blue right half. */
const base = new Bun.Image(pngOf(8, 40, 20))
const jpeg = Buffer.from(await base.jpeg().bytes())
const webp = Buffer.from(await new Bun.Image(pngOf(8, 40, 20)).webp().bytes())

function pngChunk(type: string, data: Uint8Array | string): Buffer {
  const body = Buffer.concat([Buffer.from(type), Buffer.from(data)])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(body.length - 4)
  sum.writeUInt32BE(Bun.hash.crc32(body))
  return Buffer.concat([length, body, sum])
}

function pngOf(depth: 8 | 16, width: number, height: number, ...more: Buffer[]): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head[8] = depth
  head[9] = 2
  const pixel = (colour: number[]) => Buffer.from(colour.flatMap((c) => Array(depth / 8).fill(c)))
  const half = (colour: number[]) => Array(width / 2).fill(pixel(colour))
  const row = Buffer.concat([Buffer.of(0), ...half([255, 0, 0]), ...half([0, 0, 255])])
  const rows = deflateSync(Buffer.concat(Array(Math.min(height, 1_000)).fill(row)))
  const start = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  const parts = [pngChunk('IHDR', head), ...more, pngChunk('IDAT', rows), pngChunk('IEND', '')]
  return Buffer.concat([start, ...parts])
}

function jpegSegment(code: number, data: string | Buffer): Buffer {
  const body = typeof data === 'string' ? Buffer.from(data, 'latin1') : data
  return Buffer.concat([
    Buffer.of(0xff, code, (body.length + 2) >> 8, (body.length + 2) & 255),
    body,
  ])
}

function exif(orientation: number): Buffer {
  const tiff = Buffer.from('49492a000800000002001201030001000000000000000f010200', 'hex')
  tiff[18] = orientation
  return Buffer.concat([tiff, Buffer.from(secret)])
}

function webpChunk(type: string, data: Buffer): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(data.length)
  return Buffer.concat([Buffer.from(type), size, data, Buffer.alloc(data.length & 1)])
}

function webpOf(...chunks: Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from('WEBP'), ...chunks])
  const size = Buffer.alloc(4)
  size.writeUInt32LE(body.length)
  return Buffer.concat([Buffer.from('RIFF'), size, body])
}

const vp8x = (flags: number) => webpChunk('VP8X', Buffer.from([flags, 0, 0, 0, 39, 0, 0, 19, 0, 0]))
const frame = webpChunk(
  'ANMF',
  Buffer.concat([
    Buffer.from([0, 0, 0, 0, 0, 0, 39, 0, 0, 19, 0, 0, 100, 0, 0, 0]),
    webp.subarray(12),
  ]),
)
const animatedWebp = webpOf(vp8x(0x0e), webpChunk('ANIM', Buffer.alloc(6)), frame, frame)

const gifBlocks = (text: string) =>
  Buffer.concat([Buffer.of(text.length), Buffer.from(text), Buffer.of(0)])
const gifFrame = Buffer.from('21f904000a0000002c0000000001000100000202440100', 'hex')
const gif = (...extensions: Buffer[]) =>
  Buffer.concat([
    Buffer.from('47494638396101000100800000ff00000000ff', 'hex'),
    Buffer.from('21ff0b4e45545343415045322e300301000000', 'hex'),
    ...extensions,
    gifFrame,
    gifFrame,
    Buffer.of(0x3b),
  ])

/** A red CMYK picture of 8 by 8 pixels, as Adobe's programs write them. */
const cmykJpeg = Buffer.concat([
  Buffer.of(0xff, 0xd8),
  jpegSegment(0xee, 'Adobe\0\x64\0\0\0\0\0'),
  jpegSegment(0xdb, Buffer.concat([Buffer.of(0), Buffer.alloc(64, 64)])),
  jpegSegment(0xc0, Buffer.from('080008000804011100021100031100041100', 'hex')),
  jpegSegment(0xc4, Buffer.from(`0001${'00'.repeat(15)}05`, 'hex')),
  jpegSegment(0xc4, Buffer.from(`1001${'00'.repeat(15)}00`, 'hex')),
  jpegSegment(0xda, Buffer.from('040100020003000400003f00', 'hex')),
  Buffer.from('4078f20fffd9', 'hex'),
])

const profile = Buffer.concat([
  Buffer.alloc(24),
  Buffer.from(secret),
  Buffer.alloc(100, 7),
  Buffer.alloc(50, 9),
])
const head = jpeg.subarray(0, 2)
const iccHead = Buffer.from('ICC_PROFILE\0\x01\x01', 'latin1')
const dirtyJpeg = Buffer.concat([
  head,
  jpegSegment(0xe1, Buffer.concat([Buffer.from('Exif\0\0'), exif(6)])),
  jpegSegment(0xe1, `http://ns.adobe.com/xap/1.0/\0${secret}`),
  jpegSegment(0xed, `Photoshop 3.0\0${secret}`),
  jpegSegment(0xe2, `MPF\0${secret}`),
  jpegSegment(0xe2, Buffer.concat([iccHead, Buffer.alloc(150, 7)])),
  jpegSegment(0xfe, secret),
  jpeg.subarray(2),
  Buffer.from(`\0\0\0\x18ftypmp42${secret}`),
])

/** Kind, cleaned bytes as they must be sent, bytes with metadata. */
const cases: [string, string, Buffer, Buffer][] = [
  [
    'PNG',
    'image/png',
    pngOf(
      16,
      40,
      20,
      pngChunk('tEXt', `Author\0${secret}`),
      pngChunk('iTXt', secret),
      pngChunk('tIME', 'secret7'),
    ),
    pngOf(16, 40, 20),
  ],
  ['GIF', 'image/gif', gif(Buffer.concat([Buffer.of(0x21, 0xfe), gifBlocks(secret)])), gif()],
  [
    'animated WebP',
    'image/webp',
    webpOf(
      vp8x(0x0e),
      webpChunk('ANIM', Buffer.alloc(6)),
      frame,
      frame,
      webpChunk('XMP ', Buffer.from(secret)),
    ),
    webpOf(
      vp8x(0x0a),
      webpChunk('ANIM', Buffer.alloc(6)),
      frame,
      frame,
      webpChunk('JUNK', Buffer.alloc(secret.length)),
    ),
  ],
]

/** A colour profile with tags: their table, and the data of each, which begins with its type. */
function profileOf(tags: Record<string, string>): Buffer {
  const start = Buffer.alloc(132)
  start.writeUInt32BE(Object.keys(tags).length, 128)
  let offset = start.length + 12 * Object.keys(tags).length
  const table = Object.entries(tags).map(([name, data]) => {
    const entry = Buffer.from(`${name}********`)
    entry.writeUInt32BE(offset, 4)
    entry.writeUInt32BE(data.length, 8)
    offset += data.length
    return entry
  })
  return Buffer.concat([start, ...table, ...Object.values(tags).map((data) => Buffer.from(data))])
}

/** Blocks of a GIF: each begins with its size. */
function chunked(bytes: Buffer, size: number): Buffer[] {
  if (bytes.length === 0) return []
  const part = bytes.subarray(0, size)
  return [Buffer.of(part.length), part, ...chunked(bytes.subarray(size), size)]
}

const storedBytes = (id: string) => readFileSync(join(service.directory, 'files', id))

async function stripped(bytes: Buffer, size = bytes.length) {
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += size) {
      const chunk = Uint8Array.from(bytes.subarray(at, at + size))
      yield chunk
      // As in the server: a chunk is gone when the next one is requested.
      chunk.buffer.transfer(0)
    }
  }
  const facts = { width: 0, height: 0, orientation: 1, scans: 0 }
  const parts: Buffer[] = []
  for await (const part of stripMetadata(chunks(), facts)) parts.push(Buffer.from(part))
  return { bytes: Buffer.concat(parts), facts }
}

describe('an uploaded image', () => {
  test.each(cases)(
    'that is a %s loses its metadata and nothing else',
    async (_, type, bytes, clean) => {
      const { status, body } = await upload(service, ada, bytes, { type })
      expect([status, body.file_size]).toEqual([201, clean.length])
      expect(storedBytes(body.id).equals(clean)).toBe(true)
      expect(body).toMatchObject({
        width: type === 'image/gif' ? 1 : 40,
        placeholder: expect.any(String),
      })
    },
  )

  test('that is a JPEG keeps orientation and colours, also when it is sent as bytes of unknown type', async () => {
    const { body } = await upload(service, ada, dirtyJpeg, { name: 'a.bin' })
    expect(body).toMatchObject({ file_type: 'application/octet-stream', width: 20, height: 40 })
    const stored = storedBytes(body.id)
    expect(body.file_size).toBe(stored.length)
    expect(stored.toString('latin1')).not.toMatch(/SECRET|2021|Photoshop|adobe|MPF|ftyp/)
    const kept = jpegSegment(
      0xe1,
      Buffer.from('457869660000' + '4d4d002a00000008000101120003000000010006000000000000', 'hex'),
    )
    expect(stored.includes(kept)).toBe(true)
    expect(stored.includes(Buffer.concat([iccHead, Buffer.alloc(24, 7)]))).toBe(true)
    expect(stored.subarray(-jpeg.length + 20).equals(jpeg.subarray(20))).toBe(true)
  })

  test('that is a JPEG has no thumbnail in its head', async () => {
    const jfif = Buffer.from('4a46494600010100000100010202', 'hex')
    const thumbnail = jpegSegment(0xe0, Buffer.concat([jfif, Buffer.from('SECRETSECRET')]))
    const { body } = await upload(service, ada, Buffer.concat([head, thumbnail, jpeg.subarray(2)]))
    const stored = storedBytes(body.id)
    expect(stored.includes('SECRET')).toBe(false)
    expect(stored.subarray(6, 20).toString('hex')).toBe(
      '4a464946000101000001000100 00'.replace(' ', ''),
    )
  })

  test('that is a WebP whose first picture is a part of the whole has no placeholder', async () => {
    const part = Buffer.from(frame)
    // The width of the picture, less one.
    part[8 + 6] = 19
    const bytes = webpOf(vp8x(0x02), webpChunk('ANIM', Buffer.alloc(6)), part, frame)
    const { body } = await upload(service, ada, bytes, { type: 'image/webp' })
    expect(body).toMatchObject({ width: 40, height: 20 })
    expect(Object.keys(body)).not.toContain('placeholder')
  })

  test.each([1, 2, 7, 64, 1_000])('is cleaned alike in chunks of %d bytes', async (size) => {
    for (const bytes of [
      dirtyJpeg,
      ...cases.map(([, , dirty]) => dirty),
      Buffer.from('GIF?'),
      Buffer.alloc(0),
    ]) {
      expect((await stripped(bytes, size)).bytes.equals((await stripped(bytes)).bytes)).toBe(true)
    }
  })

  test('that was cut anywhere is cleaned as far as it can be read', async () => {
    for (const whole of [dirtyJpeg, ...cases.map(([, , dirty]) => dirty)]) {
      for (let length = 13; length < whole.length; length += 11) {
        const { bytes } = await stripped(whole.subarray(0, length))
        expect(bytes.toString('latin1')).not.toMatch(/SECRET|2021/)
        expect(bytes.length).toBeLessThanOrEqual(length)
      }
    }
    const { status, body } = await upload(service, ada, jpeg.subarray(0, -30), {
      type: 'image/jpeg',
    })
    expect([status, body.width]).toEqual([201, 40])
  })

  test('keeps its date in no colour profile', async () => {
    const png = pngOf(
      8,
      40,
      20,
      pngChunk('iCCP', Buffer.concat([Buffer.from(`${secret}\0\0`), deflateSync(profile)])),
    )
    const { bytes } = await stripped(png)
    expect(bytes.includes('iCCP')).toBe(true)
    const { bytes: inWebp } = await stripped(
      webpOf(vp8x(0x20), webpChunk('ICCP', profile), webp.subarray(12)),
    )
    expect(inWebp.subarray(38 + 24, 38 + 36)).toEqual(Buffer.alloc(12))
    expect(inWebp.includes(Buffer.alloc(50, 9))).toBe(true)
  })

  test('keeps only the first colour profile of a PNG', async () => {
    const packed = deflateSync(profile)
    const profiles = ['first', 'second'].map((name) =>
      pngChunk('iCCP', Buffer.concat([Buffer.from(`${name}\0\0`), packed])),
    )
    const { bytes } = await stripped(pngOf(8, 40, 20, Buffer.concat(profiles)))
    expect(bytes.toString('latin1').match(/iCCP/g)).toHaveLength(1)
  })

  test.each([65_000, 150])(
    'keeps colours, but neither texts nor dates of the tags of its profile (parts of %i bytes)',
    async (size) => {
      const own = profileOf({
        rTRC: 'curv\0\0\0\0COLOURS',
        desc: `mluc\0\0\0\0\0\0\0\x01\0\0\0\x0c${secret}`,
        mmod: `mmod\0\0\0\0${secret}`,
        calt: `dtim\0\0\0\0${secret}`,
        dmdd: `desc\0\0\0\0\0\0\0\x26${secret}`,
        targ: `text\0\0\0\0${secret}`,
        'CxF ': `zxml\0\0\0\0${secret}`,
        MS10: `MS10\0\0\0\0${secret}`,
        psid: `psid\0\0\0\0${secret}`,
      })
      const parts = [own.subarray(0, size), own.subarray(size)].filter(({ length }) => length > 0)
      const segments = parts.map((part, n) =>
        jpegSegment(0xe2, Buffer.concat([iccHead.subarray(0, -2), Buffer.of(n + 1, 2), part])),
      )
      const blocks = parts.flatMap((part) => chunked(part, 200))
      const name = Buffer.from('!\xff\x0bICCRGBG1012', 'latin1')
      const packed = deflateSync(own)
      const images = [
        Buffer.concat([head, ...segments.reverse(), jpeg.subarray(2)]),
        gif(Buffer.concat([name, ...blocks, Buffer.of(0)])),
        webpOf(vp8x(0x20), webpChunk('ICCP', own), webp.subarray(12)),
        pngOf(8, 40, 20, pngChunk('iCCP', Buffer.concat([Buffer.from('p\0\0'), packed]))),
      ]
      for (const image of images) {
        const { bytes } = await stripped(image)
        const at = bytes.indexOf('iCCP')
        const shown = at < 0 ? bytes : inflateSync(bytes.subarray(at + 9))
        expect([shown.includes('COLOURS'), shown.includes('mluc')]).toEqual([true, true])
        expect(shown.toString('latin1')).not.toMatch(/SECRET|52\.|2021/)
      }
    },
  )

  test('that is a GIF keeps its colour profile without the date, in blocks of any size', async () => {
    const blocks = [profile.subarray(0, 30), profile.subarray(30)].flatMap((part) => [
      Buffer.of(part.length),
      part,
    ])
    const name = Buffer.from('!\xff\x0bICCRGBG1012', 'latin1')
    const { bytes } = await stripped(gif(Buffer.concat([name, ...blocks, Buffer.of(0)])))
    const start = bytes.indexOf(name) + name.length
    const kept = Buffer.concat([bytes.subarray(start + 1, start + 31), bytes.subarray(start + 32)])
    expect(bytes[start]).toBe(30)
    expect(kept.subarray(24, 36)).toEqual(Buffer.alloc(12))
    expect(kept.subarray(100, profile.length)).toEqual(profile.subarray(100))
    expect(kept.subarray(profile.length)).toEqual(gif().subarray(38 - 1))
  })

  test('that is a JPEG of CMYK stays CMYK, and is shown in its colours', async () => {
    const { body } = await upload(service, ada, cmykJpeg, { type: 'image/jpeg' })
    expect(storedBytes(body.id)).toEqual(cmykJpeg)
    const { rgba } = thumbHashToRGBA(Buffer.from(body.placeholder, 'base64'))
    const [red = 0, green = 255, blue = 255] = rgba
    expect([red > 200, green < 50, blue < 50]).toEqual([true, true, true])
    const path = new URL(body.file_url).pathname
    const thumbnail = await service.request(`${path}?w=160`)
    expect(thumbnail.headers.get('content-type')).toBe('image/webp')
  })

  test('that claims more pixels than allowed is neither decoded nor refused', async () => {
    const bomb = pngOf(8, 40_000, 40_000)
    const { status, body } = await upload(service, ada, bomb, { type: 'image/png' })
    expect([status, body.width, body.placeholder]).toEqual([201, 40_000, undefined])
    const answer = await fetchFile(service, body.file_url)
    const small = await service.request(`${new URL(body.file_url).pathname}?w=160`)
    expect([await small.bytes(), small.headers.get('content-type')]).toEqual([
      await answer.bytes(),
      'image/png',
    ])
  })

  test('of more scans than any camera writes is stored and never decoded', async () => {
    const start = jpeg.indexOf(Buffer.of(0xff, 0xda))
    const [head, scan, end] = [jpeg.subarray(0, start), jpeg.subarray(start, -2), jpeg.subarray(-2)]
    const frame = head.subarray(head.indexOf(Buffer.of(0xff, 0xc0)))
    const of = (scans: number, ...more: Buffer[]) =>
      Buffer.concat([head, ...Array(scans).fill(scan), ...more, end])
    const widthOf = async (bytes: Buffer) =>
      (await upload(service, ada, bytes, { type: 'image/jpeg' })).body.width
    expect([await widthOf(of(100)), await widthOf(of(101)), await widthOf(of(101, frame))]).toEqual(
      [40, undefined, undefined],
    )
    const { body } = await upload(service, ada, of(101), { type: 'image/jpeg' })
    const small = await service.request(`${new URL(body.file_url).pathname}?w=160`)
    expect([small.status, await small.bytes()]).toEqual([200, new Uint8Array(of(101))])
  })

  test('of tiny parts, each of which takes time, is refused; one of many usual parts is not', async () => {
    const status = async (bytes: Buffer) =>
      (await upload(service, ada, bytes, { type: 'image/gif' })).status
    const block = Buffer.concat([Buffer.of(255), Buffer.alloc(255)])
    const pictures = [
      gif(...Array(10_000).fill(Buffer.from('!\xf9\0', 'latin1'))),
      gif(Buffer.from('!\xf9', 'latin1'), ...Array(20_000).fill(block), Buffer.of(0)),
    ]
    expect([await status(pictures[0] ?? gif()), await status(pictures[1] ?? gif())]).toEqual([
      400, 201,
    ])
  })

  test('has a placeholder that looks like it, and a message shows both until its file is removed', async () => {
    const { body: file } = await upload(service, ada, dirtyJpeg, { type: 'image/jpeg' })
    const { rgba, w, h } = thumbHashToRGBA(Buffer.from(file.placeholder, 'base64'))
    // Turned: red above blue.
    const [top = [], bottom = []] = [0, w * (h - 1)].map((n) => [
      ...rgba.subarray(n * 4, n * 4 + 3),
    ])
    expect([top[0], bottom[2]].every((colour) => Number(colour) > 128)).toBe(true)
    const ben = await service.register()
    const id = await service.openConversation(ada, ben)
    const path = `/v1/chat/conversations/${id}/messages`
    const { file_url, file_name, file_size, file_type, width, height, placeholder } = file
    const picture = { width, height, placeholder }
    const content = {
      body: '',
      type: 'file',
      file_url,
      file_name,
      file_size,
      file_type,
      client_id: 'p',
    }
    expect(
      (await service.call('POST', path, { token: ada.token, body: content })).body,
    ).toMatchObject(picture)
    const list = async () => (await service.call('GET', path, { token: ben.token })).body.data[0]
    expect(await list()).toMatchObject(picture)
    await service.call('DELETE', `/v1/files/${file.id}`, { token: ada.token })
    expect(Object.keys(await list())).not.toContain('placeholder')
    const again = await service.call('POST', path, { token: ada.token, body: content })
    expect(again.status).toBe(201)
  })
})

test('the removal of a photo runs hardly more statements for two hundred messages than for one', async () => {
  let runs = 0
  watchRuns(() => runs++)
  await using service = await startService()
  const [ada, ben] = [await service.register(), await service.register()]
  const id = await service.openConversation(ada, ben)
  const runsFor = async (messages: number) => {
    const { body: photo } = await upload(service, ada, dirtyJpeg, { type: 'image/jpeg' })
    const { id: fileId, placeholder: _, width: __, height: ___, ...file } = photo
    for (let n = 0; n < messages; n++) {
      const body = { body: '', type: 'file', ...file }
      const path = `/v1/chat/conversations/${id}/messages`
      expect((await service.call('POST', path, { token: ada.token, body })).status).toBe(201)
    }
    const before = runs
    await service.call('DELETE', `/v1/files/${fileId}`, { token: ada.token })
    return runs - before
  }
  const few = await runsFor(1)
  expect((await runsFor(200)) - few).toBeLessThan(100)
})

test('no message, ticket or report shows the placeholder of a removed photo', async () => {
  const [ben, root] = [await service.register(), await service.registerAs('admin')]
  const conversation = await service.openConversation(ada, ben)
  const path = `/v1/chat/conversations/${conversation}/messages`
  const as = ({ token }: { token: string }, method: string, at: string, body?: unknown) =>
    service.call(method, at, { token, body })
  const stay = (await upload(service, ada, jpeg, { type: 'image/jpeg' })).body
  for (const by of ['owner', 'admin']) {
    const { body: photo } = await upload(service, ada, jpeg, { type: 'image/jpeg' })
    const { body: said } = await as(ada, 'POST', path, { ...photo, body: '', type: 'file' })
    const ticket = { subject: 'Photos', body: 'Here', attachments: [photo, stay] }
    const { body: opened } = await as(ada, 'POST', '/v1/support/tickets', ticket)
    const { body: report } = await as(ben, 'POST', '/v1/reports', {
      message_id: said.id,
      reason: 'sexual',
    })
    const shown = async () => {
      const list = await as(ben, 'GET', path)
      const desk = await as(root, 'GET', `/v1/admin/reports/${report.id}`)
      const own = await as(ada, 'GET', `/v1/support/tickets/${opened.id}`)
      return [
        ...list.body.data.filter(({ id }: { id: string }) => id === said.id),
        ...desk.body.messages.filter(({ id }: { id: string }) => id === said.id),
        ...own.body.messages[0].attachments,
      ].map(({ placeholder, width }) => [placeholder, width])
    }
    const whole = [photo.placeholder, 40]
    expect(await shown()).toEqual([whole, whole, whole, whole])
    if (by === 'owner') await as(ada, 'DELETE', `/v1/files/${photo.id}`)
    else await as(root, 'DELETE', `/v1/admin/files/${photo.id}`)
    const [none, kept] = [[], by === 'owner' ? whole : []]
    expect(await shown()).toEqual(
      [none, kept, none, whole].map((it) => (it[0] ? it : [undefined, undefined])),
    )
  }
})

test('an admin who removes the photo of a removed message leaves no placeholder', async () => {
  const [ben, root] = [await service.register(), await service.registerAs('admin')]
  const path = `/v1/chat/conversations/${await service.openConversation(ada, ben)}/messages`
  const { body: photo } = await upload(service, ada, jpeg, { type: 'image/jpeg' })
  const { token } = ada
  const body = { ...photo, body: '', type: 'file' }
  const { body: said } = await service.call('POST', path, { token, body })
  await service.call('DELETE', `${path}/${said.id}`, { token })
  const kept = () => {
    const row = 'SELECT said FROM removed_messages WHERE message_id = ?'
    return String(service.sqlite.query(row).values(said.id)[0]).includes(photo.placeholder)
  }
  expect(kept()).toBe(true)
  const removal = await service.call('DELETE', `/v1/admin/files/${photo.id}`, { token: root.token })
  expect([removal.status, kept()]).toEqual([204, false])
})

test('a removed account leaves no placeholder of its photos', async () => {
  const [eve, ben] = [await service.register(), await service.register()]
  const root = await service.registerAs('admin')
  const conversation = await service.openConversation(eve, ben)
  const path = `/v1/chat/conversations/${conversation}/messages`
  const photo = async () => (await upload(service, eve, jpeg, { type: 'image/jpeg' })).body
  const post = async (at: string, body: object) =>
    (await service.call('POST', at, { token: eve.token, body })).body
  const files = [await photo(), await photo(), await photo(), await photo(), await photo()]
  const [one, first, second, attached, removed] = files
  await post(path, { ...one, body: '', type: 'file' })
  await post(path, { type: 'file', body: '', attachments: [first, second] })
  const ticket = { subject: 'Photos', body: 'Here', attachments: [attached] }
  const { id } = await post('/v1/support/tickets', ticket)
  const gone = await post(path, { ...removed, body: '', type: 'file' })
  await service.call('DELETE', `${path}/${gone.id}`, { token: eve.token })
  const shown = async () =>
    JSON.stringify([
      (await service.call('GET', path, { token: ben.token })).body,
      (await service.call('GET', `/v1/admin/support/tickets/${id}`, { token: root.token })).body,
      service.sqlite.query('SELECT said FROM removed_messages WHERE message_id = ?').all(gone.id),
    ])
  const count = async () => (await shown()).split(files[0].placeholder).length - 1
  expect(await count()).toBe(6)
  const body = { password: 'correct horse' }
  await service.call('DELETE', '/v1/users/me', { token: eve.token, body })
  await waitFor(async () => (await count()) === 0, 'the removal of the files')
})

test('many thumbnails of one person do not hold up the image of another', async () => {
  const images = ['a', 'b', 'c', 'z']
  const read: string[] = []
  const begun = Promise.withResolvers<void>()
  const storage = {
    async read(key: string) {
      if (!images.includes(key)) return undefined
      read.push(key)
      await begun.promise
      return new Blob([jpeg])
    },
    write: async () => {},
    delete: async () => {},
  }
  const imageWorker = new URL('../src/modules/files/image-worker.ts', import.meta.url)
  const thumbnails = createThumbnails({ storage, imageWorker, isDiskShort: () => false })
  const size = jpeg.length
  const imageOf = (ownerId: string, id: string) => ({ id, ownerId, size, orientation: 1 })
  const many = ['a', 'b', 'c'].map((id) => thumbnails.get(imageOf('ada', id), 160, () => true))
  await waitFor(() => read.length > 0)
  const other = thumbnails.hash(imageOf('ben', 'z'))
  begun.resolve()
  await Promise.all([...many, other])
  expect(read).toEqual(['a', 'z', 'b', 'c'])
})

describe('a thumbnail', () => {
  const thumbnail = (file: { file_url: string }, w: number | string, init?: RequestInit) =>
    service.request(`${new URL(file.file_url).pathname}?w=${w}`, init)
  const sizeOf = async (bytes: Uint8Array): Promise<unknown[]> => {
    const { width, height, format } = await new Bun.Image(bytes).metadata()
    return [width, height, format]
  }
  const big = pngOf(8, 1_000, 500)

  test('is made also where a killed process has left a part of it', async () => {
    const { body: file } = await upload(service, ada, big, { type: 'image/png', name: 'a.png' })
    const key = createHash('sha256').update(`${file.id} 160`).digest('base64url')
    await Bun.write(join(service.directory, 'files', `${key}.part`), 'half')
    expect(await sizeOf(await (await thumbnail(file, 160)).bytes())).toEqual([160, 80, 'webp'])
  })

  test('is a WebP of its width, cached for ever, made once, and removed with its file', async () => {
    const { body: file } = await upload(service, ada, big, { type: 'image/png', name: 'a.png' })
    const before = filesIn(service).length
    const answers = await Promise.all([thumbnail(file, 320), thumbnail(file, 320)])
    const [bytes, same] = await Promise.all(answers.map((answer) => answer.bytes()))
    expect(await sizeOf(bytes ?? new Uint8Array())).toEqual([320, 160, 'webp'])
    expect(same).toEqual(bytes)
    const etag = `"${file.id.slice(0, 16)}-320"`
    expect(Object.fromEntries(answers[0]?.headers ?? [])).toMatchObject({
      'content-type': 'image/webp',
      'content-disposition': 'inline; filename=a.png.webp',
      'content-length': String(bytes?.length),
      'cache-control': 'public, max-age=31536000, immutable',
      etag,
    })
    expect(filesIn(service).length).toBe(before + 1)
    expect((await thumbnail(file, 320, { headers: { 'if-none-match': etag } })).status).toBe(304)
    const part = await thumbnail(file, 320, { headers: { range: 'bytes=0-3' } })
    expect([part.status, await part.text()]).toEqual([206, 'RIFF'])
    expect(await sizeOf(await (await thumbnail(file, 1_280)).bytes())).toEqual([1_000, 500, 'webp'])
    for (const width of [160, 640]) await thumbnail(file, width)
    await service.call('DELETE', `/v1/files/${file.id}`, { token: ada.token })
    expect((await thumbnail(file, 320)).status).toBe(404)
    await waitFor(() => filesIn(service).length === before - 1, 'the file and its thumbnails to go')
  })

  test('of a photo that is removed while it is made is not sent', async () => {
    const kept = new Map<string, Blob>()
    const { promise: wait, resolve: goOn } = Promise.withResolvers<void>()
    let isAsked = false
    const fileStorage: FileStorage = {
      async write(key, bytes) {
        kept.set(key, await new Response(bytes as never).blob())
      },
      async read(key, start, end) {
        isAsked = !kept.has(key)
        if (isAsked) await wait
        return kept.get(key)?.slice(start, end)
      },
      async delete(key) {
        kept.delete(key)
      },
    }
    await using own = await startService({ fileStorage })
    const { a, conversationId } = await own.pair()
    const { body: file } = await upload(own, a, pngOf(8, 40, 20), { type: 'image/png' })
    const body = { ...file, body: '', type: 'file' }
    const { token } = a
    await own.call('POST', `/v1/chat/conversations/${conversationId}/messages`, { token, body })
    const answer = own.request(`${new URL(file.file_url).pathname}?w=160`)
    await waitFor(() => isAsked)
    expect((await own.call('DELETE', `/v1/files/${file.id}`, { token })).status).toBe(204)
    goOn()
    expect((await answer).status).toBe(404)
  })

  test('is not made while the disk has less than MIN_FREE_MB: the image itself is sent', async () => {
    let freeBytes = 2_000_000_000
    const [clock, environment] = [createTestClock(), { MIN_FREE_MB: '1000' }]
    await using small = await startService({ clock, environment, freeBytes: () => freeBytes })
    const { body: file } = await upload(small, await small.register(), big, { type: 'image/png' })
    const sent = async (bytes: number, w: number) => {
      freeBytes = bytes
      const answer = await small.request(`${new URL(file.file_url).pathname}?w=${w}`)
      return [...(await sizeOf(await answer.bytes())), filesIn(small).length]
    }
    expect(await sent(999_999_999, 320)).toEqual([1_000, 500, 'png', 1])
    expect(await sent(1_000_000_000, 320)).toEqual([320, 160, 'webp', 2])
    expect(await sent(999_999_999, 320)).toEqual([320, 160, 'webp', 2])
    // Unused for a day.
    clock.advance(25 * 3_600_000)
    await waitFor(() => filesIn(small).length === 0, 'the image and its thumbnail to go')
  })

  test.each([
    ['a turned JPEG', dirtyJpeg, [20, 40, 'webp']],
    ['an animated WebP', animatedWebp, [40, 20, 'webp']],
    ['an animated GIF', gif(), [1, 1, 'webp']],
    ['a PNG of 16 bits', pngOf(16, 40, 20), [40, 20, 'webp']],
  ])('of %s is a still picture, upright', async (_, bytes, expected) => {
    const { body } = await upload(service, ada, bytes)
    expect(await sizeOf(await (await thumbnail(body, 160)).bytes())).toEqual(expected)
  })

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('turns orientation %d of PNG and JPEG alike', async (n) => {
    const inJpeg = jpegSegment(0xe1, Buffer.concat([Buffer.from('Exif\0\0'), exif(n)]))
    const turned = [
      Buffer.concat([head, inJpeg, jpeg.subarray(2)]),
      pngOf(8, 40, 20, pngChunk('eXIf', exif(n))),
    ]
    const hues = turned.map(async (bytes) => {
      const { body } = await upload(service, ada, bytes)
      const { rgba, w } = thumbHashToRGBA(Buffer.from(body.placeholder, 'base64'))
      const isRed = (at: number) => (rgba[at] ?? 0) > (rgba[at + 2] ?? 0)
      return [body.width, body.height, isRed(0), isRed((w - 1) * 4)]
    })
    const isTurned = n >= 5
    const redFirst = [1, 4, 5, 6].includes(n)
    const redLast = isTurned ? redFirst : !redFirst
    const expected = [isTurned ? 20 : 40, isTurned ? 40 : 20, redFirst, redLast]
    expect(await Promise.all(hues)).toEqual([expected, expected])
  })

  test.each(['0', '161', '1280.0', '', 'x'])('of width %p is refused', async (w) => {
    const { body } = await upload(service, ada, jpeg, { type: 'image/jpeg' })
    const answer = await thumbnail(body, w)
    const { error } = (await answer.json()) as { error: { details: object } }
    expect([answer.status, Object.keys(error.details)]).toEqual([400, ['w']])
  })

  test('of a text is refused, of a HEIC it is the file', async () => {
    const { body: text } = await upload(service, ada, 'hello', { type: 'text/plain' })
    expect((await thumbnail(text, 160)).status).toBe(400)
    const heic = Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic')
    const { body } = await upload(service, ada, heic, { type: 'image/heic' })
    const answer = await thumbnail(body, 160)
    expect([answer.status, Buffer.from(await answer.bytes())]).toEqual([200, heic])
  })
})

testAtLength.skipIf(!tools.exiftool)(
  'exiftool finds nothing of place, device or time in what is stored',
  async () => {
    using directory = temporaryDirectory()
    const files = { 'a.jpg': jpeg, 'b.png': pngOf(8, 40, 20), 'c.webp': webp, 'd.gif': gif() }
    const paths = Object.keys(files).map((name) => join(directory.path, name))
    for (const [n, bytes] of Object.values(files).entries()) await Bun.write(paths[n] ?? '', bytes)
    const tags =
      '-Make=SECRET -Model=SECRET -DateTimeOriginal=2021:02:03-04:05:06 -GPSLatitude=52.5 -GPSLatitudeRef=N -XMP:Creator=SECRET -IPTC:City=SECRET -Comment=SECRET -Orientation#=6'
    const run = (...args: string[]) =>
      Bun.spawnSync([tools.exiftool ?? '', ...args, ...paths], {
        stderr: 'ignore',
      }).stdout.toString()
    run('-q', '-overwrite_original', ...tags.split(' '))
    expect(run('-a', '-s', '-u').match(/SECRET/g)?.length).toBeGreaterThan(8)
    for (const path of paths) {
      const { body } = await upload(service, ada, readFileSync(path), { name: path })
      await Bun.write(path, storedBytes(body.id))
      expect(storedBytes(body.id).toString('latin1')).not.toMatch(/SECRET|2021/)
    }
    const found = run('-a', '-s', '-u', '-G1', '-x', 'System:all')
    expect(found).not.toMatch(/SECRET|2021|GPS|XMP|IPTC|Comment/)
    expect(found.match(/Orientation +: Rotate 90 CW/g)?.length).toBe(3)
    expect(readdirSync(directory.path)).toHaveLength(4)
  },
)
