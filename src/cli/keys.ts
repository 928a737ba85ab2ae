import { isoTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { createKeyAdmin } from '../modules/accounts/keys.ts'
import { commandLine, withCore } from './open.ts'
import { printList, readListOptions, readOptions, type Terminal, wrongUsage } from './terminal.ts'

/** `hostline keys …`: the keys that access tokens are signed with. */
export async function keys([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'list') return list(args, terminal)
  if (action === 'rotate') return rotate(args, terminal)
  throw wrongUsage('keys list or rotate')
}

function list(args: string[], terminal: Terminal) {
  const options = readListOptions(args)
  return withCore(terminal, (core) => {
    const rows = createKeyAdmin(core)
      .list()
      .map(({ kid, state, createdAt }) => ({ kid, state, created_at: isoTime(createdAt) }))
    printList(terminal, ['kid', 'state', 'created_at'], rows, options)
  })
}

function rotate(args: string[], terminal: Terminal) {
  const { now: isUrgent = false } = readOptions(args, { now: { type: 'boolean' } })
  return withCore(terminal, async (core) => {
    const readyAt = await createKeyAdmin(core).rotate({ ...commandLine, isUrgent })
    if (readyAt === undefined) {
      terminal.out(`rotated: ${isUrgent ? 'the old keys are withdrawn' : 'nobody is logged out'}`)
      return
    }
    const reason = `the next key has not been published for an hour; that is so at ${isoTime(readyAt)}`
    throw new StartError(`${reason} (--now does not wait)`)
  })
}
