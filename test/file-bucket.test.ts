import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../src/config.ts'
import { createS3Storage, type S3Storage, startMovingFiles } from '../src/files/s3.ts'
import type { FileStorage } from '../src/files/storage.ts'
import { createLog } from '../src/lib/log.ts'
import { openBucket } from '../src/outside/bucket.ts'
import { startBucket } from './support/bucket.ts'
import { createTestClock } from './support/clock.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { fetchFile, filesIn, png, upload } from './support/files.ts'
import { startObjectStore } from './support/object-store.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const bucket = await startBucket()
const clock = createTestClock()
const service = await startService({
  clock,
  listen: true,
  environment: { FILES_S3_URL: bucket.url },
})
const ada = await service.register()
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await bucket[Symbol.asyncDispose]()
})

test('a file is stored in the bucket only, and served from there', async () => {
  const { status, body } = await upload(service, ada, png, { name: 'a.png', type: 'image/png' })
  expect([status, bucket.keys(), filesIn(service)]).toEqual([201, [`media/people/${body.id}`], []])
  const answer = await fetchFile(service, body.file_url)
  expect(answer.headers.get('content-type')).toBe('image/png')
  expect(answer.headers.get('content-disposition')).toStartWith('inline')
  expect(Buffer.from(await answer.bytes())).toEqual(png)
  clock.advance(25 * 3_600_000)
  await waitFor(() => bucket.keys().length === 0)
  expect((await fetchFile(service, body.file_url)).status).toBe(404)
  Object.assign(ada, await service.login(ada.email))
})

test('a large file is stored and served in parts', async () => {
  const bytes = new Uint8Array(12_000_000).map((_, n) => n % 251)
  const { body } = await upload(service, ada, bytes)
  expect(body.file_size).toBe(bytes.length)
  const whole = await (await fetchFile(service, body.file_url)).bytes()
  expect(Buffer.compare(whole, bytes)).toBe(0)
  const headers = { range: 'bytes=1048570-3000000' }
  const part = await fetchFile(service, body.file_url, { headers })
  expect(part.headers.get('content-range')).toBe('bytes 1048570-3000000/12000000')
  expect(Buffer.compare(await part.bytes(), bytes.subarray(1_048_570, 3_000_001))).toBe(0)
  const head = await fetchFile(service, body.file_url, { method: 'HEAD' })
  expect(head.headers.get('content-length')).toBe('12000000')
})

test('a file that is no image is removed by one request', async () => {
  await using store = await startObjectStore()
  const clock = createTestClock()
  await using own = await startService({ clock, environment: { FILES_S3_URL: store.url } })
  const ben = await own.register()
  const ids: string[] = []
  for (const text of ['unused', 'removed']) ids.push((await upload(own, ben, text)).body.id)
  await own.call('DELETE', `/v1/files/${ids[1]}`, { token: ben.token })
  await waitFor(() => store.keys().length === 1)
  clock.advance(25 * 3_600_000)
  await waitFor(() => store.keys().length === 0)
  await waitFor(() => own.sqlite.query('SELECT 1 FROM outbox').get() === null)
  expect(store.counts).toMatchObject({ 'DELETE 204': 2 })
})

test('a thumbnail is stored in the bucket, and served from there by one request', async () => {
  await using store = await startObjectStore()
  await using own = await startService({ environment: { FILES_S3_URL: store.url } })
  const { body } = await upload(own, await own.register(), png, { type: 'image/png' })
  const path = `${new URL(body.file_url).pathname}?w=160`
  const made = await (await own.request(path)).bytes()
  store.resetCounts()
  const known = await (await own.request(path)).bytes()
  expect(Buffer.compare(known, made)).toBe(0)
  expect(store.counts).toEqual({ 'GET 206': 1 })
})

test('an empty file is served, and a file with a missing object is not found', async () => {
  const { body } = await upload(service, ada, '')
  expect(await (await fetchFile(service, body.file_url)).text()).toBe('')
  const other = await upload(service, ada, 'x')
  await new Bun.S3Client({
    endpoint: `http://127.0.0.1:${bucket.port}`,
    accessKeyId: 'S3RVER',
    secretAccessKey: 'S3RVER',
    bucket: 'media',
  }).delete(`people/${other.body.id}`)
  expect((await fetchFile(service, other.body.file_url)).status).toBe(404)
})

test('a file that is removed while it is sent breaks off, so that nobody waits for the rest', async () => {
  await using store = await startObjectStore()
  const { bucket: ofStore } = readConfig({ FILES_S3_URL: store.url }, false).files
  const key = 'k'.repeat(43)
  store.put(key, new Uint8Array(1_500_000))
  const nothing = { read: async () => undefined } as unknown as FileStorage
  const bytes = ofStore && (await createS3Storage(ofStore, nothing).read(key, 0, 1_500_000))
  store.delete(key)
  const sent = Array.fromAsync(bytes as AsyncIterable<Uint8Array>)
  expect(sent).rejects.toThrow('the bucket has less of a file than was stored')
})

test.each([0, 1_000])('a file of which the bucket has %d bytes is no whole one', async (left) => {
  await using store = await startObjectStore()
  await using own = await startService({ listen: true, environment: { FILES_S3_URL: store.url } })
  const { body } = await upload(own, await own.register(), new Uint8Array(2_000))
  store.put(body.id, new Uint8Array(left))
  expect((await fetchFile(own, body.file_url)).status).toBe(503)
})

test('one file that cannot be read keeps no other from the bucket', async () => {
  using directory = temporaryDirectory()
  for (const letter of 'ab') writeFileSync(join(directory.path, letter.repeat(43)), '')
  const taken: string[] = []
  const storage = {
    async take(key: string) {
      taken.push(key)
      if (taken.length === 1) throw new Error('EIO')
    },
    async *list() {},
  } as unknown as S3Storage
  const lines: string[] = []
  const log = createLog({
    level: 'warn',
    format: 'pretty',
    now: Date.now,
    write: (line) => lines.push(line),
  })
  const stop = startMovingFiles({ directory: directory.path, storage, isListed: () => true, log })
  await waitFor(() => lines.length > 0)
  stop()
  expect(taken).toHaveLength(2)
  expect(lines[0]).toContain('some files on the disk are not in the bucket yet')
})

test('a failing bucket is a 503, and check names the reason', async () => {
  const environment = { FILES_S3_URL: bucket.urlOf('wrong') }
  await using refused = await startService({ environment })
  const { status, headers, body } = await upload(refused, await refused.register(), 'x')
  expect([status, headers.get('retry-after'), body.error.code]).toEqual([
    503,
    '5',
    'internal_error',
  ])
  expect(refused.log()).toContain('403 SignatureDoesNotMatch')
  await waitFor(() => filesIn(refused).length === 0)
})

test.each([
  [() => bucket.url, /^ok {5}files: 127\.0\.0\.1:\d+\/media$/m],
  [() => bucket.urlOf('wrong'), /^FAILED files: .*403 SignatureDoesNotMatch/m],
  [() => bucket.url.replace(/:\d+\/media/, ':1/media'), /^FAILED files: .*ECONNREFUSED/m],
  [() => bucket.url.replace('/media/', '/nowhere/'), /^FAILED files: .*404 NoSuchBucket/m],
  [() => '', /^ok {5}files: in the data directory$/m],
])('check reports the bucket', async (url, line) => {
  const { out } = await hostline(['check'], service.directory, {
    environment: { FILES_S3_URL: url() },
  })
  expect(out).toMatch(line)
  expect(out).not.toContain('S3RVER')
  expect(bucket.keys().some((key) => key.includes('check'))).toBe(false)
})

/** A web server that answers everything with this. */
function startOther(answer: (request: Request) => Response) {
  const asked: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      asked.push(`${request.method} ${new URL(request.url).pathname}`)
      return answer(request)
    },
  })
  const url = `s3://K:S@127.0.0.1:${server.port}/b?tls=off`
  return { url, asked, [Symbol.asyncDispose]: () => server.stop(true) }
}

test.each([301, 302, 303, 307, 308])(
  'a bucket that redirects with %d is refused: the page there may answer 200 to anything',
  async (status) => {
    await using page = startOther(() => new Response('Please log in'))
    const location = page.url.replace(/^s3:..K:S@/, 'http://')
    await using other = startOther(() => Response.redirect(location, status))
    const { bucket: ofOther } = readConfig({ FILES_S3_URL: other.url }, false).files
    if (!ofOther) throw new Error('no bucket')
    const stored = openBucket(ofOther).put('key', Buffer.from('x'))
    expect(stored).rejects.toThrow(`: ${status} without a reason (PUT key)`)
    await stored.catch(() => {})
    expect([other.asked, page.asked]).toEqual([['PUT /b/key'], []])
  },
)

test.each([
  ['a web server', welcome, 'is not what is read: is it an S3 store?'],
  ['a bucket that may not be read', refusedToRead, '403 AccessDenied (GET check-'],
])('check refuses %s, where every upload would be lost', async (_, answer, reason) => {
  await using other = startOther(answer)
  const environment = { FILES_S3_URL: other.url }
  const { out } = await hostline(['check'], service.directory, { environment })
  expect(out).toMatch(/^FAILED files: .*/m)
  expect(out).toContain(reason)
  expect(other.asked.at(-1)).toStartWith('DELETE /b/check-')
})

function welcome({ method }: Request) {
  return new Response(method === 'GET' ? 'Welcome' : null)
}

function refusedToRead({ method }: Request) {
  const refusal = '<Error><Code>AccessDenied</Code></Error>'
  return method === 'GET' ? new Response(refusal, { status: 403 }) : new Response()
}

const plain = { region: 'us-east-1', prefix: '', accessKeyId: 'K', secretAccessKey: 'S' }

test.each([
  ['s3://K:S@h/b', { ...plain, endpoint: 'https://h', name: 'b' }],
  [
    's3://K:a%2Fb%2Bc@h:9000/b/p/q/?region=auto&tls=off',
    {
      accessKeyId: 'K',
      secretAccessKey: 'a/b+c',
      endpoint: 'http://h:9000',
      name: 'b',
      prefix: 'p/q',
      region: 'auto',
    },
  ],
])('FILES_S3_URL=%s is valid', (url, expected) => {
  expect(readConfig({ FILES_S3_URL: url }, false).files.bucket).toEqual(expected)
})

test.each([
  ['s3://h/b', 'such as'],
  ['s3://K:S@h', 'such as'],
  ['s3://K:S@h/', 'such as'],
  ['s3://K:a/b@h/b', 'such as'],
  ['s3://K:S@h/b?tls=no', 'no other options'],
  ['s3://K:S@h/b?path=x', 'no other options'],
  ['https://K:S@h/b', 'such as'],
])('FILES_S3_URL=%s is refused without being shown', (url, reason) => {
  const read = () => readConfig({ FILES_S3_URL: url }, false)
  expect(read).toThrow(reason)
  expect(read).not.toThrow('K:')
})
