import type { Core, Module } from '../../core.ts'
import { createJobAdmin } from './job-admin.ts'
import { operatorRoutes } from './routes.ts'
import { createSystem, type SystemParts } from './system.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    job_retried: 'job'
    job_discarded: 'job'
  }
}

/** The operator's API: system state, audit log and failed jobs. */
export function createOperator(core: Core, parts: SystemParts): Module {
  return {
    routes: operatorRoutes({
      audit: core.audit,
      jobs: createJobAdmin(core),
      system: createSystem(core, parts),
      noteBackup: (file, by) =>
        core.write(() => core.audit.record({ action: 'backup_made', ...by, details: { file } })),
    }),
  }
}
