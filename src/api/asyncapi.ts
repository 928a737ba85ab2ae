import type { TSchema } from '@sinclair/typebox'
import { closed, createSchemas, type Json } from './openapi-schemas.ts'

type ChannelDoc = {
  address: string
  title: string
  description: string
  query: Record<string, TSchema>
  received: Record<string, TSchema>
  sent: Record<string, TSchema>
}

const schemaFormat = 'application/schema+json;version=draft-07'

/** Made from the schemas that also type and check the frames. */
export function describeChannel(channel: ChannelDoc, version: string, publicUrl: string) {
  const { lift, schemas, exampleOf } = createSchemas()
  const { protocol, host } = new URL(publicUrl)

  const messages = (frames: Record<string, TSchema>, from: string) =>
    Object.fromEntries(
      Object.entries(frames).map(([type, { title: _title, ...schema }]) => {
        const { description } = schema
        const lifted = lift(closed(schema)) as Json
        return [
          `${from}_${type}`,
          {
            name: type,
            ...(description !== undefined && { summary: description }),
            payload: { schemaFormat, schema: lifted },
            examples: [{ payload: exampleOf(lifted, type) }],
          },
        ]
      }),
    )
  const received = messages(channel.received, 'client')
  const sent = messages(channel.sent, 'server')
  const all = { ...received, ...sent }
  const component = (name: string) => [name, { $ref: `#/components/messages/${name}` }]
  const refer = (names: Json) =>
    Object.keys(names).map((name) => ({ $ref: `#/channels/chat/messages/${name}` }))

  return {
    asyncapi: '3.0.0',
    info: { title: 'Hostline', version, license: { name: 'MIT' } },
    defaultContentType: 'application/json',
    servers: { main: { host, protocol: protocol === 'https:' ? 'wss' : 'ws' } },
    channels: {
      chat: {
        address: channel.address,
        title: channel.title,
        description: channel.description,
        messages: Object.fromEntries(Object.keys(all).map(component)),
        bindings: {
          ws: {
            method: 'GET',
            query: { type: 'object', properties: lift(channel.query) },
            bindingVersion: '0.1.0',
          },
        },
      },
    },
    operations: {
      receive: {
        action: 'receive',
        channel: { $ref: '#/channels/chat' },
        summary: 'Frames that a client sends.',
        messages: refer(received),
      },
      send: {
        action: 'send',
        channel: { $ref: '#/channels/chat' },
        summary: 'Frames that the server sends.',
        messages: refer(sent),
      },
    },
    components: { messages: all, schemas },
  }
}
