import { readConfig } from '../config.ts'
import { createAuditTrail } from '../db/audit-trail.ts'
import { openForCommand } from '../db/client.ts'
import type { Write } from '../db/writer.ts'
import { systemClock } from '../lib/clock.ts'
import { createIds } from '../lib/ids.ts'
import { createKeyStore } from '../modules/accounts/key-store.ts'
import { createPasswords } from '../modules/accounts/passwords.ts'
import { createPeople } from '../modules/accounts/people.ts'
import { createAccountStore } from '../modules/accounts/store.ts'
import type { Terminal } from './terminal.ts'

/** Opens the data directory for one command, beside a running server or alone, and closes it afterwards. */
export async function withDirectory<T>(
  terminal: Terminal,
  work: (directory: Directory) => Promise<T>,
): Promise<T> {
  const { dataDir } = readConfig(terminal.environment, terminal.isInteractive)
  const connection = openForCommand(dataDir)
  const { orm, sqlite } = connection
  const clock = systemClock
  const newId = createIds(clock)
  const write: Write = async (act) => sqlite.transaction(act).immediate()
  const people = createPeople({
    store: createAccountStore(orm),
    passwords: createPasswords(),
    audit: createAuditTrail(orm, newId, clock),
    write,
    newId,
    clock,
  })
  try {
    return await work({ people, keys: createKeyStore(orm) })
  } finally {
    connection.close()
  }
}

type Directory = {
  people: ReturnType<typeof createPeople>
  keys: ReturnType<typeof createKeyStore>
}
