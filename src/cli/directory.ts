import { readConfig } from '../config.ts'
import { type AuditTrail, createAuditTrail } from '../db/audit-trail.ts'
import { openForCommand } from '../db/open.ts'
import type { Write } from '../db/writer.ts'
import { createOutbox, type Outbox } from '../jobs/outbox.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { createIds } from '../lib/ids.ts'
import { createKeyStore, type KeyStore } from '../modules/accounts/key-store.ts'
import { createOneTimeTokens } from '../modules/accounts/one-time-tokens.ts'
import { createPasswords } from '../modules/accounts/passwords.ts'
import { createPeople, type People } from '../modules/accounts/people.ts'
import { createSessionStore } from '../modules/accounts/session-store.ts'
import { createAccountStore } from '../modules/accounts/store.ts'
import { createTokenStore } from '../modules/accounts/token-store.ts'
import { createServiceKeyStore } from '../modules/platform/service-key-store.ts'
import { createServiceKeys, type ServiceKeys } from '../modules/platform/service-keys.ts'
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
  const audit = createAuditTrail(orm, newId, clock)
  const people = createPeople({
    store: createAccountStore(orm),
    sessions: createSessionStore(orm),
    oneTimeTokens: createOneTimeTokens({ store: createTokenStore(orm), clock }),
    passwords: createPasswords(),
    audit,
    write,
    newId,
    clock,
    closeUser: () => {}, // a running server sees the change and does it
  })
  try {
    const outbox = createOutbox({ orm, newId, clock, afterCommit: () => {} })
    const serviceKeys = createServiceKeys({
      store: createServiceKeyStore(orm),
      audit,
      write,
      newId,
      clock,
    })
    const keys = createKeyStore(orm)
    return await work({ people, keys, serviceKeys, audit, outbox, write, clock })
  } finally {
    connection.close()
  }
}

export type Directory = {
  people: People
  keys: KeyStore
  serviceKeys: ServiceKeys
  audit: AuditTrail
  outbox: Outbox
  write: Write
  clock: Clock
}

/** Who the audit log names for what a command did. */
export const commandLine = { actor: { type: 'command_line' } } as const
