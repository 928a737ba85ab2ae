import type { Core } from '../../core.ts'
import { inPieces } from '../../db/pieces.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import { day, minute, timeLeft } from '../../lib/clock.ts'
import { createKeyedSemaphore } from '../../lib/concurrency.ts'
import type { Locale } from '../../lib/i18n.ts'
import { timeOfId } from '../../lib/ids.ts'
import { quietFor } from '../../lib/quiet-hours.ts'
import { ownerMessageItem, renderMail } from '../../outside/mail/templates.ts'
import type { DeskItem } from './desk-store.ts'
import type { SupportParts } from './support.ts'
import { mailIntervalMilliseconds } from './ticket-changes.ts'

type Run = Parameters<JobHandler<'assignee_mail'>>[1]

const maxPerMail = 50

/** An inbox belongs to no person with a language. */
const inboxLocale = 'en'

export function createDeskMails(core: Core, { store, desk, mailer, wantsMail }: SupportParts) {
  const { write, clock, hub, outbox, config, settings } = core
  const { inbox } = config.support
  // The first of several jobs mails everything; the others find nothing left.
  const oneAtATime = createKeyedSemaphore(1)
  // Records of sent mails that a full disk refused, by the key of the semaphore.
  const unrecorded = new Map<string, () => void>()

  /** Called before each mail, which would otherwise repeat the last one. */
  async function recordLast(key: string): Promise<void> {
    const work = unrecorded.get(key)
    if (work) await write(work)
    unrecorded.delete(key)
  }

  function record(key: string, work: () => void): Promise<void> {
    unrecorded.set(key, work)
    return recordLast(key)
  }

  function mailItemOf(item: DeskItem, body: string, locale: Locale) {
    const { id, subject, category, priority, user } = item
    const owner = { name: user.displayName, email: user.deletedAt === null ? user.email : null }
    const link = `${config.publicUrl}/console#ticket=${id}`
    const message = { id, subject, category, priority, owner, body, link }
    return ownerMessageItem(settings, locale, message)
  }

  // A reply to the mail goes to the owner of its tickets, if they all have the same one.
  function replyToOf(items: DeskItem[], otherwise: string): string {
    if (settings.get('mail_content') === 'none') return otherwise
    const addresses = new Set(items.map(({ user }) => user.email))
    const [first] = items
    return addresses.size === 1 && first?.user.deletedAt === null ? first.user.email : otherwise
  }

  const inboxMail: JobHandler<'support_inbox_mail'> = (_, { id: jobId }) =>
    oneAtATime('inbox', async () => {
      await recordLast('inbox')
      const due = store.listInboxDue(maxPerMail)
      const since = due[0]?.inboxDueAt ?? Number.POSITIVE_INFINITY
      // Messages after the last mail wait for their own job.
      if (inbox === undefined || since > clock.now() - mailIntervalMilliseconds) return undefined
      const items = due.map(({ id }) => desk.get(id)).filter(waitsForInbox)
      if (items.length > 0) await mailInbox(inbox, items, jobId)
      await record('inbox', () => due.forEach(store.updateInboxMailed))
      // Each further ticket has a job of its own.
      return undefined
    })

  const waitsForInbox = ({ waitingSince, assigneeId }: DeskItem) =>
    waitingSince !== null && !store.findEnabledAdmin(assigneeId ?? '')

  async function mailInbox(to: string, items: DeskItem[], id: string) {
    const locale = inboxLocale
    const mail = renderMail(settings, 'ticket_waiting', {
      to: { email: to, locale, displayName: settings.get('platform_name') },
      id,
      link: `${config.publicUrl}/console/desk`,
      items: items.map((item) => mailItemOf(item, newestOf(item), locale)),
    })
    await mailer.send({ ...mail, replyTo: replyToOf(items, to) })
  }

  const newestOf = ({ id, messageCount }: DeskItem) =>
    store.findMessageAt(id, messageCount)?.body ?? ''

  function assigneeOf({ assigneeId }: DeskItem) {
    const assignee = assigneeId ? store.findEnabledAdmin(assigneeId) : undefined
    const isMailed = assignee && !hub.isOnline(assignee.id) && wantsMail(assignee.id)
    return isMailed ? assignee : undefined
  }

  /** A later message has a job of its own. Called inside a `write`. */
  function passToInbox(ticketId: string, jobId: string) {
    const item = desk.find(ticketId)
    const newest = item && unmailedOf(item)
    if (!newest || newest.createdAt > timeOfId(jobId)) return
    if (store.findEnabledAdmin(item.assigneeId ?? '')) return
    const { id, waitingSince, updatedAt } = item
    store.update(id, { inboxDueAt: clock.now(), waitingSince, updatedAt })
    const options = { delayMilliseconds: mailIntervalMilliseconds }
    outbox.add('support_inbox_mail', { ticket_id: id }, options)
  }

  /** The newest message, which is the owner's while they wait; undefined if an earlier mail contained it. */
  function unmailedOf({ id, messageCount, waitingSince, assigneeMailedAt }: DeskItem) {
    const newest = waitingSince === null ? undefined : store.findMessageAt(id, messageCount)
    const isDue = newest && newest.createdAt !== assigneeMailedAt
    return isDue ? newest : undefined
  }

  async function mailAssignee(ticketId: string, { id: jobId, deliver, withOutcome }: Run) {
    await recordLast(ticketId)
    if (inbox !== undefined) withOutcome(() => passToInbox(ticketId, jobId))
    const item = desk.find(ticketId)
    const assignee = item && assigneeOf(item)
    const newest = item && unmailedOf(item)
    if (!assignee || !newest) return undefined
    const { assigneeMailedAt, id } = item
    const now = clock.now()
    const pause = timeLeft(assigneeMailedAt, mailIntervalMilliseconds, now)
    const wait = Math.max(pause, quietFor(assignee.quietHours, now))
    if (wait > 0) return { againAfterMilliseconds: wait }
    const { link, ...message } = mailItemOf(item, newest.body, assignee.locale)
    const content = { to: assignee, id: jobId, link, items: [message] }
    const about = ['support_reply'] as const
    const mail = {
      ...renderMail(settings, 'ticket_answer', { ...content, about }),
      replyTo: replyToOf([item], assignee.email),
    }
    await deliver({ userId: assignee.id, channel: 'email' }, () => mailer.send(mail))
    await record(id, () => store.updateAssigneeMailed(id, newest.createdAt))
    return undefined
  }

  const assigneeMail: JobHandler<'assignee_mail'> = ({ ticket_id }, run) =>
    oneAtATime(ticket_id, () => mailAssignee(ticket_id, run))

  return { support_inbox_mail: inboxMail, assignee_mail: assigneeMail }
}

const closingMilliseconds = 10 * minute
/** Tickets per write: closing one changes many rows. */
const closedAtOnce = 5

export function startAutoClose(core: Core, { store, changes }: SupportParts): () => void {
  const { write, clock, log, config } = core
  const { autocloseDays } = config.support
  let isStopped = false
  if (autocloseDays === 0) return () => {}

  // Finds and closes in one write, so that a reply in between keeps its ticket open.
  function closeSome(limit: number): true | undefined {
    const silent = store.listSilent(clock.now() - autocloseDays * day, limit)
    for (const ticket of silent) changes.change(ticket, { status: 'closed' }, null)
    return silent.length === limit || undefined
  }

  const options = { size: closedAtOnce, isStopping: () => isStopped }
  const stop = clock.every(closingMilliseconds, () => {
    inPieces(write, closeSome, options).catch((error: unknown) =>
      log.warn('tickets could not be closed, will retry', { error }),
    )
  })
  return () => {
    isStopped = true
    stop()
  }
}
