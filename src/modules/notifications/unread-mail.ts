import type { Core } from '../../core.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import { minute, timeLeft } from '../../lib/clock.ts'
import { createKeyedSemaphore } from '../../lib/concurrency.ts'
import { texts } from '../../lib/i18n.ts'
import { createLru } from '../../lib/lru.ts'
import { quietFor } from '../../lib/quiet-hours.ts'
import { excerptOf, isVisible, plainName } from '../../lib/text.ts'
import { renderMail } from '../../outside/mail/templates.ts'
import { linkTo } from '../../settings.ts'
import type { NotificationParts } from './notifications.ts'
import type { Person } from './store.ts'

type MailableMessages = {
  /** `senderName` is null for a notice of the platform. */
  conversations: { id: string; messages: { senderName: string | null; text: string }[] }[]
  /** The time of the oldest message, in ms since the epoch. */
  since: number
  newestId: string
}

export type UnreadToMail = {
  isMailed(userId: string): boolean
  findMailable(userId: string): MailableMessages | undefined
  /** `isMailed`: further messages wait for the user's next visit. `mailedThrough`: the newest message that was mailed. */
  updateMailed(userId: string, change: { isMailed?: boolean; mailedThrough?: string }): void
}

const rememberedPeople = 100_000
const maxExcerpt = 200

/** The outbox and the inbox hold the state, so a restart changes nothing; what is only in memory saves reads and jobs. */
export function createUnreadMail(core: Core, parts: NotificationParts) {
  const { write, afterCommit, outbox, clock, settings } = core
  const { store, preferences, mailer, unreadMessages } = parts
  const oneAtATime = createKeyedSemaphore(1)
  // The time of each person's next job, which covers all messages before it.
  const dueAt = createLru<number>(rememberedPeople)
  // People who have come back since their last mail.
  const present = createLru<1>(rememberedPeople)

  const delay = () => settings.get('unread_mail_minutes') * minute

  const isCovered = (userId: string, until: number) => {
    const due = dueAt.get(userId) ?? 0
    return due > clock.now() && due <= until
  }

  function arrived(userId: string): void {
    const delayMilliseconds = delay()
    const due = clock.now() + delayMilliseconds
    if (delayMilliseconds === 0 || isCovered(userId, due)) return
    if (unreadMessages.isMailed(userId)) return
    afterCommit(() => dueAt.set(userId, due))
    outbox.add('unread_mail', { user_id: userId }, { delayMilliseconds })
  }

  function runAgain(userId: string, wait: number) {
    const due = clock.now() + wait
    if (isCovered(userId, due)) return undefined
    dueAt.set(userId, due)
    return { againAfterMilliseconds: wait }
  }

  function mailedPerson(userId: string) {
    const person = store.findPerson(userId)
    const mayMail = person?.disabledAt === null && person.emailVerified && delay() > 0
    if (!mayMail || unreadMessages.isMailed(userId)) return undefined
    return preferences.channelsOf(userId, 'chat_message').email ? person : undefined
  }

  function mailOf(person: Person, { conversations }: MailableMessages, id: string) {
    const [only, second] = conversations
    const isOne = only !== undefined && second === undefined
    const link = isOne ? linkTo(settings.get('links'), 'conversation', only.id) : undefined
    const items = itemsOf(conversations, person.locale, settings)
    const about = ['chat_message'] as const
    return renderMail(settings, 'unread_messages', { to: person, id, link, items, about })
  }

  /** The run begins before its mail is sent: after a crash in between it is unknown whether the mail server has
   *  accepted the mail, and a second one must not follow. */
  function claim(userId: string) {
    const person = mailedPerson(userId)
    const unread = person && unreadMessages.findMailable(userId)
    if (!unread) return undefined
    const now = clock.now()
    const pause = timeLeft(unread.since, delay(), now)
    const wait = Math.max(pause, quietFor(person.quietHours, now))
    if (wait > 0) return { wait, person, unread }
    present.delete(userId)
    unreadMessages.updateMailed(userId, { isMailed: true })
    return { wait, person, unread }
  }

  const mailUnread: JobHandler<'unread_mail'> = async (
    { user_id: userId },
    { id, deliver, withOutcome },
  ) => {
    // If the clock were set back, an old time would cover new messages.
    if ((dueAt.get(userId) ?? 0) <= clock.now()) dueAt.delete(userId)
    const claimed = await write(() => claim(userId))
    if (!claimed) return undefined
    const { wait, person, unread } = claimed
    if (wait > 0) return runAgain(userId, wait)
    let outcome: Parameters<UnreadToMail['updateMailed']>[1] = { isMailed: false }
    withOutcome(() => unreadMessages.updateMailed(userId, outcome))
    await deliver({ userId, channel: 'email' }, () => mailer.send(mailOf(person, unread, id)))
    outcome = { mailedThrough: unread.newestId }
    // Not only with the outcome: the person may have come back, and their next job begins before that is stored.
    await write(() => unreadMessages.updateMailed(userId, outcome))
    return undefined
  }

  return {
    arrived,
    visited(userId: string): void {
      if (present.has(userId)) return
      present.set(userId, 1)
      if (!unreadMessages.isMailed(userId)) return
      write(() => {
        unreadMessages.updateMailed(userId, { isMailed: false })
        // Messages that arrived since the mail.
        if (unreadMessages.findMailable(userId)) arrived(userId)
      }).catch(() => present.delete(userId))
    },
    /** An admin retries or discards a job of a person: their next one is unknown. */
    forgetDue: (userId: string): void => void dueAt.delete(userId),
    job: ((payload, run) =>
      oneAtATime(payload.user_id, () =>
        mailUnread(payload, run),
      )) satisfies JobHandler<'unread_mail'>,
  }
}

/** One item for each sender in each conversation. */
function itemsOf(
  conversations: MailableMessages['conversations'],
  locale: Person['locale'],
  settings: Core['settings'],
) {
  const level = settings.get('mail_content')
  const platform = settings.get('platform_name')
  const { push } = texts[locale]
  if (level === 'none') return [{ title: platform, body: push.message }]
  const excerpt = ({ text }: { text: string }) =>
    excerptOf(isVisible(text) ? text : push.file, maxExcerpt)
  const senders = conversations.flatMap(({ messages }) => [
    ...Map.groupBy(messages, ({ senderName }) => senderName),
  ])
  return senders.map(([senderName, messages]) => ({
    title: senderName === null ? platform : plainName(senderName),
    body: level === 'full' ? messages.map(excerpt).join('\n\n') : push.message,
  }))
}
