import type { Core } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import { inPieces } from '../../db/pieces.ts'
import type { Job } from '../../jobs/outbox.ts'
import { getById } from '../../lib/ids.ts'

/** Administration of failed jobs. Each change is recorded in the audit log. */
export function createJobAdmin({ write, audit, outbox, clock }: Core) {
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

  // Only jobs that were dead at the call, because a retried job may die again during the run.
  async function allDead(action: Action, by: By): Promise<number> {
    const until = clock.now()
    const done = await inPieces<number>(write, (limit, before = 0) => {
      const ids = outbox.listDead(until, limit)
      for (const id of ids) act(action, id, by)
      return ids.length > 0 ? before + ids.length : undefined
    })
    return done ?? 0
  }

  return {
    /** Newest first. */
    list: outbox.list,
    /** Makes a job due now, with a new series of attempts.
     *  @throws not_found */
    retry: (id: string, by: By) => one('job_retried', id, by),
    /** @throws not_found */
    discard: async (id: string, by: By): Promise<void> => {
      await one('job_discarded', id, by)
    },
    /** @returns the number of jobs */
    retryDead: (by: By) => allDead('job_retried', by),
    /** @returns the number of jobs */
    discardDead: (by: By) => allDead('job_discarded', by),
  }
}

export type JobAdmin = ReturnType<typeof createJobAdmin>
