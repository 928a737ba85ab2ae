import type { Core, Module } from '../../core.ts'
import { inPieces } from '../../db/pieces.ts'
import { clientFrame } from '../../realtime/frames.ts'
import { createBroadcasts, type Followers } from './broadcasts.ts'
import { createCatchUp } from './catch-up.ts'
import { createMessageAging } from './forgetting.ts'
import {
  type AckFrame,
  MessageFrame,
  ReadClientFrame,
  serverFrames,
  TypingClientFrame,
} from './frames.ts'
import { createInboxStore } from './inbox-store.ts'
import {
  Broadcast,
  broadcastView,
  ConversationListItem,
  draftOf,
  Message,
  messageView,
} from './model.ts'
import { createPlatformChat } from './platform-chat.ts'
import { platformChatRoutes } from './platform-routes.ts'
import { createReadState } from './read-state.ts'
import { chatRoutes } from './routes.ts'
import { type ChatParts, createChatService } from './service.ts'
import { chatRetention, createBroadcastStore, createChatStore } from './store.ts'
import type { Unread } from './unread-store.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    message_sent_as: 'message'
  }
}

declare module '../../jobs/outbox.ts' {
  interface OutboxJobs {
    broadcast: { broadcast_id: string }
    /** Not `user_id`: the erasure of a removed person deletes such jobs. */
    reach_changed: { person_id: string }
  }
}

type Neighbours = Omit<ChatParts, 'store' | 'inbox'> & {
  followers: Followers
  unread: Unread
  detach: (messageId: string) => void
}

export function createChat(core: Core, neighbours: Neighbours) {
  const { mayTalk, unread, resolveUser, detach } = neighbours
  const { orm } = core
  const store = createChatStore(orm)
  const broadcastStore = createBroadcastStore(orm)
  const inbox = createInboxStore(orm)
  const chat = createChatService(core, { ...neighbours, store, inbox })
  const readState = createReadState(core, { store, chat, mayTalk })
  const catchUp = createCatchUp(inbox, chat.isDelivered)
  const broadcasts = createBroadcasts(core, { ...neighbours, store: broadcastStore, chat })
  const platformChat = createPlatformChat(core, { store, chat, resolveUser })

  function messageData(id: string) {
    const message = store.findMessage(id)
    return message && { message: messageView(message) }
  }

  return {
    retention: chatRetention,
    aging: createMessageAging(orm, { store, chat, detach }),
    routes(app) {
      chatRoutes(app, { chat, readState, unread, catchUp, broadcasts })
      platformChatRoutes(app, platformChat)
    },
    frames: {
      message: clientFrame(MessageFrame, (frame, connection) => {
        const draft = draftOf(frame, frame.message_type)
        return chat.send(connection.userId, frame.conversation_id, draft).then(({ message }) => {
          if (!connection.wants('ack', undefined)) return
          const { clientId: client_id } = message
          const ack: AckFrame = { type: 'ack', client_id, message: messageView(message) }
          connection.sendFrame(ack)
        })
      }),
      typing: clientFrame(TypingClientFrame, (frame, { userId }) =>
        chat.typing(userId, frame.conversation_id),
      ),
      read: clientFrame(ReadClientFrame, (frame, connection) => {
        const reading = { messageId: frame.message_id, from: connection }
        const work = readState.markRead(connection.userId, frame.conversation_id, reading)
        // Without the results, of which each would hold the one before.
        connection.marked = Promise.allSettled([connection.marked, work]).then(() => {})
        return work
      }),
    },
    serverFrames,
    replay: catchUp.replay,
    removeMessage: chat.removeAny,
    findExcerpt: chat.findExcerpt,
    publishPair: chat.publishPair,
    /** Called inside a `write`. */
    publishReach: (userId: string): void => core.outbox.add('reach_changed', { person_id: userId }),
    eventData: {
      'message.created': ({ message_id = '' }) => messageData(message_id),
      'broadcast.completed'({ broadcast_id = '' }) {
        const broadcast = broadcastStore.find(broadcast_id)
        return broadcast && { broadcast: broadcastView(broadcast) }
      },
    },
    purge: {
      messages: { count: chat.countSentBy, some: chat.purge },
      broadcasts: {
        count: (userId: string) =>
          broadcastStore.eachSentBy(userId).map(({ body }) => (body === '' ? 0 : 1)),
        some: broadcastStore.purge,
      },
    },
    jobs: {
      broadcast: broadcasts.job,
      async reach_changed({ person_id: userId }, { isStopping }) {
        const next = (limit: number, after?: string) => chat.publishToOthers(userId, limit, after)
        await inPieces(core.write, next, { isStopping })
        return undefined
      },
    },
    exports: {
      conversations: {
        description: 'The conversations of the person.',
        item: ConversationListItem,
        each: (userId) =>
          store.eachConversation(userId).map(({ id }) => {
            const row = inbox.find(userId, id)
            return row && chat.item(userId, row)
          }),
      },
      messages: {
        description:
          'The messages of these conversations. Own removed ones have their text while it is kept.',
        item: Message,
        each: (userId) =>
          store.eachOf(userId).map((row) => {
            const isOwn = row?.senderId === userId
            return row && messageView(isOwn ? store.withOriginalText(row) : row)
          }),
      },
      broadcasts: {
        description: 'The broadcasts that the person has sent.',
        item: Broadcast,
        each: (userId) => broadcastStore.eachSentBy(userId).map(broadcastView),
      },
    },
  } satisfies Module & Record<string, unknown>
}
