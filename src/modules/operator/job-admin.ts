import type { Core } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import type { Job } from '../../jobs/outbox.ts'
import { getById } from '../../lib/ids.ts'

/** Rows per transaction; more would block the event loop for too long. */
const chunk = 200

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

  // Only jobs that were dead at the call: a retried job may die again meanwhile.
  async function allDead(action: Action, by: By): Promise<number> {
    const until = clock.now()
    let done = 0
    for (;;) {
      const count = await write(() => {
        const ids = outbox.listDead(until, chunk)
        for (const id of ids) act(action, id, by)
        return ids.length
      })
      done += count
      if (count < chunk) return done
    }
  }

  return {
    /** Newest first. */
    list: outbox.list,
    /** Makes a job due now, with all attempts anew.
     *  @throws not_found */
    retry: (id: string, by: By) => one('job_retried', id, by),
    /** @throws not_found */
    discard: async (id: string, by: By): Promise<void> => {
      await one('job_discarded', id, by)
    },
    /** @returns how many */
    retryDead: (by: By) => allDead('job_retried', by),
    /** @returns how many */
    discardDead: (by: By) => allDead('job_discarded', by),
  }
}

export type JobAdmin = ReturnType<typeof createJobAdmin>
