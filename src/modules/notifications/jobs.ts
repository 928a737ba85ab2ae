import type { Core } from '../../core.ts'
import type { JobHandler, JobHandlers } from '../../jobs/runner.ts'
import { createKeyedSemaphore } from '../../lib/concurrency.ts'
import { texts } from '../../lib/i18n.ts'
import { createLru } from '../../lib/lru.ts'
import { isVisible } from '../../lib/text.ts'
import { type NotificationType, notificationTypes } from '../../lib/vocabulary.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import { renderDigest } from '../../outside/mail/templates.ts'
import { type Pusher, type PushMessage, PushRefused, targetOf } from '../../outside/push/pusher.ts'
import type { MessagePushes, Unread } from './message-pushes.ts'
import type { Preferences } from './preferences.ts'
import type { PushTokenRow, PushTokenStore } from './push-token-store.ts'
import type { NotificationRow, NotificationStore } from './store.ts'

/** A chat message that its recipient has not read. */
type UnreadMessage = { seq: number; senderName: string; text: string; createdAt: number }

export type UnreadMessages = {
  /** The newest unread message up to `seq`; undefined when there is none, or when a later one is unread. */
  find(userId: string, conversationId: string, seq: number): UnreadMessage | undefined
  findAll(userId: string, conversationId: string): Unread | undefined
  /** Counts the unread messages in all conversations of a user. */
  count(userId: string): number
}

type Parts = {
  store: NotificationStore
  preferences: Preferences
  pushTokenStore: PushTokenStore
  mailer: Mailer
  pusher: Pusher
  unreadMessages: UnreadMessages
  messagePushes: MessagePushes
}

const day = 24 * 3_600
const ttlSeconds: Record<NotificationType, number> = {
  call_incoming: 45,
  call_missed: day,
  payment_captured: 3 * day,
  payout_completed: 3 * day,
  payout_failed: 7 * day,
  follow_new: day,
  support_reply: 7 * day,
  broadcast: 3 * day,
}
const messageTtlSeconds = 7 * day
const rememberedPushes = 100_000
const important: readonly NotificationType[] = ['call_incoming', 'support_reply', 'payout_failed']

type PushJobs = Pick<
  JobHandlers,
  'urgent_push' | 'notification_push' | 'message_push' | 'unread_push'
>

/** Push jobs, one per device. A job contains only ids, so a notification that has been read by then is not pushed. The
 *  collapse key lets a push that is repeated after a crash replace the first one on the screen. */
export function createPushJobs(core: Core, parts: Parts): PushJobs {
  const { write, clock, log } = core
  const { store, pushTokenStore, pusher, unreadMessages, messagePushes } = parts
  const inOrder = createKeyedSemaphore(1)
  const pushedSeqs = createLru<number>(rememberedPushes)

  async function deliver(token: PushTokenRow, message: PushMessage, signal: AbortSignal) {
    if (message.ttlSeconds <= 0) return undefined
    const target = targetOf(token.token, token.platform)
    const outcome = await pusher(target, message, signal).catch(dropRefused)
    if (outcome === 'gone') await write(() => pushTokenStore.delete(token.id))
    return undefined
  }

  // Choice: a refused push is not retried, because the service would refuse it again.
  function dropRefused(error: unknown) {
    if (!(error instanceof PushRefused)) throw error
    log.debug('a push was refused', { reason: error.message })
    return undefined
  }

  const pushNotification: JobHandler<'urgent_push' | 'notification_push'> = async (
    { user_id: userId, push_token_id, notification_id },
    { signal },
  ) => {
    const token = pushTokenStore.findLive(userId, push_token_id)
    const row = store.find(userId, notification_id)
    if (!token || !row || row.readAt !== null) return undefined
    const { id, type, title, body, data } = row
    const message = {
      type,
      title,
      body: shortened(body),
      data: { ...pushableData(data), notification_id: id },
      ttlSeconds: secondsLeft(ttlSeconds[type], row.createdAt),
      urgency: important.includes(type) ? 'high' : 'normal',
      collapseKey: id,
      badge: badgeOf(userId),
    } as const
    return deliver(token, message, signal)
  }

  const badgeOf = (userId: string) => store.count(userId).unread + unreadMessages.count(userId)

  const secondsLeft = (ttl: number, createdAt: number) =>
    ttl - Math.floor((clock.now() - createdAt) / 1_000)

  return {
    urgent_push: pushNotification,
    notification_push: pushNotification,

    // One at a time, so that an earlier message does not replace a later one on the screen.
    async message_push({ user_id: userId, push_token_id, conversation_id, seq }, { signal }) {
      const findUnread = () => unreadMessages.find(userId, conversation_id, seq)
      if (!findUnread()) return undefined
      const key = `${push_token_id} ${conversation_id}`
      return inOrder(key, async () => {
        const token = pushTokenStore.findLive(userId, push_token_id)
        const unread = findUnread()
        const person = store.findPerson(userId)
        if (!token || !unread || !person) return undefined
        // A later message was removed, and this one was pushed before.
        if (unread.seq <= (pushedSeqs.get(key) ?? 0)) return undefined
        const text = isVisible(unread.text) ? unread.text : texts[person.locale].push.file
        const message = {
          type: 'chat_message',
          title: unread.senderName,
          body: shortened(text),
          data: { conversation_id },
          ttlSeconds: secondsLeft(messageTtlSeconds, unread.createdAt),
          urgency: 'high',
          collapseKey: conversation_id,
          badge: badgeOf(userId),
        } as const
        await deliver(token, message, signal)
        pushedSeqs.set(key, unread.seq)
        return undefined
      })
    },

    // Runs some time after a message was sent to an open socket, and pushes it if it is still unread.
    unread_push: ({ user_id: userId, conversation_id }) =>
      inOrder(`${userId} ${conversation_id}`, async () => {
        const wait = await write(() => messagePushes.pushUnread(userId, conversation_id))
        return wait === undefined ? undefined : { againAfterMilliseconds: wait }
      }),
  }
}

// Keys reserved by push services.
const reservedPattern = /^(from|type|message_type|notification_id)$|^(google|gcm)/i

function pushableData(data: Record<string, string>) {
  return Object.fromEntries(Object.entries(data).filter(([key]) => !reservedPattern.test(key)))
}

/** In characters: fits a lock screen and the limits of every push service. */
const longestBody = 240

function shortened(text: string) {
  const characters = [...text.slice(0, 2 * longestBody)]
  return characters.length > longestBody
    ? `${characters.slice(0, longestBody - 1).join('')}…`
    : characters.join('')
}

/** Notifications in one mail. */
const maxPerMail = 50

/** Sends one mail with all of a user's unread notifications. */
export function createMailJob(core: Core, parts: Parts): JobHandler<'notification_mail'> {
  const { write, clock, config } = core
  const { store, preferences, mailer } = parts
  // One job per user at a time: the first mails all notifications, and the others find none.
  const oneAtATime = createKeyedSemaphore(1)

  function markMailed(userId: string, rows: readonly NotificationRow[]) {
    for (const { id } of rows) store.updateMailed(userId, id, clock.now())
  }

  return ({ user_id: userId, notification_id }, { id }) =>
    oneAtATime(userId, async () => {
      const person = store.findPerson(userId)
      const reason = store.find(userId, notification_id)
      const isDue = reason?.readAt === null && reason.mailedAt === null
      if (!person || person.disabledAt !== null || !isDue) return undefined
      const types = notificationTypes.filter((type) => preferences.channelsOf(userId, type).email)
      const unread = store.listUnmailed(userId, types, maxPerMail)
      if (unread.length === 0) return undefined
      const { email: to, locale } = person
      const messageId = `<${id.toLowerCase()}@${config.issuer}>`
      await mailer.send({ ...renderDigest(locale, unread), to, locale, messageId })
      await write(() => markMailed(userId, unread))
      return undefined
    })
}
