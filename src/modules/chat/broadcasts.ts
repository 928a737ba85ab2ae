import type { Write } from '../../db/writer.ts'
import { createAudienceWalk } from '../../jobs/audience-walk.ts'
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

/** What a host says to all followers (spec 4.2, rule 4). Who follows or leaves meanwhile is met or missed as it comes;
 *  a host who may not broadcast any more reaches nobody further. */
export function createBroadcasts(options: BroadcastsOptions) {
  const { store, conversations, audience, outbox, write, hub, newId, clock, pushMessage } = options
  const walk = createAudienceWalk({
    write,
    clock,
    walk: {
      find: store.findRunning,
      next: ({ senderId, lastFollowerId }: BroadcastRow, limit: number) =>
        store.maySend(senderId) ? audience.listAfter(senderId, lastFollowerId, limit) : [],
      deliver,
      updateProgress: ({ id }, messages, lastId) =>
        store.updateProgress(id, messages.length, lastId),
      updateCompleted: ({ id }) => store.updateCompleted(id, clock.now()),
      tell,
    },
  })

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
  function tell(message: MessageRow) {
    const { recipientId } = message
    if (hub.isOnline(recipientId)) hub.send([recipientId], newMessageFrame(message))
  }

  function begin(senderId: string, body: string, clientId: string | undefined) {
    const first = clientId === undefined ? undefined : store.findByClientId(senderId, clientId)
    if (first && first.body !== body) throw new AppError('conflict')
    if (first) return { broadcast: first, told: [], replayed: true }
    const recipientsCount = audience.count(senderId)
    const row = { id: newId(), senderId, body, clientId, recipientsCount, createdAt: clock.now() }
    const { row: broadcast, told, isComplete } = walk.begin(store.insert(row))
    if (!isComplete) outbox.add('broadcast', { broadcast_id: broadcast.id })
    return { broadcast, told, replayed: false }
  }

  const job: JobHandler<'broadcast'> = ({ broadcast_id }, { isStopping }) =>
    walk.goOn(broadcast_id, isStopping)

  return {
    /** Sends to every follower; the same `clientId` with the same body gives the same broadcast again.
     *  @throws conflict (`clientId` was used for something else) */
    async send(senderId: string, body: string, clientId: string | undefined) {
      const { broadcast, told, replayed } = await write(() => begin(senderId, body, clientId))
      walk.tell(told)
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
