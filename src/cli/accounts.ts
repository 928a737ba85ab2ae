import type { Core } from '../core.ts'
import { createKeyStore } from '../modules/accounts/key-store.ts'
import { rotateKeys } from '../modules/accounts/keys.ts'
import { createOneTimeTokens } from '../modules/accounts/one-time-tokens.ts'
import { createPasswords } from '../modules/accounts/passwords.ts'
import { createPeople } from '../modules/accounts/people.ts'
import { createSessionStore } from '../modules/accounts/session-store.ts'
import { createAccountStore } from '../modules/accounts/store.ts'
import { createTokenStore } from '../modules/accounts/token-store.ts'
import type { commandLine } from './open.ts'

// Goes as soon as accounts has `createUserAdmin(core)` and `createKeyAdmin(core)` itself.

export type UserAdmin = ReturnType<typeof createUserAdmin>

export function createUserAdmin({ orm, audit, write, newId, clock, hub }: Core) {
  return createPeople({
    store: createAccountStore(orm),
    sessions: createSessionStore(orm),
    oneTimeTokens: createOneTimeTokens({ store: createTokenStore(orm), clock }),
    passwords: createPasswords(),
    audit,
    write,
    newId,
    clock,
    closeUser: hub.closeUser,
  })
}

export function createKeyAdmin({ orm, audit, write, clock }: Core) {
  const keys = createKeyStore(orm)
  return {
    list: keys.list,
    rotate: (how: typeof commandLine & { isUrgent: boolean }) =>
      rotateKeys({ keys, audit, write, clock, ...how }),
  }
}
