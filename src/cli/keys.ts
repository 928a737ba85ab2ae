import { isoTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { rotateKeys } from '../modules/accounts/keys.ts'
import { commandLine, withDirectory } from './directory.ts'
import type { Terminal } from './terminal.ts'
import { readOptions, refuseArguments, wrongUsage } from './usage.ts'

/** `hostline keys …`: the keys that access tokens are signed with. */
export async function keys([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'list') return list(args, terminal)
  if (action === 'rotate') return rotate(args, terminal)
  throw wrongUsage('keys list or rotate')
}

async function list(args: string[], terminal: Terminal) {
  refuseArguments(args)
  await withDirectory(terminal, async (directory) => {
    for (const { kid, state, createdAt } of directory.keys.list()) {
      terminal.out([kid, state, isoTime(createdAt)].join('\t'))
    }
  })
}

async function rotate(args: string[], terminal: Terminal) {
  const { values, positionals } = readOptions(args, { now: { type: 'boolean' } })
  refuseArguments(positionals)
  const isUrgent = values.now === true
  await withDirectory(terminal, async (directory) => {
    const readyAt = await rotateKeys({ ...directory, ...commandLine, isUrgent })
    if (readyAt === undefined) return
    const reason = `the next key has not been published for an hour; that is so at ${isoTime(readyAt)}`
    throw new StartError(`${reason} (--now does not wait)`)
  })
}
