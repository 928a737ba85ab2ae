import packageJson from '../package.json' with { type: 'json' }
import { createApp } from './app.ts'
import { openChapters } from './chapters.ts'
import type { Config } from './config.ts'
import { createAuditTrail } from './db/audit-trail.ts'
import { openForServer } from './db/client.ts'
import { findNewestId } from './db/newest-id.ts'
import { openStorage } from './db/storage.ts'
import { loadVapidKeys } from './db/vapid-keys.ts'
import { mailerOf, pusherOf } from './drivers.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import { startMaintenance } from './jobs/maintenance.ts'
import { createOutbox } from './jobs/outbox.ts'
import { startRunner } from './jobs/runner.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { createIds } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import { StartError } from './lib/start-error.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createAvatarUrls } from './modules/accounts/avatar.ts'
import type { Argon2Cost } from './modules/accounts/passwords.ts'
import { createChatChannel } from './modules/chat/channel.ts'
import { isAllowedEndpoint } from './push/subscription.ts'
import { makeVapidKeys } from './push/vapid.ts'
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
  /** In the place of the rule that endpoints are at a push service, over https. */
  isAllowedPushEndpoint?: (endpoint: string) => boolean
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
  const newId = createIds(clock, findNewestId(orm))
  const outbox = createOutbox(orm, newId, clock)
  const hub = createHub()
  const metrics = createMetrics(version, clock)
  const storage = openStorage({
    connection,
    worker: checkpointWorker,
    log,
    counts: metrics.commits,
    onFatal,
    sync: substitutes.sync,
    maxPending: substitutes.maxPendingWrites,
  })
  metrics.read({ outbox: outbox.stats, hub: hub.stats, storage: storage.stats })
  const { write } = storage
  const audit = createAuditTrail(orm, newId, clock)
  const avatarUrl = createAvatarUrls(config.publicUrl)
  const mailer = mailerOf(config, log)
  const isAllowed =
    substitutes.isAllowedPushEndpoint ??
    ((endpoint: string) => isAllowedEndpoint(endpoint, config.webPushHosts))
  const keys = loadVapidKeys(orm, makeVapidKeys)
  const chapters = await openChapters({
    config,
    sqlite: connection.sqlite,
    orm,
    write,
    audit,
    outbox,
    newId,
    clock,
    log,
    hub,
    mailer,
    pusher: pusherOf(config, { clock, keys, isAllowed }),
    isAllowedEndpoint: isAllowed,
    passwordCost: substitutes.passwordCost,
  })
  const { services } = chapters
  const { accounts, serviceKeys } = services
  const chatChannel = createChatChannel({
    chat: services.chat,
    hub,
    clock,
    log,
    frameLimit: config.limits.frames,
    counts: metrics.channel,
    authenticate: accounts.authenticate,
  })

  const runner = startRunner({
    outbox,
    handlers: chapters.jobs,
    write,
    clock,
    log,
    random: Math.random,
    onOutcome: metrics.jobs,
  })
  const stopMaintenance = startMaintenance({ orm, write, clock, log })

  const app = createApp({
    ...services,
    webPushKey: keys.publicKey,
    audit,
    chatChannel,
    exports: chapters.exports,
    avatarUrl,
    isReady: async () => !chatChannel.isDraining() && (await storage.isWritable()),
    metrics,
    metricsToken: config.metricsToken,
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
      findServiceKey: serviceKeys.find,
      loadServiceKey: (key) => serviceKeys.findFresh(key),
    },
  })

  return {
    app,
    chatChannel,
    hub,
    connection,
    accounts,
    /** Stops what runs by itself, waits for the last sync and closes the database. */
    async close() {
      await chatChannel.drain()
      chapters.stop()
      stopMaintenance()
      await runner.stop()
      mailer.close()
      metrics.stop()
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
  const setUpToken = await service.accounts.offerSetUp()
  const server = await listen(service, config).catch(async (error: unknown) => {
    await service.close()
    throw error
  })

  return {
    port: server.port ?? config.port,
    /** Where the first admin can be made within 30 minutes; undefined when there is one. */
    setUpLink: setUpToken && `${config.publicUrl}/set-up#token=${setUpToken}`,
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
