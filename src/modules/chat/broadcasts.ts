import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import type { Hub } from '../../realtime/hub.ts'
import type { BroadcastRow, BroadcastStore } from './broadcast-store.ts'
import type { Conversations } from './conversations.ts'
import { broadcastView } from './model.ts'
import { newMessageFrame } from './server-frames.ts'
import type { MessageRow } from './store.ts'

/** The followers of a host. */
export type Audience = {
  count(hostId: string): number
  /** The next ones in the order of their ids. */
  listAfter(hostId: string, after: string, limit: number): string[]
}

type BroadcastsOptions = {
  store: BroadcastStore
  conversations: Conversations
  audience: Audience
  outbox: Outbox
  write: Write
  hub: Hub
  newId: NewId
  clock: Clock
  /** Notes, inside the `write`, that the recipient's devices are to be told. */
  pushMessage: (message: MessageRow) => void
}

export type Broadcasts = ReturnType<typeof createBroadcasts>

/** Followers in one commit: the first share is served before the answer, the others by a job. */
const firstPart = 50
const part = 10
/** Between two parts others have the loop to themselves, about as long as a part takes. */
const pauseMilliseconds = 1
/** How long a job goes on before it lets others run. */
const shareMilliseconds = 1_000

/** What a host says to all followers (spec 4.2, rule 4). Followers are visited in the order of their ids, and how far
 *  it has come is kept in the commit that delivers: each gets exactly one message, whenever the process dies. */
export function createBroadcasts(options: BroadcastsOptions) {
  const { store, conversations, audience, outbox, write, hub, newId, clock, pushMessage } = options

  /** For inside a `write`. Who follows or leaves meanwhile is met or missed as it comes. */
  function deliverPart(broadcast: BroadcastRow, size: number) {
    const { id, senderId, lastFollowerId } = broadcast
    const followers = audience.listAfter(senderId, lastFollowerId, size)
    const messages = followers.map((followerId) => deliver(broadcast, followerId))
    const last = followers.at(-1)
    const reached = last === undefined ? broadcast : store.updateProgress(id, messages.length, last)
    const isComplete = followers.length < size
    return {
      messages,
      broadcast: isComplete ? store.updateCompleted(id, clock.now()) : reached,
      isComplete,
    }
  }

  function deliver({ id: broadcastId, senderId, body }: BroadcastRow, recipientId: string) {
    const conversation = conversations.open(senderId, recipientId)
    const content = {
      conversationId: conversation.id,
      senderId,
      recipientId,
      type: 'text',
      body,
      fileUrl: null,
      fileName: null,
      fileSize: null,
      fileType: null,
      clientId: null,
      broadcastId,
    } as const
    const message = conversations.append(content, conversation)
    if (!hub.isOnline(recipientId)) pushMessage(message)
    return message
  }

  // The host's own sockets hear nothing of the copies.
  function tell(messages: readonly MessageRow[]) {
    for (const message of messages) {
      const { recipientId } = message
      if (hub.isOnline(recipientId)) hub.send([recipientId], newMessageFrame(message))
    }
  }

  function begin(senderId: string, body: string, clientId: string | undefined) {
    const first = clientId === undefined ? undefined : store.findByClientId(senderId, clientId)
    if (first && first.body !== body) throw new AppError('conflict')
    if (first) return { broadcast: first, messages: [], replayed: true }
    const recipientsCount = audience.count(senderId)
    const row = { id: newId(), senderId, body, clientId, recipientsCount, createdAt: clock.now() }
    const { broadcast, messages, isComplete } = deliverPart(store.insert(row), firstPart)
    if (!isComplete) outbox.add('broadcast', { broadcast_id: broadcast.id })
    return { broadcast, messages, replayed: false }
  }

  function next(id: string) {
    const broadcast = store.find(id)
    if (!broadcast || broadcast.completedAt !== null) return { messages: [], isComplete: true }
    return deliverPart(broadcast, part)
  }

  const job: JobHandler<'broadcast'> = async ({ broadcast_id: id }, { isStopping }) => {
    const until = clock.now() + shareMilliseconds
    while (clock.now() < until && !isStopping()) {
      const { messages, isComplete } = await write(() => next(id))
      tell(messages)
      if (isComplete) return undefined
      await Bun.sleep(pauseMilliseconds)
    }
    return { againAfterMilliseconds: 0 }
  }

  return {
    /** Sends to every follower; the same `clientId` with the same body gives the same broadcast again.
     *  @throws conflict (`clientId` was used for something else) */
    async send(senderId: string, body: string, clientId: string | undefined) {
      const { broadcast, messages, replayed } = await write(() => begin(senderId, body, clientId))
      tell(messages)
      return { broadcast, replayed }
    },

    /** How far a broadcast of one's own has come.
     *  @throws not_found · forbidden (somebody else's) */
    get(senderId: string, idText: string): BroadcastRow {
      const broadcast = store.find(parseId(idText) ?? '')
      if (!broadcast) throw new AppError('not_found')
      if (broadcast.senderId !== senderId) throw new AppError('forbidden')
      return broadcast
    },

    /** What a person said to all, for their own export. */
    *exportOwn(userId: string) {
      for (const row of store.eachSentBy(userId)) yield broadcastView(row)
    },

    job,
  }
}
