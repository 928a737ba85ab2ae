import { afterAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchFile, png, upload } from './support/files.ts'
import { startService, type TestService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

// What people upload, and what comes back.

const publicUrl = 'https://chat.example.com'
const service = await startService({
  listen: true,
  environment: { PUBLIC_URL: publicUrl, FILES_MAX_MB: '1' },
})
afterAll(() => service[Symbol.asyncDispose]())
const ada = await service.register('ada')
const filesIn = ({ directory }: TestService) => readdirSync(join(directory, 'files'))
const byteOf = (n: number) => n % 251

describe('an upload', () => {
  test('is answered with the fields of a file message, and its bytes lie in the data directory', async () => {
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
  ])('called %p of type %p becomes %s of %s', async (name, type, file_name, file_type) => {
    const { body } = await upload(service, ada, 'x', { ...(name !== undefined && { name }), type })
    expect(body).toMatchObject({ file_name, file_type, file_size: 1 })
    expect((await fetchFile(service, body.file_url)).status).toBe(200)
  })

  test.each([
    ['a name with a line break', { name: 'a\nb' }, 'file_name'],
    ['a name that turns round', { name: 'exe.\u202egnp' }, 'file_name'],
    ['a name of 256 characters', { name: 'x'.repeat(256) }, 'file_name'],
    ['a type that is none', { type: 'image' }, 'file_type'],
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

  test('takes the longest name, whose address a message takes', async () => {
    const { body } = await upload(service, ada, 'x', { name: '\u{1F600}'.repeat(255) })
    expect([...body.file_name].length).toBe(255)
    expect(body.file_url.length).toBeLessThan(2_048)
    expect((await fetchFile(service, body.file_url)).status).toBe(200)
  })

  test('comes as a form as well', async () => {
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
    ['of nothing', 'multipart/form-data; boundary=x', '', 'file'],
  ])('in a form %s is refused and leaves nothing', async (_, type, text, field) => {
    const before = filesIn(service)
    const { status, body } = await post(text, type)
    expect([status, Object.keys(body.error.details)]).toEqual([400, [field]])
    await waitFor(() => filesIn(service).every((file) => before.includes(file)))
  })
})
