import { type JobHandler, type JobHandlers, RetryLater } from '../../jobs/runner.ts'
import type { Clock } from '../../lib/clock.ts'
import { createKeyedMutex } from '../../lib/concurrency.ts'
import type { Log } from '../../lib/log.ts'
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
import { pushableData } from './data-rules.ts'
import type { PushTokenRow } from './push-token-store.ts'
import type { PushTokens } from './push-tokens.ts'
import { createServiceGate } from './service-gate.ts'
import type { NotificationStore } from './store.ts'

/** A chat message that its recipient has not read. */
export type UnreadMessage = { senderName: string; text: string; createdAt: number }

type PushJobsOptions = {
  store: NotificationStore
  pushTokens: PushTokens
  pusher: Pusher
  hub: Pick<Hub, 'isOnline'>
  clock: Clock
  log: Log
  /** Undefined when it has been read, a newer one has come, or its recipient is not that user. */
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
const important: readonly NotificationType[] = ['call_incoming', 'support_reply', 'payout_failed']
/** Bodies are cut to what a screen shows; every push service takes that. */
const longestBody = 240

type PushJobKind = 'urgent_push' | 'notification_push' | 'message_push'
type Push = { kind: PushJobKind; token: PushTokenRow; message: PushMessage; signal: AbortSignal }

/** The jobs that push to a device. Each is for one device and names what it tells of: what has been read meanwhile is
 *  not pushed, and what is pushed twice after a crash takes its own place on the screen, by its collapse key. */
export function createPushJobs(options: PushJobsOptions): Pick<JobHandlers, PushJobKind> {
  const { store, pushTokens, pusher, hub, clock, log, findUnreadMessage } = options
  const inTurn = createKeyedMutex()
  const gates = {
    urgent_push: createServiceGate(),
    notification_push: createServiceGate(),
    message_push: createServiceGate(),
  }

  async function deliver({ kind, token, message, signal }: Push) {
    if (message.ttlSeconds <= 0) return undefined // it would come too late to be of use
    const target = targetOf(token.token, token.platform)
    const entry = gates[kind].enter(serviceOf(target))
    if ('againAfterMilliseconds' in entry) return entry
    try {
      const outcome = await pusher.push(target, message, { signal })
      entry.leave(true)
      if (outcome === 'gone') await pushTokens.drop(token.id)
      return undefined
    } catch (error) {
      entry.leave(!(error instanceof PushPostponed))
      return failed(error)
    }
  }

  // Choice: what the service refuses is no job that anybody could mend by trying again; it is over.
  function failed(error: unknown): undefined {
    if (error instanceof PushPostponed) {
      const { message, retryAfterMilliseconds = 0 } = error
      throw new RetryLater(message, retryAfterMilliseconds, { cause: error })
    }
    if (!(error instanceof PushRefused)) throw error
    log.debug('a push was refused', { reason: error.message })
    return undefined
  }

  const pushNotification =
    <K extends 'urgent_push' | 'notification_push'>(kind: K): JobHandler<K> =>
    async ({ user_id: userId, push_token_id, notification_id }, { signal }) => {
      const token = pushTokens.find(userId, push_token_id)
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
        badge: store.count(userId).unread,
      } as const
      return deliver({ kind, token, message, signal })
    }

  const secondsLeft = (ttl: number, createdAt: number) =>
    ttl - Math.floor((clock.now() - createdAt) / 1_000)

  return {
    urgent_push: pushNotification('urgent_push'),
    notification_push: pushNotification('notification_push'),

    // In turn: an earlier message must not take the place of a later one on the screen.
    message_push: ({ user_id: userId, push_token_id, conversation_id, seq }, { signal }) =>
      inTurn(`${push_token_id} ${conversation_id}`, async () => {
        const token = pushTokens.find(userId, push_token_id)
        const unread = findUnreadMessage(userId, conversation_id, seq)
        if (!token || !unread || hub.isOnline(userId)) return undefined
        const message = {
          type: 'chat_message',
          title: unread.senderName,
          body: shortened(unread.text),
          data: { conversation_id },
          ttlSeconds: secondsLeft(messageTtlSeconds, unread.createdAt),
          urgency: 'high',
          collapseKey: conversation_id,
        } as const
        return deliver({ kind: 'message_push', token, message, signal })
      }),
  }
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
