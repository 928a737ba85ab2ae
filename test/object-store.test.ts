import { afterAll, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { AwsClient } from 'aws4fetch'
import { bucket } from '../src/config-values.ts'
import { testAtLength } from './support/faults.ts'
import { startObjectStore } from './support/object-store.ts'
import { createRandom } from './support/random.ts'
import { waitFor, waitOut } from './support/wait.ts'

// The fake object store of the replication tests.

const store = await startObjectStore()
afterAll(() => store[Symbol.asyncDispose]())

const { endpoint, accessKeyId, secretAccessKey, region } = bucket(store.url)
const credentials = { accessKeyId, secretAccessKey, region, service: 's3', retries: 0 }
const usual = { ...store.faults }
const bytes = Uint8Array.from({ length: 1_000 }, (_, n) => n % 256)
const onlyNew = { 'if-none-match': '*' }

type Asked = RequestInit & { as?: Partial<typeof credentials>; datetime?: string }

function ask(method: string, path: string, { as, datetime, ...init }: Asked = {}) {
  const aws = datetime === undefined ? {} : { datetime }
  const client = new AwsClient({ ...credentials, ...as })
  return client.fetch(`${endpoint}${path}`, { method, ...init, aws })
}
const put = (key: string, init: Asked = {}) =>
  ask('PUT', `/backups/house/${key}`, { body: 'x', ...init })
const get = (key: string, init?: Asked) => ask('GET', `/backups/house/${key}`, init)
const codeOf = async (response: Response) => /<Code>(.*)<\/Code>/.exec(await response.text())?.[1]
const refusal = async (response: Response) => [response.status, await codeOf(response)]
const failed = (asked: Promise<Response>) =>
  asked.then(
    () => 'answered',
    ({ code }) => code,
  )

beforeEach(() => {
  Object.assign(store.faults, usual)
  for (const key of store.keys()) store.delete(key)
  store.resetCounts()
})

test('an object is returned as it was put, with any bytes and key', async () => {
  const key = "log/a b/ü+&'()*!~=$@,.bin"
  const answer = await put(encodeURIComponent(key), { body: bytes })
  const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
  expect([answer.status, answer.headers.get('etag')]).toEqual([200, etag])
  expect([store.keys(), store.get(key)]).toEqual([[key], bytes])
  const found = await get(encodeURIComponent(key))
  expect([found.headers.get('etag'), await found.bytes()]).toEqual([etag, bytes])
  const head = await ask('HEAD', `/backups/house/${encodeURIComponent(key)}`)
  expect([head.headers.get('content-length'), await head.text()]).toEqual(['1000', ''])
  expect((await ask('DELETE', `/backups/house/${encodeURIComponent(key)}`)).status).toBe(204)
  expect((await ask('DELETE', '/backups/house/never')).status).toBe(204)
  expect(await refusal(await get('never'))).toEqual([404, 'NoSuchKey'])
  expect((await ask('HEAD', '/backups/house/never')).status).toBe(404)
  expect(await refusal(await ask('PUT', '/other/house/x'))).toEqual([404, 'NoSuchBucket'])
  const counts = { 'PUT 200': 1, 'GET 200': 1, 'HEAD 200': 1, 'DELETE 204': 2 }
  expect(store.counts).toEqual({ ...counts, 'GET 404': 1, 'HEAD 404': 1, 'PUT 404': 1 })
})

testAtLength('64 MB are stored and returned, and more are refused', async () => {
  const large = new Uint8Array(64 * 1024 * 1024).fill(7)
  expect((await put('large', { body: large })).status).toBe(200)
  expect(Buffer.compare(await (await get('large')).bytes(), large)).toBe(0)
  expect((await put('larger', { body: new Uint8Array(large.length + 1) })).status).toBe(413)
})

test.each([
  ['bytes=0-9', 206, 'bytes 0-9/1000', 10],
  ['bytes=990-', 206, 'bytes 990-999/1000', 10],
  ['bytes=990-5000', 206, 'bytes 990-999/1000', 10],
  ['bytes=x', 200, null, 1000],
])(
  'of the range %p the existing bytes are returned',
  async (range, status, contentRange, length) => {
    store.put('parts', bytes)
    const answer = await get('parts', { headers: { range } })
    const body = await answer.bytes()
    expect([answer.status, answer.headers.get('content-range'), body.length]).toEqual([
      status,
      contentRange,
      length,
    ])
    expect(await refusal(await get('parts', { headers: { range: 'bytes=1000-' } }))).toEqual([
      416,
      'InvalidRange',
    ])
  },
)

test('of parallel creations of one key exactly one succeeds, and later ones change nothing', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => put('log/1', { body: `${n}`, headers: onlyNew })),
  )
  expect(answers.filter(({ ok }) => ok)).toHaveLength(1)
  expect(store.counts).toEqual({ 'PUT 200': 1, 'PUT 412': 19 })
  const first = store.get('log/1')
  expect(await refusal(await put('log/1', { headers: onlyNew }))).toEqual([
    412,
    'PreconditionFailed',
  ])
  expect(store.get('log/1')).toEqual(first)
})

test.each<[string, Asked, number, string]>([
  ['another secret', { as: { secretAccessKey: 'x' } }, 403, 'SignatureDoesNotMatch'],
  ['another region', { as: { region: 'us-east-1' } }, 403, 'SignatureDoesNotMatch'],
  ['another service', { as: { service: 'sqs' } }, 403, 'SignatureDoesNotMatch'],
  ['another key', { as: { accessKeyId: 'x' } }, 403, 'InvalidAccessKeyId'],
  ['an old date', { datetime: '20200101T000000Z' }, 403, 'RequestTimeTooSkewed'],
  [
    'another body',
    { headers: { 'x-amz-content-sha256': 'ab'.repeat(32) } },
    400,
    'XAmzContentSHA256Mismatch',
  ],
  ['unknown headers', { headers: { 'if-match': '"x"' } }, 501, 'NotImplemented'],
])('with %s nothing is stored', async (_, asked, status, code) => {
  expect(await refusal(await put('x', asked))).toEqual([status, code])
  expect(store.keys()).toEqual([])
})

test('an unsigned or tampered request is refused', async () => {
  expect(await refusal(await fetch(`${endpoint}/backups/house/x`))).toEqual([403, 'AccessDenied'])
  const client = new AwsClient(credentials)
  const { headers } = await client.sign(`${endpoint}/backups/house/x`, { method: 'GET' })
  const other = (init: RequestInit, path = '/backups/house/x') =>
    fetch(endpoint + path, { headers, ...init }).then(refusal)
  expect(await other({})).toEqual([404, 'NoSuchKey'])
  const mismatch = [403, 'SignatureDoesNotMatch']
  expect(await other({ method: 'DELETE' })).toEqual(mismatch)
  expect(await other({}, '/backups/house/y')).toEqual(mismatch)
  expect(await other({}, '/backups/house/x?a=1')).toEqual(mismatch)
  const named = headers.get('authorization')?.replace(region, 'us-east-1') ?? ''
  expect(
    await other({ headers: { ...Object.fromEntries(headers), authorization: named } }),
  ).toEqual(mismatch)
  headers.set('x-amz-meta-a', '1')
  expect(await other({})).toEqual([403, 'AccessDenied'])
})

test('the right hash of a body is accepted', async () => {
  const sha256 = createHash('sha256').update('x').digest('hex')
  expect((await put('x', { headers: { 'x-amz-content-sha256': sha256 } })).status).toBe(200)
})

test('the store has a clock of its own for signatures, objects and responses', async () => {
  store.faults.clockOffset = -20 * 60_000
  const answer = await put('x')
  const theirs = Date.parse(answer.headers.get('date') ?? '')
  expect(Math.abs(theirs - Date.now() + 20 * 60_000)).toBeLessThan(5_000)
  expect(await refusal(answer)).toEqual([403, 'RequestTimeTooSkewed'])
  const datetime = new Date(theirs).toISOString().replace(/[:-]|\.\d{3}/g, '')
  expect((await put('x', { datetime })).status).toBe(200)
  expect(Math.abs(store.lastModified('x') - theirs)).toBeLessThan(5_000)
  const before = store.lastModified('x')
  store.age(86_400_000)
  expect(before - store.lastModified('x')).toBe(86_400_000)
})

const list = async (query: string) => {
  const text = await (await ask('GET', `/backups?list-type=2&${query}`)).text()
  const all = (name: string) =>
    [...text.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'g'))].map(([, it]) => it)
  return {
    keys: all('Key'),
    groups: all('Prefix').slice(1),
    next: all('NextContinuationToken')[0],
    text,
  }
}

test('a list is in UTF-8 order, in pages of at most 1,000', async () => {
  const keys = Array.from({ length: 2_001 }, (_, n) => `log/${String(n).padStart(5, '0')}`)
  for (const key of [...keys, '\u{1f600}', '\u{fb01}', 'a&<b>']) store.put(key, bytes)
  const first = await list('prefix=house/log/&max-keys=5000')
  expect(first.text).toContain(
    '<MaxKeys>1000</MaxKeys><KeyCount>1000</KeyCount><IsTruncated>true</IsTruncated>',
  )
  const second = await list(`prefix=house/log/&continuation-token=${first.next}`)
  const third = await list(`prefix=house/log/&continuation-token=${second.next}`)
  expect(third.next).toBeUndefined()
  const listed = [first, second, third].flatMap((page) => page.keys)
  expect(listed).toEqual(keys.map((key) => `house/${key}`))
  const others = await list('start-after=house/log/01999')
  expect(others.keys).toEqual(['house/log/02000', 'house/\u{fb01}', 'house/\u{1f600}'])
  expect((await list('prefix=house/a')).keys).toEqual(['house/a&amp;&lt;b&gt;'])
  expect([store.keys('log/0200'), store.keys()[0]]).toEqual([['log/02000'], 'a&<b>'])
})

test('a list groups keys by a delimiter, also across pages, and shows age and size', async () => {
  for (const key of ['a', 'b/1', 'b/2', 'c', 'd/1']) store.put(key, bytes)
  const query = 'prefix=house/&delimiter=/&max-keys=2'
  const first = await list(query)
  expect([first.keys, first.groups]).toEqual([['house/a'], ['house/b/']])
  const rest = await list(`${query}&continuation-token=${first.next}`)
  expect([rest.keys, rest.groups, rest.next]).toEqual([['house/c'], ['house/d/'], undefined])
  const modified = new Date(Math.floor(store.lastModified('a') / 1000) * 1000).toISOString()
  expect(first.text).toContain(`<LastModified>${modified}</LastModified>`)
  expect(first.text).toContain('<Size>1000</Size>')
  expect(await refusal(await ask('GET', '/backups'))).toEqual([501, 'NotImplemented'])
})

test('many objects are deleted at once, with the checksum that the protocol requires', async () => {
  for (const key of ['a', "b&'", 'c']) store.put(key, bytes)
  const named = ['house/a', 'house/b&amp;&#x27;', 'house/never'].map(
    (key) => `<Object><Key>${key}</Key></Object>`,
  )
  const body = `<Delete>${named.join('')}</Delete>`
  expect(await refusal(await ask('POST', '/backups?delete', { body }))).toEqual([
    400,
    'InvalidRequest',
  ])
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') }
  const answer = await ask('POST', '/backups?delete', { body, headers })
  expect(await answer.text()).toContain('<Deleted><Key>house/b&amp;&#x27;</Key></Deleted>')
  expect(store.keys()).toEqual(['c'])
})

test('a failing PUT took effect in half of the cases; a retry then finds its own object', async () => {
  store.faults.random = createRandom(5).next
  store.faults.errors = 1
  const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => put(`log/${n}`)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([500, 503]))
  expect(store.keys().length).toBeWithin(30, 70)
  store.faults.errors = 0
  const [stored = ''] = store.keys()
  expect((await put(stored, { headers: onlyNew })).status).toBe(412)
})

test('a hanging request is never answered, also when it took effect', async () => {
  Object.assign(store.faults, { hangs: 1, random: createRandom(1).next })
  const client = new AbortController()
  const asked = Array.from({ length: 40 }, (_, n) => put(`${n}`, { signal: client.signal }))
  await waitFor(() => store.keys().length > 10)
  client.abort()
  const outcomes = await Promise.allSettled(asked)
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
  expect([store.keys().length < 40, store.counts]).toEqual([true, {}])
})

test('a store that is away breaks open connections, and accepts none until it is back', async () => {
  const { promise: isOpen, resolve } = Promise.withResolvers<void>()
  store.faults.beforePut = () => {
    resolve()
    return new Promise(() => {})
  }
  const open = failed(put('a'))
  await isOpen
  store.faults.away = true
  expect([await open, await failed(put('b'))]).toEqual(['ECONNRESET', 'ECONNRESET'])
  Object.assign(store.faults, usual)
  expect([(await put('c')).status, store.keys(), store.counts]).toEqual([
    200,
    ['c'],
    { 'PUT 200': 1 },
  ])
})

test('a store that is away breaks connections at once: idle ones, and requests without effect yet', async () => {
  const { host, hostname, port } = new URL(endpoint)
  const idle = connect(Number(port), hostname)
  idle.write(`GET /backups HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await once(idle, 'data')
  store.put('x', bytes)
  const { promise: hasArrived, resolve } = Promise.withResolvers<void>()
  const random = () => {
    resolve()
    return 1
  }
  Object.assign(store.faults, { random, latency: 40 })
  const deletion = failed(ask('DELETE', '/backups/house/x'))
  await hasArrived
  const closed = new Promise((done) => idle.on('close', done))
  store.faults.away = true
  await closed
  expect(await deletion).toBe('ECONNRESET')
  await waitOut(60)
  store.faults.latency = 60_000
  expect([await failed(get('x')), store.keys()]).toEqual(['ECONNRESET', ['x']])
})

test('a sent request takes effect although the client has gone', async () => {
  const client = new AbortController()
  const random = () => {
    client.abort()
    return 1
  }
  Object.assign(store.faults, { random, latency: 40 })
  const aborted = put('x', { signal: client.signal }).catch(({ name }) => name)
  expect(await aborted).toBe('AbortError')
  await waitFor(() => store.keys().length === 1)
})

test('a PUT that is cut before it takes effect leaves nothing, one cut after it an object', async () => {
  const keys: string[] = []
  const cut = (key: string) => {
    keys.push(key)
    store.faults.away = true
  }
  store.faults.beforePut = cut
  expect(await failed(put('log/a'))).toBe('ECONNRESET')
  Object.assign(store.faults, usual, { afterPut: cut })
  expect(await failed(put('log/b'))).toBe('ECONNRESET')
  expect([keys, store.keys()]).toEqual([['log/a', 'log/b'], ['log/b']])
})

test.each<[string, Partial<typeof usual>, number[], string]>([
  ['is full', { full: true }, [403, 507], 'QuotaExceeded'],
  ['has conflicts', { conflicts: 1 }, [409], 'ConditionalRequestConflict'],
  ['has no conditional writes', { refusesConditions: true }, [501], 'NotImplemented'],
])('a store that %s refuses a creation', async (_, faults, statuses, code) => {
  Object.assign(store.faults, faults)
  const [status, reason] = await refusal(await put('x', { headers: onlyNew }))
  expect(statuses).toContain(Number(status))
  expect([reason, store.keys()]).toEqual([code, []])
})

test('a store without conditional writes overwrites', async () => {
  store.faults.ignoresConditions = true
  for (const body of ['1', '2'])
    expect((await put('x', { body, headers: onlyNew })).status).toBe(200)
  expect(store.get('x')).toEqual(Buffer.from('2'))
})
