import { ApiError, askedPause } from './api-error.ts'
import { createBackoff } from './backoff.ts'
import type { AckFrame, ClientFrame, Draft, ErrorFrame, Message, NewMessage } from './contract.ts'
import { sleep, type Timers } from './timers.ts'

const answerMilliseconds = 10_000
/** A message that makes the service fail this often is not for it. */
const mostFailures = 5

export type Letter = { client_id: string; conversation_id: string; message: Draft }

/** Neither stored nor refused, as far as we know. */
class Unanswered extends Error {}

type DeliveryOptions = {
  timers: Timers
  random: () => number
  /** Over the open socket; false when there is none. */
  sendFrame: (frame: ClientFrame) => boolean
  /** Over REST. */
  post: (conversationId: string, message: NewMessage, signal: AbortSignal) => Promise<Message>
}

export type Delivery = ReturnType<typeof createDelivery>

/** Brings a message to the service over whichever way is open, as often as it takes: the `client_id` makes every try
 *  the same message. */
export function createDelivery({ timers, random, sendFrame, post }: DeliveryOptions) {
  const awaiting = new Map<string, PromiseWithResolvers<Message>>()
  let connected = Promise.withResolvers<void>()

  async function overSocket({ client_id, conversation_id, message }: Letter) {
    const answer = Promise.withResolvers<Message>()
    awaiting.set(client_id, answer)
    const { type: message_type, ...fields } = message
    const frame = { ...fields, conversation_id, client_id, ...(message_type && { message_type }) }
    const cancel = timers.after(answerMilliseconds, () => answer.reject(new Unanswered()))
    try {
      if (!sendFrame({ type: 'message', ...frame })) throw new Unanswered()
      return await answer.promise
    } finally {
      cancel()
      awaiting.delete(client_id)
    }
  }

  // Without the signal, a message of one person could go out with the token of the next.
  function overRest({ client_id, conversation_id, message }: Letter, signal: AbortSignal) {
    return (socketError: unknown) => {
      if (!(socketError instanceof Unanswered)) throw socketError
      return post(conversation_id, { ...message, client_id }, signal)
    }
  }

  /** Waits before another try, or throws the error when there is no use in one. */
  function createPatience(signal: AbortSignal) {
    const backoff = createBackoff(random)
    let failures = 0
    return async (error: unknown) => {
      if (!isPassing(error) && !(isFailure(error) && ++failures < mostFailures)) throw error
      const asked = askedPause(error)
      const pause = sleep(timers, asked ?? backoff.next(), signal)
      await (asked === undefined ? Promise.race([pause, connected.promise]) : pause)
    }
  }

  return {
    /** @returns the stored message
     *  @throws ApiError when the service refuses it for good · the signal's reason */
    async deliver(letter: Letter, signal: AbortSignal): Promise<Message> {
      const rest = createPatience(signal)
      for (;;) {
        signal.throwIfAborted()
        try {
          return await overSocket(letter).catch(overRest(letter, signal))
        } catch (error) {
          signal.throwIfAborted()
          await rest(error)
        }
      }
    },

    acknowledged({ client_id, message }: AckFrame) {
      awaiting.get(client_id ?? '')?.resolve(message)
    },

    refused(frame: ErrorFrame) {
      const { client_id = '' } = frame.request
      const retryAfterSeconds = frame.retry_after
      awaiting.get(client_id)?.reject(new ApiError(frame, { retryAfterSeconds }))
    },

    /** A connection is there: what waits for the network need not. */
    connected() {
      connected.resolve()
      connected = Promise.withResolvers()
    },

    /** The connection is gone, and with it the answers that were to come over it. */
    disconnected() {
      for (const answer of awaiting.values()) answer.reject(new Unanswered())
    },
  }
}

/** Not the message is to blame but the moment: the network, the load, a restart. */
function isPassing(error: unknown) {
  if (!(error instanceof ApiError)) return true
  const { code, status = 0, retryAfterSeconds } = error
  return code === 'rate_limited' || retryAfterSeconds !== undefined || status > 500
}

/** The service fell over, perhaps over this very message. */
function isFailure(error: unknown) {
  return error instanceof ApiError && error.code === 'internal_error'
}
