import type { Database } from 'bun:sqlite'
import { Webhook } from 'standardwebhooks'
import { ulid } from 'ulid'

type Answer = { status: number; headers?: Record<string, string>; body?: string }
/** A promise: a late response. `hang`: none. `flood`: an endless error. */
type NextAnswer = Answer | Promise<Answer> | 'hang' | 'flood'

export type Received = {
  path: string
  headers: Record<string, string>
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: bodies are judged by the assertions on them
  body: any
}

/** A webhook endpoint. It answers 204 by default. */
export function startReceiver(first: NextAnswer = { status: 204 }) {
  let usual = first
  const received: Received[] = []
  const answers: NextAnswer[] = []
  let flooded = 0

  const flood = () =>
    new ReadableStream({
      pull(controller) {
        flooded += 16_384
        controller.enqueue(Buffer.alloc(16_384, 'x'))
      },
    })

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      // A server of another test may still ask a bucket that had this port.
      if (request.method !== 'POST') return new Response(null, { status: 404 })
      const text = await request.text()
      const headers = Object.fromEntries(request.headers)
      const path = new URL(request.url).pathname
      received.push({ path, headers, text, body: JSON.parse(text) })
      const next = await (answers.shift() ?? usual)
      if (next === 'hang') return new Promise<Response>(() => {})
      if (next === 'flood') return new Response(flood(), { status: 500 })
      return new Response(next.body ?? null, { status: next.status, headers: next.headers ?? {} })
    },
  })

  return {
    url: `${server.url.origin}/hook`,
    received,
    flooded: () => flooded,
    respond: (...next: NextAnswer[]) => void answers.push(...next),
    /** Sets its response from now on. */
    respondAll(next: NextAnswer) {
      usual = next
    },
    /** Requests about one type of event. */
    of: (type: string) => received.filter(({ body }) => body.type === type),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

/** The event as a receiver verifies it with the published library.
 *  @throws when the signature is wrong */
export const verify = (secret: string, { text, headers }: Received): unknown =>
  new Webhook(secret).verify(text, headers)

/** A failed delivery.
 *  @returns its id */
export function insertDelivery(sqlite: Database, webhookId: string): string {
  const id = ulid()
  sqlite.run(
    `INSERT INTO webhook_deliveries (webhook_id, id, event, status, attempts, created_at, attempted_at)
     VALUES (?, ?, '{"type":"user.created","at":"2026-01-01T00:00:00.000Z"}', 'failed', 10, 0, ?)`,
    [webhookId, id, Date.now()],
  )
  return id
}
