import type { Core } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import type { Job } from '../../jobs/outbox.ts'
import { getById } from '../../lib/ids.ts'

export function createJobAdmin({ write, audit, outbox }: Core) {
  const actions = { job_retried: outbox.retry, job_discarded: outbox.delete }
  type Action = keyof typeof actions

  function act(action: Action, id: string, by: By) {
    actions[action](id)
    audit.record({ action, ...by, target: { type: 'job', id } })
  }

  function one(action: Action, idText: string, by: By): Promise<Job> {
    return write(() => {
      const job = getById(idText, outbox.find)
      act(action, job.id, by)
      return outbox.find(job.id) ?? job
    })
  }

  return {
    list: outbox.list,
    /** Makes a job due now, with a new series of attempts.
     *  @throws not_found */
    retry: (id: string, by: By) => one('job_retried', id, by),
    discard: async (id: string, by: By): Promise<void> => {
      await one('job_discarded', id, by)
    },
  }
}

export type JobAdmin = ReturnType<typeof createJobAdmin>
