import type { ServerWebSocket } from 'bun'
import type { Message } from '../../client/client.ts'

type Upgrade = { path: string; query: Record<string, string>; protocols: string }
type Data = Upgrade & { events: string[]; mute: boolean }
type Socket = ServerWebSocket<Data>
// biome-ignore lint/suspicious/noExplicitAny: frames and bodies are judged by the assertions on them
type Json = any

export type ChatStandIn = ReturnType<typeof startChatStandIn>

const firstId = 1_000

/** A server that speaks the chat contract (docs/protocol.md) over real sockets and HTTP, for one user and with faults on
 *  demand. It keeps what it was asked. */
export function startChatStandIn() {
  const messages: Message[] = []
  const byClientId = new Map<string, Message>()
  const requests: Array<{ method: string; path: string; body: Json; token: string | null }> = []
  const upgrades: Upgrade[] = []
  const frames: Json[] = []
  const sockets = new Set<Socket>()
  const faults: Array<{ path: string; answer: () => Response | Promise<Response> }> = []
  const frameFaults: Array<(frame: Json, socket: Socket) => void> = []
  let tokens = 0
  const control = { acknowledges: true, answersPings: true, refusesUpgrades: false }

  function store(conversationId: string, body: string, clientId?: string): Message {
    const known = clientId === undefined ? undefined : byClientId.get(clientId)
    if (known) return known
    const id = String(firstId + messages.length).padStart(26, '0')
    const message = messageOf(id, conversationId, body)
    messages.push(message)
    if (clientId !== undefined) byClientId.set(clientId, message)
    const frame = JSON.stringify({ type: 'new_message', message })
    for (const socket of sockets) if (!socket.data.mute) socket.send(frame)
    return message
  }

  function receive(socket: Socket, frame: Json) {
    frames.push(frame)
    if (frame.type === 'ping' && control.answersPings) socket.send('{"type":"pong"}')
    if (frame.type !== 'message') return
    const fault = frameFaults.shift()
    if (fault) return fault(frame, socket)
    const message = store(frame.conversation_id, frame.body, frame.client_id)
    const { client_id } = frame
    const isAsked = socket.data.events.includes('ack')
    if (control.acknowledges && isAsked) send(socket, { type: 'ack', client_id, message })
  }

  function upgrade(request: Request, url: URL): Response | undefined {
    const query = Object.fromEntries(url.searchParams)
    const protocols = request.headers.get('sec-websocket-protocol') ?? ''
    const upgraded = { path: url.pathname, query, protocols }
    upgrades.push(upgraded)
    if (control.refusesUpgrades) return refusal(401, 'unauthorized')
    const data = { ...upgraded, events: query['events']?.split(',') ?? [], mute: false }
    const headers = { 'sec-websocket-protocol': 'hostline.v1' }
    return server.upgrade(request, { data, headers }) ? undefined : refusal(400, 'validation_error')
  }

  const answers: Array<[start: string, answer: () => Json]> = [
    ['/v1/auth/', () => authenticated(++tokens)],
    ['/v1/users/me', () => user],
    ['/v1/chat/conversations/', () => ({ success: true, data: messages.slice(-1) })],
    ['/v1/chat/conversations', () => cursorPage(messages.slice(-1).map(inboxItem))],
  ]

  function answer(method: string, path: string, body: Json): Json {
    const [, conversation] = /conversations\/([^/]+)\/messages/.exec(path) ?? []
    if (method === 'POST' && conversation) return store(conversation, body.body, body.client_id)
    return answers.find(([start]) => path.startsWith(start))?.[1]()
  }

  const server: Bun.Server<Data> = Bun.serve<Data>({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      const fault = faults.findIndex(({ path }) => url.pathname.startsWith(path))
      if (url.pathname === '/v1/chat/ws' && fault < 0) return upgrade(request, url)
      const body = request.method === 'GET' ? undefined : await request.json()
      const path = url.pathname + url.search
      const token = request.headers.get('authorization')
      requests.push({ method: request.method, path, body, token })
      if (fault >= 0) return faults.splice(fault, 1)[0]?.answer()
      if (url.pathname === '/v1/auth/logout') return new Response(null, { status: 204 })
      return Response.json(answer(request.method, url.pathname, body))
    },
    websocket: {
      open(socket) {
        const { since: last } = socket.data.query
        sockets.add(socket)
        if (last === undefined) return
        for (const message of messages.filter(({ id }) => id > last))
          send(socket, { type: 'new_message', message })
      },
      message: (socket, text) => receive(socket, JSON.parse(String(text))),
      close: (socket) => void sockets.delete(socket),
    },
  })

  return {
    base: `http://127.0.0.1:${server.port}`,
    control,
    messages,
    requests,
    upgrades,
    frames,
    /** How often something was asked. */
    count: (method: string, path: string) =>
      requests.filter((it) => it.method === method && it.path === path).length,
    store,
    say: (body: string, conversationId = 'c') => store(conversationId, body),
    push(frame: Json) {
      for (const socket of sockets) send(socket, frame)
    },
    close(code: number) {
      for (const socket of sockets) socket.close(code)
    },
    /** What the next request to a path gets in the place of its answer. */
    failNext: (path: string, answer: () => Response | Promise<Response>) =>
      void faults.push({ path, answer }),
    /** What comes of the next `message` frame. */
    failNextFrame: (fault: (frame: Json, socket: Socket) => void) => void frameFaults.push(fault),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

export function refusal(status: number, code: string, headers: Record<string, string> = {}) {
  return Response.json({ error: { code, message: code, details: null } }, { status, headers })
}

function send(socket: Socket, frame: Json) {
  socket.send(JSON.stringify(frame))
}

const created_at = '2026-01-01T00:00:00.000Z'
const user = {
  id: 'U1',
  email: 'ada@example.com',
  display_name: 'Ada',
  role: 'host',
  email_verified: true,
  created_at,
}

function authenticated(turn: number) {
  return { user, access_token: `a.b.${turn}`, refresh_token: `rt_${turn}`, expires_in: 900 }
}

function messageOf(id: string, conversation_id: string, body: string): Message {
  const file = { file_url: null, file_name: null, file_size: null, file_type: null }
  return { id, conversation_id, sender_id: 'U1', body, type: 'text', ...file, created_at }
}

function inboxItem({ conversation_id: id, body }: Message) {
  return { id, last_message: { body, type: 'text', sent_at: created_at } }
}

function cursorPage<T>(data: T[]) {
  return { data, pagination: { cursor: null, has_more: false, limit: data.length } }
}
