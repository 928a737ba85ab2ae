import packageJson from '../package.json' with { type: 'json' }
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { createAuditTrail } from './db/audit-trail.ts'
import { createCheckpointer } from './db/checkpointer.ts'
import { type Connection, openForServer } from './db/client.ts'
import { openLogSync } from './db/log-sync.ts'
import { createWriter, type Writer } from './db/writer.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import { createOutbox } from './jobs/outbox.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { createIds } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import { StartError } from './lib/start-error.ts'
import { watchAccess } from './modules/accounts/access-watch.ts'
import { createAvatarUrls } from './modules/accounts/avatar.ts'
import { createKeyStore } from './modules/accounts/key-store.ts'
import { openKeyring } from './modules/accounts/keys.ts'
import { type Argon2Cost, createPasswords } from './modules/accounts/passwords.ts'
import { createAccountService } from './modules/accounts/service.ts'
import { createSessionStore } from './modules/accounts/session-store.ts'
import { createSessions } from './modules/accounts/sessions.ts'
import { createAccountStore } from './modules/accounts/store.ts'
import { createAccessTokens } from './modules/accounts/tokens.ts'
import { createChatChannel } from './modules/chat/channel.ts'
import { createChatService } from './modules/chat/service.ts'
import { createChatStore } from './modules/chat/store.ts'
import { createHub } from './realtime/hub.ts'

export const { version } = packageJson

// Named from here: in the executable this module lies at the root of what it carries.
const checkpointWorker = new URL('./db/checkpoint-worker.ts', import.meta.url)
const stopDeadlineMilliseconds = 10_000
const stopPollMilliseconds = 5

/** What a test puts in the place of the real thing. */
export type Substitutes = {
  clock?: Clock
  /** In the place of `fdatasync` of the log; called with the real one. */
  sync?: (real: () => Promise<void>) => Promise<void>
  maxPendingWrites?: number
  passwordCost?: Argon2Cost
}

export type Service = Awaited<ReturnType<typeof openService>>

/** Opens the data directory and builds the application over it, without listening. */
export async function openService(
  config: Config,
  log: Log,
  onFatal: (error: unknown) => void,
  substitutes: Substitutes = {},
) {
  const { clock = systemClock } = substitutes
  const connection = openForServer(config.dataDir)
  const { orm } = connection
  const storage = openStorage(connection, log, onFatal, substitutes)
  const { write } = storage.writer

  const chatStore = createChatStore(orm)
  const newId = createIds(clock)
  const audit = createAuditTrail(orm, newId, clock)
  const outbox = createOutbox(orm, newId, clock)
  const hub = createHub()

  const keyring = await openKeyring({ keys: createKeyStore(orm), write, clock })
  const tokens = createAccessTokens({ keyring, issuer: config.issuer, clock, newId })
  const accountStore = createAccountStore(orm)
  const accounts = createAccountService({
    store: accountStore,
    sessions: createSessions({ store: createSessionStore(orm), audit, newId, clock }),
    passwords: createPasswords(substitutes.passwordCost),
    tokens,
    outbox,
    write,
    newId,
    clock,
    closeSession: hub.closeSession,
  })

  const chat = createChatService({ store: chatStore, write, hub, newId, clock })
  const chatChannel = createChatChannel({
    chat,
    hub,
    clock,
    log,
    frameLimit: config.limits.frames,
    authenticate: accounts.authenticate,
  })

  const stopWatching = watchAccess({
    sqlite: connection.sqlite,
    store: accountStore,
    clock,
    log,
    onAccessChanged: hub.closeUser,
    onKeysChanged: keyring.reload,
  })

  const app = createApp({
    accounts,
    keyring,
    chat,
    chatChannel,
    avatarUrl: createAvatarUrls(config.publicUrl),
    isReady: async () => !chatChannel.isDraining() && (await storage.isWritable()),
    log,
    version,
    publicUrl: config.publicUrl,
    isTls: config.tls !== undefined,
    pipeline: {
      newId,
      limiter: createRateLimiter(clock.now),
      limits: config.limits,
      trustedProxies: config.trustedProxies,
      corsOrigins: config.corsOrigins,
      verifyToken: accounts.verifyToken,
      loadCaller: accounts.findAccount,
    },
  })

  return {
    app,
    chatChannel,
    hub,
    connection,
    /** Stops what runs by itself, waits for the last sync and closes the database. */
    async close() {
      await chatChannel.drain()
      stopWatching()
      await storage.close()
    },
  }
}

/** Serves until `stop` is called.
 *  @throws StartError with one line for the operator */
export async function serve(config: Config, log: Log, substitutes: Substitutes = {}) {
  const onFatal = (error: unknown) => {
    log.error('the disk refused to keep data: stopping at once', { error })
    process.exit(1)
  }
  const service = await openService(config, log, onFatal, substitutes)
  const server = await listen(service, config).catch(async (error: unknown) => {
    await service.close()
    throw error
  })

  return {
    port: server.port ?? config.port,
    service,
    /** Answers what is running, closes sockets with 1001, makes everything durable. Design, "Failure". */
    async stop() {
      await service.chatChannel.drain()
      void server.stop()
      await finishRequests(server)
      await server.stop(true)
      await service.close()
    },
  }
}

async function listen({ app, chatChannel }: Service, config: Config) {
  const { port, host, tls } = config
  try {
    app.listen({
      port,
      hostname: host,
      reusePort: false,
      websocket: chatChannel.handlers,
      ...(tls && { tls: { cert: Bun.file(tls.cert), key: Bun.file(tls.key) } }),
    })
  } catch (cause) {
    const reason = (cause as Error).message
    throw new StartError(`cannot listen on ${host}:${port}: ${reason}`, { cause })
  }
  if (!app.server) throw new StartError(`cannot listen on ${host}:${port}`)
  return app.server
}

/** `server.stop()` would wait for idle keep-alive connections too. */
async function finishRequests(server: { pendingRequests: number }) {
  const deadline = performance.now() + stopDeadlineMilliseconds
  while (server.pendingRequests > 0 && performance.now() < deadline) {
    await Bun.sleep(stopPollMilliseconds)
  }
}

function openStorage(
  connection: Connection,
  log: Log,
  onFatal: (error: unknown) => void,
  { sync, maxPendingWrites }: Substitutes,
) {
  const { sqlite, path } = connection
  const logFile = openLogSync(path)
  const checkpointer = createCheckpointer({ sqlite, path, worker: checkpointWorker, log, onFatal })
  const writer: Writer = createWriter({
    sqlite,
    sync: sync ? () => sync(logFile.sync) : logFile.sync,
    onCommit: checkpointer.committed,
    onFatal,
    log,
    ...(maxPendingWrites !== undefined && { maxPending: maxPendingWrites }),
  })

  return {
    writer,
    /** Asks the disk only after a failure: a commit that works is answer enough. */
    async isWritable() {
      if (writer.isHealthy()) return true
      await writer.write(() => connection.touch()).catch(() => undefined)
      return writer.isHealthy()
    },
    async close() {
      await writer.drained()
      await checkpointer.close()
      await logFile.close()
      connection.close()
    },
  }
}
