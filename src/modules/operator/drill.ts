import type { Core } from '../../core.ts'
import { day, hour, timeLeft } from '../../lib/clock.ts'
import { failureMessage } from '../../lib/errors.ts'
import type { Locale } from '../../lib/i18n.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import { renderMail } from '../../outside/mail/templates.ts'
import type { Replica } from '../../replication/replication.ts'

export type Drill = Pick<Replica, 'lastDrillAt' | 'noteDrill'> & {
  /** Restores the bucket into a temporary directory. Rejects with the reason when that fails. */
  verify: () => Promise<void>
}

type Admin = { email: string; emailVerified: boolean; locale: Locale; displayName: string }

export type DrillParts = { mailer: Mailer; listAdmins: () => Admin[] }

const intervalMilliseconds = 7 * day

/** A failure is logged, mailed to the admins, and tried again each day. */
export function startDrill(core: Core, drill: Drill, { mailer, listAdmins }: DrillParts) {
  const { clock, log, newId, config, settings } = core
  let isRunning = false
  let since = clock.now()
  // The first snapshot takes its time.
  let pause = Math.max(hour, timeLeft(drill.lastDrillAt(), intervalMilliseconds, since))

  async function run() {
    isRunning = true
    const reason = await failureMessage(drill.verify())
    isRunning = false
    since = clock.now()
    pause = reason === undefined ? intervalMilliseconds : day
    drill.noteDrill(since, reason)
    if (reason === undefined) return log.info('the bucket was restored for a try: it is whole')
    log.error('the bucket cannot be restored', { reason })
    const verified = listAdmins().filter(({ emailVerified }) => emailVerified)
    await Promise.all(verified.map((admin) => notify(admin, reason)))
  }

  async function notify(to: Admin, reason: string) {
    const fields = { url: config.publicUrl, reason }
    const link = `${config.publicUrl}/console/system`
    await mailer
      .send(renderMail(settings, 'bucket_failed', { to, id: newId(), link, fields }))
      .catch((error: unknown) => log.error('the mail about the bucket was not sent', { error }))
  }

  return clock.every(hour, () => {
    if (isRunning || timeLeft(since, pause, clock.now()) > 0) return
    run().catch((error: unknown) => log.error('the drill could not be recorded', { error }))
  })
}
