import { createServer, type IncomingMessage } from 'node:http'
import { createClient } from 'hostline-client'
import { Webhook } from 'standardwebhooks'

/** A platform that has its own users: `bun examples/backend.ts URL SERVICE_KEY WEBHOOK_SECRET [PORT]`. It creates a
 *  customer, logs them in, notifies them of a payment, and receives the webhook.
 *
 *    hostline service-key create --name platform --scope users --scope sessions --scope notifications
 *    hostline webhook create --url http://localhost:4000/ --events notification.created */

const [baseUrl = 'http://localhost:3000', serviceKey = '', secret = '', port = '4000'] =
  process.argv.slice(2)

const platform = createClient({ baseUrl, serviceKey })
const webhook = new Webhook(secret)

const heard = Promise.withResolvers<void>()
const receiver = createServer(async (request, response) => {
  try {
    const event = webhook.verify(await read(request), request.headers as Record<string, string>)
    console.log('webhook:', (event as { type: string }).type)
    response.writeHead(204).end()
    heard.resolve()
  } catch {
    response.writeHead(400).end() // not from Hostline, or changed on the way
  }
}).listen(Number(port))

async function read(request: IncomingMessage) {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts).toString()
}

// The same external id returns the same user, so the platform need not store the user's id.
const user = await platform.request('POST /v1/service/users', {
  body: {
    email: 'customer-7@example.com',
    external_id: 'customer-7',
    display_name: 'Carla',
    email_verified: true,
  },
})
console.log('user:', user.id)

// The platform's own login passes this session to the customer's app.
const session = await platform.request('POST /v1/service/users/{id}/sessions', {
  params: { id: 'ext:customer-7' },
})
const app = createClient({ baseUrl })
app.useSession(session)
const notified = new Promise<void>((resolve) => {
  app.on('notification', ({ notification }) => {
    console.log('notification:', notification.title, notification.data)
    resolve()
  })
})
await app.connect()

await platform.request('POST /v1/service/notifications', {
  body: {
    user_id: 'ext:customer-7',
    type: 'payment_captured',
    data: { amount: '25.00', currency: 'EUR' },
    dedupe_key: `payment-${Date.now()}`,
  },
})

await Promise.all([notified, heard.promise])
app.close()
platform.close()
receiver.close()
receiver.closeAllConnections()
