import type { Core, Module } from '../../core.ts'
import type { Job } from '../../jobs/outbox.ts'
import { getById } from '../../lib/ids.ts'
import { type Drill, type DrillParts, startDrill } from './drill.ts'
import { createMailPreviews, type PreviewParts } from './mail-previews.ts'
import { jobUserId } from './model.ts'
import { operatorRoutes, type ReplicaControl, type RouteParts, replicaRoutes } from './routes.ts'
import { createSystem, type SystemParts } from './system.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    job_retried: 'job'
    job_discarded: 'job'
    mail_text_sent: 'setting'
  }
}

type Parts = SystemParts &
  PreviewParts &
  DrillParts &
  Pick<RouteParts, 'namesOf' | 'surveyRetention'> & {
    replica: ReplicaControl | undefined
    /** Undefined without a bucket, or when it is switched off. */
    drill: Drill | undefined
    /** Keeps the file of the logo, inside a `write`.
     *  @throws validation_error (`logo_url`) */
    useLogo: (url: string | null) => void
    /** Ends the delivery to a webhook whose job was discarded. */
    endDelivery: (job: Job) => void
    onJobChanged: (userId: string) => void
  }

export function createOperator(core: Core, parts: Parts): Module {
  const { settings, outbox, deliveries, audit, write } = core
  const { replica, drill } = parts

  function discard(job: Job) {
    outbox.delete(job.id)
    if (job.deadAt === null) deliveries.skip(job.id)
    parts.endDelivery(job)
  }

  const routeParts = {
    ...parts,
    mails: createMailPreviews(core, parts),
    system: createSystem(core, parts),
    changeSettings: (changes, by) =>
      write(() => {
        if (changes.logo_url !== undefined) parts.useLogo(changes.logo_url)
        settings.change(changes, by)
      }),
    changeJob: (action, idText, by) =>
      write(() => {
        const job = getById(idText, outbox.find)
        if (action === 'job_retried') outbox.retry(job.id)
        else discard(job)
        parts.onJobChanged(jobUserId(job) ?? '')
        audit.record({ action, ...by, target: { type: 'job', id: job.id } })
        return outbox.find(job.id) ?? job
      }),
    noteBackup: (file, by) =>
      write(() => audit.record({ action: 'backup_made', ...by, details: { file } })),
  } satisfies RouteParts
  const stop = drill && startDrill(core, drill, parts)
  return {
    routes(app) {
      operatorRoutes(app, core, routeParts)
      if (replica) replicaRoutes(app, replica)
    },
    ...(stop && { stop }),
  }
}
