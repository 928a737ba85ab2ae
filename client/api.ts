import type {
  Broadcast,
  BroadcastProgress,
  Conversation,
  ConversationListItem,
  CursorPage,
  Message,
  NewMessage,
  Page,
  Profile,
} from './contract.ts'
import type { Request } from './http.ts'

type PageOptions = { page?: number; perPage?: number; signal?: AbortSignal }
type EachOptions = { pageSize?: number; signal?: AbortSignal }

/** Lower than the id of every message. */
const lowestId = '0'.repeat(26)
const conversationsPath = '/v1/chat/conversations'
const messagesPath = (conversationId: string) =>
  `${conversationsPath}/${encodeURIComponent(conversationId)}/messages`

export type Api = ReturnType<typeof createApi>

/** The REST interface, one function for each operation. All throw `ApiError` when the service refuses. */
export function createApi(request: Request) {
  const page = <T>(path: string, { page, perPage, signal }: PageOptions = {}) =>
    request<Page<T>>('GET', path, { query: { page, per_page: perPage }, signal })

  /** A whole list, page by page; rows that arrive meanwhile do not disturb it. */
  async function* each<T>(path: string, { pageSize = 50, signal }: EachOptions = {}) {
    for (let cursor: string | undefined | null; cursor !== null; ) {
      const query = { limit: pageSize, cursor }
      const answer: CursorPage<T> = await request('GET', path, { query, signal })
      yield* answer.data
      cursor = answer.pagination.cursor
    }
  }

  /** All messages after the message `since`, of all conversations, oldest first. */
  async function* messagesSince(since: string, { pageSize = 100, signal }: EachOptions = {}) {
    for (let last: string | undefined = since; last !== undefined; ) {
      const query = { since: last, limit: pageSize }
      const path = '/v1/chat/messages'
      const answer: CursorPage<Message> = await request('GET', path, { query, signal })
      yield* answer.data
      last = answer.pagination.has_more ? answer.data.at(-1)?.id : undefined
    }
  }

  /** New messages get greater ids than this one. */
  async function newestMessageId(): Promise<string> {
    for await (const { id, last_message } of each<ConversationListItem>(conversationsPath)) {
      if (!last_message) continue
      const { data } = await page<Message>(messagesPath(id), { perPage: 1 })
      return data[0]?.id ?? lowestId
    }
    return lowestId
  }

  return {
    newestMessageId,
    me: () => request<Profile>('GET', '/v1/users/me'),

    conversations: {
      /** Most recent activity first. */
      list: (options?: PageOptions) => page<ConversationListItem>(conversationsPath, options),
      each: (options?: EachOptions) => each<ConversationListItem>(conversationsPath, options),
      /** Finds the conversation with another user, or makes it. */
      open: (userId: string) =>
        request<Conversation>('POST', conversationsPath, { body: { user_id: userId } }),
      markRead: (conversationId: string) =>
        request<void>('PUT', `${conversationsPath}/${encodeURIComponent(conversationId)}/read`),
    },

    messages: {
      /** Newest first. */
      list: (conversationId: string, options?: PageOptions) =>
        page<Message>(messagesPath(conversationId), options),
      each: (conversationId: string, options?: EachOptions) =>
        each<Message>(messagesPath(conversationId), options),
      since: messagesSince,
      /** Just one request. `client.send` is the one that does not lose a message. */
      send: (conversationId: string, message: NewMessage, signal?: AbortSignal) =>
        request<Message>('POST', messagesPath(conversationId), { body: message, signal }),
    },

    broadcasts: {
      send: (broadcast: { body: string; client_id?: string }) =>
        request<Broadcast>('POST', '/v1/chat/broadcast', { body: broadcast }),
      get: (id: string) =>
        request<BroadcastProgress>('GET', `/v1/chat/broadcasts/${encodeURIComponent(id)}`),
    },
  }
}
