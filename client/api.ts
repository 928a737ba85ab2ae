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
import type { Request } from './request.ts'

type PageOptions = { page?: number; perPage?: number; signal?: AbortSignal }
type EachOptions = { pageSize?: number; signal?: AbortSignal }

/** Before every message. */
const lowestId = '0'.repeat(26)
const conversationsPath = '/v1/chat/conversations'
const messagesPath = (conversationId: string) =>
  `${conversationsPath}/${encodeURIComponent(conversationId)}/messages`

/** The REST interface, one function per operation; all throw `ApiError` for a refusal. */
export function createApi(request: Request) {
  const page = <T>(path: string, { page, perPage, signal }: PageOptions = {}) =>
    request<Page<T>>('GET', path, { query: { page, per_page: perPage }, signal })

  /** All of a list, page by page, stable while rows arrive. */
  async function* each<T>(path: string, { pageSize = 50, signal }: EachOptions = {}) {
    for (let cursor: string | undefined | null; cursor !== null; ) {
      const query = { limit: pageSize, cursor }
      const answer: CursorPage<T> = await request('GET', path, { query, signal })
      yield* answer.data
      cursor = answer.pagination.cursor
    }
  }

  /** Everything after the message `since`, of all conversations, oldest first. */
  async function* messagesSince(since: string, { pageSize = 100, signal }: EachOptions = {}) {
    for (let last: string | undefined = since; last !== undefined; ) {
      const query = { since: last, limit: pageSize }
      const options = { query, signal }
      const answer: CursorPage<Message> = await request('GET', '/v1/chat/messages', options)
      yield* answer.data
      last = answer.pagination.has_more ? answer.data.at(-1)?.id : undefined
    }
  }

  /** The id after which messages are new: every later one is greater. */
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
      /** The conversation with another user, which is made when there is none. */
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
      /** One request, as it is; `client.send` is the one that does not lose a message. */
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
