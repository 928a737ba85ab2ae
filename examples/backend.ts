import { existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import { ApiError, createClient } from 'hostline-client'
import { verifyWebhook } from 'hostline-client/webhook'

/** A booking platform that has its own users: `bun examples/backend.ts URL SERVICE_KEY WEBHOOK_SECRET [PORT] [FILE]`.
 *
 *    hostline service-key create --name platform --scope users --scope sessions --scope notifications --scope messages
 *    hostline webhook create --url http://localhost:4000/hooks --events message.created
 *
 *    PUT    /people/ID          {email, name, role?}: the person is made in Hostline, and kept in step
 *    DELETE /people/ID          removed from Hostline, too
 *    POST   /people/ID/session  after the platform's own login: the session for the person's app
 *    PUT    /bookings/ID        {customer, host, starts_at, is_over?}: opens their conversation, speaks in it, closes it
 *    GET    /bookings/ID        with what the two have written
 *    GET    /                   how many changes Hostline does not have yet
 *
 *  A change is a line of the file, and on the disk, before it is answered. One loop carries the lines to Hostline in
 *  order. Each line can be carried twice, and each webhook may come twice, so either side may be killed at any moment. */

const [baseUrl = 'http://localhost:3000', serviceKey = '', secret = '', port = '4000', ...rest] =
  process.argv.slice(2)
const [path = 'bookings.jsonl'] = rest

type Person = { email: string; name: string; role?: 'user' | 'host' }
type Booking = { customer: string; host: string; starts_at: string; is_over?: boolean }
type Change =
  | { type: 'person'; id: string; person: Person | null }
  | { type: 'booking'; id: string; booking: Booking; notice: string }
type Line =
  | Change
  | { type: 'done'; line: number; conversation_id?: string | undefined }
  | { type: 'heard'; webhook_id: string; conversation_id: string; body: string }
type Answer = [status: number, body?: unknown]

const platform = createClient({ baseUrl, serviceKey })
const people = new Map<string, Person>()
const bookings = new Map<string, Booking>()
/** By booking. */
const conversations = new Map<string, string>()
/** By conversation. */
const said = new Map<string, string[]>()
const heard = new Set<string>()
/** By number, in order. */
const waiting = new Map<number, Change>()
let wake = () => {}

const known = existsSync(path) ? readFileSync(path, 'utf8') : ''
const file = openSync(path, 'a')
const lines = known.split('\n')
// A line that a kill has cut off was never answered, so whoever sent it sends it again.
ftruncateSync(file, Buffer.byteLength(known) - Buffer.byteLength(lines.pop() ?? ''))
let count = 0
for (const line of lines) take(JSON.parse(line))

function append(line: Line) {
  writeSync(file, `${JSON.stringify(line)}\n`)
  fsyncSync(file)
  take(line)
}

function take(line: Line) {
  const number = count++
  if (line.type === 'heard') {
    heard.add(line.webhook_id)
    said.set(line.conversation_id, [...(said.get(line.conversation_id) ?? []), line.body])
  } else if (line.type === 'done') {
    const done = waiting.get(line.line)
    const { conversation_id } = line
    if (done?.type === 'booking' && conversation_id) conversations.set(done.id, conversation_id)
    waiting.delete(line.line)
  } else {
    if (line.type === 'booking') bookings.set(line.id, line.booking)
    else if (line.person) people.set(line.id, line.person)
    else people.delete(line.id)
    waiting.set(number, line)
    wake()
  }
}

/** Brings one change to Hostline; a second time changes nothing.
 *  @returns the conversation of a booking */
async function carry(line: Change, number: number): Promise<string | undefined> {
  if (line.type === 'person') return carryPerson(line.id, line.person)
  const { customer, host, ...data } = line.booking
  const [user_id, other] = [`ext:${customer}`, `ext:${host}`]
  const { id } = await platform.request('POST /v1/service/conversations', {
    body: { user_ids: [user_id, other] },
  })
  await platform.request('POST /v1/service/messages', {
    body: { conversation_id: id, body: line.notice, data, unread: true },
    headers: { 'x-idempotency-key': `${line.id}-${number}` },
  })
  await platform.request('PATCH /v1/service/conversations/{id}', {
    params: { id },
    body: { data: { booking_id: line.id, ...data }, state: data.is_over ? 'read_only' : 'open' },
  })
  if (!data.is_over) return id
  await platform.request('POST /v1/service/notifications', {
    body: {
      user_id,
      type: 'payment_captured',
      data: { amount: '25.00', currency: 'EUR' },
      dedupe_key: `payment-${line.id}`,
    },
  })
  return id
}

async function carryPerson(externalId: string, person: Person | null): Promise<undefined> {
  if (person) {
    const { email, name: display_name, role = 'user' } = person
    const body = { external_id: externalId, email, email_verified: true, display_name, role }
    await platform.request('POST /v1/service/users', { body })
    return
  }
  const params = { id: `ext:${externalId}` }
  await platform.request('DELETE /v1/service/users/{id}', { params })
}

async function carryAll(): Promise<never> {
  for (;;) {
    const [next] = waiting
    if (next) await settle(...next)
    else await new Promise<void>((resolve) => (wake = resolve))
  }
}

async function settle(number: number, line: Change) {
  try {
    append({ type: 'done', line: number, conversation_id: await carry(line, number) })
  } catch (error) {
    console.error(line.id, String(error))
    // Refused for good. All else passes: no network, a restart, a limit, a key without the scope.
    const refusal = error instanceof ApiError && error.reason !== 'scope_required' && error
    const isFinal = refusal && [400, 403, 404, 409].includes(refusal.status ?? 0)
    if (isFinal) append({ type: 'done', line: number })
    else await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

function keepPerson(id: string, person: Person | null): Answer {
  if (!isDeepStrictEqual(people.get(id) ?? null, person)) append({ type: 'person', id, person })
  return [204]
}

function book(id: string, booking: Booking): Answer {
  const before = bookings.get(id)
  if (isDeepStrictEqual(before, booking)) return [204]
  const time = booking.starts_at.slice(11, 16)
  const kept = before?.starts_at === booking.starts_at
  const changed = kept ? 'Changed' : `Moved to ${time}`
  const notice = booking.is_over ? 'Thank you, good-bye' : before ? changed : `Booked for ${time}`
  append({ type: 'booking', id, booking, notice })
  return [204]
}

function show(id: string): Answer {
  const booking = bookings.get(id)
  const conversation_id = conversations.get(id)
  const messages = said.get(conversation_id ?? '') ?? []
  return booking ? [200, { ...booking, conversation_id, messages }] : [404]
}

async function hear({ headers }: IncomingMessage, body: string): Promise<Answer> {
  const event = await verifyWebhook({ headers, body }, secret)
  const webhook_id = String(headers['webhook-id'])
  if (event.type !== 'message.created' || heard.has(webhook_id)) return [204]
  const { message } = event.data
  const { conversation_id, body: words } = message
  if (message.type !== 'notice') append({ type: 'heard', webhook_id, conversation_id, body: words })
  return [204]
}

async function logIn(id: string): Promise<Answer> {
  const route = 'POST /v1/service/users/{id}/sessions'
  return [200, await platform.request(route, { params: { id: `ext:${id}` } })]
}

async function answer(request: IncomingMessage): Promise<Answer> {
  const [, kind = '', id = '', part = ''] = (request.url ?? '').split('/')
  const body = await text(request)
  const route = `${request.method} ${kind}${part}`
  if (route === 'POST hooks') return hear(request, body)
  if (route === 'PUT people') return keepPerson(id, JSON.parse(body))
  if (route === 'DELETE people') return keepPerson(id, null)
  if (route === 'POST peoplesession') return logIn(id)
  if (route === 'PUT bookings') return book(id, JSON.parse(body))
  if (route === 'GET bookings') return show(id)
  return route === 'GET ' ? [200, { waiting: waiting.size }] : [404]
}

createServer(async (request, response) => {
  const [status, body] = await answer(request).catch((error): Answer => [500, String(error)])
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(body === undefined ? undefined : JSON.stringify(body))
}).listen(Number(port), () => console.log(`listening on ${port}`))
void carryAll()
