import { createHash, createHmac } from 'node:crypto'

type StoredObject = { bytes: Uint8Array; etag: string; modifiedAt: number }
type Objects = Map<string, StoredObject>
type Store = { objects: Objects; faults: ReturnType<typeof createFaults>; now: () => number }
type Call = Pick<Request, 'method' | 'headers'> & { url: URL; body: Uint8Array; fate: Fate }
type Fate = ReturnType<typeof drawFate>
type Hook = ((key: string, body: Uint8Array) => void | Promise<void>) | undefined
export type ObjectStore = Awaited<ReturnType<typeof startObjectStore>>

const region = 'eu-west-1'
const bucketName = 'backups'
const keyPrefix = 'house/'
const accessKeyId = 'HOUSE'
const ownSecret = 'house/secret+1' // needs escaping in a URL, like real ones

/** An S3-compatible object store in memory that checks signatures and injects faults on demand. It refuses unknown
 *  requests instead of ignoring them. */
export async function startObjectStore({ port = 0 }: { port?: number } = {}) {
  const objects: Objects = new Map()
  const unanswered = new Set<() => void>()
  const counts: Record<string, number> = {}
  const faults = createFaults(() => {
    for (const cut of unanswered) cut()
    server.closeIdleConnections()
  })
  const now = () => Date.now() + faults.clockOffset

  async function serve(request: Request): Promise<Response> {
    if (faults.away) return brokenConnection()
    const { promise: isCut, resolve } = Promise.withResolvers<undefined>()
    const cut = () => resolve(undefined)
    unanswered.add(cut)
    request.signal.addEventListener('abort', cut)
    const answer = answerOf({ objects, faults, now }, request)
    const response = await Promise.race([answer, isCut]).finally(() => unanswered.delete(cut))
    if (!response) return brokenConnection()
    const isList = request.url.includes('?list-type=')
    const name = `${isList ? 'LIST' : request.method} ${response.status}`
    counts[name] = (counts[name] ?? 0) + 1
    response.headers.set('date', new Date(now()).toUTCString())
    return response
  }

  const limits = { idleTimeout: 0, maxRequestBodySize: 64 * 1024 * 1024, development: false }
  const server = Bun.serve({ port, hostname: '127.0.0.1', ...limits, fetch: serve })
  const place = `127.0.0.1:${server.port}/${bucketName}/house?region=${region}&tls=off`
  const urlOf = (secret: string) => `s3://${accessKeyId}:${encodeURIComponent(secret)}@${place}`
  return {
    ...createContents(objects, now),
    url: urlOf(ownSecret),
    urlOf,
    faults,
    counts, // of requests that got an answer, by method and status: `PUT 412`, `LIST 200`
    resetCounts() {
      for (const name of Object.keys(counts)) delete counts[name]
    },
    async [Symbol.asyncDispose]() {
      faults.away = true
      await server.stop(true)
    },
  }
}

/** The faults of the store, which a test may change at any time. Shares are from 0 to 1, times in milliseconds. */
function createFaults(cutAll: () => void) {
  let isAway = false
  return {
    latency: 0, // before each answer: half of it before the request takes effect, half after
    errors: 0, // share answered 500 or 503; half of these PUTs take effect nevertheless
    hangs: 0, // share that never gets an answer; half of these PUTs take effect nevertheless
    slow: 0, // share that takes ten times the latency and 500 ms
    full: false, // a PUT gets QuotaExceeded, with 403 or 507
    ignoresConditions: false, // If-None-Match has no effect
    refusesConditions: false, // a PUT with If-None-Match gets NotImplemented
    conflicts: 0, // share of conditional PUTs that gets ConditionalRequestConflict, without effect
    clockOffset: 0, // how far the store's clock is ahead of ours
    beforePut: undefined as Hook, // called with the short key and the body before a PUT takes effect
    afterPut: undefined as Hook, // and between its effect and its answer
    secrets: [ownSecret], // which the store accepts
    random: Math.random,
    /** Breaks open and new connections: set in `beforePut` it loses the object, in `afterPut` only the response. */
    get away() {
      return isAway
    },
    set away(value: boolean) {
      isAway = value
      if (value) cutAll()
    },
  }
}

/** Direct access for tests, past all checks, with keys below the prefix. */
function createContents(objects: Objects, now: () => number) {
  return {
    keys(under = ''): string[] {
      const isUnder = (key: string) => key.startsWith(keyPrefix + under)
      return [...objects.keys()].filter(isUnder).sort(byBytes).map(shortKey)
    },
    get: (key: string): Uint8Array | undefined => objects.get(keyPrefix + key)?.bytes,
    put: (key: string, bytes: Uint8Array) =>
      void objects.set(keyPrefix + key, storedObject(new Uint8Array(bytes), now())),
    delete: (key: string) => void objects.delete(keyPrefix + key),
    lastModified: (key: string) => objects.get(keyPrefix + key)?.modifiedAt ?? Number.NaN,
    /** Makes every object that much older. */
    age(milliseconds: number) {
      for (const object of objects.values()) object.modifiedAt -= milliseconds
    },
  }
}

const shortKey = (key: string) => (key.startsWith(keyPrefix) ? key.slice(keyPrefix.length) : key)
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
const hash = (algorithm: string, data: string | Uint8Array) =>
  createHash(algorithm).update(data).digest('hex')

function storedObject(bytes: Uint8Array, modifiedAt: number): StoredObject {
  return { bytes, etag: `"${hash('md5', bytes)}"`, modifiedAt }
}

/** A stream that fails before its first byte resets the connection without a response. */
const brokenConnection = () =>
  new Response(new ReadableStream({ pull: (controller) => controller.error() }))

/** @returns undefined when the connection is to be broken */
async function answerOf(store: Store, request: Request): Promise<Response | undefined> {
  // Read before the first await: Bun drops them once the connection is broken.
  const asked = { method: request.method, headers: request.headers, url: new URL(request.url) }
  const body = await request.bytes().catch(() => undefined)
  if (!body) return undefined
  const fate = drawFate(store.faults)
  await Bun.sleep(fate.delay / 2)
  if (store.faults.away) return undefined
  const isLost = fate.hangs || fate.fails
  const isHandled = !isLost || (asked.method === 'PUT' && fate.isKept)
  const response = isHandled ? await handle(store, { ...asked, body, fate }) : undefined
  await Bun.sleep(fate.delay / 2)
  if (fate.hangs) return new Promise(() => {})
  if (!fate.fails) return response
  return fate.coin ? failure(503, 'SlowDown') : failure(500, 'InternalError')
}

/** Draws the same number of values for each request, so that with a seed its number decides the faults. */
function drawFate({ random, errors, hangs, slow, conflicts, latency }: Store['faults']) {
  const draw = (share: number) => random() < share
  const delay = draw(slow) ? 10 * latency + 500 : latency
  const [hasConflict, isKept, coin] = [draw(conflicts), draw(0.5), draw(0.5)]
  return { delay, hangs: draw(hangs), fails: draw(errors), hasConflict, isKept, coin }
}

const failure = (status: number, code: string) =>
  xml(`<Error>${elements({ Code: code, Message: code })}</Error>`, status)

const elements = (values: Record<string, string | number | boolean>) =>
  Object.entries(values)
    .map(([name, value]) => `<${name}>${Bun.escapeHTML(value)}</${name}>`)
    .join('')

const xml = (content: string, status = 200) =>
  new Response(content, { status, headers: { 'content-type': 'application/xml' } })

async function handle(store: Store, call: Call): Promise<Response> {
  const refusal = checkSignature(call, store)
  if (refusal) return refusal
  const [, bucket, ...names] = decodeURIComponent(call.url.pathname).split('/')
  const key = names.join('/')
  if (bucket !== bucketName) return failure(404, 'NoSuchBucket')
  return key === '' ? handleBucket(store.objects, call) : handleObject(store, call, key)
}

const authorization =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)$/

/** @see https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
function checkSignature({ method, headers, url, body }: Call, { now, faults }: Store) {
  const given = authorization.exec(headers.get('authorization') ?? '') ?? []
  const [, id, scope, names = '', signature = ''] = given
  if (id === undefined) return failure(403, 'AccessDenied')
  if (id !== accessKeyId) return failure(403, 'InvalidAccessKeyId')
  const time = headers.get('x-amz-date') ?? ''
  if (!isNear(timeOf(time), now())) return failure(403, 'RequestTimeTooSkewed')
  const signed = names.split(';')
  const mustBeSigned = [...headers.keys()].filter((name) => /^(host$|x-amz-)/.test(name))
  if (!mustBeSigned.every((name) => signed.includes(name))) return failure(403, 'AccessDenied')
  const path = decodeURIComponent(url.pathname).split('/').map(encode).join('/')
  url.searchParams.sort()
  const query = [...url.searchParams].map((pair) => pair.map(encode).join('=')).join('&')
  const values = signed.map((name) => `${name}:${headers.get(name)?.replace(/\s+/g, ' ')}`)
  const payload = headers.get('x-amz-content-sha256') ?? ''
  const canonical = [method, path, query, ...values, '', names, payload].join('\n')
  const ours = [time.slice(0, 8), region, 's3', 'aws4_request']
  const accepted = faults.secrets.map((secret) => sign(canonical, time, [secret, ...ours]))
  const isOurs = scope === ours.join('/') && accepted.includes(signature)
  if (!isOurs) return failure(403, 'SignatureDoesNotMatch')
  const isWhole = payload === 'UNSIGNED-PAYLOAD' || payload === hash('sha256', body)
  return isWhole ? undefined : failure(400, 'XAmzContentSHA256Mismatch')
}

const isNear = (time: number, now: number) => Math.abs(time - now) <= 15 * 60_000
const timeOf = (time: string) =>
  Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
const encode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (it) => `%${Buffer.from(it).toHex().toUpperCase()}`)

function sign(canonical: string, time: string, [secret, ...scope]: string[]): string {
  const hmac = (key: string | Buffer, text: string) =>
    createHmac('sha256', key).update(text).digest()
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secret}`)
  const head = ['AWS4-HMAC-SHA256', time, scope.join('/')].join('\n')
  return hmac(key, `${head}\n${hash('sha256', canonical)}`).toString('hex')
}

async function handleObject(store: Store, call: Call, key: string): Promise<Response> {
  const { method, headers, url } = call
  const unknown = [...headers.keys()].some((name) => /^(if-match|x-amz-(?!date|cont))/.test(name))
  if (unknown || method === 'POST' || url.search !== '') return failure(501, 'NotImplemented')
  if (method === 'PUT') return put(store, call, key)
  const object = store.objects.get(key)
  if (method !== 'DELETE') return object ? read(object, headers) : failure(404, 'NoSuchKey')
  store.objects.delete(key)
  return new Response(null, { status: 204 })
}

async function put(store: Store, call: Call, key: string): Promise<Response> {
  const { objects, faults } = store
  await faults.beforePut?.(shortKey(key), call.body)
  if (faults.full) return failure(call.fate.coin ? 507 : 403, 'QuotaExceeded')
  const refusal = refuseCondition(store, call, objects.has(key))
  if (refusal) return refusal
  if (faults.away) return failure(503, 'SlowDown') // not visible to clients
  // No await between the condition and the write: of two parallel creations one succeeds.
  const object = storedObject(call.body, store.now())
  objects.set(key, object)
  await faults.afterPut?.(shortKey(key), call.body)
  return new Response(null, { headers: { etag: object.etag } })
}

function refuseCondition({ faults }: Store, { headers, fate }: Call, exists: boolean) {
  const condition = headers.get('if-none-match')
  if (condition === null) return undefined
  if (faults.refusesConditions || condition !== '*') return failure(501, 'NotImplemented')
  if (faults.ignoresConditions) return undefined
  if (fate.hasConflict) return failure(409, 'ConditionalRequestConflict')
  return exists ? failure(412, 'PreconditionFailed') : undefined
}

function read({ bytes, etag, modifiedAt }: StoredObject, asked: Headers): Response {
  const headers = { etag, 'last-modified': new Date(modifiedAt).toUTCString() }
  const range = /^bytes=(\d+)-(\d*)$/.exec(asked.get('range') ?? '')
  if (!range) return new Response(bytes, { headers })
  const [start, last] = [Number(range[1]), Number(range[2] || Number.POSITIVE_INFINITY)]
  const part = bytes.subarray(start, last + 1)
  if (part.length === 0) return failure(416, 'InvalidRange')
  const where = `bytes ${start}-${start + part.length - 1}/${bytes.length}`
  return new Response(part, { status: 206, headers: { ...headers, 'content-range': where } })
}

function handleBucket(objects: Objects, { method, headers, url, body }: Call): Response {
  const query = Object.fromEntries(url.searchParams)
  if (method === 'GET' && query['list-type'] === '2') return list(objects, query)
  if (method !== 'POST' || url.search !== '?delete=') return failure(501, 'NotImplemented')
  if (!headers.has('content-md5')) return failure(400, 'InvalidRequest') // as S3 does
  return deleteAll(objects, Buffer.from(body).toString())
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" }
function deleteAll(objects: Objects, asked: string): Response {
  const plain = (text: string) => text.replace(/&(.*?);/g, (it, name) => entities[name] ?? it)
  const keys = [...asked.matchAll(/<Key>(.*?)<\/Key>/gs)].map(([, key = '']) => plain(key))
  if (keys.length === 0 || keys.length > 1000) return failure(400, 'MalformedXML')
  for (const key of keys) objects.delete(key)
  const listed = asked.includes('<Quiet>true</Quiet>') ? [] : keys
  const deleted = listed.map((Key) => `<Deleted>${elements({ Key })}</Deleted>`)
  return xml(`<DeleteResult>${deleted.join('')}</DeleteResult>`)
}

/** A page of keys and common prefixes. */
function list(objects: Objects, asked: Record<string, string>): Response {
  const { prefix = '', delimiter = '', 'continuation-token': token = '' } = asked
  const cursor = Buffer.from(token, 'base64url').toString()
  const after = cursor || (asked['start-after'] ?? '')
  const groupOf = (key: string) => {
    const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    return at < 0 ? undefined : key.slice(0, at + delimiter.length)
  }
  const isAsked = (key: string) => key.startsWith(prefix) && byBytes(key, after) > 0
  const entries = new Set([...objects.keys()].filter(isAsked).map((key) => groupOf(key) ?? key))
  entries.delete(cursor) // a page that ended with a group goes on behind all of its keys
  const MaxKeys = Math.min(Number(asked['max-keys'] ?? 1000), 1000)
  const page = [...entries].sort(byBytes).slice(0, MaxKeys)
  const IsTruncated = MaxKeys > 0 && page.length < entries.size
  const next = { NextContinuationToken: Buffer.from(page.at(-1) ?? '').toString('base64url') }
  const facts = { Name: bucketName, Prefix: prefix, MaxKeys, KeyCount: page.length, IsTruncated }
  const rows = page.map((entry) => entryXml(entry, groupOf(entry) ? undefined : objects.get(entry)))
  const fields = elements({ ...facts, ...(IsTruncated && next) })
  return xml(`<ListBucketResult>${fields}${rows.join('')}</ListBucketResult>`)
}

function entryXml(Key: string, object: StoredObject | undefined): string {
  if (!object) return `<CommonPrefixes>${elements({ Prefix: Key })}</CommonPrefixes>`
  const LastModified = new Date(object.modifiedAt).toISOString().replace(/\d{3}Z$/, '000Z')
  const facts = elements({ Key, LastModified, ETag: object.etag, Size: object.bytes.length })
  return `<Contents>${facts}</Contents>`
}
