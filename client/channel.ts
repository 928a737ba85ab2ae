import { createBackoff } from './backoff.ts'
import { type Connection, openConnection, type WebSocketClass } from './connection.ts'
import type { ClientFrame, EventGroup, ServerFrame } from './contract.ts'
import { type ChannelEvents, type ChannelStatus, createHandlers } from './handlers.ts'
import { renewalMilliseconds, type Session } from './session.ts'
import type { Timers } from './timers.ts'

/** What a close code asks for beyond coming back (docs/protocol.md). */
const finalCodes = [4400, 4409]
const renewalCodes = [4401, 4403]
const slowCode = 4429
const slowMilliseconds = 10_000
/** A connection that held this long was a good one: the pauses start small again. */
const steadyMilliseconds = 10_000
const shortestRenewalPause = 5_000

export type Network = Pick<EventTarget, 'addEventListener' | 'removeEventListener'>

type ChannelOptions = {
  baseUrl: string
  topics: readonly EventGroup[]
  since: string | undefined
  session: Session
  /** The id after which messages are new, when the page names none. */
  newestMessageId: () => Promise<string>
  /** Any request as the user: tells whether the session still lives, which a refused upgrade does not. */
  probe: () => Promise<unknown>
  timers: Timers
  random: () => number
  WebSocket: WebSocketClass
  /** Says `online` when there is a network again. */
  network: Network | undefined
}

export type Channel = ReturnType<typeof createChannel>

/** The chat channel (spec 6.1) over one connection after another. Each one begins after the newest message that was
 *  delivered, so that none is missed and none comes twice. */
export function createChannel(options: ChannelOptions) {
  const { session, timers, network } = options
  const handlers = createHandlers<ChannelEvents>()
  const backoff = createBackoff(options.random)
  let status: ChannelStatus = 'connecting'
  let newest = options.since
  let connection: Connection | undefined
  let token: string | undefined
  let refusedToken: string | undefined
  let isDoubtful = false
  let attempts = 0
  let cancelRetry = () => {}
  let cancelRenewal = () => {}

  function show(next: ChannelStatus, code?: number) {
    status = next
    handlers.emit('status', { status, ...(code !== undefined && { code }) })
  }

  async function open() {
    const attempt = ++attempts
    show('connecting')
    try {
      if (isDoubtful) await options.probe()
      token = await freshToken()
      if (token !== undefined) newest ??= await options.newestMessageId()
      if (attempt === attempts) dial(token)
    } catch {
      if (attempt === attempts) wait()
    }
  }

  const freshToken = () =>
    refusedToken === undefined ? session.token() : session.renew(refusedToken)

  function dial(accessToken: string | undefined) {
    if (accessToken === undefined) return stop()
    let openedAt: number | undefined
    const { WebSocket } = options
    connection = openConnection({
      url: channelUrl(options, newest),
      token: accessToken,
      WebSocket,
      timers,
      onOpen() {
        openedAt = timers.now()
        refusedToken = undefined
        isDoubtful = false
        planRenewal()
        show('open')
      },
      onFrame: deliver,
      onClose: (code) => lost(code, openedAt),
    })
  }

  function lost(code: number, openedAt: number | undefined) {
    cancelRenewal()
    if (finalCodes.includes(code)) return stop(code)
    if (renewalCodes.includes(code)) refusedToken = token
    if (openedAt === undefined) isDoubtful = true
    else if (timers.now() - openedAt >= steadyMilliseconds) backoff.reset()
    wait(code)
  }

  function wait(code?: number) {
    const floor = code === slowCode ? slowMilliseconds : 0
    cancelRetry = timers.after(floor + backoff.next(), () => void open())
    show('waiting', code)
  }

  function stop(code?: number) {
    if (status === 'closed') return
    attempts++
    cancelRetry()
    cancelRenewal()
    connection?.close()
    network?.removeEventListener('online', retryNow)
    show('closed', code)
  }

  function retryNow() {
    if (status === 'open') connection?.check()
    if (status !== 'waiting') return
    cancelRetry()
    void open()
  }

  function planRenewal() {
    cancelRenewal()
    const due = (session.expiresAt() ?? 0) - renewalMilliseconds - timers.now()
    cancelRenewal = timers.after(Math.max(due, shortestRenewalPause), async () => {
      await session.token().catch(() => undefined) // tried again after the pause
      if (status === 'open') planRenewal()
    })
  }

  function deliver(frame: ServerFrame) {
    if (frame.type === 'new_message') {
      const { id } = frame.message
      // Ids rise in the order of the commits, and a replay comes before what is live.
      if (newest !== undefined && id <= newest) return
      newest = id
    }
    handlers.emit(frame.type, frame)
  }

  /** @returns false when there is no connection to send it over */
  function send(frame: ClientFrame): boolean {
    if (status !== 'open') return false
    connection?.send(frame)
    return true
  }

  network?.addEventListener('online', retryNow)
  void open()

  return {
    on: handlers.on,
    send,
    status: () => status,
    /** The id of the newest message that was delivered: where a later page can go on. */
    newestMessageId: () => newest,
    typing: (conversationId: string) => send({ type: 'typing', conversation_id: conversationId }),
    markRead: (conversationId: string) => send({ type: 'read', conversation_id: conversationId }),
    /** Goes on with a newer access token. */
    authenticate(accessToken: string) {
      if (send({ type: 'auth', token: accessToken })) token = accessToken
    },
    close: () => stop(),
  }
}

function channelUrl({ baseUrl, topics }: ChannelOptions, since: string | undefined) {
  const query = `events=${topics.join(',')}${since === undefined ? '' : `&since=${since}`}`
  return `${baseUrl.replace(/^http/, 'ws')}/v1/chat/ws?${query}`
}
