import type { Database } from 'bun:sqlite'
import type { AuditTrail } from '../../db/audit-trail.ts'
import type { Orm } from '../../db/client.ts'
import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Hub } from '../../realtime/hub.ts'
import { watchAccess } from './access-watch.ts'
import { createKeyStore } from './key-store.ts'
import { openKeyring } from './keys.ts'
import { createLoginThrottle } from './login-throttle.ts'
import { createMailJobs } from './mail-jobs.ts'
import { createOneTimeTokens } from './one-time-tokens.ts'
import { type Argon2Cost, createPasswords } from './passwords.ts'
import { createPeople } from './people.ts'
import { createProfileService } from './profile-service.ts'
import { createRecoveryService } from './recovery-service.ts'
import { createAccountService } from './service.ts'
import { createSessionStore } from './session-store.ts'
import { createSessions } from './sessions.ts'
import { createAccountStore } from './store.ts'
import { createTokenStore } from './token-store.ts'
import { createAccessTokens } from './tokens.ts'

type AccountsOptions = {
  orm: Orm
  sqlite: Database
  write: Write
  audit: AuditTrail
  outbox: Outbox
  newId: NewId
  clock: Clock
  log: Log
  hub: Hub
  mailer: Mailer
  publicUrl: string
  issuer: string
  /** Whether guessing at one address is slowed down. */
  isThrottled: boolean
  passwordCost?: Argon2Cost | undefined
  /** What the rest of the service does, inside the write, when somebody removes their account. */
  onRemoved: (userId: string) => void
}

/** Builds the chapter on accounts: its services, its jobs, and the watch over what commands beside us change. */
export async function openAccounts(options: AccountsOptions) {
  const { orm, sqlite, write, audit, newId, clock, log, hub, issuer } = options
  const store = createAccountStore(orm)
  const sessionStore = createSessionStore(orm)
  const oneTimeTokens = createOneTimeTokens({ store: createTokenStore(orm), clock })
  const keyring = await openKeyring({ keys: createKeyStore(orm), write, clock })
  const common = {
    ...options,
    store,
    passwords: createPasswords(options.passwordCost),
    throttle: createLoginThrottle(clock, options.isThrottled),
    closeSession: hub.closeSession,
    closeUser: hub.closeUser,
  }
  const recovery = createRecoveryService({
    ...common,
    sessions: sessionStore,
    tokens: oneTimeTokens,
  })

  return {
    accounts: createAccountService({
      ...common,
      sessions: createSessions({ store: sessionStore, audit, newId, clock }),
      tokens: createAccessTokens({ keyring, issuer, clock, newId }),
      oneTimeTokens,
    }),
    recovery,
    profiles: createProfileService({ ...common, sessions: sessionStore, recovery }),
    people: createPeople({ ...common, sessions: sessionStore, oneTimeTokens }),
    keyring,
    jobs: createMailJobs({ ...common, tokens: oneTimeTokens }),
    stopWatching: watchAccess({
      sqlite,
      store,
      clock,
      log,
      onAccessChanged: hub.closeUser,
      onKeysChanged: keyring.reload,
    }),
  }
}
