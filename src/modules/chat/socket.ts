import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { selectedProtocol } from '../../http/bearer.ts'
import { callerOf, routeBase } from '../../http/exchange.ts'
import { operation } from '../../http/operation.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import type { ChatChannel } from './channel.ts'
import { type EventGroup, eventGroupNames } from './server-frames.ts'
import type { ChatService } from './service.ts'

/** What the upgrade request may ask for, besides the token. */
export const socketQuery = {
  events: Type.String({
    description: `Frames beyond the usual ones, comma-separated: ${eventGroupNames.join(', ')}.`,
  }),
  since: Type.String({ description: 'Id of a message: what came after it is sent first.' }),
}

type SocketOptions = { chat: ChatService; chatChannel: ChatChannel }

/** The upgrade to the chat channel; the pipeline has checked the token. */
export function chatSocketRoute({ chat, chatChannel: channel }: SocketOptions) {
  return new Elysia({ name: 'chat-socket' }).use(routeBase).get(
    '/v1/chat/ws',
    ({ request, server, exchange, set }) => {
      if (channel.isDraining()) throw new AppError('unavailable', { retryAfterSeconds: 1 })
      const protocol = selectedProtocol(request.headers)
      const headers = new Headers(Object.entries(set.headers).map(([k, v]) => [k, String(v)]))
      if (protocol !== undefined) headers.set('sec-websocket-protocol', protocol)
      const { searchParams } = new URL(request.url)
      const since = searchParams.get('since')
      const data = channel.connect(callerOf(exchange), {
        locale: exchange.locale,
        events: eventsOf(searchParams),
        since: since === null ? undefined : chat.startOfReplay(since),
      })
      if (!server?.upgrade(request, { headers, data })) throw invalidField('body', 'websocket_only')
    },
    {
      access: 'socket',
      limit: 'default',
      detail: operation({
        tag: 'Chat',
        summary: 'Open the chat channel (WebSocket)',
        query: socketQuery,
        success: { 101: null },
        errors: ['validation_error'],
      }),
    },
  )
}

/** @throws validation_error for a name that is none: a client that waits for frames which never come is hard to find */
function eventsOf(query: URLSearchParams): ReadonlySet<EventGroup> {
  const names = query.getAll('events').flatMap((list) => list.split(','))
  const known = eventGroupNames.filter((group) => names.includes(group))
  const others = names.filter((name) => name !== '' && !known.some((group) => group === name))
  if (others.length > 0) throw invalidField('events', 'one_of', eventGroupNames.join(', '))
  return new Set(known)
}
