import type { Static } from '@sinclair/typebox'
import type { JobItem } from '../modules/operator/model.ts'
import { type Call, listAll, withService } from './call.ts'
import {
  explained,
  printList,
  readOneOrAll,
  readOptions,
  type Terminal,
  withActions,
} from './terminal.ts'

type Job = Static<typeof JobItem>

export const jobs = withActions('jobs', {
  list,
  retry: (args, terminal) => change('retry', args, terminal),
  discard: (args, terminal) => change('discard', args, terminal),
})

const deadJobs = (call: Call) => Array.fromAsync(listAll<Job>(call, '/v1/admin/jobs?state=dead'))

function list(args: string[], terminal: Terminal) {
  const values = readOptions(args, { dead: { type: 'boolean' }, json: { type: 'boolean' } })
  const { dead = false, json: isJson = false } = values
  return withService(terminal, async (call) => {
    const rows = dead
      ? await deadJobs(call)
      : await Array.fromAsync(listAll<Job>(call, '/v1/admin/jobs'))
    const names = ['id', 'kind', 'state', 'attempts', 'run_at', 'last_error', 'subject'] as const
    const shown = rows.map((job) => ({
      ...job,
      subject: job.subject && `${job.subject.type} ${job.subject.id}`,
    }))
    printList(terminal, names, shown, { isJson })
  })
}

const requests = {
  retry: { method: 'POST', path: (id: string) => `/v1/admin/jobs/${id}/retry`, done: 'due again' },
  discard: { method: 'DELETE', path: (id: string) => `/v1/admin/jobs/${id}`, done: 'discarded' },
} as const

function change(action: keyof typeof requests, args: string[], terminal: Terminal) {
  const { method, path, done } = requests[action]
  const id = readOneOrAll(args, `jobs ${action} needs the id of a job, or --all for the dead ones`)
  return withService(terminal, async (call) => {
    if (id !== undefined) {
      await call(method, path(id)).catch(explained({ not_found: `there is no job ${id}` }))
      terminal.out(`${id} is ${done}`)
      return
    }
    const dead = await deadJobs(call)
    for (const job of dead) await call(method, path(job.id))
    terminal.out(`${dead.length} jobs are ${done}`)
  })
}
