import { refreshTokenOf } from './growth/account-fill.ts'
import { addressOf, admins, cast, type Landmarks, password } from './growth/dataset.ts'
import { textOf, wordAt } from './growth/vocabulary.ts'

/** A mixed load of people, the desk and the platform. */

export type Operation = { kind: string; run: () => Promise<unknown> }
export type Mix = Awaited<ReturnType<typeof createMix>>

/** An unexpected status or socket frame. */
export class UnexpectedAnswer extends Error {}

type Person = {
  id: string
  token: string
  refreshToken: string
  conversation: string
  socket?: WebSocket
  /** By client_id: settled by the acknowledgement. */
  waiting: Map<string, { resolve: () => void; reject: (error: Error) => void }>
  isRefreshing: boolean
}
type Ticket = { id: string; owner: Person }

const body = 'a message of the usual length, as people write them all day'
const conversations = '/v1/chat/conversations'
const tickets = '/v1/support/tickets'
const desk = '/v1/admin/support/tickets'
const ticketsKept = 2_000
const socketsKept = 300
const atOnce = 50
const random = (below: number) => Math.floor(Math.random() * below)

/** Logs everybody in with the sessions of the fill, and opens the conversations and sockets of the mix. */
export async function createMix(base: string, { people: ids }: Landmarks) {
  const people = ids.map((id, n): Person => {
    const refreshToken = refreshTokenOf(n)
    return {
      id,
      token: '',
      refreshToken,
      conversation: '',
      waiting: new Map(),
      isRefreshing: false,
    }
  })
  const [talkers, desks] = [people.slice(cast.length), people.filter((_, n) => isAdmin(n))]
  const someone = () => oneOf(talkers)
  const opened: Ticket[] = []
  let clientIds = 0
  let turn = 0

  async function ask(method: string, path: string, token: string, body?: object) {
    const answer = await fetch(base + path, {
      method,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new UnexpectedAnswer(`${answer.status} for ${method} ${path}: ${text}`)
    return text
  }

  /** Refreshes each person in turn, so that no access token expires during the load. */
  async function refresh(person = people[turn++ % people.length] ?? someone()) {
    if (person.isRefreshing) return
    person.isRefreshing = true
    const answer = await ask('POST', '/v1/auth/refresh', '', { refresh_token: person.refreshToken })
    const { access_token, refresh_token } = JSON.parse(answer) as Record<string, string>
    Object.assign(person, { token: access_token, refreshToken: refresh_token, isRefreshing: false })
  }

  function connect(person: Person) {
    const url = `${base.replace('http', 'ws')}/v1/chat/ws?events=ack&token=${person.token}`
    const socket = new WebSocket(url)
    socket.onmessage = ({ data }) => {
      const { type, client_id, request } = JSON.parse(String(data))
      if (type === 'ack') person.waiting.get(client_id)?.resolve()
      const refusal = new UnexpectedAnswer(String(data))
      if (type === 'error') person.waiting.get(request.client_id)?.reject(refusal)
    }
    return new Promise<void>((resolve, reject) => {
      socket.onerror = () => reject(new UnexpectedAnswer('a socket was refused'))
      socket.onopen = () => {
        person.socket = socket
        resolve()
      }
    })
  }

  function sendFrame(person: Person) {
    const clientId = `frame-${++clientIds}`
    const frame = {
      type: 'message',
      conversation_id: person.conversation,
      client_id: clientId,
      body,
    }
    return new Promise<void>((resolve, reject) => {
      person.waiting.set(clientId, { resolve, reject })
      person.socket?.send(JSON.stringify(frame))
    }).finally(() => person.waiting.delete(clientId))
  }

  const connected: Person[] = []

  /** Replaces the oldest socket with a new one. */
  async function changeSocket() {
    const leaving = connected[0]?.waiting.size === 0 ? connected.shift() : undefined
    leaving?.socket?.close()
    const coming = someone()
    if (connected.includes(coming)) return
    await connect(coming)
    connected.push(coming)
  }

  async function openTicket() {
    const owner = talkers[turn++ % talkers.length] ?? someone()
    const ticket = { subject: textOf(5, random), body: textOf(60, random) }
    const { id } = JSON.parse(await ask('POST', tickets, owner.token, ticket)) as { id: string }
    opened[opened.length < ticketsKept ? opened.length : random(ticketsKept)] = { id, owner }
  }

  async function reply(path: string, ticket: Ticket, { token }: Person) {
    await ask('POST', `${path}/${ticket.id}/messages`, token, { body: textOf(40, random) })
  }

  async function notify() {
    const event = { user_id: someone().id, type: 'call_missed', body: 'Somebody called.' }
    await ask('POST', '/v1/service/notifications', key, event)
  }

  async function open(person: Person, n: number) {
    const other = talkers[n % 2 === 0 ? n + 1 : n - 1] ?? someone()
    const answer = await ask('POST', conversations, person.token, { user_id: other.id })
    person.conversation = (JSON.parse(answer) as { id: string }).id
  }

  const inConversation = (method: string, rest: string, body?: object) => () => {
    const { conversation, token } = someone()
    return ask(method, `${conversations}/${conversation}${rest}`, token, body)
  }
  const own = (path: string) => () => ask('GET', path, someone().token)
  const atDesk = (query: () => string) => () => ask('GET', `${desk}?${query()}`, oneOf(desks).token)
  const login = () =>
    ask('POST', '/v1/auth/login', '', { email: addressOf(random(people.length)), password })

  await inTurns(people, refresh)
  await inTurns(talkers, open)
  const { token: deskToken } = oneOf(desks)
  await ask('POST', '/v1/auth/confirm', deskToken, { password })
  const keyAnswer = await ask('POST', '/v1/admin/service-keys', deskToken, {
    name: 'mix',
    scopes: ['all'],
  })
  const { key } = JSON.parse(keyAnswer) as { key: string }
  connected.push(...talkers.slice(0, socketsKept))
  await inTurns(connected, connect)
  await inTurns(Array.from({ length: atOnce }), openTicket)

  /** In a thousand operations. */
  const shares: Array<[count: number, kind: string, run: () => Promise<unknown>]> = [
    [340, 'message over a socket', () => sendFrame(oneOf(connected))],
    [130, 'message over REST', inConversation('POST', '/messages', { body })],
    [170, 'page of messages', inConversation('GET', '/messages?limit=50')],
    [120, 'conversation list', own(`${conversations}?limit=20`)],
    [100, 'read mark', inConversation('PUT', '/read')],
    [3, 'open a ticket', openTicket],
    [5, 'reply of an owner', () => reply(tickets, ...withOwner(oneOf(opened)))],
    [6, 'reply of the desk', () => reply(desk, oneOf(opened), oneOf(desks))],
    [8, 'desk list', atDesk(() => 'limit=20')],
    [4, 'desk search', atDesk(() => `limit=20&q=${wordAt(10 + random(500))}`)],
    [20, 'notification', notify],
    [50, 'notification list', own('/v1/notifications?limit=20')],
    [31, 'refresh', () => refresh()],
    [12, 'socket', changeSocket],
    [1, 'login', login],
  ]
  const bag = shares.flatMap(([count, kind, run]) => Array<Operation>(count).fill({ kind, run }))
  return { next: () => oneOf(bag), kinds: shares.map(([, kind]) => kind) }
}

const isAdmin = (n: number) => admins.some((admin) => admin === cast[n])
const withOwner = (ticket: Ticket) => [ticket, ticket.owner] as const

function oneOf<T>(values: readonly T[]): T {
  const value = values[random(values.length)]
  if (value === undefined) throw new Error('cannot pick from an empty list')
  return value
}

async function inTurns<T>(values: readonly T[], work: (value: T, n: number) => Promise<unknown>) {
  const all = values.entries()
  const lane = async () => {
    for (const [n, value] of all) await work(value, n)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}
