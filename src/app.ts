import { Type } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import type { AuditTrail } from './db/audit-trail.ts'
import { describeChannel } from './http/asyncapi.ts'
import { readJson } from './http/body.ts'
import { createErrorAnswer } from './http/error-answer.ts'
import { routeBase } from './http/exchange.ts'
import { describeApi } from './http/openapi.ts'
import { createPipeline, type PipelineOptions } from './http/pipeline.ts'
import { createRouteFinder, describedRoutes } from './http/route-table.ts'
import type { Log } from './lib/log.ts'
import type { Metrics } from './metrics/metrics.ts'
import { accountAdminRoutes } from './modules/accounts/admin-routes.ts'
import type { Keyring } from './modules/accounts/keys.ts'
import type { People } from './modules/accounts/people.ts'
import { profileRoutes } from './modules/accounts/profile-routes.ts'
import type { ProfileService } from './modules/accounts/profile-service.ts'
import { recoveryRoutes } from './modules/accounts/recovery-routes.ts'
import type { RecoveryService } from './modules/accounts/recovery-service.ts'
import { accountRoutes } from './modules/accounts/routes.ts'
import type { AccountService } from './modules/accounts/service.ts'
import { accountServiceRoutes } from './modules/accounts/service-routes.ts'
import { broadcastRoutes } from './modules/chat/broadcast-routes.ts'
import type { Broadcasts } from './modules/chat/broadcasts.ts'
import type { ChatChannel } from './modules/chat/channel.ts'
import { clientFrames } from './modules/chat/frames.ts'
import type { AvatarUrl } from './modules/chat/model.ts'
import { chatRoutes } from './modules/chat/routes.ts'
import { serverFrames } from './modules/chat/server-frames.ts'
import type { ChatService } from './modules/chat/service.ts'
import { chatSocketRoute, socketQuery } from './modules/chat/socket.ts'
import { announcementRoutes } from './modules/notifications/admin-routes.ts'
import type { Announcements } from './modules/notifications/announcements.ts'
import { notificationFeedRoutes } from './modules/notifications/feed-routes.ts'
import { notificationFrames } from './modules/notifications/frames.ts'
import type { Preferences } from './modules/notifications/preferences.ts'
import { pushRoutes } from './modules/notifications/push-routes.ts'
import type { PushTokens } from './modules/notifications/push-tokens.ts'
import { notificationRoutes } from './modules/notifications/routes.ts'
import type { NotificationService } from './modules/notifications/service.ts'
import type { Calls } from './modules/platform/calls.ts'
import { feedRoutes } from './modules/platform/feed-routes.ts'
import type { Follows } from './modules/platform/follows.ts'
import { platformRoutes } from './modules/platform/routes.ts'
import { serviceKeyRoutes } from './modules/platform/service-key-routes.ts'
import type { ServiceKeys } from './modules/platform/service-keys.ts'
import { deskRoutes } from './modules/support/admin-routes.ts'
import type { CannedReplies } from './modules/support/canned-replies.ts'
import type { DeskList } from './modules/support/desk-list.ts'
import type { DeskService } from './modules/support/desk-service.ts'
import { ticketFrames } from './modules/support/frames.ts'
import type { OwnerService } from './modules/support/owner-service.ts'
import { supportRoutes } from './modules/support/routes.ts'
import { descriptionRoute, webRoutes } from './web/routes.ts'

export type AppOptions = {
  accounts: AccountService
  recovery: RecoveryService
  profiles: ProfileService
  people: People
  keyring: Keyring
  audit: AuditTrail
  /** What the modules keep of a person, for their export. */
  exports: Record<string, (userId: string) => Iterable<unknown>>
  serviceKeys: ServiceKeys
  follows: Follows
  calls: Calls
  chat: ChatService
  broadcasts: Broadcasts
  chatChannel: ChatChannel
  tickets: OwnerService
  desk: DeskService
  deskList: DeskList
  cannedReplies: CannedReplies
  notifications: NotificationService
  preferences: Preferences
  pushTokens: PushTokens
  announcements: Announcements
  webPushKey: string
  avatarUrl: AvatarUrl
  pipeline: Omit<PipelineOptions, 'findRoute' | 'noteRoute'>
  isReady: () => Promise<boolean>
  metrics: Metrics
  metricsToken: string | undefined
  log: Log
  version: string
  isTls: boolean
  publicUrl: string
}

const channelDoc = {
  address: '/v1/chat/ws',
  title: 'Chat channel',
  description:
    'JSON frames both ways, one object each. The access token comes as `token` in the query, in the Authorization header, or as a subprotocol `bearer.<token>` beside `hostline.v1`.',
  query: { token: Type.String({ description: 'A valid access token.' }), ...socketQuery },
  received: clientFrames,
  sent: { ...serverFrames, ...notificationFrames, ...ticketFrames },
}

/** The application over its services: the pipeline in front, then the modules' routes. */
export function createApp(options: AppOptions) {
  const { version, publicUrl, log } = options
  const { count, noteRoute } = options.metrics.requests
  const routes: AnyElysia = new Elysia({ name: 'routes', normalize: false })
    .use(webRoutes(options))
    .use(accountRoutes(options))
    .use(recoveryRoutes(options))
    .use(profileRoutes(options))
    .use(accountAdminRoutes(options))
    .use(accountServiceRoutes(options))
    .use(platformRoutes(options))
    .use(serviceKeyRoutes(options))
    .use(feedRoutes(options))
    .use(chatRoutes(options))
    .use(broadcastRoutes(options))
    .use(chatSocketRoute(options))
    .use(
      descriptionRoute('/v1/openapi.json', 'This description (OpenAPI 3.1)', () =>
        describeApi(routes, version, publicUrl),
      ),
    )
    .use(
      descriptionRoute('/v1/asyncapi.json', 'The WebSocket channel (AsyncAPI 3.0)', () =>
        describeChannel(channelDoc, version, publicUrl),
      ),
    )
    .use(supportRoutes(options))
    .use(deskRoutes(options))
    .use(notificationRoutes(options))
    .use(pushRoutes(options))
    .use(notificationFeedRoutes(options))
    .use(announcementRoutes(options))
  const findRoute = createRouteFinder(describedRoutes(routes))

  return (
    new Elysia({
      systemRouter: false, // one router, so that in-process tests and the server see the same paths
      strictPath: true,
      // The router looks for the path from a fixed place on: after `http://`, so that short hosts are hosts too, or
      // further right, which `https://` needs.
      handler: { standardHostname: options.isTls },
      normalize: false,
      serve: { development: false, maxRequestBodySize: Number.MAX_SAFE_INTEGER },
    })
      // The framework's type knows neither the request nor the promise.
      .wrap((answer) => count(answer as never))
      .use(routeBase)
      .onError({ as: 'global' }, createErrorAnswer(log))
      .onRequest(createPipeline({ ...options.pipeline, findRoute, noteRoute }))
      .onParse(({ request, exchange }) => readJson(request, exchange.earlyBody, exchange.readmit))
      .use(routes)
  )
}
