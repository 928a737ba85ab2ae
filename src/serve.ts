import { join } from 'node:path'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import type { Core, Module } from './core.ts'
import { createAuditTrail } from './db/audit-trail.ts'
import { migrate, mustBeCurrent } from './db/migrations.ts'
import { type Connection, findNewestId, openForServer } from './db/open.ts'
import { createSettings } from './db/settings-store.ts'
import { openStorage } from './db/storage.ts'
import { createTextQuota } from './db/text-quota.ts'
import { createDiskStorage } from './files/disk.ts'
import { createS3Storage, startMovingFiles } from './files/s3.ts'
import { type FileStorage, filesDirectory } from './files/storage.ts'
import { refusalOfToken } from './http/bearer.ts'
import { idleTimeoutSeconds } from './http/body.ts'
import { listenForCommands } from './http/command-socket.ts'
import { createRequestLog } from './http/request-log.ts'
import { createStandbyHandler } from './http/standby-server.ts'
import { createDeliveryStore } from './jobs/delivery-store.ts'
import { createForgetting } from './jobs/forgetting.ts'
import { createOutbox } from './jobs/outbox.ts'
import { startRetention } from './jobs/retention.ts'
import { type JobHandlers, startRunner } from './jobs/runner.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { AppError } from './lib/errors.ts'
import { createEvents } from './lib/events.ts'
import { freeBytesAt } from './lib/free-space.ts'
import { createIds } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import { type ListenParts, listen, stopDeadlineMilliseconds, stopServers } from './listen.ts'
import { createMetrics } from './metrics.ts'
import { createAccounts } from './modules/accounts/accounts.ts'
import type { Argon2Cost } from './modules/accounts/sign-in/passwords.ts'
import { createChat } from './modules/chat/chat.ts'
import { createUnread } from './modules/chat/unread-store.ts'
import { createDemo } from './modules/demo/demo.ts'
import { createFiles } from './modules/files/files.ts'
import { createBlocks } from './modules/moderation/blocks.ts'
import { createModeration } from './modules/moderation/moderation.ts'
import { createNotifications } from './modules/notifications/notifications.ts'
import { createOperator } from './modules/operator/operator.ts'
import { createRequestHistory } from './modules/operator/request-history.ts'
import { noteRefusedOrigin, type Vitals } from './modules/operator/system.ts'
import { createPlatform } from './modules/platform/platform.ts'
import { createSupport } from './modules/support/support.ts'
import { type ResolveHost, resolveHost } from './modules/webhooks/post.ts'
import { createWebhooks } from './modules/webhooks/webhooks.ts'
import { createDeliveryState, type DeliveryState } from './outside/delivery-state.ts'
import { createPlatformMailer } from './outside/mail/face.ts'
import { createLogMailer, type Mailer, observeMails } from './outside/mail/mailer.ts'
import { createPreferenceLinks, type PreferenceLinks } from './outside/mail/preference-links.ts'
import { createSmtpMailer } from './outside/mail/smtp.ts'
import { createFcmDriver } from './outside/push/fcm.ts'
import { createPusher, observePushes } from './outside/push/pusher.ts'
import { isAllowedEndpoint } from './outside/push/subscription.ts'
import { loadVapidKeys } from './outside/push/vapid-key-store.ts'
import { createWebPushDriver } from './outside/push/web-push.ts'
import { type Channel, createChannel } from './realtime/channel.ts'
import { createHub } from './realtime/hub.ts'
import { joinReplication, type Replica } from './replication/replication.ts'
import { build, version } from './version.ts'

// Resolved here, because in the executable this module is at the root of the embedded files.
const checkpointWorker = new URL('./db/checkpoint-worker.ts', import.meta.url)
const imageWorker = new URL('./modules/files/image-worker.ts', import.meta.url)

/** For jobs that run at a stop. */
const longestJobMilliseconds = 4_000

export type Substitutes = {
  clock?: Clock
  /** Replaces `fdatasync` of the wal; receives the real one. */
  sync?: (real: () => Promise<void>) => Promise<void>
  metricsSharedMilliseconds?: number
  fileStorage?: FileStorage
  freeBytes?: () => number
  passwordCost?: Argon2Cost
  /** Replaces the daily quota, which tests with many tickets would exceed. */
  ticketsPerDay?: number
  isAllowedPushEndpoint?: (endpoint: string) => boolean
  /** Called once a standby listens. */
  onStandby?: (reloadCertificate: () => void) => void
  verifyReplica?: () => Promise<void>
  resolveHost?: ResolveHost
}

export type Service = Awaited<ReturnType<typeof openService>>

type OpenOptions = Substitutes & {
  replica?: Replica | undefined
  /** Opened for a single command: does not migrate or run jobs. */
  isForCommand?: boolean
}

/** Opens the data directory and builds the application, without listening. */
export async function openService(
  config: Config,
  log: Log,
  onFatal: (error: unknown) => void,
  { replica, isForCommand = false, ...substitutes }: OpenOptions = {},
) {
  const { clock = systemClock } = substitutes
  const connection = openForServer(config.dataDir, {
    // The replica unlocks the directory after its last change.
    unlock: replica && (() => {}),
    prepare: isForCommand ? mustBeCurrent : migrate,
    log,
  })
  const { orm } = connection
  const newId = createIds(clock, findNewestId(orm))
  const metrics = createMetrics(build, clock, substitutes.metricsSharedMilliseconds)
  const storage = openStorage(connection, {
    ...metrics.commits,
    onCommit(size, milliseconds) {
      replica?.capture()
      metrics.commits.onCommit(size, milliseconds)
    },
    worker: checkpointWorker,
    log,
    onFatal,
    sync: substitutes.sync ?? replica?.sync,
  })
  replica?.begin()
  const { afterCommit } = storage
  const write = replica ? replica.guard(storage.write) : storage.write
  const audit = createAuditTrail(orm, newId, clock)
  const core: Core = {
    config,
    settings: createSettings({ config, orm, audit, log, afterCommit }),
    orm,
    write,
    afterCommit,
    newId,
    clock,
    log,
    hub: createHub(),
    outbox: createOutbox({ orm, newId, clock, afterCommit }),
    deliveries: createDeliveryStore(orm, clock),
    audit,
    events: createEvents(),
  }
  const history = createRequestHistory(clock)
  const delivery = { mail: createDeliveryState(clock), push: createDeliveryState(clock) }
  const links = createPreferenceLinks(orm, config.publicUrl)
  const { smtpUrl, mailFrom, publicUrl, issuer } = config
  const plain = smtpUrl ? createSmtpMailer(smtpUrl, mailFrom) : createLogMailer(log, publicUrl)
  const observed = observeMails(plain, {
    log,
    state: delivery.mail,
    onRefused: (address) => accounts.noteBounce(address),
    onAccepted: (address) => accounts.endBounce(address),
  })
  const mailer = createPlatformMailer(observed, { settings: core.settings, links, issuer })
  const { fileStorage, startMoving } = createFileStorage(connection, config, log)
  const { accounts, platform, chat, unread, notifications, forgetting, webhooks, modules } =
    await createModules(core, {
      mailer,
      links,
      pushes: delivery.push,
      substitutes,
      fileStorage: substitutes.fileStorage ?? fileStorage,
      replica,
      vitals: {
        version: build,
        startedAt: clock.now(),
        storage: storage.stats,
        history,
        ...delivery,
        replica: replica?.stats,
      },
    })
  metrics.read(core, storage.stats, () => webhooks.stats().dropped)
  if (replica) metrics.readReplica(replica.stats)
  metrics.readMachine(config)

  const channel = createChannel(core, {
    frames: Object.assign({}, ...modules.map(({ frames }) => frames)),
    serverFrames: Object.assign({}, ...modules.map(({ serverFrames }) => serverFrames)),
    replay: chat.replay,
    unread: (userId) => ({
      messages: unread.count(userId),
      notifications: notifications.unreadCount(userId),
    }),
    async authenticate(token) {
      const claims = await accounts.verifyToken(token)
      if (!claims) throw new AppError(refusalOfToken(token, 'socket', clock.now()))
      const principal = accounts.findPrincipal(claims)
      if (!principal) throw new AppError('session_ended')
      return principal
    },
    onActive: notifications.noteVisit,
    counts: {
      ...metrics.channel,
      received(type) {
        metrics.channel.received(type)
        history.countFrame()
      },
    },
  })
  function startWork(): ((deadlineMilliseconds: number) => void | Promise<void>)[] {
    const runner = startRunner(core, {
      // Each kind has its handler in one module; a test checks that none is missing.
      handlers: Object.assign({}, ...modules.map(({ jobs }) => jobs)) as JobHandlers,
      random: Math.random,
      onOutcome: metrics.jobs,
    })
    const rules = modules.flatMap(({ retention = [] }) => retention)
    return [startRetention(core, rules), startMoving(), forgetting.start(), runner.stop]
  }
  const stops = isForCommand ? [] : startWork()
  async function stopWork(deadlineMilliseconds: number) {
    // Not sooner: a mail that its server has accepted by then would be sent twice.
    const endMails = setTimeout(mailer.close, longestJobMilliseconds)
    for (const stop of stops) await stop(deadlineMilliseconds)
    clearTimeout(endMails)
  }
  const stopWatching = replica && watchLead(replica, channel, log)

  const requestLog = createRequestLog(core)
  const app = createApp(core, {
    onAnswered(answered) {
      metrics.countRequest(answered)
      history.countRequest(answered.status, answered.milliseconds)
      requestLog.answered(answered)
    },
    modules,
    channel,
    metrics,
    version,
    mailPreferences: notifications.mailPreferences,
    isReady: async () =>
      !channel.isDraining() && replica?.isWritable() !== false && (await storage.isWritable()),
    pipeline: {
      isCutOff: () => replica?.isCutOff() === true,
      onRefusedOrigin: (origin) => noteRefusedOrigin(core, origin),
      verifyToken: accounts.verifyToken,
      shareReads: storage.shareReads,
      findPrincipal(claims) {
        const principal = accounts.findPrincipal(claims)
        if (principal) notifications.noteVisit(principal.userId)
        return principal
      },
      isConfirmed: accounts.isConfirmed,
      findServiceKey: platform.findServiceKey,
    },
  })

  return {
    app,
    channel,
    core,
    connection,
    accounts,
    stopWork,
    async close() {
      await channel.drain()
      for (const module of modules) module.stop?.()
      await stopWork(longestJobMilliseconds)
      stopWatching?.()
      mailer.close()
      metrics.stop()
      requestLog.stop()
      await replica?.drain()
      await storage.close()
      await replica?.close()
    },
  }
}

type Outside = {
  mailer: Mailer
  links: PreferenceLinks
  pushes: DeliveryState
  vitals: Omit<Vitals, 'webhooks'>
  fileStorage: FileStorage
  replica: Replica | undefined
  substitutes: Substitutes
}

const leadPollMilliseconds = 250

/** Disconnects the sockets of a leader that is cut off, so that their clients find the next one. */
function watchLead({ isCutOff }: Replica, channel: Channel, log: Log): () => void {
  let wasCutOff = false
  const timer = setInterval(() => {
    const isNow = isCutOff()
    if (isNow && !wasCutOff) {
      log.error('the bucket has taken nothing for a lease: all requests get 503 until it does')
      channel.disconnect()
    }
    if (!isNow && wasCutOff) log.info('this node still leads, and answers again')
    wasCutOff = isNow
  }, leadPollMilliseconds)
  return () => clearInterval(timer)
}

/** Creates the modules with their dependencies: blocks ← notifications ← platform ← chat ← moderation; accounts come last,
 *  because they export and remove what the others know about a user. */
async function createModules(core: Core, outside: Outside) {
  const { mailer, links, pushes, vitals, fileStorage, replica, substitutes } = outside
  const { dataDir, minFreeBytes } = core.config
  const {
    ticketsPerDay,
    verifyReplica: verify,
    freeBytes = () => freeBytesAt(dataDir),
  } = substitutes
  const resolveUser = (reference: string) => accounts.resolveUser(reference)
  const dropPicture = (userId: string) => accounts.dropPicture(userId)
  const isDiskShort = () => freeBytes() < minFreeBytes
  const takeText = createTextQuota(core)
  const files = createFiles(core, { storage: fileStorage, imageWorker, isDiskShort, dropPicture })
  const { attach, detach, pictureOf } = files.uses
  const onRightChanged = (userId: string, otherId: string) => chat.publishPair(userId, otherId)
  const blocks = createBlocks(core, onRightChanged)
  const { mayTalk } = blocks
  const unread = createUnread(core, mayTalk)
  const notifications = createNotifications(core, {
    mailer,
    links,
    resolveUser,
    mayTalk,
    hasStoppedRinging: (callId, since): boolean => platform.hasStoppedRinging(callId, since),
    unreadMessages: unread,
    ...pushOf(core, pushes, substitutes),
  })
  const { notify, pushMessage, wantsMail } = notifications
  const platform = createPlatform(core, {
    notify,
    resolveUser,
    blocks,
    onCallChanged: onRightChanged,
  })
  const support = createSupport(core, {
    mailer,
    wantsMail: (userId) => wantsMail(userId, 'support_reply'),
    notify,
    forgetReplies: notifications.forgetReplies,
    attach,
    detach,
    takeText,
    ticketsPerDay,
  })
  const chat = createChat(core, {
    pushMessage,
    ...platform,
    mayTalk,
    unread,
    takeText,
    resolveUser,
    detach,
    pictureOf,
  })
  const moderation = createModeration(core, {
    blocks,
    files: files.uses,
    deskUrl: files.deskUrl,
    findExcerpt: chat.findExcerpt,
    removeMessage: chat.removeMessage,
    takeText,
  })
  const others: Module[] = [platform, chat, files, moderation, support, notifications]
  const accounts = await createAccounts(core, {
    mailer,
    others,
    onReachChanged: chat.publishReach,
    passwordCost: substitutes.passwordCost,
  })
  const webhooks = createWebhooks(core, {
    version,
    resolve: substitutes.resolveHost ?? resolveHost,
    notify,
    others: [accounts, ...others],
  })
  const forgetting = createForgetting(core, { messages: chat.aging, tickets: support.aging })
  const operator = createOperator(core, {
    ...accounts,
    useLogo: files.uses.setLogo,
    surveyRetention: forgetting.survey,
    vitals: { ...vitals, webhooks: webhooks.stats },
    endDelivery: webhooks.endDelivery,
    onJobChanged: notifications.onJobChanged,
    replica,
    drill: replica && verify && core.config.replica?.hasDrill ? { ...replica, verify } : undefined,
    mailer,
  })
  const { openAnswered } = support
  const demo = core.config.demo ? [createDemo(core, { ...accounts, openAnswered })] : []
  const modules: readonly Module[] = [accounts, ...others, webhooks, operator, ...demo]
  return { accounts, platform, chat, unread, notifications, forgetting, webhooks, modules }
}

function createFileStorage({ sqlite }: Connection, { dataDir, files }: Config, log: Log) {
  const directory = join(dataDir, filesDirectory)
  const disk = createDiskStorage(directory)
  if (!files.bucket) return { fileStorage: disk, startMoving: () => () => {} }
  const storage = createS3Storage(files.bucket, disk)
  const row = sqlite.prepare('SELECT 1 FROM files WHERE id = ?')
  const isListed = (key: string) => row.get(key) !== null
  const startMoving = () => startMovingFiles({ directory, storage, isListed, log })
  return { fileStorage: storage, startMoving }
}

/** Web Push is always available, FCM only with a service account. */
function pushOf({ config, orm, clock, log }: Core, state: DeliveryState, substitutes: Substitutes) {
  const { fcm, publicUrl, issuer, webPushHosts } = config
  const isAtPushService = (endpoint: string) => isAllowedEndpoint(endpoint, webPushHosts)
  const { isAllowedPushEndpoint: isAllowed = isAtPushService } = substitutes
  const keys = loadVapidKeys(orm)
  // The contact for push services, which refuse URLs that are not publicly reachable.
  const subject = publicUrl.startsWith('https:') ? publicUrl : `mailto:hostline@${issuer}`
  const pusher = createPusher({
    fcm: fcm && createFcmDriver({ ...fcm, clock }),
    webPush: createWebPushDriver({ keys, subject, clock, isAllowed }),
  })
  return {
    pusher: observePushes(pusher, { log, state }),
    webPushKey: keys.publicKey,
    isAllowedEndpoint: isAllowed,
  }
}

/** Serves until `stop` is called, a standby from when it leads.
 *  @throws StartError with one line for the operator */
export async function serve(
  config: Config,
  log: Log,
  substitutes: Substitutes = {},
  isStandby = false,
) {
  const onDiskFailure = exitWith(log, 'the disk failed to store data')
  const replica =
    config.replica &&
    (await joinAsNode(config, log, { settings: config.replica, isStandby, ...substitutes }))
  const service = await openService(config, log, onDiskFailure, { ...substitutes, replica })
  const { app, channel, core } = service
  // While writes fail, the service starts without a link.
  const setUpToken = await service.accounts.offerSetUp().catch((error: unknown) => {
    log.error('no link for the first admin could be created, because writes fail', { error })
    return undefined
  })
  const parts: ListenParts = {
    // The framework's `listen` would make the handler twice, with a garbage collection each.
    open(options) {
      app.server = Bun.serve({
        ...options,
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        idleTimeout: idleTimeoutSeconds,
        websocket: channel.handlers,
        fetch: app.fetch,
      })
      return app.server
    },
    onFatal: exitWith(log, portLost),
  }
  const listener = await Promise.try(() => listen(core, parts)).catch(async (error: unknown) => {
    await service.close()
    throw error
  })

  const commands = listenForCommands(app, config.dataDir)
  replica?.serve()

  return {
    port: listener.port,
    /** The link for creating the first admin, valid for 30 minutes; undefined when there is an admin. */
    setUpLink: setUpToken && `${config.publicUrl}/set-up#token=${setUpToken}`,
    service,
    handOver: replica?.handOver ?? new Promise<never>(() => {}),
    reloadCertificate: listener.reloadCertificate,
    /** @param deadlineMilliseconds for the requests and jobs that are running */
    async stop(deadlineMilliseconds = stopDeadlineMilliseconds) {
      await channel.drain()
      await Promise.all([
        listener.stop(deadlineMilliseconds),
        stopServers([commands], deadlineMilliseconds),
        service.stopWork(Math.min(deadlineMilliseconds, longestJobMilliseconds)),
      ])
      await service.close()
    },
  }
}

const portLost = 'the port could not be opened again with the renewed certificate'

const exitWith = (log: Log, reason: string) => (error: unknown) => {
  log.error(`${reason}: stopping at once`, { error })
  process.exit(1)
}

type NodeOptions = Pick<Substitutes, 'onStandby'> & {
  settings: NonNullable<Config['replica']>
  isStandby: boolean
}

function joinAsNode(config: Config, log: Log, { settings, isStandby, onStandby }: NodeOptions) {
  return joinReplication({
    config,
    settings,
    log,
    isStandby,
    serveStandby(stats) {
      const metrics = createMetrics(build, systemClock)
      metrics.readReplica(stats)
      metrics.readMachine(config)
      const fetch = createStandbyHandler({ config, version, metrics })
      const open: ListenParts['open'] = (options) => Bun.serve({ ...options, fetch })
      const onFatal = exitWith(log, portLost)
      const listener = listen({ config, clock: systemClock, log }, { open, onFatal })
      log.info(`hostline ${build} is a standby and listens on ${config.host}:${listener.port}`)
      onStandby?.(listener.reloadCertificate)
      return async () => {
        metrics.stop()
        await listener.stop(0)
      }
    },
    onFenced({ message }) {
      log.error(`${message}: this node acknowledges no more writes and stops`)
      process.exit(1)
    },
  })
}
