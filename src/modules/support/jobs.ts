import type { Core } from '../../core.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { renderTicketMail } from '../../mail/templates.ts'
import type { DeskStore } from './desk-store.ts'
import type { SearchStore } from './search-store.ts'
import type { TicketStore } from './store.ts'
import type { TicketChangesMaker } from './ticket-changes.ts'

type MailParts = { store: TicketStore; desk: DeskStore; mailer: Mailer }

/** The mail that tells the operator of a new ticket. */
export function createInboxMail(
  { config }: Core,
  { store, desk, mailer }: MailParts,
): JobHandler<'support_inbox_mail'> {
  const { inbox } = config.support
  const { hostname } = new URL(config.publicUrl)

  return async ({ ticket_id }, { id: jobId }) => {
    const item = desk.find(ticket_id)
    const first = store.findMessageAt(ticket_id, 1)
    if (!item || !first || inbox === undefined) return undefined
    const { id, subject, category, priority, user } = item
    const from = user.deletedAt === null ? `${user.displayName} <${user.email}>` : user.displayName
    const mail = renderTicketMail({ id, subject, category, priority, from, body: first.body })
    const messageId = `<${jobId.toLowerCase()}@${hostname}>`
    await mailer.send({ ...mail, to: inbox, locale: 'en', messageId })
    return undefined
  }
}

const day = 86_400_000
const closingMilliseconds = 600_000
/** Tickets in one transaction: short enough for the loop. */
const closedAtOnce = 5

/** Closes resolved tickets in which nobody wrote for some days.
 *  @returns how to stop */
export function startAutoClose(
  { write, clock, log, config }: Core,
  { store, changes }: { store: TicketStore; changes: TicketChangesMaker },
): () => void {
  const { autocloseDays } = config.support
  let isStopped = false
  if (autocloseDays === 0) return () => {}

  // Found and closed in one write: a reply in between keeps its ticket open.
  function closeSome(): number {
    const silent = store.listSilent(clock.now() - autocloseDays * day, closedAtOnce)
    for (const ticket of silent) changes.change(ticket, { status: 'closed' }, null)
    return silent.length
  }

  async function run() {
    while (!isStopped && (await write(closeSome)) === closedAtOnce);
  }

  const stop = clock.every(closingMilliseconds, () => {
    run().catch((error: unknown) =>
      log.warn('tickets could not be closed, which is tried again', { error }),
    )
  })
  return () => {
    isStopped = true
    stop()
  }
}

/** As many parts of one size are merged at once (`usermerge` in the migration): fewer changes leave nothing to do. */
const changesPerMerge = 8
const pauseMilliseconds = 20

/** Merges the full-text index between requests. Each commit adds a part to it; a search looks into all of them. */
export function createIndexMerger({ write, log }: Core, { mergeSome }: SearchStore) {
  let unmerged = 0
  let isRunning = false
  let isStopped = false

  async function run() {
    do await Bun.sleep(pauseMilliseconds)
    while (!isStopped && (await write(() => mergeSome())))
  }

  return {
    /** Called after each commit that changed the index. */
    count() {
      unmerged++
      if (isRunning || unmerged < changesPerMerge) return
      unmerged = 0
      isRunning = true
      run()
        .catch((error: unknown) => log.warn('the search index could not be merged', { error }))
        .finally(() => {
          isRunning = false
        })
    },
    stop() {
      isStopped = true
    },
  }
}
