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
const groups = 'ready,ack,read,changes,notification,support'
/** Changes of the network, or of who looks at the page. */
const hints = ['online', 'offline', 'pageshow', 'visibilitychange'] as const

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
  api: Pick<Api, 'account'>
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
  /** The `since` of the next connection. */
  let position: string | undefined
  let newestDelivered = ''
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
      // A WebSocket does not report why it was refused; a REST request shows whether the session is over.
      if (wasRefused) await api.account.get()
      const fresh = await freshToken()
      if (attempt !== attempts) return
      token = fresh
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
    connection = watchConnection(platform, openSocket(accessToken), {
      onFrame(frame) {
        // The first frame is `ready`, without which the position would be unknown.
        if (openedAt === undefined) {
          openedAt = timers.now()
          begin(frame)
        }
        deliver(frame)
      },
      onClose: (code) => lose(code, openedAt),
    })
  }

  function begin(frame: ServerFrame) {
    refusedToken = undefined
    wasRefused = false
    if (frame.type === 'ready') position ??= frame.newest_message_id
    planRenewal()
    setStatus('open')
    opened.resolve()
  }

  function openSocket(accessToken: string) {
    if (!WebSocket) throw new ClosedError() // `start` checks this
    const since = position === undefined ? '' : `&since=${position}`
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
    cancelRetry = timers.after(floor + backoff.next(), open)
    setStatus('waiting', code)
  }

  function check(): void {
    // A page that Back brings back was not told that another tab has changed the session.
    session.followOtherTabs()
    if (status === 'open') void connection?.check()
    if (status === 'waiting') {
      cancelRetry()
      void open()
    }
  }

  function stop(reason: ClosedError | SessionEndedError) {
    if (reason instanceof SessionEndedError) {
      position = undefined
      newestDelivered = ''
      wasRefused = false
    }
    if (status === 'closed') return
    attempts++
    cancelRetry()
    cancelRenewal()
    connection?.close()
    for (const hint of hints) network?.removeEventListener(hint, check)
    opened.reject(reason)
    setStatus('closed', 'closeCode' in reason ? reason.closeCode : undefined)
  }

  // A renewed token reaches the connection through `authenticate`; a failed renewal is retried after the pause.
  function planRenewal() {
    cancelRenewal()
    const due = (session.current()?.expiresAt ?? 0) - renewalMilliseconds - timers.now()
    // A timer of 25 days fires at once, and the clock of the device may have been ahead.
    cancelRenewal = timers.after(Math.max(due % 1e9, shortestRenewalPause), async () => {
      await session.token().catch(() => {})
      if (status === 'open') planRenewal()
    })
  }

  function deliver(frame: ServerFrame) {
    // Handlers reload their lists and so see everything up to this position, which is lower after a restore.
    if (frame.type === 'resync') position = newestDelivered = frame.newest_message_id
    if (frame.type === 'new_message') {
      const { id } = frame.message
      // Ids follow commit order, and the replay comes before live messages.
      if (id <= newestDelivered) return
      newestDelivered = id
      advance(id)
    }
    emit(frame.type, frame)
  }

  function advance(id: string) {
    if (position === undefined || position < id) position = id
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
    /** Sends a frame that gets no answer.
     *  @returns whether the service has received it */
    sendSurely: async (frame: ClientFrame): Promise<boolean> =>
      status === 'open' && (await connection?.check(frame)) === true,
    /** Starts after the message `since`, else after the last delivered one, else with new messages.
     *  @returns a promise that resolves once the connection is open, and rejects when it never will be */
    start(since?: string): Promise<void> {
      if (!WebSocket) return Promise.reject(new Error('no WebSocket here: give createClient one'))
      if (status !== 'closed') return opened.promise
      expectOpening()
      if (since !== undefined) position = newestDelivered = since
      backoff.reset()
      for (const hint of hints) network?.addEventListener(hint, check)
      void open()
      return opened.promise
    },
    stop,
    check,
    status: () => status,
    newestMessageId: () => position,
    /** Extends the connection with a newer access token. */
    authenticate(accessToken: string) {
      if (send({ type: 'auth', token: accessToken })) token = accessToken
    },
  }
}
