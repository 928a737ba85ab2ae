import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { Sample, Time } from '../../api/fields.ts'
import { forCommands, operations } from '../../api/operation.ts'
import { samples } from '../../api/samples.ts'
import type { AuditFilter, AuditTrail, By } from '../../db/audit-trail.ts'
import { ListOf, listAnswer, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import type { JobState as State } from '../../jobs/outbox.ts'
import { parseTime } from '../../lib/clock.ts'
import { parseId } from '../../lib/ids.ts'
import type { JobAdmin } from './job-admin.ts'
import {
  AuditEntry,
  auditEntryView,
  JobItem,
  JobState,
  jobView,
  SystemState,
  systemView,
} from './model.ts'
import type { System } from './system.ts'

const auditPageSize = 50
const jobPageSize = 20
const admin = operations('Administration', { access: 'admin' })

type Parts = {
  audit: AuditTrail
  jobs: JobAdmin
  system: System
  noteBackup: (file: string, by: By) => Promise<void>
}

export function operatorRoutes({ audit, jobs, system, noteBackup }: Parts) {
  return new Elysia({ name: 'operator' })
    .use(routeBase)
    .get(
      '/v1/admin/system',
      () => systemView(system()),
      admin(
        'adminGetSystem',
        'Shows the state of the service: sizes, traffic, deliveries, warnings.',
        {
          200: SystemState,
        },
      ),
    )
    .get(
      '/v1/admin/audit-log',
      ({ query }) => {
        const filter = auditFilter(query)
        const range = listRange(query, auditPageSize)
        return listAnswer(range, audit.list(filter, range), auditEntryView)
      },
      admin(
        'adminListAuditLog',
        'Lists the entries of the audit log, newest first.',
        { 200: ListOf(AuditEntry) },
        {
          query: {
            ...listQuery(auditPageSize),
            action: Sample('login_failed', { description: 'The action.' }),
            actor_id: Sample(samples.admin.id, { description: 'The id of the actor.' }),
            target_id: Sample(samples.host.id, { description: 'The id of the target.' }),
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
        const range = listRange(query, jobPageSize)
        return listAnswer(range, jobs.list(state, range), jobView)
      },
      admin(
        'adminListJobs',
        'Lists waiting and dead jobs, such as mails and pushes, newest first.',
        { 200: ListOf(JobItem) },
        { query: { ...listQuery(jobPageSize), state: JobState } },
      ),
    )
    .post(
      '/v1/admin/jobs/:id/retry',
      async ({ params, context }) => jobView(await jobs.retry(params.id, context.by)),
      admin(
        'adminRetryJob',
        'Retries a job now, with a new series of attempts.',
        { 200: JobItem },
        { example: { state: 'waiting', attempts: 0 } },
      ),
    )
    .delete(
      '/v1/admin/jobs/:id',
      ({ params, context }) => jobs.discard(params.id, context.by),
      admin('adminDiscardJob', 'Discards a job; it will not run.', { 204: null }),
    )
    .post('/v1/operator/backups', ({ body, context }) => noteBackup(body.file, context.by), {
      body: Type.Object({ file: Type.String() }),
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
