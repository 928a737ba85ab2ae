import type { Api } from './api.ts'
import { type Connection, watchConnection } from './connection.ts'
import type { ClientFrame, ServerFrame, ServerFrames } from './contract.ts'
import { ClosedError, SessionEndedError } from './errors.ts'
import type { Platform } from './platform.ts'
import { type ClientSession, renewalMilliseconds } from './session.ts'
import { createBackoff, type Deferred, deferred } from './waiting.ts'

// Close codes by the client's reaction (docs/protocol.md).
const finalCodes = [4400, 4409]
const renewalCodes = [4401, 4403]
const slowDownCode = 4429
const slowDownMilliseconds = 10_000
/** After a connection of this length, the reconnect delays start small again. */
const steadyMilliseconds = 10_000
const shortestRenewalPause = 5_000
/** All groups of events. */
const groups = 'ack,read,changes,notification,support'

export type ChannelStatus = 'connecting' | 'open' | 'waiting' | 'closed'

/** The events of a channel, by name. */
export type ChannelEvents = ServerFrames & {
  /** `code` is the close code (docs/protocol.md) when the service closed the connection. */
  status: { status: ChannelStatus; code?: number }
}

export type ChannelOptions = {
  baseUrl: string
  session: ClientSession
  emit: (name: keyof ChannelEvents, event: ChannelEvents[keyof ChannelEvents]) => void
  api: Pick<Api, 'account' | 'conversations' | 'messages'>
}

export type Channel = ReturnType<typeof createChannel>

/** The chat channel, across reconnects. Each connection resumes after the newest delivered message, so that none is lost
 *  or delivered twice. */
export function createChannel(platform: Platform, options: ChannelOptions) {
  const { timers, network, WebSocket } = platform
  const { session, emit, api } = options
  const backoff = createBackoff(platform.random)
  let status: ChannelStatus = 'closed'
  let opened: Deferred<void> = deferred()
  let newest: string | undefined
  let connection: Connection | undefined
  let token: string | undefined
  let refusedToken: string | undefined
  /** Messages were missed, and the `resync` event is still due. */
  let owesResync = false
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
      // A WebSocket does not report why it was refused; a REST request shows whether the session is over.
      if (wasRefused) await api.account.get()
      const fresh = await freshToken()
      const position = fresh === undefined ? undefined : (newest ?? (await newestMessageId(api)))
      if (attempt !== attempts) return
      token = fresh
      newest = position
      dial(fresh)
    } catch {
      if (attempt === attempts) retryLater()
    }
  }

  const freshToken = () =>
    refusedToken === undefined ? session.token() : session.renew(refusedToken)

  function dial(accessToken: string | undefined) {
    if (accessToken === undefined) return stop(new SessionEndedError())
    let openedAt: number | undefined
    connection = watchConnection(timers, openSocket(accessToken), {
      onOpen() {
        openedAt = timers.now()
        refusedToken = undefined
        wasRefused = false
        planRenewal()
        setStatus('open')
        opened.resolve()
        if (owesResync) void resync()
      },
      onFrame: deliver,
      onClose: (code) => lose(code, openedAt),
    })
  }

  function openSocket(accessToken: string) {
    if (!WebSocket) throw new ClosedError() // `start` checks this
    const since = newest === undefined ? '' : `&since=${newest}`
    const path = `/v1/chat/ws?events=${groups}${since}`
    // The token is sent in a header of the upgrade, because URLs end up in logs.
    const protocols = ['hostline.v1', `bearer.${accessToken}`]
    return new WebSocket(options.baseUrl.replace(/^http/, 'ws') + path, protocols)
  }

  function lose(code: number, openedAt: number | undefined) {
    cancelRenewal()
    if (openedAt !== undefined) expectOpening()
    if (finalCodes.includes(code)) return stop(new ClosedError(code))
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

  function stop(reason: ClosedError | SessionEndedError) {
    if (reason instanceof SessionEndedError) {
      newest = undefined
      owesResync = false
      wasRefused = false
    }
    if (status === 'closed') return
    attempts++
    cancelRetry()
    cancelRenewal()
    connection?.close()
    network?.removeEventListener('online', retryNow)
    opened.reject(reason)
    setStatus('closed', 'closeCode' in reason ? reason.closeCode : undefined)
  }

  // A renewed token reaches the connection through `authenticate`; a failed renewal is retried after the pause.
  function planRenewal() {
    cancelRenewal()
    const due = (session.current()?.expiresAt ?? 0) - renewalMilliseconds - timers.now()
    cancelRenewal = timers.after(Math.max(due, shortestRenewalPause), async () => {
      await session.token().catch(() => {})
      if (status === 'open') planRenewal()
    })
  }

  function deliver(frame: ServerFrame) {
    if (frame.type === 'resync') return void resync()
    if (frame.type === 'new_message') {
      const { id } = frame.message
      // Ids follow commit order, and the replay comes before live messages.
      if (newest !== undefined && id <= newest) return
      newest = id
    }
    emit(frame.type, frame)
  }

  // Handlers of `resync` reload their lists and so see everything up to the new position. Until that is known, a lost
  // connection starts over.
  async function resync() {
    owesResync = true
    const attempt = attempts
    try {
      const position = await newestMessageId(api)
      if (attempt !== attempts || !owesResync) return
      owesResync = false
      if (newest === undefined || newest < position) newest = position
      emit('resync', { type: 'resync' })
    } catch {
      if (attempt === attempts) connection?.drop()
    }
  }

  /** From now on `connect` waits for the next opening. */
  function expectOpening() {
    opened = deferred()
    opened.promise.catch(() => {}) // a caller that does not wait ignores the rejection
  }

  /** @returns false when the connection is not open */
  function send(frame: ClientFrame): boolean {
    if (status !== 'open') return false
    connection?.send(frame)
    return true
  }

  return {
    send,
    /** Starts after the message `since`, else after the last delivered one, else with new messages.
     *  @returns a promise that resolves once the connection is open, and rejects when it never will be */
    start(since?: string): Promise<void> {
      if (!WebSocket) return Promise.reject(new Error('no WebSocket here: give createClient one'))
      if (status !== 'closed') return opened.promise
      expectOpening()
      newest = since ?? newest
      backoff.reset()
      network?.addEventListener('online', retryNow)
      void open()
      return opened.promise
    },
    stop,
    status: () => status,
    newestMessageId: () => newest,
    /** Extends the connection with a newer access token. */
    authenticate(accessToken: string) {
      if (send({ type: 'auth', token: accessToken })) token = accessToken
    },
  }
}

const lowestId = '0'.repeat(26)

/** New messages get ids greater than this one. */
async function newestMessageId({ conversations, messages }: ChannelOptions['api']) {
  for await (const { id, last_message } of conversations.each()) {
    if (!last_message) continue
    const { data } = await messages.list(id, { per_page: 1 })
    return data[0]?.id ?? lowestId
  }
  return lowestId
}
