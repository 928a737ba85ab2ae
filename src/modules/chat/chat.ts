import type { Core, Module } from '../../core.ts'
import { createAvatarUrls } from '../../lib/avatar.ts'
import { clientFrame } from '../../realtime/frames.ts'
import { createBroadcastStore } from './broadcast-store.ts'
import { createBroadcasts, type Followers } from './broadcasts.ts'
import { createCatchUp } from './catch-up.ts'
import {
  ackFrame,
  MessageFrame,
  ReadClientFrame,
  serverFrames,
  TypingClientFrame,
} from './frames.ts'
import { createInboxStore } from './inbox-store.ts'
import { broadcastView, conversationListItemView, draftOf, messageView } from './model.ts'
import { chatRoutes } from './routes.ts'
import { createChatService, type PushMessage } from './service.ts'
import { createChatStore } from './store.ts'

type Neighbours = {
  pushMessage: PushMessage
  areInCall: (userId: string, otherId: string) => boolean
  followers: Followers
}

/** Conversations, messages and broadcasts. */
export function createChat(core: Core, { pushMessage, areInCall, followers }: Neighbours) {
  const { config, orm } = core
  const store = createChatStore(orm)
  const broadcastStore = createBroadcastStore(orm)
  const inbox = createInboxStore(orm)
  const chat = createChatService(core, {
    store,
    inbox,
    pushMessage,
    areInCall: config.chatRequiresActiveCall ? areInCall : undefined,
  })
  const catchUp = createCatchUp(inbox)
  const broadcasts = createBroadcasts(core, { store: broadcastStore, chat, followers })
  const avatarUrl = createAvatarUrls(config.publicUrl)

  return {
    routes: chatRoutes({ chat, catchUp, broadcasts, avatarUrl }),
    frames: {
      message: clientFrame(MessageFrame, async (frame, connection) => {
        const { userId } = connection
        const draft = draftOf(frame, frame.message_type)
        const { message } = await chat.send(userId, frame.conversation_id, draft)
        if (connection.wants('ack', undefined)) connection.sendFrame(ackFrame(message))
      }),
      typing: clientFrame(TypingClientFrame, (frame, { userId }) =>
        chat.typing(userId, frame.conversation_id),
      ),
      read: clientFrame(ReadClientFrame, (frame, connection) =>
        chat.markRead(connection.userId, frame.conversation_id, connection),
      ),
    },
    serverFrames,
    replay: catchUp.replay,
    unread: {
      find: store.findUnread,
      findAll: store.findAllUnread,
      count: store.countUnread,
    },
    jobs: { broadcast: broadcasts.job },
    exportOf: (userId: string) => ({
      conversations: inbox.each(userId).map((row) => conversationListItemView(row, avatarUrl)),
      messages: store.eachOf(userId).map((row) => row && messageView(row)),
      broadcasts: broadcastStore.eachSentBy(userId).map(broadcastView),
    }),
  } satisfies Module & Record<string, unknown>
}
