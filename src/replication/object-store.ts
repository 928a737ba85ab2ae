import { AwsV4Signer } from 'aws4fetch'
import type { Bucket } from '../files/s3.ts'
import { StartError } from '../lib/errors.ts'

const attempts = 4
const retryMilliseconds = 50
/** Slower transfers are aborted. */
const leastBytesPerSecond = 64 * 1_024
/** The date of a response may be late by its transfer time. */
const toleratedSkewMilliseconds = 30_000

export type StoredObject = { key: string; modifiedAt: number }
/** A failed request to the store; `status` 0 means no response. */
export class StoreError extends StartError {
  readonly status: number
  constructor(status: number, reason: string, request: string) {
    const outcome = status === 0 ? reason : `${status} ${reason}`
    super(`the bucket of REPLICA_S3_URL: ${request}: ${outcome}`)
    this.status = status
  }
}

type Body = Uint8Array | Blob
type Call = { query?: Record<string, string>; headers?: Record<string, string>; body?: Body }

export type ObjectStore = ReturnType<typeof openObjectStore>

/** Objects in a bucket of an S3-compatible store, below the bucket's prefix. Every call except `create` is retried a few
 *  times. Bun's client drops `If-None-Match`, so this sends the requests itself.
 *  @param timeoutMilliseconds per request; longer for large bodies
 *  @throws StoreError from every call */
export function openObjectStore(bucket: Bucket, timeoutMilliseconds: number) {
  const { endpoint, name, prefix, region, accessKeyId, secretAccessKey } = bucket
  const root = `${endpoint}/${encodeURIComponent(name)}`
  const nameOf = (key: string) => (prefix === '' ? key : `${prefix}/${key}`)
  const keyOf = (objectName: string) =>
    prefix === '' ? objectName : objectName.slice(prefix.length + 1)
  const cache = new Map<string, ArrayBuffer>()
  let skew = 0
  let isConditional = true
  const now = () => Date.now() + skew

  async function send(method: string, path: string, { query = {}, headers, body }: Call) {
    const url = new URL(root + path)
    for (const [parameter, value] of Object.entries(query)) url.searchParams.set(parameter, value)
    const datetime = new Date(now()).toISOString().replaceAll(/[:-]|\.\d{3}/g, '')
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
      accessKeyId,
      secretAccessKey,
      service: 's3',
      region,
      datetime,
      cache,
    })
    const signed = await signer.sign()
    const { signal, limit } = createLimit(timeoutMilliseconds)
    limit(sizeOf(body))
    const init = { method, headers: signed.headers, body: body ?? null, signal }
    const answer = await fetch(signed.url, init)
    limit(Number(answer.headers.get('content-length')))
    return answer
  }

  // The store refuses signatures of a wrong clock. Every response contains the store's time, which corrects it.
  async function request(method: string, path: string, call: Call = {}): Promise<Response> {
    try {
      const before = skew
      const answer = await send(method, path, call)
      learnSkew(answer)
      // A concurrent request may have corrected the clock already.
      return answer.status === 403 && skew !== before ? await send(method, path, call) : answer
    } catch (error) {
      throw new StoreError(0, (error as Error).message, `${method} ${path}`)
    }
  }

  function learnSkew(answer: Response) {
    const storeTime = Date.parse(answer.headers.get('date') ?? '')
    if (Math.abs(storeTime - now()) >= toleratedSkewMilliseconds) skew = storeTime - Date.now()
  }

  /** Keys from listings and entries are untrusted: dot segments could lead to another bucket. */
  function pathOf(key: string): string {
    const segments = nameOf(key).split('/')
    if (segments.some((one) => one === '.' || one === '..')) {
      throw new StoreError(400, 'a key must not have dot segments', key)
    }
    return `/${segments.map(encodeURIComponent).join('/')}`
  }

  async function mustBe(answer: Response, what: string, ...expected: number[]) {
    if (expected.includes(answer.status)) return answer
    throw new StoreError(answer.status, codeOf(await whole(answer.text(), what)), what)
  }

  const get = (key: string) =>
    repeating(async (): Promise<Uint8Array | undefined> => {
      const what = `GET ${key}`
      const answer = await mustBe(await request('GET', pathOf(key)), what, 200, 404)
      const bytes = await whole(answer.bytes(), what)
      return answer.status === 404 ? undefined : bytes
    })

  async function create(key: string, bytes: Uint8Array): Promise<boolean> {
    const headers = isConditional ? { 'if-none-match': '*' } : {}
    const answer = await request('PUT', pathOf(key), { headers, body: bytes })
    if (answer.status !== 412) {
      await mustBe(answer, `PUT ${key}`, 200)
      return true
    }
    const found = await get(key)
    if (found === undefined)
      throw new StoreError(412, 'but the object does not exist', `PUT ${key}`)
    return Buffer.compare(found, bytes) === 0
  }

  const remove = (key: string) =>
    repeating(async () => {
      await mustBe(await request('DELETE', pathOf(key)), `DELETE ${key}`, 200, 204, 404)
    })

  /** Tests two concurrent conditional writes and a later third one, of which exactly one may succeed. */
  async function isExclusive(key: string): Promise<boolean> {
    const write = (text: string) => create(key, Buffer.from(text)).catch(conditionalOutcome)
    try {
      const together = await Promise.all([write('first'), write('second')])
      if (together.every((outcome) => outcome === 'undecided')) {
        throw new StoreError(409, 'without a decision', `PUT ${key}`)
      }
      const succeeded = together.filter((outcome) => outcome === true)
      return succeeded.length === 1 && (await write('third')) === false
    } finally {
      await remove(key).catch(() => {})
    }
  }

  return {
    /** This machine's time, or the store's when the two differ much; ms since the epoch. */
    now,

    /** Writes an object only if the key is free.
     *  @returns whether this object is stored, by this call or by an earlier one whose response was lost */
    create,

    /** Writes or replaces an object. */
    put: (key: string, body: Body) =>
      repeating(async () => {
        await mustBe(await request('PUT', pathOf(key), { body }), `PUT ${key}`, 200)
      }),

    /** @returns undefined for an unknown key */
    get,

    /** Opens an object as a stream; undefined for an unknown key. */
    open: (key: string) =>
      repeating(async (): Promise<Response | undefined> => {
        const answer = await mustBe(await request('GET', pathOf(key)), `GET ${key}`, 200, 404)
        return answer.status === 404 ? undefined : answer
      }),

    /** Lists the objects with this key prefix after the key `after`, in key order; at most 1000 per page and request. */
    async *list(under: string, after = ''): AsyncGenerator<StoredObject[]> {
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
          return await whole(answer.text(), what)
        })
        // Some stores return a page unsorted.
        yield objectsOf(page)
          .map(({ key, modifiedAt }) => ({ key: keyOf(key), modifiedAt }))
          .sort((a, b) => (a.key < b.key ? -1 : 1))
        token = textOf(page, 'NextContinuationToken') ?? ''
      } while (token !== '')
    },

    /** Also succeeds for an unknown key. */
    delete: remove,

    /** Tests whether the store supports conditional writes, on which replication depends. If it does not, `create`
     *  writes unconditionally.
     *  @throws StoreError when it does not respond or cannot store objects */
    async probeConditionalWrites(): Promise<boolean> {
      isConditional = await isExclusive(`probe/${crypto.randomUUID()}`)
      return isConditional
    },
  }
}

/** Reads the body of a response, during which the connection may be lost. */
const whole = <T>(body: Promise<T>, what: string) =>
  body.catch((error: Error) => {
    throw new StoreError(0, error.message, what)
  })

/** Retries an idempotent request a few times. */
async function repeating<T>(work: () => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await work()
    } catch (error) {
      const isTransient = error instanceof StoreError && (error.status === 0 || error.status >= 500)
      if (!isTransient || n === attempts) throw error
      await Bun.sleep(retryMilliseconds * 2 ** n)
    }
  }
}

/** 409: the store may have accepted the other write. 501: it does not support conditions. */
function conditionalOutcome(error: unknown): false | 'undecided' {
  if (error instanceof StoreError && error.status === 409) return 'undecided'
  if (error instanceof StoreError && error.status === 501) return false
  throw error
}

/** Limits the time of a request and of its response, each extended in proportion to its size. */
function createLimit(timeoutMilliseconds: number) {
  const controller = new AbortController()
  let timer: Timer | undefined
  return {
    signal: controller.signal,
    limit(bytes: number) {
      clearTimeout(timer)
      const milliseconds = timeoutMilliseconds + (bytes / leastBytesPerSecond) * 1_000
      const end = () => controller.abort(new Error(`no answer within ${milliseconds} ms`))
      timer = setTimeout(end, milliseconds)
      timer.unref()
    },
  }
}

const sizeOf = (body: Body | undefined) => (body instanceof Blob ? body.size : (body?.length ?? 0))
const codeOf = (body: string) => textOf(body, 'Code') ?? 'without a reason'

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
