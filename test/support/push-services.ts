import { generateKeyPairSync } from 'node:crypto'
import { importJWK, type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../src/lib/clock.ts'
import type { WebPushSubscription } from '../../src/outside/push/subscription.ts'

type Answer = { status: number; headers?: Record<string, string>; body?: unknown }
/** `hang`: no response. `stall`: the body begins and never ends. `flood`: an endless error. */
type NextAnswer = Answer | Promise<Answer> | 'hang' | 'stall' | 'flood'

/** The next responses of a fake service; without any left it gives the default one. */
function createScript() {
  const answers: NextAnswer[] = []
  let chunks = 0

  function sendSome(controller: ReadableStreamDefaultController) {
    chunks++
    controller.enqueue(Buffer.alloc(chunkBytes, 'x'))
  }

  return {
    /** Bytes sent in endless bodies. */
    flooded: () => chunks * chunkBytes,
    respond: (...next: NextAnswer[]) => answers.push(...next),
    async take(usual: () => Answer): Promise<Response> {
      const next = await (answers.shift() ?? usual())
      if (next === 'hang') return new Promise(() => {})
      if (next === 'stall') return new Response(new ReadableStream({ start: sendSome }))
      if (next === 'flood') return new Response(new ReadableStream({ pull: sendSome }), error)
      const { status, headers = {}, body } = next
      return new Response(body === undefined ? null : JSON.stringify(body), { status, headers })
    },
  }
}

const error = { status: 400 }
const chunkBytes = 16_384

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })

export type FcmRequest = { path: string; authorization: string | null; message: unknown }

/** Google: a token endpoint that verifies the assertion, and FCM, which checks the granted tokens. */
export function startGoogle(clock: Clock) {
  const fcm = createScript()
  const grant = createScript()
  const grants: JWTPayload[] = []
  const sends: FcmRequest[] = []
  const elsewhere: string[] = []
  const valid = new Set<string>()

  async function answerGrant(request: Request) {
    const form = new URLSearchParams(await request.text())
    const currentDate = new Date(clock.now())
    const checks = { audience: tokenUri, algorithms: ['RS256'], currentDate }
    const { payload } = await jwtVerify(form.get('assertion') ?? '', rsa.publicKey, checks)
    grants.push(payload)
    const token = `access-${grants.length}`
    return grant.take(() => {
      valid.add(`Bearer ${token}`)
      return { status: 200, body: { access_token: token, expires_in: 3_600, token_type: 'Bearer' } }
    })
  }

  async function answerSend(path: string, request: Request) {
    const authorization = request.headers.get('authorization')
    const { message } = (await request.json()) as { message: unknown }
    sends.push({ path, authorization, message })
    const isKnown = valid.has(authorization ?? '')
    return fcm.take(() => (isKnown ? { status: 200, body: { name: 'm' } } : { status: 401 }))
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/token') return answerGrant(request)
      if (pathname.endsWith('/messages:send')) return answerSend(pathname, request)
      elsewhere.push(pathname)
      return new Response()
    },
    error: (error) => new Response(error.message, { status: 400 }),
  })
  const url = server.url.href.replace(/\/$/, '')
  const tokenUri = `${url}/token`

  return {
    url,
    tokenUri,
    /** The JSON key file of a service account. */
    keyFile: JSON.stringify({
      type: 'service_account',
      project_id: 'demo-project',
      client_email: 'push@demo-project.iam.gserviceaccount.com',
      private_key: rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      token_uri: tokenUri,
    }),
    /** The claims of every assertion, the messages, and unexpected paths. */
    grants,
    sends,
    elsewhere,
    respondGrant: grant.respond,
    respondFcm: fcm.respond,
    /** Revokes the access tokens granted so far. */
    revokeTokens: () => valid.clear(),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

export type Pushed = {
  path: string
  headers: Record<string, string | null>
  claims: JWTPayload
  payload: unknown
}
type Browser = {
  privateKey: CryptoKey
  publicKey: Uint8Array<ArrayBuffer>
  auth: Uint8Array<ArrayBuffer>
}

/** A push service with its browsers. It accepts only messages of the application server whose key the browsers have,
 *  and decrypts them as the browser would. */
export function startPushService(applicationServerKey: string, clock: Clock) {
  const script = createScript()
  const browsers = new Map<string, Browser>()
  const pushed: Pushed[] = []
  const authorizations: Array<string | null> = []

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname: path, origin } = new URL(request.url)
      const authorization = request.headers.get('authorization')
      authorizations.push(authorization)
      const currentDate = new Date(clock.now())
      const claims = await verifyVapid(authorization, { applicationServerKey, origin, currentDate })
      const browser = browsers.get(path)
      if (!browser) return new Response(null, { status: 404 })
      const payload = JSON.parse(
        await decrypt(new Uint8Array(await request.arrayBuffer()), browser),
      )
      pushed.push({ path, headers: headersOf(request), claims, payload })
      return script.take(() => ({ status: 201 }))
    },
    error: (error) => new Response(error.message, { status: 403 }),
  })

  return {
    origin: server.url.origin,
    pushed,
    /** The Authorization header of every request. */
    authorizations,
    respond: script.respond,
    flooded: script.flooded,
    /** The subscription of a new browser. */
    async subscribe(): Promise<WebPushSubscription> {
      const path = `/push/${browsers.size + 1}`
      const { browser, keys } = await makeBrowser()
      browsers.set(path, browser)
      return { endpoint: `${server.url.origin}${path}`, keys }
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

const curve = { name: 'ECDH', namedCurve: 'P-256' }

async function makeBrowser() {
  const pair = await crypto.subtle.generateKey(curve, true, ['deriveBits'])
  const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey))
  const auth = crypto.getRandomValues(new Uint8Array(16))
  const keys = { p256dh: base64url(publicKey), auth: base64url(auth) }
  return { browser: { privateKey: pair.privateKey, publicKey, auth }, keys }
}

function headersOf({ headers }: Request) {
  const names = ['content-type', 'content-encoding', 'ttl', 'urgency', 'topic']
  return Object.fromEntries(names.map((name) => [name, headers.get(name)]))
}

type VapidChecks = { applicationServerKey: string; origin: string; currentDate: Date }

async function verifyVapid(header: string | null, checks: VapidChecks) {
  const { applicationServerKey, origin, currentDate } = checks
  const [, token = '', key = ''] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(header ?? '') ?? []
  if (key !== applicationServerKey) throw new Error('another application server')
  const point = Buffer.from(key, 'base64url')
  const [x, y] = [base64url(point.subarray(1, 33)), base64url(point.subarray(33))]
  const publicKey = await importJWK({ kty: 'EC', crv: 'P-256', x, y }, 'ES256')
  const options = { audience: origin, algorithms: ['ES256'], currentDate }
  const { payload } = await jwtVerify(token, publicKey, options)
  const seconds = (payload.exp ?? Number.POSITIVE_INFINITY) - currentDate.getTime() / 1_000
  if (seconds > 24 * 3_600) throw new Error('the token lives too long')
  return payload
}

/** The browser's side of RFC 8291, implemented independently of the sender's. */
async function decrypt(body: Uint8Array<ArrayBuffer>, browser: Browser) {
  const [salt, senderKey] = [body.slice(0, 16), body.slice(21, 86)]
  const sender = await crypto.subtle.importKey('raw', senderKey, curve, false, [])
  const way = { name: 'ECDH', public: sender }
  const secret = new Uint8Array(await crypto.subtle.deriveBits(way, browser.privateKey, 256))
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), browser.publicKey, senderKey])
  const input = await derive(secret, browser.auth, info, 32)
  const key = await derive(input, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
  const iv = await derive(input, salt, Buffer.from('Content-Encoding: nonce\0'), 12)
  const aes = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['decrypt'])
  const record = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, aes, body.slice(86))
  const text = Buffer.from(record)
  if (text.at(-1) !== 2) throw new Error('the last record is not marked as such')
  return text.subarray(0, -1).toString()
}

async function derive(
  input: Uint8Array<ArrayBuffer>,
  salt: Uint8Array<ArrayBuffer>,
  info: Uint8Array<ArrayBuffer>,
  length: number,
) {
  const key = await crypto.subtle.importKey('raw', input, 'HKDF', false, ['deriveBits'])
  const way = { name: 'HKDF', hash: 'SHA-256', salt, info }
  return new Uint8Array(await crypto.subtle.deriveBits(way, key, length * 8))
}

function base64url(bytes: Uint8Array) {
  return Buffer.from(bytes).toString('base64url')
}
