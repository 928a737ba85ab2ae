import type { WebhookEvent } from './contract.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>
/** A `Request`, or the headers and the unchanged body of one of Node. */
export type WebhookRequest =
  | { headers: { get(name: string): string | null }; text(): Promise<string> }
  | { headers: Headers; body: string }

const maxAgeSeconds = 300

/** Verifies that a webhook's request is from the service and recent (https://www.standardwebhooks.com). The same event may
 *  arrive again: the header `webhook-id` identifies it.
 *  @param secret `whsec_…`
 *  @throws Error for other requests */
export async function verifyWebhook(
  request: WebhookRequest,
  secret: string,
): Promise<WebhookEvent> {
  const body = 'text' in request ? await request.text() : request.body
  const [id, time, signatures = ''] = ['id', 'timestamp', 'signature'].map((name) =>
    headerOf(request, `webhook-${name}`),
  )
  const isRecent = Math.abs(Date.now() / 1_000 - Number(time)) <= maxAgeSeconds
  const { subtle } = crypto
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const [, text] = /^whsec_(.{24,})$/.exec(secret) ?? []
  if (!text) throw new Error('not the secret of a webhook')
  const key = await subtle.importKey('raw', bytesOf(text), hmac, false, ['verify'])
  const signed = new TextEncoder().encode(`${id}.${time}.${body}`)
  for (const [, signature = ''] of signatures.matchAll(/(?:^| )v1,([\w+/=]+)/g)) {
    const isOurs = await subtle.verify('HMAC', key, bytesOf(signature), signed)
    if (isOurs && isRecent) return JSON.parse(body)
  }
  throw new Error('the request is not a recent one of this webhook')
}

function headerOf({ headers }: WebhookRequest, name: string): string | undefined {
  const value = typeof headers.get === 'function' ? headers.get(name) : (headers as Headers)[name]
  return Array.isArray(value) ? value[0] : (value ?? undefined)
}

/** @throws Error for other texts */
const bytesOf = (base64: string) =>
  Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
