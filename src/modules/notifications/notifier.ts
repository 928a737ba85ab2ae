import type { Core, MayTalk } from '../../core.ts'
import { chunksOf } from '../../lib/chunks.ts'
import { minute } from '../../lib/clock.ts'
import {
  AppError,
  type FieldProblems,
  invalidField,
  problem,
  throwProblems,
} from '../../lib/errors.ts'
import type { NotificationEvent } from '../../lib/events.ts'
import { formatLocale, type Locale, texts } from '../../lib/i18n.ts'
import { findById } from '../../lib/ids.ts'
import { knownType, type NotificationType } from '../../lib/vocabulary.ts'
import * as model from './model.ts'
import type { NotificationParts } from './notifications.ts'
import type { Channels } from './preferences.ts'
import type { NotificationRow, Person } from './store.ts'

type Outcome =
  | { kind: 'created' | 'duplicate'; row: NotificationRow }
  | { kind: 'muted' | 'nobody' }

type Recipients = { references: readonly string[]; field: string }

export type Notifier = ReturnType<typeof createNotifier>

const typesAboutPeople: readonly NotificationType[] = ['call_incoming', 'call_missed', 'follow_new']

export function isAboutBlocked(
  mayTalk: MayTalk,
  userId: string,
  { type, data }: Pick<NotificationEvent, 'type' | 'data'>,
): boolean {
  if (!typesAboutPeople.includes(type)) return false
  return model.personKeys.some((key) => data[key] !== undefined && !mayTalk(userId, data[key]))
}

/** Users per write: few, because a user may have many devices and each device adds a row. */
const notifiedPerWrite = 20
const maxPerUser = 1_000
const mailDelayMilliseconds = 3 * minute

export function createNotifier(core: Core, parts: NotificationParts) {
  const { store, preferences, pushTokenStore, resolveUser, mayTalk } = parts
  const { write, outbox, hub, newId, clock, afterCommit, events } = core

  function insert({ id: userId, locale }: Person, event: NotificationEvent, channels: Channels) {
    const { type, text, values, dedupeKey = null } = event
    const data = model.withStoredIds(event.data)
    const { notifications, events } = texts[locale]
    const ofType = text ? events[text] : notifications[knownType(type)]
    const usual = textOf(ofType, localized({ ...data, ...values }, locale))
    const { title = usual.title, body = usual.body } = event
    const content = { userId, id: newId(), type, title, body, data, dedupeKey }
    const { inApp, email } = channels
    const createdAt = clock.now()
    // Without a mail of its own it must join no later one.
    const full = { ...content, inApp, readAt: null, mailedAt: email ? null : createdAt, createdAt }
    const named = model.personKeys.flatMap((key) => data[key] ?? [])
    // The job that erases names may have run already.
    const row = named.some(store.isRemoved) ? { ...full, ...withoutNames(full, locale) } : full
    store.insert(row)
    return row
  }

  /** Texts of broadcasts contain no names. */
  function withoutNames({ type, data }: Pick<NotificationRow, 'type' | 'data'>, locale: Locale) {
    const { follower_name: _, guest_name: __, host_name: ___, ...left } = data
    const known = knownType(type)
    const usual =
      known === 'broadcast'
        ? {}
        : textOf(texts[locale].notifications[known], localized(left, locale))
    return { data: left, ...usual }
  }

  function show(row: NotificationRow) {
    const { userId } = row
    const { total } = store.count(userId)
    if (total > maxPerUser) store.deleteOldest(userId, total - maxPerUser)
    const frame: model.NotificationFrame = {
      type: 'notification',
      notification: model.notificationView(row),
      unread_count: store.count(userId).unread,
    }
    afterCommit(() => hub.send([userId], frame))
  }

  function push({ userId, id, type }: NotificationRow) {
    const kind = type === 'call_incoming' ? 'urgent_push' : 'notification_push'
    for (const { id: tokenId, service } of pushTokenStore.listDevices(userId)) {
      const job = { user_id: userId, push_token_id: tokenId, notification_id: id }
      outbox.add(kind, job, { receiver: service })
    }
  }

  function send(row: NotificationRow, { inApp, push: isPushed, email }: Channels) {
    if (isPushed) push(row)
    if (inApp) show(row)
    if (!email) return
    const mail = { user_id: row.userId, notification_id: row.id }
    outbox.add('notification_mail', mail, { delayMilliseconds: mailDelayMilliseconds })
  }

  /** @param field names the only reference in an error
   *  @returns the users' ids without duplicates, and the references to nobody
   *  @throws validation_error for an unknown user who is the only one */
  function peopleOf(references: readonly string[], field = 'user_ids.0') {
    const ids = new Set<string>()
    const unknown = references.filter((reference) => {
      const id = resolveUser(reference)
      if (id === undefined || !store.findPerson(id)) return true
      ids.add(id)
      return false
    })
    if (unknown.length > 0 && references.length === 1) throw invalidField(field, 'unknown_user')
    return { ids: [...ids], unknown: [...new Set(unknown)] }
  }

  function callerOf(type: NotificationType, guestId = '') {
    const guest = type.startsWith('call_') ? store.findPerson(guestId) : undefined
    return guest && { guest_name: guest.displayName }
  }

  /** Inside a `write`. Channels are independent: a notification hidden in the app is still pushed and mailed. */
  function notify(userId: string, event: NotificationEvent): Outcome {
    const person = store.findPerson(userId)
    if (!person) return { kind: 'nobody' }
    const { type, dedupeKey } = event
    const first = dedupeKey === undefined ? undefined : store.findByDedupeKey(userId, dedupeKey)
    if (first) return { kind: 'duplicate', row: first }
    const channels = preferences.channelsOf(userId, type)
    if (isMuted(channels)) return { kind: 'muted' }
    const row = insert(person, event, channels)
    send(row, channels)
    if (channels.inApp && !event.isCopy) {
      const ids = { user_id: userId, notification_id: row.id }
      events.publish({ type: 'notification.created', ids })
    }
    return { kind: 'created', row }
  }

  /** Replaces external ids in `data` by user ids, and adds the name of the guest who calls.
   *  @throws validation_error for unknown external ids */
  function withIds({ type, data }: NotificationEvent): model.NotificationData {
    const ids: model.NotificationData = {}
    const details: FieldProblems = {}
    for (const key of model.personKeys) {
      const id = data[key] === undefined ? undefined : resolveUser(data[key])
      if (id !== undefined) ids[key] = id
      else if (data[key] !== undefined) details[`data.${key}`] = problem('unknown_user')
    }
    throwProblems(details)
    return { ...callerOf(type, ids['guest_id']), ...data, ...ids }
  }

  function publishRead(userId: string) {
    const unread_count = store.count(userId).unread
    const frame: model.NotificationsReadFrame = { type: 'notifications_read', unread_count }
    afterCommit(() => hub.send([userId], frame))
  }

  return {
    notify,
    peopleOf,

    eraseName(row: NotificationRow): void {
      const { locale = 'en' } = store.findPerson(row.userId) ?? {}
      store.updateTexts({ ...row, ...withoutNames(row, locale) })
    },

    forgetReplies(userId: string, ticketId: string): void {
      const { unread } = store.count(userId)
      store.deleteOfTicket(userId, ticketId)
      if (store.count(userId).unread < unread) publishRead(userId)
    },

    list: store.list,

    unreadCount: (userId: string): number => store.count(userId).unread,

    /** Idempotent.
     *  @throws not_found (unknown or of another user) */
    markRead: (userId: string, idText: string): Promise<void> =>
      write(() => {
        const row = findById(idText, (id) => store.find(userId, id))
        if (!row?.inApp) throw new AppError('not_found')
        if (row.readAt !== null) return
        store.updateRead(userId, row.id, clock.now())
        publishRead(userId)
      }),

    markAllRead: (userId: string): Promise<void> =>
      write(() => {
        if (store.count(userId).unread === 0) return
        store.updateAllRead(userId, clock.now())
        publishRead(userId)
      }),

    /** Creates a notification for each user, or returns the one with the same `dedupeKey`. Calls and follows count as muted
     *  if one of the two users has blocked the other. Unknown users of several are left out.
     *  @throws validation_error for an unknown user who is the only one, and for unknown external ids in `data` */
    async report({ references, field }: Recipients, reported: NotificationEvent) {
      const { ids, unknown } = peopleOf(references, field)
      const event = { ...reported, data: withIds(reported) }
      const outcomes: Outcome[] = []
      const notifyUnlessBlocked = (id: string): Outcome =>
        isAboutBlocked(mayTalk, id, event) ? { kind: 'muted' } : notify(id, event)
      for (const some of chunksOf(ids, notifiedPerWrite)) {
        outcomes.push(...(await write(() => some.map(notifyUnlessBlocked))))
      }
      const count = (kind: Outcome['kind']) => outcomes.filter((it) => it.kind === kind).length
      return {
        rows: outcomes.flatMap((outcome) =>
          'row' in outcome && outcome.row.inApp ? [outcome.row] : [],
        ),
        duplicates: count('duplicate'),
        muted: count('muted'),
        ...(unknown.length > 0 && { unknown }),
      }
    },
  }
}

const isMuted = ({ inApp, push, email }: Channels) => !inApp && !push && !email

/** Texts with placeholders in braces. `bareTitle` and `bare` replace them when a value is missing. */
export type NotificationText = { title: string; bareTitle?: string; body: string; bare?: string }

export function textOf(text: NotificationText, values: Record<string, string>) {
  const { title, bareTitle = title, body, bare = body } = text
  return { title: filled(title, values) ?? bareTitle, body: filled(body, values) ?? bare }
}

/** With an amount as it is written in the language: `1234.50` is `1.234,50` in German. */
function localized(values: Record<string, string>, locale: Locale): Record<string, string> {
  const { amount } = values
  if (amount === undefined) return values
  const digits = amount.split('.')[1]?.length ?? 0
  const format = new Intl.NumberFormat(formatLocale(locale), {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
  return { ...values, amount: format.format(amount as Intl.StringNumericLiteral) } // by its schema
}

function filled(text: string, values: Record<string, string>): string | undefined {
  const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  if (!names.every((name) => values[name])) return undefined
  return text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
}
