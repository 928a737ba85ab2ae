import type { Outbox } from '../../jobs/outbox.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Locale, texts } from '../../lib/i18n.ts'
import type { NewId } from '../../lib/ids.ts'
import type { NotificationType } from '../../lib/vocabulary.ts'
import type { Hub } from '../../realtime/hub.ts'
import type { NotificationData } from './data-rules.ts'
import { notificationFrame } from './frames.ts'
import type { Preferences } from './preferences.ts'
import type { PushTokens } from './push-tokens.ts'
import type { NotificationRow, NotificationStore } from './store.ts'

/** Something that a user is to hear of. Texts that are absent are told in the user's language. */
export type NotificationEvent = {
  type: NotificationType
  title?: string | undefined
  body?: string | undefined
  data: NotificationData
  /** Values besides `data` that the texts name. */
  named?: Record<string, string>
  /** The same event again is the same notification. */
  dedupeKey?: string | undefined
}

export type Outcome =
  | { kind: 'created'; row: NotificationRow; unreadCount: number }
  | { kind: 'duplicate'; row: NotificationRow }
  | { kind: 'muted' }
  | { kind: 'nobody' }

type NotifierOptions = {
  store: NotificationStore
  preferences: Preferences
  pushTokens: PushTokens
  outbox: Outbox
  hub: Hub
  newId: NewId
  clock: Clock
}

type Person = NonNullable<ReturnType<NotificationStore['findPerson']>>

export type Notifier = ReturnType<typeof createNotifier>

const mostPerUser = 1_000
const mailDelayMilliseconds = 3 * 60_000

/** Makes notifications, with everything that becomes due through them. */
export function createNotifier(options: NotifierOptions) {
  const { store, preferences, pushTokens, outbox, hub, newId, clock } = options

  /** For inside a `write`: the notification, its pushes and its mail are one transaction. */
  function create(userId: string, event: NotificationEvent): Outcome {
    const person = store.findPerson(userId)
    if (!person) return { kind: 'nobody' }
    const { type, dedupeKey } = event
    const first = dedupeKey === undefined ? undefined : store.findByDedupeKey(userId, dedupeKey)
    if (first) return { kind: 'duplicate', row: first }
    const ways = preferences.waysOf(userId, type)
    if (!ways.inApp) return { kind: 'muted' }
    const row = insert(person, event)
    forgetOldest(userId)
    if (ways.push) pushTo(row)
    if (ways.email) {
      const mail = { user_id: userId, notification_id: row.id }
      outbox.add('notification_mail', mail, mailDelayMilliseconds)
    }
    return { kind: 'created', row, unreadCount: store.count(userId).unread }
  }

  function insert({ id: userId, locale }: Person, event: NotificationEvent) {
    const { type, data, named, dedupeKey = null } = event
    const usual = textOf(locale, type, { ...data, ...named })
    const { title = usual.title, body = usual.body } = event
    const id = newId()
    return store.insert({ userId, id, type, title, body, data, dedupeKey, createdAt: clock.now() })
  }

  function forgetOldest(userId: string) {
    const { total } = store.count(userId)
    if (total > mostPerUser) store.deleteOldest(userId, total - mostPerUser)
  }

  // What is of no use a minute later does not stand behind news for everybody.
  function pushTo({ userId, id, type }: NotificationRow) {
    const kind = type === 'call_incoming' ? 'urgent_push' : 'notification_push'
    for (const tokenId of pushTokens.listIds(userId)) {
      outbox.add(kind, { user_id: userId, push_token_id: tokenId, notification_id: id })
    }
  }

  /** For after the commit: tells the user's sockets. */
  function tell(outcome: Outcome) {
    if (outcome.kind !== 'created') return
    const { row, unreadCount } = outcome
    hub.send([row.userId], notificationFrame(row, unreadCount))
  }

  return {
    create,
    tell,
    /** For the other chapters: creates inside their `write`.
     *  @returns what to call after the commit */
    notify(userId: string, event: NotificationEvent): () => void {
      const outcome = create(userId, event)
      return () => tell(outcome)
    },
  }
}

/** A text may name values in braces; `bare` stands in when one of them is missing. */
type NotificationText = { title: string; bareTitle?: string; body: string; bare?: string }

/** Title and body of a type in a language, with the values that they name. */
export function textOf(locale: Locale, type: NotificationType, values: Record<string, string>) {
  const text: NotificationText = texts[locale].notifications[type]
  const { title, bareTitle = title, body, bare = body } = text
  return { title: filled(title, values) ?? bareTitle, body: filled(body, values) ?? bare }
}

function filled(text: string, values: Record<string, string>): string | undefined {
  const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  if (!names.every((name) => values[name])) return undefined
  return text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
}
