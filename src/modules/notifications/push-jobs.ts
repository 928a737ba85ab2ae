import { type JobHandlers, PermanentFailure, RetryLater } from '../../jobs/runner.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NotificationType } from '../../lib/vocabulary.ts'
import {
  type Pusher,
  type PushMessage,
  PushPostponed,
  PushRefused,
  type PushTarget,
  targetOf,
} from '../../push/pusher.ts'
import type { Hub } from '../../realtime/hub.ts'
import type { PushTokenRow } from './push-token-store.ts'
import type { PushTokens } from './push-tokens.ts'
import type { NotificationStore } from './store.ts'

/** A chat message that its recipient has not read. */
export type UnreadMessage = { senderName: string; text: string; createdAt: number }

type PushJobsOptions = {
  store: NotificationStore
  pushTokens: PushTokens
  pusher: Pusher
  hub: Pick<Hub, 'isOnline'>
  clock: Clock
  /** Undefined when it has been read, or its recipient is not that user. */
  findUnreadMessage: (
    userId: string,
    conversationId: string,
    seq: number,
  ) => UnreadMessage | undefined
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
const urgent: readonly NotificationType[] = ['call_incoming', 'support_reply', 'payout_failed']
/** Bodies are cut to what a screen shows; every push service takes that. */
const longestBody = 240
/** Pushes to one service at the same time: one that hangs holds up nobody else. */
const atOncePerService = 8
const turnedAwayMilliseconds = 1_000

/** The jobs that push to a device. Each is for one device and names what it tells of: what has been read meanwhile is
 *  not pushed, and what is pushed twice after a crash replaces itself by its collapse key. */
export function createPushJobs(
  options: PushJobsOptions,
): Pick<JobHandlers, 'notification_push' | 'message_push'> {
  const { store, pushTokens, pusher, hub, clock, findUnreadMessage } = options
  const enter = createTurnstile(atOncePerService)

  async function deliver(token: PushTokenRow, message: PushMessage) {
    if (message.ttlSeconds <= 0) return undefined // it would come too late to be of use
    const target = targetOf(token.token, token.platform)
    const leave = enter(serviceOf(target))
    if (!leave) return { againAfterMilliseconds: turnedAwayMilliseconds }
    try {
      const outcome = await pusher.push(target, message)
      if (outcome === 'gone') await pushTokens.drop(token.id)
      return undefined
    } catch (error) {
      throw asJobFailure(error)
    } finally {
      leave()
    }
  }

  const secondsLeft = (ttl: number, createdAt: number) =>
    ttl - Math.floor((clock.now() - createdAt) / 1_000)

  return {
    async notification_push({ user_id: userId, push_token_id, notification_id }) {
      const token = pushTokens.find(userId, push_token_id)
      const row = store.find(userId, notification_id)
      if (!token || !row || row.readAt !== null) return undefined
      const { id, type, title, body, data } = row
      return deliver(token, {
        type,
        title,
        body: shortened(body),
        data: { ...data, notification_id: id },
        ttlSeconds: secondsLeft(ttlSeconds[type], row.createdAt),
        urgency: urgent.includes(type) ? 'high' : 'normal',
        collapseKey: id,
        badge: store.count(userId).unread,
      })
    },

    async message_push({ user_id: userId, push_token_id, conversation_id, seq }) {
      const token = pushTokens.find(userId, push_token_id)
      const message = findUnreadMessage(userId, conversation_id, seq)
      if (!token || !message || hub.isOnline(userId)) return undefined
      return deliver(token, {
        type: 'chat_message',
        title: message.senderName,
        body: shortened(message.text),
        data: { conversation_id },
        ttlSeconds: secondsLeft(messageTtlSeconds, message.createdAt),
        urgency: 'high',
        collapseKey: conversation_id,
      })
    },
  }
}

/** Lets so many in at once under each name.
 *  @returns how to leave; undefined when it is full */
function createTurnstile(most: number) {
  const inside = new Map<string, number>()
  return (name: string): (() => void) | undefined => {
    const before = inside.get(name) ?? 0
    if (before >= most) return undefined
    inside.set(name, before + 1)
    return () => {
      const left = (inside.get(name) ?? 1) - 1
      if (left > 0) inside.set(name, left)
      else inside.delete(name)
    }
  }
}

function asJobFailure(error: unknown): unknown {
  if (error instanceof PushRefused) return new PermanentFailure(error.message, { cause: error })
  if (!(error instanceof PushPostponed)) return error
  const { message, retryAfterMilliseconds = 0 } = error
  return new RetryLater(message, retryAfterMilliseconds, { cause: error })
}

function serviceOf(target: PushTarget) {
  return target.kind === 'fcm' ? 'fcm' : new URL(target.subscription.endpoint).host
}

function shortened(text: string) {
  const characters = [...text.slice(0, 2 * longestBody)]
  return characters.length > longestBody
    ? `${characters.slice(0, longestBody - 1).join('')}…`
    : characters.join('')
}
