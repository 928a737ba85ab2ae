import type { Write } from '../../db/writer.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import type { Clock } from '../../lib/clock.ts'
import { createKeyedMutex } from '../../lib/concurrency.ts'
import { notificationTypes } from '../../lib/vocabulary.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { renderDigest } from '../../mail/templates.ts'
import type { Preferences } from './preferences.ts'
import type { NotificationRow, NotificationStore } from './store.ts'

type MailJobOptions = {
  store: NotificationStore
  preferences: Preferences
  mailer: Mailer
  write: Write
  clock: Clock
  publicUrl: string
}

/** Notifications in one mail. */
const most = 50

/** The mail about what a user has not read after a while: one mail for all that has gathered (decisions 8). */
export function createMailJob(options: MailJobOptions): JobHandler<'notification_mail'> {
  const { store, preferences, mailer, write, clock, publicUrl } = options

  // Jobs of one user take turns: the first tells of everything, the others find nothing left.
  const inTurn = createKeyedMutex()

  return ({ user_id: userId, notification_id }, { id }) =>
    inTurn(userId, async () => {
      const person = store.findPerson(userId)
      const reason = store.find(userId, notification_id)
      const isDue = reason && reason.readAt === null && reason.mailedAt === null
      if (!person || person.disabledAt !== null || !isDue) return undefined
      const types = notificationTypes.filter((type) => preferences.waysOf(userId, type).email)
      const unread = store.listUnmailed(userId, types, most)
      if (unread.length === 0) return undefined
      const { email: to, locale } = person
      const messageId = `<${id.toLowerCase()}@${new URL(publicUrl).hostname}>`
      await mailer.send({ ...renderDigest(locale, unread), to, locale, messageId })
      await write(() => markMailed(userId, unread))
      return undefined
    })

  function markMailed(userId: string, rows: readonly NotificationRow[]) {
    const now = clock.now()
    for (const row of rows) store.updateMailed(userId, row.id, now)
  }
}
