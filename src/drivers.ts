import type { Config } from './config.ts'
import type { Clock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import { createLogMailer } from './mail/log-mailer.ts'
import type { Mailer } from './mail/mailer.ts'
import { createSmtpMailer } from './mail/smtp.ts'
import { createFcmDriver } from './push/fcm.ts'
import { createPusher, type Pusher } from './push/pusher.ts'
import type { VapidKeys } from './push/vapid.ts'
import { createWebPushDriver } from './push/web-push.ts'

/** Mail as it is configured; without a server it is logged. */
export function mailerOf({ smtpUrl, mailFrom }: Config, log: Log): Mailer {
  return smtpUrl === undefined ? createLogMailer(log) : createSmtpMailer(smtpUrl, mailFrom)
}

type PushOptions = {
  clock: Clock
  keys: VapidKeys
  isAllowed: (endpoint: string) => boolean
}

/** Push as it is configured: Web Push always, FCM with a service account. */
export function pusherOf(config: Config, { clock, keys, isAllowed }: PushOptions): Pusher {
  const { fcm } = config
  return createPusher({
    fcm:
      fcm &&
      createFcmDriver({
        clock,
        account: fcm.account,
        ...(fcm.url !== undefined && { baseUrl: fcm.url }),
      }),
    webPush: createWebPushDriver({ keys, subject: contactOf(config), clock, isAllowed }),
  })
}

/** How push services reach the operator: they refuse addresses that nobody but us can open. */
function contactOf({ publicUrl, issuer }: Config) {
  return publicUrl.startsWith('https:') ? publicUrl : `mailto:hostline@${issuer}`
}
