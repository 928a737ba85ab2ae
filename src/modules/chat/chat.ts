import type { Orm } from '../../db/client.ts'
import type { Write } from '../../db/writer.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Hub } from '../../realtime/hub.ts'
import { createBroadcastStore } from './broadcast-store.ts'
import { type Audience, createBroadcasts } from './broadcasts.ts'
import { createConversations } from './conversations.ts'
import { type AreInCall, createChatService } from './service.ts'
import type { ChatStore, MessageRow } from './store.ts'
import { createTimelineStore } from './timeline-store.ts'
import { keepTimelines } from './timelines.ts'

type ChatOptions = {
  orm: Orm
  store: ChatStore
  write: Write
  outbox: Outbox
  hub: Hub
  newId: NewId
  clock: Clock
  log: Log
  pushMessage: (message: MessageRow) => void
  areInCall: AreInCall | undefined
  audience: Audience
}

/** Builds the chapter on chat: its services and its job. */
export function openChat(options: ChatOptions) {
  const conversations = createConversations(options)
  const timelines = createTimelineStore(options.orm)
  const broadcasts = createBroadcasts({
    ...options,
    store: createBroadcastStore(options.orm),
    conversations,
  })
  return {
    chat: createChatService({ ...options, timelines, conversations }),
    broadcasts,
    jobs: { broadcast: broadcasts.job },
    stopTimelines: keepTimelines({ ...options, timelines }),
  }
}
