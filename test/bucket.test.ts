import { afterAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { openBucket } from '../src/outside/bucket.ts'

// Answers that no store gives, but a proxy before it, or one that differs from S3.

let answer: (request: Request) => Response | Promise<Response>
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: (request) => answer(request),
})
afterAll(() => server.stop(true))

const settings = {
  endpoint: `http://127.0.0.1:${server.port}`,
  name: 'b',
  prefix: '',
  region: 'r',
  accessKeyId: 'A',
  secretAccessKey: 'S',
}
const bucket = openBucket(settings)
const body = Buffer.from('content')
const keysOf = (rest: string) => `<ListBucketResult>${rest}`
const failureOf = (call: Promise<unknown>) =>
  call.then(
    (found) => found,
    ({ message }) => message.replace(/^.*?: /, ''),
  )

test.each([
  ['a page for people', '<html>log in</html>'],
  ['an error', '<Error><Code>SlowDown</Code></Error>'],
  ['nothing', ''],
  ['a part', keysOf('<Contents><Key>log/1</Key></Contents><Conte')],
  ['a page that has no successor', keysOf('<IsTruncated>true</IsTruncated></ListBucketResult>')],
])('a list that is %s is no empty bucket', async (_, text) => {
  answer = () => new Response(text)
  const failure = await failureOf(Array.fromAsync(bucket.list('log/')))
  expect(failure).toBe('200 without a whole page of keys (list log/)')
})

test('a change that is answered by a page is not done', async () => {
  answer = () => new Response('<html>log in</html>')
  const changes = [bucket.put('k', body), bucket.create('k', body), bucket.delete('k')]
  expect(await Promise.all(changes.map(failureOf))).toEqual([
    '200 with a page, so nothing is done (PUT k)',
    '200 with a page, so nothing is done (PUT k)',
    '200 with a page, so nothing is done (DELETE k)',
  ])
})

test('an object is unknown only if the store says so', async () => {
  const codeless = () => new Response('404 page not found', { status: 404 })
  const coded = (code: string) => () => new Response(`<Code>${code}</Code>`, { status: 404 })
  const outcomes = async (given: typeof answer) => {
    answer = given
    return await Promise.all([bucket.get('k'), bucket.delete('k')].map(failureOf))
  }
  expect(await outcomes(coded('NoSuchKey'))).toEqual([undefined, undefined])
  for (const [given, reason] of [
    [codeless, 'without a reason'],
    [coded('NoSuchBucket'), 'NoSuchBucket'],
  ] as const) {
    expect(await outcomes(given)).toEqual([`404 ${reason} (GET k)`, `404 ${reason} (DELETE k)`])
  }
})

test('a page for people is no object', async () => {
  const headers = { 'content-type': 'text/html; charset=utf-8' }
  answer = () => new Response('<html>log in</html>', { headers })
  expect(await failureOf(bucket.get('k'))).toBe('200 with a page (GET k)')
})

test('a part of an object is that part also where the whole one is the answer', async () => {
  answer = () => new Response('0123456789')
  const parts = [2, 8, 10].map((start) => bucket.get('k', { start, end: start + 4 }))
  const texts = (await Promise.all(parts)).map((part) => Buffer.from(part ?? []).toString())
  expect(texts).toEqual(['2345', '89', ''])
})

test.each([429, 500, 503])('a request that is answered by %d once is repeated', async (status) => {
  let asked = 0
  answer = () =>
    ++asked === 1 ? new Response('<Code>SlowDown</Code>', { status }) : new Response()
  await bucket.put('k', body)
  expect(asked).toBe(2)
})

test.each([
  [[200, 409, 409], '409 without a decision'],
  [[409, 409, 200], '409 without a decision'],
  [[200, 200, 409], 'false'],
  [[501, 501, 501], 'false'],
])('conditional writes that are answered by %p are judged: %s', async (statuses, expected) => {
  const left = [...statuses]
  answer = ({ method }) =>
    method === 'PUT'
      ? new Response('', { status: left.shift() ?? 500 })
      : new Response('', { status: 204 })
  const judged = String(await failureOf(bucket.hasConditionalWrites()))
  expect(judged.replace(/ \(PUT probe.*/, '')).toBe(expected)
})

test('a store that does not answer is reported with whole milliseconds', async () => {
  answer = () => new Promise(() => {})
  const outcome = await failureOf(openBucket(settings, 20).put('k', body))
  expect(outcome).toBe('PUT /k: no answer within 20 ms')
})

test('a broken connection is reported without advice for programmers', async () => {
  await using server = createServer((socket) => {
    socket.once('data', () => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const broken = openBucket({ ...settings, endpoint: `http://127.0.0.1:${port}` })
  expect(await failureOf(broken.put('k', body))).toBe(
    'PUT /k: ECONNRESET: The socket connection was closed unexpectedly.',
  )
  expect(await failureOf(Array.fromAsync(broken.list('log/')))).toStartWith('GET /: ECONNRESET: ')
})
