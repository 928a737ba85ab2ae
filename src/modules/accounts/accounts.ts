import type { Core, Module } from '../../core.ts'
import { createAvatarUrls } from '../../lib/avatar.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { watchAccess } from './access-watch.ts'
import { accountAdminRoutes } from './admin-routes.ts'
import { createKeyStore } from './key-store.ts'
import { openKeyring } from './keys.ts'
import { createLoginThrottle } from './login-throttle.ts'
import { createMailJobs } from './mail-jobs.ts'
import { createOneTimeTokens } from './one-time-tokens.ts'
import { type Argon2Cost, createPasswords } from './passwords.ts'
import { createPeople } from './people.ts'
import { profileRoutes } from './profile-routes.ts'
import { createProfileService } from './profile-service.ts'
import { recoveryRoutes } from './recovery-routes.ts'
import { createRecoveryService } from './recovery-service.ts'
import { accountRoutes } from './routes.ts'
import { createAccountService } from './service.ts'
import { accountServiceRoutes } from './service-routes.ts'
import { createSessionStore } from './session-store.ts'
import { createSessions } from './sessions.ts'
import { createAccountStore } from './store.ts'
import { createTokenStore } from './token-store.ts'
import { createAccessTokens } from './tokens.ts'

type Neighbours = {
  mailer: Mailer
  others: readonly Module[]
  passwordCost: Argon2Cost | undefined
}

export async function createAccounts(core: Core, { mailer, others, passwordCost }: Neighbours) {
  const { orm, write, audit, newId, clock, log, hub, config } = core
  const { issuer } = config
  const sqlite = orm.$client
  const options = {
    ...core,
    mailer,
    passwordCost,
    publicUrl: config.publicUrl,
    isThrottled: config.limits.login !== 'off',
    forget: (id: string) => others.forEach((m) => m.forget?.(id)),
  }
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

  const accounts = createAccountService({
    ...common,
    sessions: createSessions({ store: sessionStore, audit, newId, clock }),
    tokens: createAccessTokens({ keyring, issuer, clock, newId }),
    oneTimeTokens,
  })
  const profiles = createProfileService({ ...common, sessions: sessionStore, recovery })
  const people = createPeople({ ...common, sessions: sessionStore, oneTimeTokens })
  const avatarUrl = createAvatarUrls(config.publicUrl)
  const stopWatching = watchAccess({
    sqlite,
    store,
    clock,
    log,
    onAccessChanged: hub.closeUser,
    async onForeignCommit() {},
  })
  return {
    routes: accountRoutes({ accounts, keyring })
      .use(recoveryRoutes({ recovery }))
      .use(
        profileRoutes({
          profiles,
          avatarUrl,
          exportOf: (id) => Object.assign({}, ...others.map((m) => m.exportOf?.(id))),
        }),
      )
      .use(accountAdminRoutes({ people, profiles, avatarUrl }))
      .use(accountServiceRoutes({ people, avatarUrl })),
    jobs: createMailJobs({ ...common, tokens: oneTimeTokens }),
    onForeignCommit: keyring.reload,
    stop: stopWatching,
    offerSetUp: accounts.offerSetUp,
    authenticate: accounts.authenticate,
    verifyToken: accounts.verifyToken,
    findPrincipal: accounts.findAccount,
  } satisfies Module & Record<string, unknown>
}
