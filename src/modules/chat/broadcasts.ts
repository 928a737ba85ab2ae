import type { Core, MayTalk } from '../../core.ts'
import type { TakeText } from '../../db/text-quota.ts'
import { createFanOut } from '../../jobs/fan-out.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import { AppError } from '../../lib/errors.ts'
import { getById } from '../../lib/ids.ts'
import { draftOf } from './model.ts'
import type { ChatService } from './service.ts'
import type { BroadcastRow, BroadcastStore } from './store.ts'

export type Followers = {
  count(hostId: string): number
  listAfter(hostId: string, after: string, limit: number): string[]
}

type Parts = {
  store: BroadcastStore
  chat: ChatService
  followers: Followers
  mayTalk: MayTalk
  takeText: TakeText
}

export type Broadcasts = ReturnType<typeof createBroadcasts>

/** Users who follow or unfollow during delivery may or may not get a copy. Delivery stops when the host may no longer
 *  broadcast. */
export function createBroadcasts(core: Core, parts: Parts) {
  const { store, chat, followers, mayTalk, takeText } = parts
  const { write, outbox, newId, clock, events } = core
  const fanOut = createFanOut<BroadcastRow>(core, {
    find: store.find,
    listNext: ({ senderId, lastFollowerId }, limit) =>
      store.maySend(senderId) ? followers.listAfter(senderId, lastFollowerId, limit) : [],
    deliver,
    updateProgress: ({ id, deliveredCount }, delivered, lastFollowerId) =>
      store.update(id, { deliveredCount: deliveredCount + delivered, lastFollowerId }),
    updateCompleted({ id, deliveredCount: recipientsCount }) {
      events.publish({ type: 'broadcast.completed', ids: { broadcast_id: id } })
      return store.update(id, { completedAt: clock.now(), recipientsCount })
    },
  })

  // The host's own sockets get no frame for the copies.
  function deliver({ id: broadcastId, senderId, body }: BroadcastRow, followerId: string) {
    if (!mayTalk(senderId, followerId)) return false
    const conversation = chat.openConversation(senderId, followerId)
    if (conversation.state === 'read_only') return false
    const conversationId = conversation.id
    const content = { ...draftOf({ body }), conversationId, senderId, isSilent: 0, broadcastId }
    chat.post(content, conversation, [followerId])
    return true
  }

  function begin(senderId: string, body: string, clientId: string | undefined) {
    const first = clientId === undefined ? undefined : store.findByClientId(senderId, clientId)
    if (first && first.body !== body) throw new AppError('idempotency_mismatch')
    if (first) return { broadcast: first, replayed: true }
    takeText(senderId, body)
    const recipientsCount = followers.count(senderId)
    const row = { id: newId(), senderId, body, clientId, recipientsCount, createdAt: clock.now() }
    const { row: broadcast, isComplete } = fanOut.begin(store.insert(row))
    if (!isComplete) outbox.add('broadcast', { broadcast_id: broadcast.id })
    return { broadcast, replayed: false }
  }

  return {
    job: (({ broadcast_id }, run) =>
      fanOut.run(broadcast_id, run)) satisfies JobHandler<'broadcast'>,

    /** A repeated call with the same `clientId` and body returns the first broadcast.
     *  @throws idempotency_mismatch (same `clientId`, other content) · text_quota_exceeded */
    send: (senderId: string, body: string, clientId: string | undefined) =>
      write(() => begin(senderId, body, clientId)),

    /** @throws not_found · not_owner */
    get(senderId: string, idText: string): BroadcastRow {
      const broadcast = getById(idText, store.find)
      if (broadcast.senderId !== senderId) throw new AppError('not_owner')
      return broadcast
    },
  }
}
