import type { Static } from '@sinclair/typebox'
import type { JobItem } from '../modules/operator/model.ts'
import { type Call, listAll, withService } from './call.ts'
import {
  type Command,
  explained,
  printList,
  Refusal,
  readOperands,
  readOptions,
  refuseArguments,
  type Terminal,
  withActions,
  wrongUsage,
} from './terminal.ts'

type Job = Static<typeof JobItem>
type Change = (call: Call, id: string) => Promise<void>

const path = '/v1/admin/jobs'

export const jobs = withActions('jobs', {
  list,
  retry: changing('retry', 'due again', (call, id) => call('POST', `${path}/${id}/retry`)),
  discard: changing('discard', 'discarded', (call, id) => call('DELETE', `${path}/${id}`)),
})

function list(args: string[], terminal: Terminal) {
  const options = { dead: { type: 'boolean' }, json: { type: 'boolean' } } as const
  const { dead, json } = readOptions(args, options)
  return withService(terminal, async (call) => {
    const rows = await (dead ? listDead(call) : listAll<Job>(call, path))
    const names = ['id', 'kind', 'state', 'attempts', 'run_at', 'last_error', 'subject'] as const
    const shown = rows.map((job) => ({
      ...job,
      subject: job.subject && `${job.subject.type} ${job.subject.id}`,
    }))
    printList(terminal, names, shown, json)
  })
}

/** A change of one job, or with `--all` of all dead ones. */
function changing(action: string, done: string, change: Change): Command {
  return (args, terminal) => {
    const { values, operands } = readOperands(args, { all: { type: 'boolean' } })
    const [id, ...rest] = operands
    refuseArguments(rest)
    if ((id === undefined) === (values.all !== true)) {
      throw wrongUsage(`jobs ${action} needs the id of a job, or --all for the dead ones`)
    }
    return withService(terminal, async (call) => {
      if (id !== undefined) {
        await change(call, id).catch(explained({ not_found: `there is no job ${id}` }))
        return terminal.out(`${id} is ${done}`)
      }
      const changed = await changeDead(call, change)
      terminal.out(`${changed} ${changed === 1 ? 'job is' : 'jobs are'} ${done}`)
    })
  }
}

/** @returns how many were changed */
async function changeDead(call: Call, change: Change): Promise<number> {
  let changed = 0
  for (const job of await listDead(call)) {
    const isThere = await change(call, job.id).then(() => true, passWhenGone)
    if (isThere) changed++
  }
  return changed
}

// An admin or the job runner was quicker.
function passWhenGone(error: unknown): false {
  if (error instanceof Refusal && error.reason === 'not_found') return false
  throw error
}

const listDead = (call: Call) => listAll<Job>(call, `${path}?state=dead`)
