import { createJobAdmin, type JobAdmin } from '../modules/operator/job-admin.ts'
import { jobView } from '../modules/operator/model.ts'
import { commandLine, withCore } from './open.ts'
import {
  explained,
  printList,
  readOneOrAll,
  readOptions,
  type Terminal,
  wrongUsage,
} from './terminal.ts'

/** `hostline jobs …`: what is still to be done, and what was given up. */
export async function jobs([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'list') return list(args, terminal)
  if (action === 'retry' || action === 'discard') return change(action, args, terminal)
  throw wrongUsage('jobs list, retry or discard')
}

function list(args: string[], terminal: Terminal) {
  const values = readOptions(args, { dead: { type: 'boolean' }, json: { type: 'boolean' } })
  const { dead = false, json: isJson = false } = values
  return withCore(terminal, ({ outbox }) => {
    const everything = { limit: Number.MAX_SAFE_INTEGER, offset: 0 }
    const rows = outbox.list(dead ? 'dead' : undefined, everything).map(jobView)
    const names = ['id', 'kind', 'state', 'attempts', 'run_at', 'last_error'] as const
    printList(terminal, names, rows, { isJson })
  })
}

const verbs = {
  retry: { one: 'retry', all: 'retryDead', done: 'due again' },
  discard: { one: 'discard', all: 'discardDead', done: 'discarded' },
} as const satisfies Record<string, { one: keyof JobAdmin; all: keyof JobAdmin; done: string }>

function change(action: keyof typeof verbs, args: string[], terminal: Terminal) {
  const { one, all, done } = verbs[action]
  const id = readOneOrAll(args, `jobs ${action} needs the id of a job, or --all for the dead ones`)
  return withCore(terminal, async (core) => {
    const admin = createJobAdmin(core)
    if (id === undefined) {
      terminal.out(`${await admin[all](commandLine)} jobs are ${done}`)
      return
    }
    await admin[one](id, commandLine).catch(explained({ not_found: `there is no job ${id}` }))
    terminal.out(`${id} is ${done}`)
  })
}
