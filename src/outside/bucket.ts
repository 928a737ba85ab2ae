import { AwsV4Signer } from 'aws4fetch'
import { StartError } from '../lib/errors.ts'
import { fetchNamed } from './exchange.ts'

export type Bucket = {
  endpoint: string
  name: string
  /** Without slashes at either end; may be empty. */
  prefix: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}
export type StoredObject = { key: string; modifiedAt: number }
export type OpenBucket = ReturnType<typeof openBucket>

const attempts = 4
const retryMilliseconds = 50
const defaultTimeoutMilliseconds = 5_000
/** Slower transfers are aborted. */
const leastBytesPerSecond = 64 * 1_024

export const bucketText = ({ endpoint, name }: Bucket) => `${new URL(endpoint).host}/${name}`

/** A failed request to a bucket; `status` 0 means no response. */
export class BucketError extends StartError {
  readonly status: number
  constructor(bucket: Bucket, status: number, reason: string) {
    super(`the bucket ${bucketText(bucket)}: ${status === 0 ? reason : `${status} ${reason}`}`)
    this.status = status
  }
}

type Body = Uint8Array | Blob
type Call = { query?: Record<string, string>; headers?: Record<string, string>; body?: Body }
type Range = { start: number; end: number }

/** The objects below a bucket's prefix. Every call except `create` is retried a few times. Bun's client drops
 *  `If-None-Match`, so this one sends the requests itself.
 *  @param timeoutMilliseconds per request; longer for large bodies
 *  @throws BucketError from every call */
export function openBucket(bucket: Bucket, timeoutMilliseconds = defaultTimeoutMilliseconds) {
  const { endpoint, name, prefix, ...signing } = bucket
  const root = `${endpoint}/${encodeURIComponent(name)}`
  const nameOf = (key: string) => (prefix === '' ? key : `${prefix}/${key}`)
  const keyOf = (objectName: string) =>
    prefix === '' ? objectName : objectName.slice(prefix.length + 1)
  const cache = new Map<string, ArrayBuffer>()
  const failure = (status: number, reason: string) => new BucketError(bucket, status, reason)

  async function request(method: string, path: string, { query = {}, headers, body }: Call = {}) {
    const url = new URL(root + path)
    for (const [parameter, value] of Object.entries(query)) url.searchParams.set(parameter, value)
    const signedHeaders = { ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }
    const given = { method, url: url.href, headers: signedHeaders, service: 's3', cache }
    const signed = await new AwsV4Signer({ ...given, ...signing }).sign()
    const { signal, limit } = createLimit(timeoutMilliseconds)
    limit(body instanceof Blob ? body.size : (body?.length ?? 0))
    const common = { method, headers: signed.headers, signal }
    // A redirect would lead, without the signature, to a page that may answer 200 to anything.
    const init = { ...common, body: body ?? null, redirect: 'manual' } as const
    const answer = await fetchNamed(signed.url, init).catch((error: Error) => {
      throw failure(0, `${method} ${path || '/'}: ${error.message}`)
    })
    limit(Number(answer.headers.get('content-length')))
    return answer
  }

  /** Keys from listings and entries are untrusted: dot segments could lead to another bucket. */
  function pathOf(key: string): string {
    const segments = nameOf(key).split('/')
    if (segments.some((one) => one === '.' || one === '..')) {
      throw failure(400, `a key must not have dot segments: ${key}`)
    }
    return `/${segments.map(encodeURIComponent).join('/')}`
  }

  /** A 404 that is expected is that of the store about the key: a proxy answers 404, too, while the store starts. */
  async function mustBe(answer: Response, what: string, ...expected: number[]) {
    const isExpected = expected.includes(answer.status)
    if (isExpected && answer.status !== 404) return answer
    const code = textOf(await whole(answer.text(), what), 'Code')
    if (isExpected && code === 'NoSuchKey') return answer
    throw failure(answer.status, `${code ?? 'without a reason'} (${what})`)
  }

  const whole = <T>(body: Promise<T>, what: string) =>
    body.catch((error: Error) => {
      throw failure(0, `${what}: ${error.message}`)
    })

  /** A store answers a change without a body. A proxy may answer with a page, and nothing is changed. */
  async function mustBeDone(answer: Response, what: string, ...expected: number[]) {
    const { status } = await mustBe(answer, what, ...expected)
    if (status === 404) return
    const text = await whole(answer.text(), what)
    if (text !== '') throw failure(status, `with a page, so nothing is done (${what})`)
  }

  async function getOnce(key: string, range?: Range): Promise<Uint8Array | undefined> {
    const what = `GET ${key}`
    const headers = range && { range: `bytes=${range.start}-${range.end - 1}` }
    const asked = await request('GET', pathOf(key), headers && { headers })
    const answer = await mustBe(asked, what, 200, 206, 404, 416)
    const { status } = answer
    if (status === 404) return undefined
    if (status === 416) return new Uint8Array()
    const bytes = await whole(answer.bytes(), what)
    // No object is stored as HTML.
    if (answer.headers.get('content-type')?.startsWith('text/html'))
      throw failure(status, `with a page (${what})`)
    // A cache may answer with the whole object.
    return range && status === 200 ? bytes.subarray(range.start, range.end) : bytes
  }
  const get = (key: string, range?: Range) => repeating(() => getOnce(key, range))

  async function create(key: string, bytes: Uint8Array): Promise<boolean> {
    const headers = { 'if-none-match': '*' }
    const answer = await request('PUT', pathOf(key), { headers, body: bytes })
    if (answer.status !== 412) {
      await mustBeDone(answer, `PUT ${key}`, 200)
      return true
    }
    const found = await get(key)
    if (found === undefined) throw failure(412, `but the object does not exist (PUT ${key})`)
    return Buffer.compare(found, bytes) === 0
  }

  const change = (method: 'PUT' | 'DELETE', key: string, call: Call, ...expected: number[]) =>
    repeating(async () => {
      await mustBeDone(await request(method, pathOf(key), call), `${method} ${key}`, ...expected)
    })
  const remove = (key: string) => change('DELETE', key, {}, 200, 204, 404)

  /** Lists the objects with this key prefix after the key `after`, in key order; at most 1000 per page and request. */
  async function* list(under: string, after = ''): AsyncGenerator<StoredObject[]> {
    let token = ''
    do {
      const query = {
        'list-type': '2',
        prefix: nameOf(under),
        ...(after !== '' && { 'start-after': nameOf(after) }),
        ...(token !== '' && { 'continuation-token': token }),
      }
      const what = `list ${under}`
      const page = await repeating(async () => {
        const answer = await mustBe(await request('GET', '', { query }), what, 200)
        const text = await whole(answer.text(), what)
        if (isPage(text)) return text
        throw failure(200, `without a whole page of keys (${what})`)
      })
      // Some stores return a page unsorted.
      yield objectsOf(page)
        .map(({ key, modifiedAt }) => ({ key: keyOf(key), modifiedAt }))
        .sort((a, b) => (a.key < b.key ? -1 : 1))
      token = textOf(page, 'NextContinuationToken') ?? ''
    } while (token !== '')
  }

  return {
    /** Writes an object only if the key is free.
     *  @returns whether this object is stored, by this call or by an earlier one whose response was lost */
    create,
    put: (key: string, body: Body) => change('PUT', key, { body }, 200),
    get,
    list,
    delete: remove,

    /** Tests two concurrent conditional writes and a later third one, of which exactly one may succeed.
     *  @throws BucketError also when conflicts leave it undecided */
    async hasConditionalWrites(): Promise<boolean> {
      const key = `probe/${crypto.randomUUID()}`
      const write = (text: string) => create(key, Buffer.from(text)).catch(conditionalOutcome)
      try {
        const together = await Promise.all([write('first'), write('second')])
        const third = await write('third')
        const outcomes = [...together, third]
        const successes = outcomes.filter((outcome) => outcome === true).length
        if (successes === 1 && third === false) return true
        if (successes <= 1 && outcomes.includes('undecided')) {
          throw failure(409, `without a decision (PUT ${key})`)
        }
        return false
      } finally {
        await remove(key).catch(() => {})
      }
    },
  }
}

async function repeating<T>(work: () => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await work()
    } catch (error) {
      if (!isTransient(error) || n === attempts) throw error
      await Bun.sleep(retryMilliseconds * 2 ** n)
    }
  }
}

/** 0: no response; 429: too many requests at this moment. */
const isTransient = (error: unknown) =>
  error instanceof BucketError &&
  (error.status === 0 || error.status === 429 || error.status >= 500)

/** 409: the store may have accepted the other write. 501: it does not support conditions. */
function conditionalOutcome(error: unknown): false | 'undecided' {
  if (error instanceof BucketError && error.status === 409) return 'undecided'
  if (error instanceof BucketError && error.status === 501) return false
  throw error
}

function createLimit(timeoutMilliseconds: number) {
  const controller = new AbortController()
  let timer: Timer | undefined
  return {
    signal: controller.signal,
    limit(bytes: number) {
      clearTimeout(timer)
      const transfer = (bytes / leastBytesPerSecond) * 1_000
      const milliseconds = Math.round(timeoutMilliseconds + transfer)
      const end = () => controller.abort(new Error(`no answer within ${milliseconds} ms`))
      timer = setTimeout(end, milliseconds)
      timer.unref()
    },
  }
}

/** Anything else, such as the page of a proxy, must not pass for an empty bucket, nor a page without its successor for the
 *  last one. */
const isPage = (text: string) =>
  text.includes('</ListBucketResult>') &&
  (textOf(text, 'IsTruncated') !== 'true' || textOf(text, 'NextContinuationToken') !== undefined)

function objectsOf(page: string): StoredObject[] {
  const contents = page.match(/<Contents>.*?<\/Contents>/gs) ?? []
  return contents.map((one) => ({
    key: textOf(one, 'Key') ?? '',
    modifiedAt: Date.parse(textOf(one, 'LastModified') ?? ''),
  }))
}

const entities: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function textOf(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return text?.replace(/&(?:#(\d+)|(\w+));/g, (whole, code: string, entity: string) =>
    code === undefined ? (entities[entity] ?? whole) : String.fromCodePoint(Number(code)),
  )
}
