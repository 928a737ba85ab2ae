import { CheckedText, Id } from '../api/fields.ts'
import { operations } from '../api/operation.ts'
import { samples } from '../api/samples.ts'
import type { Config } from '../config.ts'
import { selectedProtocol } from '../http/bearer.ts'
import { mayOpenSocket } from '../http/cors.ts'
import type { RouteApp } from '../http/request-context.ts'
import { AppError, invalidField, problem } from '../lib/errors.ts'
import type { Channel } from './channel.ts'

const socket = operations('Chat', { access: 'socket' })

export const socketQuery = (channel: Channel) => ({
  // Choice: an unknown name is refused. A client that waits for frames that never come is hard to debug.
  events: CheckedText(
    (text) =>
      eventsIn(text).every((name) => channel.groups.includes(name))
        ? undefined
        : problem('one_of', channel.groups.join(', ')),
    {
      description: `Groups of additional frames, comma-separated: ${channel.groups.join(', ')}.`,
      examples: ['ack,read'],
    },
  ),
  since: Id({
    description: 'Id of a message. The socket first sends the messages after it.',
    examples: [samples.messageId],
  }),
})

export function socketRoute(app: RouteApp, channel: Channel, config: Config) {
  app.get(
    '/v1/chat/ws',
    ({ request, server, context, set }) => {
      if (!mayOpenSocket(request.headers, config)) throw new AppError('origin_not_allowed')
      if (channel.isDraining()) throw new AppError('unavailable', { retryAfterSeconds: 1 })
      // The runtime would answer another version by itself.
      if (request.headers.get('sec-websocket-version') !== '13')
        throw invalidField('body', 'websocket_only')
      const protocol = selectedProtocol(request.headers)
      const headers = new Headers(Object.entries(set.headers).map(([k, v]) => [k, String(v)]))
      if (protocol !== undefined) headers.set('sec-websocket-protocol', protocol)
      const { searchParams } = new URL(request.url)
      const since = searchParams.get('since')
      const data = channel.connect(context.user, {
        locale: context.locale,
        groups: eventsIn(searchParams.get('events') ?? ''),
        ...(since !== null && { since }),
      })
      if (!server?.upgrade(request, { headers, data })) throw invalidField('body', 'websocket_only')
    },
    socket(
      'openChatSocket',
      'Opens the chat channel (WebSocket). `/v1/asyncapi.json` describes its frames. The access token is sent in the query, in the header, or as the subprotocol `bearer.<token>` together with `hostline.v1`.',
      { 101: null, query: socketQuery(channel), errors: ['origin_not_allowed'] },
    ),
  )
}

function eventsIn(text: string): string[] {
  return text.split(',').filter((name) => name !== '')
}
