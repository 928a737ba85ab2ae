import { isDeepStrictEqual } from 'node:util'
import type { Core, UnreadMessage } from '../../core.ts'
import type { Delivered } from '../../jobs/delivery-store.ts'
import type { JobHandler, JobHandlers } from '../../jobs/runner.ts'
import { createKeyedSemaphore } from '../../lib/concurrency.ts'
import { type Locale, texts } from '../../lib/i18n.ts'
import { createLru } from '../../lib/lru.ts'
import { quietFor } from '../../lib/quiet-hours.ts'
import { isVisible, plainName } from '../../lib/text.ts'
import {
  type KnownType,
  knownType,
  type NotificationType,
  type PreferenceType,
} from '../../lib/vocabulary.ts'
import { renderMail } from '../../outside/mail/templates.ts'
import { accountEntry, type PushMessage, PushRefused, targetOf } from '../../outside/push/pusher.ts'
import { type ContentLevel, linkTo, type SettingValues } from '../../settings.ts'
import type { MessagePushes } from './message-pushes.ts'
import type { NotificationParts } from './notifications.ts'
import { isAboutBlocked, type NotificationText, textOf } from './notifier.ts'
import { type HeldPush, heldOf, type PushSubject, type PushTokenRow } from './push-token-store.ts'
import type { NotificationRow, Person } from './store.ts'

export type UnreadMessages = {
  find(userId: string, conversationId: string): UnreadMessage | undefined
  count(userId: string): number
}

/** Whether a call was answered, missed or ended since a time (ms since the epoch). */
export type HasStoppedRinging = (callId: string, since: number) => boolean

type Device = { user_id: string; push_token_id: string }

type PushParts = NotificationParts & { messagePushes: MessagePushes }

const day = 24 * 3_600
const ttlSeconds: Record<KnownType, number> = {
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
/** Calls do not wait for the end of quiet hours. */
const callTypes: readonly string[] = ['call_incoming', 'call_missed']
const important: readonly NotificationType[] = ['call_incoming', 'support_reply', 'payout_failed']

type Run = Parameters<JobHandler<'message_push'>>[1]

/** A job contains only ids, so a notification that has been read by then is not pushed. The collapse key lets a push
 *  that is repeated after a crash replace the first one on the screen. */
export function createPushJobs(core: Core, parts: PushParts) {
  const { write, clock, log, settings, outbox, newId } = core
  const { store, preferences, pushTokenStore, pusher, unreadMessages, messagePushes } = parts
  const inOrder = createKeyedSemaphore(1)
  const pushedSeqs = createLru<number>(rememberedPushes)

  async function push(token: PushTokenRow, message: PushMessage, { deliver, signal }: Run) {
    if (message.ttlSeconds <= 0) return undefined
    const target = targetOf(token.token, token.platform)
    const delivery = { userId: token.userId, channel: 'push', kind: message.type } as const
    await deliver(delivery, async () => {
      const outcome = await pusher(target, message, signal).catch(refusalOf)
      if (outcome === 'gone') await write(() => pushTokenStore.delete(token.id))
      return typeof outcome === 'string' ? results[outcome] : outcome
    })
    return undefined
  }

  // Choice: a refused push is not retried, because the service would refuse it again.
  function refusalOf(error: unknown): Delivered {
    if (!(error instanceof PushRefused)) throw error
    const { message: answer } = error
    log.debug('a push was refused', { reason: answer })
    return { state: answer.startsWith(accountEntry) ? 'failed' : 'bounced', answer }
  }

  const pushNotification: JobHandler<'urgent_push' | 'notification_push'> = async (
    { user_id: userId, push_token_id, notification_id },
    run,
  ) => {
    const token = pushTokenStore.findLive(userId, push_token_id)
    const row = findDue(userId, notification_id)
    if (!token || !row) return undefined
    const { id, type } = row
    if (!callTypes.includes(type) && isHeld(token, { notification_id }, run)) return undefined
    const { title, body, data } = shownAt(settings.get('push_content'), row, platformOf(userId))
    const message = {
      type,
      title,
      body: shortened(body),
      // A link in the data of the platform comes later, so it wins.
      data: {
        ...linked(settings, linkOf(settings.get('links'), row)),
        ...pushableData(data),
        notification_id: id,
      },
      ttlSeconds: secondsLeft(ttlSeconds[knownType(type)], row.createdAt),
      urgency: important.includes(type) ? 'high' : 'normal',
      collapseKey: id,
      badge: badgeOf(userId),
    } as const
    return push(token, message, run)
  }

  const isWanted = (userId: string, type: PreferenceType) =>
    preferences.channelsOf(userId, type).push

  /** Undefined once it was read or switched off, its person was blocked, or its call stopped ringing. */
  function findDue(userId: string, notificationId: string) {
    const row = store.find(userId, notificationId)
    if (row?.readAt !== null || !isWanted(userId, row.type)) return undefined
    return isOver(parts, row) ? undefined : row
  }

  /** If messages are still pushed. One after `seq` has a push of its own. */
  function findDueMessage(userId: string, conversationId: string, seq: number) {
    if (!isWanted(userId, 'chat_message')) return undefined
    const newest = unreadMessages.find(userId, conversationId)
    return newest && newest.seq <= seq ? newest : undefined
  }

  const quietForOf = (userId: string) => quietFor(store.findPerson(userId)?.quietHours, clock.now())

  /** During quiet hours a push is stored with its device, for the job that runs when they end. */
  function isHeld(token: PushTokenRow, push: PushSubject, { withOutcome }: Run): boolean {
    const delayMilliseconds = quietForOf(token.userId)
    if (delayMilliseconds === 0) return false
    withOutcome(() => hold(token, push, delayMilliseconds))
    return true
  }

  function hold({ id, userId }: PushTokenRow, push: PushSubject, delayMilliseconds: number) {
    const token = pushTokenStore.findLive(userId, id)
    if (!token) return
    const held = heldOf(token)
    const others = held.filter((other) => placeOf(other) !== placeOf(push))
    const waiting = held.find(({ job_id }) => isWaiting(job_id))?.job_id
    const jobId = waiting ?? newId()
    const heldPush = [...others, { ...push, job_id: jobId }].slice(-maxHeldPushes)
    pushTokenStore.update(id, { heldPush })
    if (waiting !== undefined) return
    const options = { id: jobId, delayMilliseconds, receiver: token.service }
    outbox.add('held_push', { user_id: userId, push_token_id: id }, options)
  }

  /** False for a job that an admin has discarded. */
  const isWaiting = (jobId: string) => outbox.find(jobId)?.deadAt === null

  /** A later message is held in the same place. */
  const isDue = (userId: string, push: PushSubject) =>
    ('seq' in push
      ? findDueMessage(userId, push.conversation_id, push.seq)
      : findDue(userId, push.notification_id)) !== undefined

  /** Queues the only push that is due again, and goes on holding those that were held during the run. */
  function release(device: Device, before: PushTokenRow | undefined, due: readonly HeldPush[]) {
    const { user_id: userId, push_token_id: id } = device
    const token = before && pushTokenStore.findLive(userId, id)
    pushTokenStore.update(id, { heldPush: null })
    if (!token) return
    for (const push of heldSince(before, token)) hold(token, push, quietForOf(userId))
    const [only, second] = due
    if (only && !second) queue(device, only, token.service)
  }

  function queue(device: Device, { job_id: _, ...push }: HeldPush, receiver: string) {
    if ('seq' in push) outbox.add('message_push', { ...device, ...push }, { receiver })
    else outbox.add('notification_push', { ...device, ...push }, { receiver })
  }

  const platformOf = (userId: string) => ({
    locale: store.findPerson(userId)?.locale ?? ('en' as const),
    platform: settings.get('platform_name'),
  })

  const badgeOf = (userId: string) => store.count(userId).unread + unreadMessages.count(userId)

  const secondsLeft = (ttl: number, createdAt: number) =>
    ttl - Math.floor((clock.now() - createdAt) / 1_000)

  return {
    urgent_push: pushNotification,
    notification_push: pushNotification,

    // One at a time, so that an earlier message does not replace a later one on the screen.
    async message_push({ user_id: userId, push_token_id, conversation_id, seq }, run) {
      const findUnread = () => findDueMessage(userId, conversation_id, seq)
      if (!findUnread()) return undefined
      const key = `${push_token_id} ${conversation_id}`
      return inOrder(key, async () => {
        const token = pushTokenStore.findLive(userId, push_token_id)
        const unread = findUnread()
        if (!token || !unread) return undefined
        if (isHeld(token, { conversation_id, seq }, run)) return undefined
        // A later message was removed, and this one was pushed before.
        if (unread.seq <= (pushedSeqs.get(key) ?? 0)) return undefined
        const message = {
          type: 'chat_message',
          ...messageShown(unread, platformOf(userId), settings),
          data: {
            conversation_id,
            ...idsOf(unread, settings),
            ...linked(settings, linkTo(settings.get('links'), 'conversation', conversation_id)),
          },
          ttlSeconds: secondsLeft(messageTtlSeconds, unread.createdAt),
          urgency: 'high',
          collapseKey: conversation_id,
          badge: badgeOf(userId),
        } as const
        await push(token, message, run)
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

    async held_push({ user_id: userId, push_token_id }, run) {
      const token = pushTokenStore.findLive(userId, push_token_id)
      const wait = quietForOf(userId)
      if (token && wait > 0) return { againAfterMilliseconds: wait }
      const due = token ? heldOf(token).filter((push) => isDue(userId, push)) : []
      // Held pushes need a job that will run, so none may stay held after the last run.
      run.withOutcome((isLast) => {
        if (isLast) release({ user_id: userId, push_token_id }, token, due)
      })
      if (!token || due.length <= 1) return undefined
      const badge = badgeOf(userId)
      // The badge leaves out notifications that are hidden in the app.
      const count = Math.max(badge, due.length)
      const { locale, platform } = platformOf(userId)
      const message = {
        type: 'summary',
        title: platform,
        body: texts[locale].push.summary.replace('{count}', String(count)),
        data: linked(settings),
        ttlSeconds: day,
        urgency: 'normal',
        collapseKey: 'summary',
        badge,
      } as const
      return push(token, message, run)
    },
  } satisfies Partial<JobHandlers>
}

/** Its person was blocked, or its call stopped ringing. */
function isOver({ mayTalk, hasStoppedRinging }: NotificationParts, row: NotificationRow): boolean {
  const callId = row.type === 'call_incoming' ? row.data['call_session_id'] : undefined
  if (callId !== undefined && hasStoppedRinging(callId, row.createdAt)) return true
  return isAboutBlocked(mayTalk, row.userId, row)
}

const results: Record<'delivered' | 'gone' | 'unconfigured', Delivered> = {
  delivered: { state: 'sent', answer: null },
  gone: { state: 'bounced', answer: 'the device is no longer registered' },
  unconfigured: { state: 'skipped', answer: `${accountEntry} is not set` },
}

/** Older ones are dropped; the badge still counts them. */
const maxHeldPushes = 100

const heldSince = (before: PushTokenRow, now: PushTokenRow): HeldPush[] =>
  heldOf(now).filter((push) => !heldOf(before).some((one) => isDeepStrictEqual(one, push)))

const placeOf = (push: PushSubject) => ('seq' in push ? push.conversation_id : push.notification_id)

// Keys reserved by push services.
const reservedPattern = /^(from|type|message_type|notification_id)$|^(google|gcm)/i

function pushableData(data: Record<string, string>) {
  return Object.fromEntries(Object.entries(data).filter(([key]) => !reservedPattern.test(key)))
}

type Links = SettingValues['links']

function linked(settings: Settings, page?: string) {
  const link = page ?? settings.get('links').home ?? settings.get('app_url')
  return link ? { link } : {}
}

/** The page of a notification in the app: its ticket, or its own, which a hidden one lacks. */
function linkOf(links: Links, { id, type, data, inApp }: NotificationRow) {
  const ticketId = type === 'support_reply' ? data['ticket_id'] : undefined
  const link = ticketId === undefined ? undefined : linkTo(links, 'ticket', ticketId)
  return link ?? (inApp ? linkTo(links, 'notification', id) : undefined)
}

/** Notifications with several pages lead to the first page of the app. */
function commonLinkOf(links: Links, rows: readonly NotificationRow[]) {
  const pages = new Set(rows.map((row) => linkOf(links, row)))
  return pages.size === 1 ? [...pages][0] : undefined
}

type Settings = Core['settings']

function messageShown(message: UnreadMessage, { locale, platform }: ShownTo, settings: Settings) {
  const level = settings.get('push_content')
  const { push } = texts[locale]
  const sender = level === 'none' ? null : message.senderName
  const text = isVisible(message.text) ? message.text : push.file
  return {
    title: sender ?? platform,
    body: level === 'full' ? shortened(text) : push.message,
  }
}

function idsOf({ id, senderId }: UnreadMessage, settings: Settings) {
  const isShown = senderId !== null && settings.get('push_content') !== 'none'
  return { message_id: id, ...(isShown && { sender_id: senderId }) }
}

type Shown = Pick<NotificationRow, 'title' | 'body' | 'data'>
type ShownTo = { locale: Locale; platform: string }

/** Leaves out what push services and mail servers must not see: `sender` keeps the text of the type with names alone,
 *  `none` only the name of the type. Ids stay, so that the app can load the rest. */
export function shownAt(
  level: ContentLevel,
  { type, title, body, data }: Shown & { type: string },
  { locale, platform }: ShownTo,
): Shown {
  if (level === 'full') return { title, body, data }
  const known: Record<string, NotificationText> = texts[locale].notifications
  const usual = known[type] ?? texts[locale].notifications.broadcast
  const ids = keysOf(data, /_id$/)
  if (level === 'none') return { title: platform, body: textOf(usual, {}).title, data: ids }
  const names = keysOf(data, /_name$/)
  return { ...textOf(usual, names), data: { ...ids, ...names } }
}

function withPlainNames({ type, title, body, data }: NotificationRow) {
  const names = Object.entries(keysOf(data, /_name$/))
  const inText = (text: string) =>
    names.reduce((before, [, name]) => before.replaceAll(name, () => plainName(name)), text)
  const plain = Object.fromEntries(names.map(([key, name]) => [key, plainName(name)]))
  return { type, title: inText(title), body: inText(body), data: { ...data, ...plain } }
}

const keysOf = (data: Record<string, string>, pattern: RegExp) =>
  Object.fromEntries(Object.entries(data).filter(([key]) => pattern.test(key)))

/** In characters: fits a lock screen and the limits of every push service. */
const longestBody = 240

function shortened(text: string) {
  const characters = [...text.slice(0, 2 * longestBody + 2)]
  return characters.length > longestBody
    ? `${characters.slice(0, longestBody - 1).join('')}…`
    : characters.join('')
}

const maxPerMail = 50

export function createMailJob(core: Core, parts: NotificationParts) {
  const { write, clock, settings } = core
  const { store, preferences, mailer } = parts
  // One job per user at a time: the first mails all notifications, and the others find none.
  const oneAtATime = createKeyedSemaphore(1)

  function listDue(userId: string, isDue: (type: string) => boolean) {
    const mailed = preferences.list(userId).filter(([type, { email }]) => email && isDue(type))
    const types = mailed.map(([type]) => type)
    return store.listUnmailed(userId, types, maxPerMail)
  }

  /** They are marked before their mail is sent: after a crash in between it is unknown whether the mail server has
   *  accepted the mail, and a second one must not follow. */
  function claim(userId: string, notificationId: string) {
    const person = store.findPerson(userId)
    const reason = store.find(userId, notificationId)
    if (person?.disabledAt !== null || reason?.readAt !== null) return undefined
    if (reason.mailedAt !== null) return undefined
    const wait = quietFor(person.quietHours, clock.now())
    const isDue = (type: string) => wait === 0 || callTypes.includes(type)
    if (!isDue(reason.type)) return { wait, person, unread: [] }
    const listed = listDue(userId, isDue)
    store.updateMailed(userId, listed, clock.now())
    const unread = listed.filter((row) => !isOver(parts, row))
    return { wait: 0, person, unread }
  }

  function mailOf(person: Person, unread: readonly NotificationRow[], id: string) {
    const shownTo = { locale: person.locale, platform: settings.get('platform_name') }
    const level = settings.get('mail_content')
    const items = unread.map((row) => shownAt(level, withPlainNames(row), shownTo))
    const link = commonLinkOf(settings.get('links'), unread)
    const about = [...new Set(unread.map(({ type }) => type))]
    return renderMail(settings, 'notifications', { to: person, id, link, items, about })
  }

  const mailUnread: JobHandler<'notification_mail'> = async (
    { user_id: userId, notification_id },
    { id, deliver, withOutcome },
  ) => {
    const claimed = await write(() => claim(userId, notification_id))
    if (!claimed) return undefined
    const { wait, person, unread } = claimed
    if (wait > 0) return { againAfterMilliseconds: wait }
    if (unread.length === 0) return undefined
    try {
      await deliver({ userId, channel: 'email' }, () => mailer.send(mailOf(person, unread, id)))
    } catch (error) {
      const release = () => store.updateMailed(userId, unread, null)
      // Not with the outcome, unless the disk is full: the user's next job begins before that is stored, and would take them
      // for mailed.
      await write(release).catch(() => withOutcome(release))
      throw error
    }
    return undefined
  }

  return ((payload, run) =>
    oneAtATime(payload.user_id, () =>
      mailUnread(payload, run),
    )) satisfies JobHandler<'notification_mail'>
}
