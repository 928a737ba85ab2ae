import { afterAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createDiskStorage } from '../src/files/disk.ts'
import type { FileStorage } from '../src/files/storage.ts'
import { PermanentFailure } from '../src/lib/errors.ts'
import { createTestClock } from './support/clock.ts'
import { temporaryDirectory } from './support/directory.ts'
import { fetchFile, filesIn, png, upload } from './support/files.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const publicUrl = 'https://chat.example.com'
const service = await startService({
  listen: true,
  environment: { PUBLIC_URL: publicUrl, FILES_MAX_MB: '1' },
})
afterAll(() => service[Symbol.asyncDispose]())
const ada = await service.register('ada')
const byteOf = (n: number) => n % 251

const filePart = '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nb\r\n'

describe('an upload', () => {
  test.each([
    [1, 300],
    [13, 5_000],
    [1_000, 200_000],
    [65_536, 300_000],
  ])('as a form in pieces of %p bytes is complete', async (length, size) => {
    const bytes = Buffer.from(Array.from({ length: size }, (_, n) => (n * 7 + (n >> 8)) & 255))
    const [start, end] = [
      '--x\r\ncontent-disposition: form-data; name="file"\r\n\r\n',
      '\r\n--x--\r\n',
    ]
    const form = Buffer.concat([Buffer.from(start), bytes, Buffer.from(end)])
    const pieces = Array.from(
      { length: Math.ceil(form.length / length) },
      (_, n) => new Uint8Array(form.subarray(n * length, (n + 1) * length)),
    )
    const body = new ReadableStream({
      pull(controller) {
        const piece = pieces.shift()
        if (piece) controller.enqueue(piece)
        else controller.close()
      },
    })
    const type = 'multipart/form-data; boundary=x'
    const sent = await upload(service, ada, body, { type })
    expect([sent.status, sent.body.file_size]).toEqual([201, size])
    expect(readFileSync(join(service.directory, 'files', sent.body.id)).equals(bytes)).toBe(true)
  })

  test('of a fast sender is refused while sixteen others wait for the disk, that of a slow one is not', async () => {
    const disk = Promise.withResolvers<void>()
    let waiting = 0
    const fileStorage: FileStorage = {
      async write(_, bytes) {
        for await (const _ of bytes) {
          waiting++
          await disk.promise
        }
      },
      read: async () => undefined,
      delete: async () => {},
    }
    await using slow = await startService({ fileStorage })
    const eve = await slow.register()
    // In one piece, as if the runtime had buffered it.
    const send = (bytes: number) => {
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array(bytes))
          controller.close()
        },
      })
      return upload(slow, eve, body)
    }
    const sent = Array.from({ length: 16 }, () => send(400_000))
    await waitFor(() => waiting === 16, 'all of them')
    const refused = await send(400_000)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    sent.push(send(1_000))
    disk.resolve()
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(Array(17).fill(201))
  })

  test('returns the fields of a file message, and its bytes are in the data directory', async () => {
    const { status, body } = await upload(service, ada, png, {
      name: 'Häuschen 1.png',
      type: 'image/png',
    })
    expect([status, body]).toEqual([
      201,
      {
        id: expect.stringMatching(/^[\w-]{43}$/),
        file_url: `${publicUrl}/v1/files/${body.id}/H%C3%A4uschen%201.png`,
        file_name: 'Häuschen 1.png',
        file_size: png.byteLength,
        file_type: 'image/png',
        width: 1,
        height: 1,
        placeholder: expect.stringMatching(/^[\w+/=]{20,}$/),
      },
    ])
    expect(readFileSync(join(service.directory, 'files', body.id))).toEqual(png)
    expect(new Uint8Array(await (await fetchFile(service, body.file_url)).arrayBuffer())).toEqual(
      new Uint8Array(png),
    )
  })

  test.each([
    [undefined, '', 'file', 'application/octet-stream'],
    ['', 'Text/Plain; charset=utf-8', 'file', 'text/plain'],
    ['/home/ada/notes.txt', 'text/plain', 'notes.txt', 'text/plain'],
    ['C:\\Temp\\a b.txt', 'text/plain', 'a b.txt', 'text/plain'],
    ['..', 'text/plain', 'file', 'text/plain'],
  ])('named %p of type %p becomes %s of %s', async (name, type, file_name, file_type) => {
    const { body } = await upload(service, ada, 'x', { ...(name !== undefined && { name }), type })
    expect(body).toMatchObject({ file_name, file_type, file_size: 1 })
    expect((await fetchFile(service, body.file_url)).status).toBe(200)
  })

  test.each([
    ['a name with a line break', { name: 'a\nb' }, 'file_name'],
    ['a name with a change of direction', { name: 'exe.\u202egnp' }, 'file_name'],
    ['a name of 256 characters', { name: 'x'.repeat(256) }, 'file_name'],
    ['an invalid type', { type: 'image' }, 'file_type'],
    ['a long type', { type: `image/${'x'.repeat(122)}` }, 'file_type'],
    ['a name that is not encoded', { headers: { 'x-file-name': '%E4' } }, 'X-File-Name'],
  ])('with %s is refused', async (_, sent, field) => {
    const before = filesIn(service)
    const { status, body } = await upload(service, ada, 'x', sent)
    expect([status, Object.keys(body.error.details)]).toEqual([400, [field]])
    await waitFor(() => filesIn(service).every((file) => before.includes(file)))
  })

  test('may be empty', async () => {
    const { status, body } = await upload(service, ada, '', { name: 'empty.txt' })
    expect([status, body.file_size]).toEqual([201, 0])
    const answer = await fetchFile(service, body.file_url)
    expect([answer.status, await answer.text()]).toEqual([200, ''])
  })

  test('accepts the longest name, and a message accepts its URL', async () => {
    const { body } = await upload(service, ada, 'x', { name: '\u{1F600}'.repeat(255) })
    expect([...body.file_name].length).toBe(255)
    expect(body.file_url.length).toBeLessThan(2_048)
    expect((await fetchFile(service, body.file_url)).status).toBe(200)
  })

  test('may also be a form', async () => {
    const form = new FormData()
    form.append('note', 'x')
    form.append(
      'file',
      new File([new Uint8Array(200_000).map((_, n) => byteOf(n))], 'Früh.bin', { type: 'image/x' }),
    )
    form.append('later', 'y')
    const { status, body } = await post(form)
    expect([status, body]).toMatchObject([
      201,
      { file_name: 'Früh.bin', file_size: 200_000, file_type: 'image/x' },
    ])
    const bytes = await (await fetchFile(service, body.file_url)).bytes()
    expect(bytes.every((byte, n) => byte === byteOf(n))).toBe(true)
  })

  // biome-ignore lint/suspicious/noExplicitAny: answers are judged by the assertions on them
  async function post(body: FormData | string, type?: string): Promise<any> {
    const answer = await service.request('/v1/files', {
      method: 'POST',
      headers: { authorization: `Bearer ${ada.token}`, ...(type && { 'content-type': type }) },
      body,
    })
    return { status: answer.status, body: await answer.json() }
  }

  test.each([
    [
      'without a file',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',
      'file',
    ],
    [
      'without an end',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nb',
      'body',
    ],
    ['without a boundary', 'multipart/form-data', 'x', 'body'],
    ['33 parts', 'multipart/form-data; boundary=x', `${filePart.repeat(33)}--x--`, 'body'],
    [
      'a head of 9 KB',
      'multipart/form-data; boundary=x',
      `${filePart.replace('form-data;', `form-data;${' '.repeat(9_000)}`)}--x--`,
      'file',
    ],
    ['an end before the file', 'multipart/form-data; boundary=x', `--x--\r\n${filePart}`, 'file'],
    ['of nothing', 'multipart/form-data; boundary=x', '', 'file'],
  ])('as a form with %s is refused and leaves nothing', async (_, type, text, field) => {
    const before = filesIn(service)
    const { status, body } = await post(text, type)
    expect([status, Object.keys(body.error.details)]).toEqual([400, [field]])
    await waitFor(() => filesIn(service).every((file) => before.includes(file)))
  })
})

test.each([
  ['a second file', 'content-disposition: form-data; name="file"; filename="b"'],
  ['a part without a name', 'content-type: text/plain'],
])('a form with a file and %s in one piece is stored', async (_, head) => {
  const part = 'content-disposition: form-data; name="file"; filename="a"\r\n\r\nhello'
  const text = `--x\r\n${part}\r\n--x\r\n${head}\r\n\r\n${'y'.repeat(200_000)}\r\n--x--\r\n`
  const sent = await upload(service, ada, text, { type: 'multipart/form-data; boundary=x' })
  expect([sent.status, sent.body.file_name, sent.body.file_size]).toEqual([201, 'a', 5])
})

describe('a file', () => {
  const shown = async (bytes: Uint8Array | string, type: string, name = 'a.bin') => {
    const { body } = await upload(service, ada, bytes, { name, type })
    return fetchFile(service, body.file_url)
  }

  test('needs no token, has no rate limit, and is cacheable forever', async () => {
    const answer = await shown(png, 'image/png', 'Früh "1".png')
    const { headers } = answer
    expect([answer.status, headers.get('content-type')]).toEqual([200, 'image/png'])
    expect(headers.get('content-disposition')).toBe(
      `inline; filename="Fr?h \\"1\\".png"; filename*=UTF-8''Fr%C3%BCh%20%221%22.png`,
    )
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-length': String(png.byteLength),
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringMatching(/^default-src 'none';.*; sandbox$/),
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      'accept-ranges': 'bytes',
      etag: expect.stringMatching(/^"[\w-]{16}"$/),
    })
    expect(headers.get('x-request-id')).toHaveLength(26)
    expect(headers.has('x-ratelimit-limit')).toBe(false)
  })

  const wav = Buffer.concat([Buffer.from('RIFF\x24\0\0\0WAVEfmt '), Buffer.alloc(40)])
  const mp4 = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypisom\0\0\0\0isommp42')])

  test.each([
    ['a picture', png, 'image/png', 'inline', 'image/png'],
    [
      'a picture of an older name',
      Buffer.from('ffd8ffe000104a46494600010100000100010000ffd9', 'hex'),
      'image/jpg',
      'inline',
      'image/jpg',
    ],
    ['sound', wav, 'audio/wav', 'inline', 'audio/wav'],
    ['sound in the container of a film', mp4, 'audio/mp4', 'inline', 'audio/mp4'],
    ['a film', mp4, 'video/mp4', 'inline', 'video/mp4'],
    ['a PDF', '%PDF-1.7\n', 'application/pdf', 'inline', 'application/pdf'],
    [
      'HTML declared as a picture',
      '<html><script>1</script>',
      'image/png',
      'attachment',
      'image/png',
    ],
    ['a picture of another type', png, 'image/jpeg', 'attachment', 'image/jpeg'],
    ['a picture declared as a PDF', png, 'application/pdf', 'attachment', 'application/pdf'],
    [
      'SVG',
      '<svg xmlns="http://www.w3.org/2000/svg"/>',
      'image/svg+xml',
      'attachment',
      'application/octet-stream',
    ],
    [
      'SVG with a head',
      '<?xml version="1.0"?><svg/>',
      'image/svg+xml',
      'attachment',
      'application/octet-stream',
    ],
    ['a page', '<!doctype html>', 'text/html', 'attachment', 'application/octet-stream'],
    ['XHTML', '<html/>', 'application/xhtml+xml', 'attachment', 'application/octet-stream'],
    ['a script', 'alert(1)', 'text/javascript', 'attachment', 'application/octet-stream'],
    ['a style sheet', '*{}', 'text/css', 'attachment', 'application/octet-stream'],
    ['a mail archive', 'x', 'multipart/related', 'attachment', 'application/octet-stream'],
    ['text', 'hello', 'text/plain', 'attachment', 'text/plain'],
    [
      'an office document',
      'x',
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
      'attachment',
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    ],
    ['an archive', 'PK\x03\x04', 'application/zip', 'attachment', 'application/zip'],
  ])(
    'that is %s is displayed or downloaded accordingly',
    async (_, bytes, type, ...[disposition, shownType]) => {
      const { headers } = await shown(bytes, type)
      const [way] = headers.get('content-disposition')?.split(';') ?? []
      expect([way, headers.get('content-type')]).toEqual([disposition, shownType])
    },
  )

  const text = '0123456789'
  const whole = { status: 200, text, range: null }
  const refused = { status: 416, range: 'bytes */10' }
  test.each([
    [{ range: 'bytes=2-4' }, { status: 206, text: '234', range: 'bytes 2-4/10' }],
    [{ range: 'bytes=7-' }, { status: 206, text: '789', range: 'bytes 7-9/10' }],
    [{ range: 'bytes=7-99' }, { status: 206, text: '789', range: 'bytes 7-9/10' }],
    [{ range: 'bytes=-3' }, { status: 206, text: '789', range: 'bytes 7-9/10' }],
    [{ range: 'bytes=-99' }, { status: 206, text, range: 'bytes 0-9/10' }],
    [{ range: 'bytes=10-' }, refused],
    [{ range: 'bytes=-0' }, refused],
    [{ range: 'bytes=4-2' }, whole],
    [{ range: 'bytes=0-1,4-5' }, whole],
    [{ range: 'lines=1-2' }, whole],
    [{ range: 'bytes=2-4', 'if-range': '"other"' }, whole],
    [
      { range: 'bytes=2-4', 'if-range': 'ETAG' },
      { status: 206, text: '234', range: 'bytes 2-4/10' },
    ],
    [{ 'if-none-match': '"other"' }, whole],
    [{ 'if-none-match': '"other", W/ETAG' }, { status: 304, text: '', range: null }],
    [
      { 'if-none-match': '*', range: 'bytes=99-' },
      { status: 304, text: '', range: null },
    ],
  ])('requested with %j is answered accordingly', async (sent, expected) => {
    const { body } = await upload(service, ada, text, { type: 'text/plain' })
    const etag = `"${body.id.slice(0, 16)}"`
    const headers = Object.fromEntries(
      Object.entries(sent).map(([name, value]) => [name, value.replace('ETAG', etag)]),
    )
    const answer = await fetchFile(service, body.file_url, { headers })
    const got = {
      status: answer.status,
      range: answer.headers.get('content-range'),
      text: await answer.text(),
    }
    expect(got).toMatchObject(expected)
    if (got.status === 416) {
      expect(JSON.parse(got.text).error.code).toBe('validation_error')
      expect(answer.headers.get('cache-control')).toBe('no-store')
    } else expect(answer.headers.get('etag')).toBe(etag)
  })

  test('answers HEAD without reading the bytes', async () => {
    const { body } = await upload(service, ada, text, { type: 'text/plain' })
    const answer = await fetchFile(service, body.file_url, {
      method: 'HEAD',
      headers: { range: 'bytes=0-1' },
    })
    expect([answer.status, answer.headers.get('content-length'), await answer.text()]).toEqual([
      200,
      '10',
      '',
    ])
  })

  test.each(['x/a', `${'A'.repeat(43)}/a`, '%ZZ/a', '%/a', "x/'--"])(
    'at %s is not found',
    async (path) => {
      const answer = await service.request(`/v1/files/${path}`)
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([404, 'no-store'])
    },
  )

  test('without its bytes is not found', async () => {
    const { body } = await upload(service, ada, text)
    rmSync(join(service.directory, 'files', body.id))
    expect((await fetchFile(service, body.file_url)).status).toBe(404)
  })

  test('that is there and cannot be opened is a 503', async () => {
    const { body } = await upload(service, ada, text)
    const path = join(service.directory, 'files', body.id)
    rmSync(path)
    symlinkSync(path, path) // cannot be opened by root either
    const { status, headers } = await fetchFile(service, body.file_url)
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
  })
})

describe('an upload that is too large', () => {
  const large = new Uint8Array(1_000_001)
  const details = { body: 'must not be larger than 1 MB' }
  const streamed = (bytes: number) =>
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes; at += 50_000)
          controller.enqueue(large.slice(at, Math.min(bytes, at + 50_000)))
        controller.close()
      },
    })

  test.each([
    ['declared', () => large],
    ['streamed', () => streamed(1_000_001)],
  ])('is refused with its own limit, %s', async (_, bytes) => {
    const before = filesIn(service)
    const { status, body } = await upload(service, ada, bytes())
    expect([status, body.error]).toMatchObject([413, { code: 'validation_error', details }])
    await waitFor(() => filesIn(service).every((file) => before.includes(file)))
  })

  test('is refused in a form, too', async () => {
    const form = new FormData()
    form.append('file', new File([large], 'a'))
    const headers = { authorization: `Bearer ${ada.token}` }
    const answer = await service.request('/v1/files', { method: 'POST', headers, body: form })
    expect([answer.status, ((await answer.json()) as { error: object }).error]).toMatchObject([
      413,
      { details },
    ])
  })

  test('is refused in a streamed form also if only its other parts are too large', async () => {
    const head = '--x\r\ncontent-disposition: form-data; name="note"\r\n\r\n'
    const body = new ReadableStream({
      start(controller) {
        for (const part of [head, large, large]) controller.enqueue(part)
        controller.close()
      },
    })
    const headers = {
      authorization: `Bearer ${ada.token}`,
      'content-type': 'multipart/form-data; boundary=x',
    }
    const answer = await service.request('/v1/files', { method: 'POST', headers, body })
    expect([answer.status, ((await answer.json()) as { error: object }).error]).toMatchObject([
      413,
      { details },
    ])
  })

  test('is refused before any other check, and the largest is accepted', async () => {
    const stranger = await upload(service, { token: 'x' }, new Uint8Array(1_100_000))
    expect(stranger.status).toBe(413)
    expect((await upload(service, { token: 'x' }, 'x')).status).toBe(401)
    for (const bytes of [large.slice(1), streamed(1_000_000)]) {
      expect((await upload(service, ada, bytes)).status).toBe(201)
    }
  })

  test('on any other route is one above 64 KiB', async () => {
    const answer = await service.call('PATCH', '/v1/users/me', {
      token: ada.token,
      body: { x: 'x'.repeat(65_536) },
    })
    expect([answer.status, answer.body.error.details]).toEqual([
      413,
      { body: 'must not be larger than 64 KiB' },
    ])
  })
})

describe('the storage quota of a user', () => {
  const megabyte = new Uint8Array(1_000_000)

  test('ends with 403, counts uploads in progress, and grows again with removals', async () => {
    const clock = createTestClock()
    await using small = await startService({
      clock,
      environment: { FILES_MAX_MB: '1', FILES_QUOTA_MB: '2' },
    })
    const person = await small.register()
    const full = { status: 403, reason: 'quota_exceeded' }
    const send = async (bytes: string | Uint8Array | ReadableStream, headers = {}) => {
      const answer = await upload(small, person, bytes, { headers })
      return { status: answer.status, reason: answer.headers.get('x-error-reason') }
    }
    let go = () => {}
    const slow = new ReadableStream({
      start(controller) {
        controller.enqueue(megabyte.slice(10))
        go = () => {
          controller.enqueue(megabyte.slice(0, 10))
          controller.close()
        }
      },
    })
    const arriving = send(slow, { 'content-length': '1000000' })
    await waitFor(() => filesIn(small).length === 1)
    const declared = { 'content-length': '1000000' }
    const both = await Promise.all([send(megabyte, declared), send(megabyte, declared)])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 403])
    expect(await send('x', { 'content-length': '1' })).toEqual(full)
    go()
    expect((await arriving).status).toBe(201)
    expect(await send('x')).toEqual(full)
    // Otherwise a user could have any number of empty files.
    expect(await send('')).toEqual(full)
    expect((await send(megabyte.slice(0, 1))).status).toBe(403)
    clock.advance(25 * 3_600_000)
    await waitFor(() => filesIn(small).length === 0)
    Object.assign(person, await small.login(person.email))
    expect((await send('x')).status).toBe(201)
  })

  test('ends within a file of undeclared size', async () => {
    await using small = await startService({
      environment: { FILES_MAX_MB: '2', FILES_QUOTA_MB: '1' },
    })
    const person = await small.register()
    const answer = await upload(small, person, new Uint8Array(1_000_001))
    expect([answer.status, answer.headers.get('x-error-reason')]).toEqual([403, 'quota_exceeded'])
    expect((await upload(small, person, megabyte)).status).toBe(201)
    expect((await upload(small, await small.register(), megabyte)).status).toBe(201)
  })
})

describe('a slow upload', () => {
  /** A body whose second half is sent later. */
  function twoPieces(first = 'beginning', second = ', end') {
    let end = () => {}
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from(first))
        end = () => {
          controller.enqueue(Buffer.from(second))
          controller.close()
        }
      },
    })
    return { body, end: () => end() }
  }

  test('is refused when the session has ended meanwhile', async () => {
    await using own = await startService()
    const person = await own.register()
    const { body, end } = twoPieces()
    const answer = upload(own, person, body)
    await waitFor(() => filesIn(own).length === 1)
    const logout = { refresh_token: person.refreshToken }
    await own.call('POST', '/v1/auth/logout', { token: person.token, body: logout })
    end()
    expect((await answer).status).toBe(401)
    await waitFor(() => filesIn(own).length === 0)
  })

  test('whose owner leaves meanwhile is refused, which is no failure of the disk', async () => {
    await using own = await startService()
    const person = await own.register()
    const { body, end } = twoPieces()
    const answer = upload(own, person, body)
    await waitFor(() => filesIn(own).length === 1)
    const leaving = { token: person.token, body: { password: 'correct horse' } }
    expect((await own.call('DELETE', '/v1/users/me', leaving)).status).toBe(204)
    await waitFor(() => filesIn(own).length === 0)
    end()
    expect((await answer).status).toBe(401)
    expect(own.log()).not.toContain('cannot be stored')
  })

  test('is dropped after a day, also one interrupted by a crash', async () => {
    const clock = createTestClock()
    await using own = await startService({ clock })
    const person = await own.register()
    const { body, end } = twoPieces()
    const answer = upload(own, person, body)
    await waitFor(() => filesIn(own).length === 1)
    expect(filesIn(own)[0]).toEndWith('.part')
    clock.advance(25 * 3_600_000)
    await waitFor(() => filesIn(own).length === 0)
    end()
    expect((await answer).status).toBe(503)
    const rows = own.sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM files')
    expect(rows.get()?.n).toBe(0)
    expect(filesIn(own)).toEqual([])
  })

  // A kill after the job that removes the bytes would leave what comes then for ever.
  test('whose owner has left before its first byte stores none', async () => {
    const stored: Uint8Array[] = []
    const fileStorage: FileStorage = {
      async write(_key, bytes) {
        for await (const chunk of bytes) stored.push(chunk)
      },
      read: async () => undefined,
      delete: async () => {},
    }
    await using own = await startService({ fileStorage })
    const person = await own.register()
    const part = (name: string) =>
      `--x\r\ncontent-disposition: form-data; name=${name}\r\n\r\n${name}`
    const { body, end } = twoPieces(part('note'), `\r\n${part('file')}\r\n--x--\r\n`)
    const answer = upload(own, person, body, { type: 'multipart/form-data; boundary=x' })
    const find = (query: string) => own.sqlite.query(query).get()
    await waitFor(() => find('SELECT 1 FROM files'))
    const leaving = { token: person.token, body: { password: 'correct horse' } }
    expect((await own.call('DELETE', '/v1/users/me', leaving)).status).toBe(204)
    await waitFor(
      () =>
        !find('SELECT 1 FROM files') && !find("SELECT 1 FROM outbox WHERE kind = 'file_removal'"),
    )
    end()
    expect((await answer).status).toBe(401)
    expect(stored).toEqual([])
  })

  test('is refused when its length differs from the declared one', async () => {
    await using own = await startService()
    const person = await own.register()
    for (const said of ['4', '6']) {
      const { status } = await upload(own, person, 'hello', { headers: { 'content-length': said } })
      expect([said, status]).toEqual([said, 400])
    }
    await waitFor(() => filesIn(own).length === 0)
  })

  test('that fails while the database cannot note it leaves no bytes, which may fill the disk', async () => {
    await using own = await startService()
    const bob = await own.register()
    own.sqlite.run(
      "CREATE TRIGGER full BEFORE DELETE ON files BEGIN SELECT raise(ABORT, 'no room'); END",
    )
    const type = 'multipart/form-data; boundary=x'
    const torn = '--x\r\ncontent-disposition: form-data; name="file"\r\n\r\ntorn'
    expect((await upload(own, bob, torn, { type })).status).toBe(400)
    expect(filesIn(own)).toEqual([])
  })

  test('cannot be read or used before it is complete', async () => {
    await using own = await startService()
    const { a, conversationId } = await own.pair()
    const { body, end } = twoPieces()
    const answer = upload(own, a, body)
    const part = await waitFor(() => filesIn(own)[0])
    const id = part.replace('.part', '')
    expect((await own.request(`/v1/files/${id}/file`)).status).toBe(404)
    const file = { type: 'file', body: '', file_url: `http://localhost:0/v1/files/${id}/file` }
    const path = `/v1/chat/conversations/${conversationId}/messages`
    expect((await own.call('POST', path, { token: a.token, body: file })).status).toBe(400)
    end()
    expect((await answer).body.id).toBe(id)
    expect((await own.call('POST', path, { token: a.token, body: file })).status).toBe(201)
  })
})

test('own files are listed, newest first, with the room that they take', async () => {
  const clock = createTestClock()
  await using own = await startService({ clock })
  const [bob, eve] = [await own.register(), await own.register()]
  const one = await upload(own, bob, 'one')
  const two = await upload(own, bob, 'x'.repeat(100_000))
  // Two files of one millisecond are ordered by their random ids.
  clock.advance(1)
  const three = await upload(own, bob, 'three')
  await upload(own, eve, 'of another')
  await own.call('DELETE', `/v1/files/${one.body.id}`, { token: bob.token })
  const list = (query = '') => own.call('GET', `/v1/files${query}`, { token: bob.token })
  const created_at = expect.any(String)
  const room = { used: 100_000 + 16_384, quota: 500_000_000 }
  const data = [three, two].map(({ body }) => ({ ...body, created_at }))
  const pagination = { page: 1, per_page: 20, total: 2, total_pages: 1 }
  expect((await list()).body).toEqual({ success: true, data, pagination, ...room })
  const first = (await list('?limit=1')).body
  expect([first.data, first.used]).toEqual([[data[0]], room.used])
  const { body } = await list(`?limit=1&cursor=${first.pagination.cursor}`)
  expect([body.data, body.pagination.has_more]).toEqual([[data[1]], false])
})

test('a page of another origin may upload with a name, and display the file', async () => {
  const origin = 'https://app.example.com'
  await using own = await startService({ environment: { CORS_ORIGINS: origin } })
  const asking = { origin, 'access-control-request-method': 'POST' }
  const preflight = await own.request('/v1/files', { method: 'OPTIONS', headers: asking })
  expect(preflight.headers.get('access-control-allow-headers')).toContain('X-File-Name')
  const person = await own.register()
  const sent = await upload(own, person, png, { name: 'a.png', type: 'image/png' })
  const headers = { origin: 'https://elsewhere.example' }
  const answer = await fetchFile(own, sent.body.file_url, { headers })
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  expect(answer.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
})

test('bytes are deleted eventually, however long the storage was away', async () => {
  const clock = createTestClock()
  let [tries, isAway] = [0, true]
  const fileStorage: FileStorage = {
    write: async (_, bytes) => void (await Array.fromAsync(bytes)),
    read: async () => undefined,
    delete: async () => {
      tries++
      if (isAway) throw new Error('the storage is away')
    },
  }
  await using own = await startService({ clock, fileStorage })
  const bob = await own.register()
  const { body } = await upload(own, bob, 'x')
  await own.call('DELETE', `/v1/files/${body.id}`, { token: bob.token })
  const isTriedAgain = async (before: number) => {
    clock.advance(3_600_000)
    return tries > before
  }
  for (let n = 0; n < 20; n++) await waitFor(() => isTriedAgain(n), `try ${n + 1}`)
  isAway = false
  const left = own.sqlite.query("SELECT count(*) FROM outbox WHERE kind = 'file_removal'")
  const isDone = async () => (await isTriedAgain(0)) && left.values()[0]?.[0] === 0
  await waitFor(isDone, 'the job to be done')
})

test.each(['../hostline.db', '..', 'x'.repeat(42), `${'x'.repeat(42)}/`])(
  'a name that is no file of ours is not found: %p',
  async (name) => {
    using directory = temporaryDirectory()
    const disk = createDiskStorage(join(directory.path, 'files'))
    const bytes = new Blob(['x']).stream()
    for (const use of [disk.read(name, 0, 1), disk.delete(name), disk.write(name, bytes)]) {
      await expect(use).rejects.toThrow(PermanentFailure)
    }
    expect(readdirSync(directory.path, { recursive: true })).toEqual(['files'])
  },
)

test('each piece of an upload renews the idle timeout, so that a slow one does not end', async () => {
  const { server } = service.app
  if (!server) throw new Error('the service does not listen')
  const renewed: number[] = []
  const { timeout } = server
  server.timeout = (request, seconds) => {
    renewed.push(seconds)
    timeout.call(server, request, seconds)
  }
  const form = new FormData()
  form.append('file', new Blob(['in a form']), 'a.txt')
  const headers = { authorization: `Bearer ${ada.token}` }
  for (const body of ['bare', form]) {
    renewed.length = 0
    const sent = { method: 'POST', headers, body }
    expect((await service.request('/v1/files', sent)).status).toBe(201)
    expect(renewed[0]).toBe(30)
  }
  server.timeout = timeout
})
