import { Elysia } from 'elysia'
import { selectedProtocol } from '../../http/bearer.ts'
import { callerOf, routeBase } from '../../http/exchange.ts'
import { operation } from '../../http/operation.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import type { ChatChannel } from './channel.ts'

/** The upgrade to the chat channel; the pipeline has checked the token. */
export function chatSocketRoute(channel: ChatChannel) {
  return new Elysia({ name: 'chat-socket' }).use(routeBase).get(
    '/v1/chat/ws',
    ({ request, server, exchange, set }) => {
      if (channel.isDraining()) throw new AppError('unavailable', { retryAfterSeconds: 1 })
      const protocol = selectedProtocol(request.headers)
      const headers = new Headers(Object.entries(set.headers).map(([k, v]) => [k, String(v)]))
      if (protocol !== undefined) headers.set('sec-websocket-protocol', protocol)
      const data = channel.connect(callerOf(exchange), exchange.locale)
      if (!server?.upgrade(request, { headers, data })) throw invalidField('body', 'websocket_only')
    },
    {
      access: 'socket',
      limit: 'default',
      detail: operation({
        tag: 'Chat',
        summary: 'Open the chat channel (WebSocket)',
        success: { 101: null },
        errors: ['validation_error'],
      }),
    },
  )
}
