import { createHmac, randomBytes } from 'node:crypto'
import type { Core } from '../../core.ts'
import { isoTime } from '../../lib/clock.ts'
import { isPublicAddress } from '../../lib/ip-network.ts'
import { createPost, type ResolveHost } from './post.ts'
import type { WebhookRow } from './store.ts'

/** `at` is the time of the event in ms since the epoch. */
export type WebhookMessage = { id: string; type: string; at: number; data: object }

export type Send = ReturnType<typeof createSender>

const secretPrefix = 'whsec_'
const secretBytes = 32

export const newSecret = () => secretPrefix + randomBytes(secretBytes).toString('base64')

/** Signs and sends events as specified by Standard Webhooks (https://www.standardwebhooks.com). For a day after a rotation
 *  requests carry the signatures of the former secrets, too.
 *  @throws Error with the reason when there is no response */
export function createSender(
  { config, clock }: Pick<Core, 'config' | 'clock'>,
  { resolve, version }: { resolve: ResolveHost; version: string },
) {
  const isAllowed = config.webhookPrivate ? () => true : isPublicAddress
  const post = createPost({ resolve, isAllowed })

  return async (webhook: WebhookRow, message: WebhookMessage, signal?: AbortSignal) => {
    // The webhook may have been made under `WEBHOOK_PRIVATE`.
    if (!config.webhookPrivate && new URL(webhook.url).protocol !== 'https:')
      throw new Error('the address is not https')
    const { id, type, at, data } = message
    const now = clock.now()
    const timestamp = String(Math.floor(now / 1_000))
    const body = JSON.stringify({ type, timestamp: isoTime(at), data })
    const signed = `${id}.${timestamp}.${body}`
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': `Hostline/${version}`,
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': secretsOf(webhook, now)
        .map((secret) => signatureOf(secret, signed))
        .join(' '),
    }
    return post(webhook.url, { headers, body, signal })
  }
}

export function secretsOf(webhook: WebhookRow, now: number): string[] {
  const { secret, formerSecret, formerSecretUntil } = webhook
  const isFormerValid = formerSecret !== null && (formerSecretUntil ?? 0) > now
  return isFormerValid ? [secret, ...formerSecret.split(' ')] : [secret]
}

function signatureOf(secret: string, signed: string): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}
