import type { Core, Module } from '../../core.ts'
import type { RetentionSurvey } from '../../jobs/forgetting.ts'
import type { Mailer } from '../../outside/mail/mailer.ts'
import { type Drill, startDrill } from './drill.ts'
import { createJobAdmin } from './job-admin.ts'
import { createMailPreviews } from './mail-previews.ts'
import { operatorRoutes, type ReplicaControl, replicaRoutes } from './routes.ts'
import { createSystem, type SystemParts } from './system.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    job_retried: 'job'
    job_discarded: 'job'
    mail_text_sent: 'setting'
  }
}

type Parts = SystemParts & {
  replica: ReplicaControl | undefined
  /** Undefined without a bucket, or when it is switched off. */
  drill: Drill | undefined
  mailer: Mailer
  /** Keeps the file of the logo, inside a `write`.
   *  @throws validation_error (`logo_url`) */
  useLogo: (url: string | null) => void
  surveyRetention: RetentionSurvey
  /** Names of users by id; deleted ones are missing. */
  namesOf: (ids: readonly string[]) => ReadonlyMap<string, string>
}

export function createOperator(core: Core, parts: Parts): Module {
  const { settings, write } = core
  const routes = operatorRoutes({
    settings: {
      all: settings.all,
      defaults: settings.defaults,
      async change(changes, by) {
        await write(() => {
          if (changes.logo_url !== undefined) parts.useLogo(changes.logo_url)
          settings.change(changes, by)
        })
        return settings.all()
      },
    },
    mails: createMailPreviews(core, parts.mailer),
    audit: core.audit,
    jobs: createJobAdmin(core),
    system: createSystem(core, parts),
    namesOf: parts.namesOf,
    surveyRetention: parts.surveyRetention,
    noteBackup: (file, by) =>
      write(() => core.audit.record({ action: 'backup_made', ...by, details: { file } })),
  })
  const { replica, drill, mailer } = parts
  const stop = drill && startDrill(core, { drill, mailer })
  return { routes: replica ? routes.use(replicaRoutes(replica)) : routes, ...(stop && { stop }) }
}
