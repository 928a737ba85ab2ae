import type {
  AckFrame,
  Body,
  ClientFrame,
  Draft,
  ErrorFrame,
  Message,
  NewMessage,
  TicketMessage,
  UploadedFile,
} from './contract.ts'
import { ApiError, NetworkError, retryAfterMilliseconds, TimeoutError } from './errors.ts'
import type { Platform } from './platform.ts'
import { createBackoff, type Deferred, deferred, linkSignals, reasonOf, sleep } from './waiting.ts'

const ackMilliseconds = 10_000
/** A message is given up after this many failures of the service. */
const mostFailures = 5

export type NewReply = Body<'POST /v1/support/tickets/{id}/messages'>
export type QueuedMessage = {
  client_id: string
  conversation_id: string
  message: Draft
  ticket_id?: undefined
}
/** A reply to one's own ticket. */
export type QueuedReply = {
  client_id: string
  ticket_id: string
  reply: Omit<NewReply, 'client_id'>
  conversation_id?: undefined
}
export type Queued = QueuedMessage | QueuedReply

type Transports = {
  /** Over the open socket; false when there is none. */
  sendFrame: (frame: ClientFrame) => boolean
  post: (id: string, message: NewMessage, options: { signal: AbortSignal }) => Promise<Message>
  reply: (id: string, reply: NewReply, options: { signal: AbortSignal }) => Promise<TicketMessage>
}

export type Delivery = ReturnType<typeof createDelivery>

/** Sends a message over any available transport until it succeeds. Its `client_id` ensures that the service stores it
 *  once. */
export function createDelivery(
  { timers, random }: Pick<Platform, 'timers' | 'random'>,
  { sendFrame, post, reply }: Transports,
) {
  const unanswered = new Map<string, Deferred<Message | undefined>>()
  /** Aborted when the channel opens. */
  let connected = new AbortController()

  /** @returns undefined when no ack arrived */
  async function overSocket({ client_id, conversation_id, message }: QueuedMessage) {
    const { type: message_type, ...fields } = message
    const frame = { ...fields, conversation_id, client_id, ...(message_type && { message_type }) }
    const answer = deferred<Message | undefined>()
    unanswered.set(client_id, answer)
    const cancel = timers.after(ackMilliseconds, () => answer.resolve(undefined))
    if (!sendFrame({ type: 'message', ...frame })) answer.resolve(undefined)
    return answer.promise.finally(() => {
      cancel()
      unanswered.delete(client_id)
    })
  }

  // Without the signal, a message of one user could be sent with the next user's token.
  async function sendOnce(queued: Queued, signal: AbortSignal) {
    const { client_id } = queued
    if (queued.ticket_id !== undefined)
      return reply(queued.ticket_id, { ...queued.reply, client_id }, { signal })
    const acknowledged = await overSocket(queued)
    return (
      acknowledged ?? post(queued.conversation_id, { ...queued.message, client_id }, { signal })
    )
  }

  /** @returns a function that waits before the next try, or throws the error when a retry cannot help */
  function retryPolicy(signal: AbortSignal) {
    const backoff = createBackoff(random)
    let failures = 0
    return async (error: unknown) => {
      if (!isTemporary(error) && !(isFailure(error) && ++failures < mostFailures)) throw error
      const asked = retryAfterMilliseconds(error)
      const { signal: end, release } = linkSignals([signal, asked ? undefined : connected.signal])
      await sleep(timers, asked ?? backoff.next(), end).catch(() => {})
      release()
    }
  }

  /** Repeats the work until it succeeds.
   *  @throws ApiError when the service permanently refuses it · any error when the signal is aborted */
  async function persist<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const waitBeforeRetry = retryPolicy(signal)
    while (!signal.aborted) {
      try {
        return await work()
      } catch (error) {
        if (!signal.aborted) await waitBeforeRetry(error)
      }
    }
    throw reasonOf(signal)
  }

  return {
    persist,
    /** @returns the stored message */
    deliver: (queued: Queued, signal: AbortSignal) =>
      persist(() => sendOnce(queued, signal), signal),

    acknowledged({ client_id, message }: AckFrame) {
      unanswered.get(client_id ?? '')?.resolve(message)
    },

    refused(frame: ErrorFrame) {
      const { reason, retry_after: retryAfterSeconds, request } = frame
      const refusal = new ApiError(frame, { reason, retryAfterSeconds })
      unanswered.get(request.client_id ?? '')?.reject(refusal)
    },

    /** Sends the messages that wait for the network. */
    connected() {
      connected.abort()
      connected = new AbortController()
    },

    /** Gives up waiting for acks over the lost connection. */
    disconnected() {
      for (const answer of unanswered.values()) answer.resolve(undefined)
    },
  }
}

/** The message of an uploaded file. */
export const fileMessage = ({ id: _, ...file }: UploadedFile, body: string): Draft => ({
  type: 'file',
  body,
  ...file,
})

/** True if the network, the load or a restart is to blame instead of the message. */
function isTemporary(error: unknown) {
  if (!(error instanceof ApiError)) {
    return error instanceof NetworkError || error instanceof TimeoutError
  }
  const { code, status = 0, retryAfterSeconds } = error
  return code === 'rate_limited' || retryAfterSeconds !== undefined || status > 500
}

/** True if the service failed, perhaps because of this message. */
function isFailure(error: unknown) {
  return error instanceof ApiError && error.code === 'internal_error'
}
