import type { Api } from './api.ts'
import { type Connection, openConnection } from './connection.ts'
import type { ClientFrame, EventGroup, ServerFrame } from './contract.ts'
import { createBackoff, type Platform } from './platform.ts'
import { renewalMilliseconds, type Session } from './session.ts'

// What a close code asks of the client (docs/protocol.md).
const finalCodes = [4400, 4409]
const renewalCodes = [4401, 4403]
const slowDownCode = 4429
const slowDownMilliseconds = 10_000
/** After a connection that held this long the pauses start small again. */
const steadyMilliseconds = 10_000
const shortestRenewalPause = 5_000

export type ChannelStatus = 'connecting' | 'open' | 'waiting' | 'closed'

/** What a channel reports, by name. */
export type ChannelEvents = { [F in ServerFrame as F['type']]: F } & {
  /** `code` is the close code (docs/protocol.md) when the service ended the connection. */
  status: { status: ChannelStatus; code?: number }
}

type ChannelOptions = {
  baseUrl: string
  events: readonly EventGroup[]
  since: string | undefined
  session: Session
  api: Pick<Api, 'me' | 'newestMessageId'>
}

export type Channel = ReturnType<typeof createChannel>

/** The chat channel, over one connection after another. Each connection starts after the newest message that was
 *  delivered, so that none is missed and none comes twice. */
export function createChannel(platform: Platform, options: ChannelOptions) {
  const { timers, network } = platform
  const { session, api } = options
  const { on, emit } = createEmitter<ChannelEvents>()
  const backoff = createBackoff(platform.random)
  let status: ChannelStatus = 'connecting'
  let newest = options.since
  let connection: Connection | undefined
  let token: string | undefined
  let refusedToken: string | undefined
  let wasRefused = false
  let attempts = 0
  let cancelRetry = () => {}
  let cancelRenewal = () => {}

  function setStatus(next: ChannelStatus, code?: number) {
    status = next
    emit('status', { status, ...(code !== undefined && { code }) })
  }

  async function open() {
    const attempt = ++attempts
    setStatus('connecting')
    try {
      // A WebSocket does not say why it was refused; a request says when the session is over.
      if (wasRefused) await api.me()
      token = await freshToken()
      if (token !== undefined) newest ??= await api.newestMessageId()
      if (attempt === attempts) dial(token)
    } catch {
      if (attempt === attempts) retryLater()
    }
  }

  const freshToken = () =>
    refusedToken === undefined ? session.token() : session.renew(refusedToken)

  function dial(accessToken: string | undefined) {
    if (accessToken === undefined) return stop()
    let openedAt: number | undefined
    connection = openConnection(platform, {
      url: channelUrl(options, newest),
      token: accessToken,
      onOpen() {
        openedAt = timers.now()
        refusedToken = undefined
        wasRefused = false
        planRenewal()
        setStatus('open')
      },
      onFrame: deliver,
      onClose: (code) => lose(code, openedAt),
    })
  }

  function lose(code: number, openedAt: number | undefined) {
    cancelRenewal()
    if (finalCodes.includes(code)) return stop(code)
    if (renewalCodes.includes(code)) refusedToken = token
    if (openedAt === undefined) wasRefused = true
    else if (timers.now() - openedAt >= steadyMilliseconds) backoff.reset()
    retryLater(code)
  }

  function retryLater(code?: number) {
    const floor = code === slowDownCode ? slowDownMilliseconds : 0
    cancelRetry = timers.after(floor + backoff.next(), () => void open())
    setStatus('waiting', code)
  }

  function retryNow() {
    if (status === 'open') connection?.check()
    if (status !== 'waiting') return
    cancelRetry()
    void open()
  }

  function stop(code?: number) {
    if (status === 'closed') return
    attempts++
    cancelRetry()
    cancelRenewal()
    connection?.close()
    network?.removeEventListener('online', retryNow)
    setStatus('closed', code)
  }

  // A renewal reaches the connection through `authenticate`; one that fails is tried again after the pause.
  function planRenewal() {
    cancelRenewal()
    const due = (session.current()?.expiresAt ?? 0) - renewalMilliseconds - timers.now()
    cancelRenewal = timers.after(Math.max(due, shortestRenewalPause), async () => {
      await session.token().catch(() => {})
      if (status === 'open') planRenewal()
    })
  }

  function deliver(frame: ServerFrame) {
    if (frame.type === 'new_message') {
      const { id } = frame.message
      // Ids rise in the order of commits, and a replay comes before live messages.
      if (newest !== undefined && id <= newest) return
      newest = id
    }
    emit(frame.type, frame)
  }

  /** @returns false when there is no open connection */
  function send(frame: ClientFrame): boolean {
    if (status !== 'open') return false
    connection?.send(frame)
    return true
  }

  network?.addEventListener('online', retryNow)
  void open()

  return {
    on,
    send,
    status: () => status,
    /** The id of the newest message that was delivered: a later page passes it as `since`. */
    newestMessageId: () => newest,
    typing: (conversationId: string) => send({ type: 'typing', conversation_id: conversationId }),
    markRead: (conversationId: string) => send({ type: 'read', conversation_id: conversationId }),
    /** Extends the connection with a newer access token. */
    authenticate(accessToken: string) {
      if (send({ type: 'auth', token: accessToken })) token = accessToken
    },
    close: () => stop(),
  }
}

function channelUrl({ baseUrl, events }: ChannelOptions, since: string | undefined) {
  const query = `events=${events.join(',')}${since === undefined ? '' : `&since=${since}`}`
  return `${baseUrl.replace(/^http/, 'ws')}/v1/chat/ws?${query}`
}

type Handler<T> = (event: T) => void

function createEmitter<Events>() {
  const handlersOf = new Map<keyof Events, Set<Handler<never>>>()

  return {
    /** @returns a function that removes the handler */
    on<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): () => void {
      const handlers = handlersOf.get(name) ?? new Set()
      handlersOf.set(name, handlers.add(handler))
      return () => void handlers.delete(handler)
    },

    emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
      for (const handler of [...(handlersOf.get(name) ?? [])]) {
        try {
          handler(event as never) // `on` lets in nothing else under this name
        } catch (error) {
          // A mistake of the page is reported as uncaught, and stops neither the channel nor the other handlers.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
