import { Elysia } from 'elysia'
import { describeChannel } from './api/asyncapi.ts'
import { Sample } from './api/fields.ts'
import { describeApi } from './api/openapi.ts'
import { samples } from './api/samples.ts'
import type { Core, Module } from './core.ts'
import { createErrorAnswer } from './http/error-answer.ts'
import { type Answered, type Handle, observeRequests } from './http/observe-requests.ts'
import { createOpenAnswers } from './http/open-answers.ts'
import { createPipeline, type PipelineOptions } from './http/pipeline.ts'
import { type RouteApp, routeBase } from './http/request-context.ts'
import { createRouteFinder } from './http/route-table.ts'
import { lazy } from './lib/lazy.ts'
import type { Metrics } from './metrics.ts'
import type { Channel } from './realtime/channel.ts'
import { socketQuery, socketRoute } from './realtime/socket.ts'
import type { MailPreferences } from './web/account/mail-preferences.ts'
import { missingPage } from './web/pages.ts'
import { descriptionRoute, webRoutes } from './web/routes.ts'

type AppOptions = {
  modules: readonly Module[]
  channel: Channel
  pipeline: Omit<PipelineOptions, 'findRoute' | 'peerOf' | 'openAnswers'>
  metrics: Metrics
  onAnswered: (answered: Answered) => void
  isReady: () => Promise<boolean>
  version: string
  mailPreferences: MailPreferences
}

export function createApp(core: Core, options: AppOptions) {
  const { config, settings } = core
  const { modules, channel, version } = options
  const { publicUrl, tls } = config
  const api = lazy(() =>
    describeApi(addRoutes, {
      version,
      publicUrl,
      limits: config.limits,
      webhooks: Object.assign({}, ...modules.map((module) => module.webhooks)),
    }),
  )
  const socket = lazy(() => describeChannel(channelDoc(channel), version, publicUrl))
  const describe = async () => ({ api: await api(), channel: socket() })
  const { demo, metricsToken } = config
  const web = { ...options, settings, describe, demo, metricsToken }
  function addRoutes(app: RouteApp) {
    webRoutes(app, web)
    socketRoute(app, channel, config)
    descriptionRoute(app, openApi, api)
    descriptionRoute(app, asyncApi, socket)
    for (const { routes } of modules) routes(app)
  }

  const app = new Elysia({
    systemRouter: false, // one router, so that in-process tests and the server see the same paths
    strictPath: true,
    // The router searches the path from a fixed offset in the URL: after `http://`, to allow short host names, or further
    // right for `https://`.
    handler: { standardHostname: tls !== undefined },
    normalize: false,
  })
  let findRoute: PipelineOptions['findRoute'] = () => undefined
  const openAnswers = createOpenAnswers(() => app.server)
  const onAnswered = (answered: Answered) => {
    openAnswers.add(answered)
    options.onAnswered(answered)
  }
  const limitTurn = createTurnLimit()
  app
    // The framework calls this for each request. Its type omits the request and the promise.
    .wrap((answer) => observeRequests(limitTurn(answer as never), onAnswered))
    .use(routeBase)
    .onError(
      { as: 'global' },
      createErrorAnswer(core, (set, context) => missingPage(set, context, settings)),
    )
    .onRequest(
      createPipeline(core, {
        ...options.pipeline,
        openAnswers,
        peerOf: (request) => app.server?.requestIP(request)?.address,
        findRoute: (method, path) => findRoute(method, path),
      }),
    )
  addRoutes(app.use(routeBase))
  findRoute = createRouteFinder(app)
  return app
}

const maxInTurn = 64

/** Lets the requests above the limit of one turn of the event loop wait for the next turn. Otherwise the runtime answers
 *  all requests that a connection has sent ahead in one turn: 17,000 short ones delayed everybody by 1.3 s. It closes a
 *  connection that sends another request while its answer waits. */
function createTurnLimit() {
  let begun = 0
  const endTurn = () => {
    begun = 0
  }
  return (handle: Handle): Handle =>
    (request) => {
      if (begun === 0) setImmediate(endTurn)
      if (++begun <= maxInTurn) return handle(request)
      return new Promise(setImmediate).then(() => handle(request))
    }
}

const openApi = {
  path: '/v1/openapi.json',
  id: 'getOpenApi',
  text: 'Describes this interface (OpenAPI 3.1).',
  example: { openapi: '3.1.0', info: { title: 'Hostline', version: '1.0.0' } },
} as const
const asyncApi = {
  path: '/v1/asyncapi.json',
  id: 'getAsyncApi',
  text: 'Describes the WebSocket channel (AsyncAPI 3.0).',
  example: { asyncapi: '3.0.0', info: { title: 'Hostline', version: '1.0.0' } },
} as const

const channelDoc = (channel: Channel) => ({
  address: '/v1/chat/ws',
  title: 'Chat channel',
  description:
    'JSON frames in both directions, one object each. The access token is sent as `token` in the query, in the Authorization header, or as the subprotocol `bearer.<token>` together with `hostline.v1`.',
  query: {
    token: Sample(samples.accessToken, { description: 'A valid access token.' }),
    ...socketQuery(channel),
  },
  ...channel.schemas,
})
