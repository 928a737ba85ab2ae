import { isoTime } from '../lib/clock.ts'
import { withDirectory } from './directory.ts'
import type { Terminal } from './terminal.ts'
import { refuseArguments, wrongUsage } from './usage.ts'

/** `hostline keys list`: the keys that access tokens are signed with. */
export async function keys([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action !== 'list') throw wrongUsage('keys list')
  refuseArguments(args)
  await withDirectory(terminal, async (directory) => {
    for (const { kid, state, createdAt } of directory.keys.list()) {
      terminal.out([kid, state, isoTime(createdAt)].join('\t'))
    }
  })
}
