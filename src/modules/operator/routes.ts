import { Type } from '@sinclair/typebox'
import { described, Sample, Time } from '../../api/fields.ts'
import { forCommands, operations } from '../../api/operation.ts'
import { samples } from '../../api/samples.ts'
import type { Core } from '../../core.ts'
import type { AuditFilter, By } from '../../db/audit-trail.ts'
import { recentlyConfirmed } from '../../http/confirmation.ts'
import { listAnswer, listRange } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import type { RetentionSurvey } from '../../jobs/forgetting.ts'
import type { Job, JobState as State } from '../../jobs/outbox.ts'
import { parseTime } from '../../lib/clock.ts'
import { parseId } from '../../lib/ids.ts'
import type { Replica } from '../../replication/replication.ts'
import type { SettingChanges } from '../../settings.ts'
import type { MailPreviews } from './mail-previews.ts'
import * as model from './model.ts'
import type { System } from './system.ts'

const auditPageSize = 50
const admin = operations('Administration', { access: 'admin' })
const confirmed = operations('Administration', { access: 'admin', confirm: recentlyConfirmed })

export type RouteParts = {
  mails: MailPreviews
  system: System
  namesOf: (ids: readonly string[]) => ReadonlyMap<string, string>
  surveyRetention: RetentionSurvey
  changeSettings: (changes: SettingChanges, by: By) => Promise<void>
  /** Makes a job due now, with a new series of attempts, or deletes it.
   *  @throws not_found */
  changeJob: (action: 'job_retried' | 'job_discarded', id: string, by: By) => Promise<Job>
  noteBackup: (file: string, by: By) => Promise<void>
}

export type ReplicaControl = Pick<Replica, 'takeSnapshot' | 'requestHandOver' | 'agree'>

export function operatorRoutes(
  app: RouteApp,
  { settings, audit, outbox }: Core,
  parts: RouteParts,
) {
  const { mails, system, namesOf, surveyRetention, changeSettings, changeJob, noteBackup } = parts
  function nameOf(ids: readonly (string | null)[]) {
    const names = namesOf(ids.filter((id) => id !== null))
    return (id: string | null) => (id === null ? undefined : names.get(id))
  }
  const oneJob = (job: Job) => model.jobView(job, nameOf([model.jobUserId(job)]))

  app
    .get(
      '/v1/admin/system',
      () => system(),
      admin(
        'adminGetSystem',
        'Shows the state of the service: sizes, traffic, deliveries, warnings.',
        { 200: model.SystemState },
      ),
    )
    .get(
      '/v1/admin/settings',
      () => settings.all(),
      admin('adminGetSettings', 'Shows the settings of the platform, defaults included.', {
        200: model.Settings,
      }),
    )
    .get(
      '/v1/admin/settings/defaults',
      () => settings.defaults(),
      admin('adminGetDefaultSettings', 'Shows the default of each setting.', {
        200: model.Settings,
      }),
    )
    .patch(
      '/v1/admin/settings',
      async ({ body, context }) => {
        await changeSettings(body, context.by)
        return settings.all()
      },
      confirmed(
        'adminUpdateSettings',
        'Changes settings of the platform. Absent settings keep their value, `null` is the default. The changes have effect at once.',
        { 200: model.Settings, body: model.SettingsUpdate },
      ),
    )
    .get(
      '/v1/admin/retention',
      async () => model.retentionView(await surveyRetention()),
      admin(
        'adminGetRetention',
        'Shows how many messages and tickets the settings for retention would delete now, and when it runs.',
        { 200: model.Retention },
      ),
    )
    .get(
      '/v1/admin/settings/texts',
      () => ({ kinds: mails.list() }),
      admin('adminListMailTexts', 'Lists the mails with their placeholders and default texts.', {
        200: model.MailTextKinds,
      }),
    )
    .post(
      '/v1/admin/settings/texts/preview',
      ({ body, context }) => mails.preview(body, context.by),
      admin(
        'adminPreviewMailText',
        'Shows a mail with invented values, as it would be after a change of `settings`. With `send` it is mailed to the admin, too.',
        { 200: model.MailTextPreview, body: model.MailTextPreviewRequest },
      ),
    )
    .get(
      '/v1/admin/audit-log',
      ({ query }) => {
        const filter = auditFilter(query)
        const range = listRange(query, auditPageSize)
        const found = audit.list(filter, range)
        const name = nameOf(found.rows.flatMap(({ actorId, targetId }) => [actorId, targetId]))
        return listAnswer(range, found, (row) => model.auditEntryView(row, name))
      },
      admin.list(
        'adminListAuditLog',
        'Lists the entries of the audit log, newest first.',
        model.AuditEntry,
        {
          size: auditPageSize,
          query: {
            action: Sample('login_failed', 'The action.'),
            actor_id: Sample(samples.admin.id, 'The id of the actor.'),
            target_id: Sample(samples.host.id, 'The id of the target.'),
            from: Time({
              description: 'From this time on (inclusive): ISO 8601 with a time zone.',
              examples: [samples.time],
            }),
            to: Time({ description: 'Before this time (exclusive).' }),
          },
        },
      ),
    )
    .get(
      '/v1/admin/jobs',
      ({ query }) => {
        const state = query['state'] as State | undefined // the pipeline has checked it
        const range = listRange(query)
        const found = outbox.list(state, range)
        const name = nameOf(found.rows.map(model.jobUserId))
        return listAnswer(range, found, (row) => model.jobView(row, name))
      },
      admin.list(
        'adminListJobs',
        'Lists waiting and dead jobs, such as mails and pushes, newest first.',
        model.JobItem,
        { query: { state: described(model.JobState, 'Only jobs in this state.') } },
      ),
    )
    .post(
      '/v1/admin/jobs/:id/retry',
      async ({ params, context }) => oneJob(await changeJob('job_retried', params.id, context.by)),
      admin('adminRetryJob', 'Retries a job now, with a new series of attempts.', {
        200: model.JobItem,
        example: { state: 'waiting', attempts: 0 },
      }),
    )
    .delete(
      '/v1/admin/jobs/:id',
      async ({ params, context }) => {
        await changeJob('job_discarded', params.id, context.by)
      },
      admin('adminDiscardJob', 'Discards a job; it will not run.', { 204: null }),
    )
    .post('/v1/operator/backups', ({ body, context }) => noteBackup(body.file, context.by), {
      body: Type.Object({ file: Type.String() }),
      ...forCommands(204),
    })
}

export function replicaRoutes(
  app: RouteApp,
  { takeSnapshot, requestHandOver, agree }: ReplicaControl,
) {
  app
    // The operator reads what the bucket answered.
    .post(
      '/v1/operator/replica/snapshot',
      () => takeSnapshot().catch(({ message }: Error) => ({ failure: message })),
      forCommands(),
    )
    .post('/v1/operator/replica/hand-over', () => requestHandOver(), forCommands(204))
    .post('/v1/operator/replica/agreed', ({ body }) => agree(body), {
      body: Type.Object({ pair: Type.Boolean(), lease: Type.Integer({ minimum: 1 }) }),
      ...forCommands(204),
    })
}

function auditFilter(query: Record<string, string>): AuditFilter {
  const { action, actor_id, target_id, from, to } = query
  const idOf = (text: string | undefined) => text && (parseId(text) ?? text)
  return {
    action,
    actorId: idOf(actor_id),
    targetId: idOf(target_id),
    from: from === undefined ? undefined : parseTime(from),
    to: to === undefined ? undefined : parseTime(to),
  }
}
