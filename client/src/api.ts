import type {
  Answer,
  Body,
  CursorPage,
  Item,
  ListRoute,
  Message,
  NewMessage,
  Page,
  Query,
  Route,
} from './contract.ts'
import type { HttpRequest, Request } from './http.ts'
import { uniqueId } from './platform.ts'
import type { Progress } from './upload.ts'
import { type PushRegistration, subscribeWith } from './web-push.ts'

type Params = Record<string, string>
type PageQuery<R extends Route> = Omit<Query<R>, 'limit' | 'cursor'>
type EachQuery<R extends Route> = Omit<Query<R>, 'page' | 'per_page' | 'cursor'>
type UploadOptions = {
  /** The default name and type are those of a `File`. */
  name?: string | undefined
  type?: string | undefined
  onProgress?: Progress | undefined
  signal?: AbortSignal | undefined
}

type MessagesRoute = 'GET /v1/chat/conversations/{id}/messages'

export type Api = ReturnType<typeof createApi>

/** The operations of the service, grouped by subject. All throw `ApiError` when the service refuses.
 *  @param send sends a request and reads its response */
export function createApi(send: (request: HttpRequest) => Promise<unknown>) {
  // The contract guarantees the types of operations and responses.
  const request: Request = (route, ...[options]) => send({ route, ...options }) as never

  /** Lists by page, or iterates over the whole list by cursor, which new rows do not disturb. */
  const listOf = <R extends ListRoute>(route: R, params?: Params) => ({
    list: (query?: PageQuery<R>) =>
      send({ route, params, query: query as HttpRequest['query'] }) as Promise<Page<Item<R>>>,
    async *each(query?: EachQuery<R>): AsyncGenerator<Item<R>, void> {
      for (let cursor: string | undefined | null; cursor !== null; ) {
        const part = {
          route,
          params,
          query: { limit: 50, ...(query as HttpRequest['query']), cursor },
        }
        const answer = (await send(part)) as CursorPage<Item<R>>
        yield* answer.data
        cursor = answer.pagination.cursor
      }
    },
  })

  const conversations = listOf('GET /v1/chat/conversations')
  const messagesOf = (id: string) => listOf('GET /v1/chat/conversations/{id}/messages', { id })

  /** All messages after the message `since`, of all conversations, oldest first. */
  async function* messagesSince(since: string): AsyncGenerator<Message, void> {
    for (let last: string | undefined = since; last !== undefined; ) {
      const query = { since: last, limit: 100 }
      const answer: CursorPage<Message> = await request('GET /v1/chat/messages', { query })
      yield* answer.data
      last = answer.pagination.has_more ? answer.data.at(-1)?.id : undefined
    }
  }

  const registerPushToken = (body: Body<'POST /v1/notifications/push-tokens'>) =>
    request('POST /v1/notifications/push-tokens', { body })
  const removePushToken = (id: string) =>
    request('DELETE /v1/notifications/push-tokens/{id}', { params: { id } })

  return {
    request,

    conversations: {
      /** Most recent activity first. */
      ...conversations,
      /** Finds the conversation with another user, or creates it. */
      open: (userId: string) =>
        request('POST /v1/chat/conversations', { body: { user_id: userId } }),
      /** Marks messages as read: all, or those up to a message. */
      markRead: (id: string, upTo?: string) =>
        request('PUT /v1/chat/conversations/{id}/read', {
          params: { id },
          ...(upTo !== undefined && { body: { message_id: upTo } }),
        }),
      /** Mutes its pushes, permanently or until a time (ISO 8601). */
      mute: (id: string, until?: string) =>
        request('PUT /v1/chat/conversations/{id}/mute', {
          params: { id },
          ...(until !== undefined && { body: { until } }),
        }),
      unmute: (id: string) =>
        request('DELETE /v1/chat/conversations/{id}/mute', { params: { id } }),
      /** Number of unread messages in all conversations. */
      unreadCount: () => request('GET /v1/chat/unread-count'),
    },

    messages: {
      /** Newest first. */
      list: (id: string, query?: PageQuery<MessagesRoute>) => messagesOf(id).list(query),
      each: (id: string, query?: EachQuery<MessagesRoute>) => messagesOf(id).each(query),
      since: messagesSince,
      /** Sends a single request. Use `client.send` for reliable delivery. */
      send: (id: string, body: NewMessage, signal?: AbortSignal) =>
        request('POST /v1/chat/conversations/{id}/messages', {
          params: { id },
          body,
          ...(signal && { signal }),
        }),
      /** Removes the text of one's own message for both users; the message keeps its place. */
      remove: (id: string, messageId: string) =>
        request('DELETE /v1/chat/conversations/{id}/messages/{message_id}', {
          params: { id, message_id: messageId },
        }),
    },

    broadcasts: {
      /** Sends a message to all followers of a host. */
      send: (broadcast: Body<'POST /v1/chat/broadcast'>) =>
        request('POST /v1/chat/broadcast', { body: { client_id: uniqueId(), ...broadcast } }),
      get: (id: string) => request('GET /v1/chat/broadcasts/{id}', { params: { id } }),
    },

    files: {
      /** Uploads a file. The result fits into a file message: `send(id, { type: 'file', body: '', ...file })`. */
      async upload(bytes: Blob & { name?: string }, options: UploadOptions = {}) {
        const { name = bytes.name, type = bytes.type, onProgress, signal } = options
        const headers = {
          'content-type': type || 'application/octet-stream',
          ...(name !== undefined && { 'x-file-name': encodeURIComponent(name) }),
        }
        const file = { bytes, onProgress }
        const stored = await send({ route: 'POST /v1/files', headers, file, signal })
        return stored as Answer<'POST /v1/files'>
      },
      /** Removes one's own upload; links to it stop working. */
      remove: (id: string) => request('DELETE /v1/files/{id}', { params: { id } }),
    },

    blocks: {
      ...listOf('GET /v1/users/blocks'),
      add: (userId: string) =>
        request('PUT /v1/users/blocks/{user_id}', { params: { user_id: userId } }),
      remove: (userId: string) =>
        request('DELETE /v1/users/blocks/{user_id}', { params: { user_id: userId } }),
    },

    report: (body: Body<'POST /v1/reports'>) => request('POST /v1/reports', { body }),

    tickets: {
      ...listOf('GET /v1/support/tickets'),
      create: (ticket: Body<'POST /v1/support/tickets'>) =>
        request('POST /v1/support/tickets', { body: { client_id: uniqueId(), ...ticket } }),
      get: (id: string) => request('GET /v1/support/tickets/{id}', { params: { id } }),
      reply: (id: string, reply: Body<'POST /v1/support/tickets/{id}/messages'>) =>
        request('POST /v1/support/tickets/{id}/messages', {
          params: { id },
          body: { client_id: uniqueId(), ...reply },
        }),
      close: (id: string) => request('POST /v1/support/tickets/{id}/close', { params: { id } }),
    },

    notifications: {
      /** Newest first; `{ unread: true }` for the unread ones. */
      ...listOf('GET /v1/notifications'),
      unreadCount: () => request('GET /v1/notifications/unread-count'),
      markRead: (id: string) => request('PUT /v1/notifications/{id}/read', { params: { id } }),
      markAllRead: () => request('PUT /v1/notifications/read-all'),
      preferences: () => request('GET /v1/notifications/preferences'),
      /** Changes the given preferences only. */
      updatePreferences: (body: Body<'PUT /v1/notifications/preferences'>) =>
        request('PUT /v1/notifications/preferences', { body }),
    },

    pushTokens: {
      ...listOf('GET /v1/notifications/push-tokens'),
      /** Registers a device's FCM token. Call it again after each login. */
      register: registerPushToken,
      remove: removePushToken,
      /** Subscribes this browser. Ask the user first, because the browser then asks for permission.
       *  @param registration of a service worker such as `hostline-client/service-worker.js`
       *  @throws the browser's error when the user declines */
      async subscribe({ pushManager }: PushRegistration) {
        const { public_key } = await request('GET /v1/notifications/web-push-key')
        const subscription = await subscribeWith(pushManager, public_key)
        return registerPushToken({ platform: 'web', token: JSON.stringify(subscription) })
      },
      /** Ends this browser's subscription. Without the id the service forgets the token at its next push. */
      async unsubscribe({ pushManager }: PushRegistration, tokenId?: string): Promise<void> {
        if (tokenId !== undefined) await removePushToken(tokenId)
        await (await pushManager.getSubscription())?.unsubscribe()
      },
    },

    account: {
      get: () => request('GET /v1/users/me'),
      update: (body: Body<'PATCH /v1/users/me'>) => request('PATCH /v1/users/me', { body }),
      /** Re-authenticates the session for some minutes. Requests refused with the reason `confirm_required` then
       *  succeed. */
      confirm: (body: Body<'POST /v1/auth/confirm'>) => request('POST /v1/auth/confirm', { body }),
      /** Deletes the account permanently. */
      remove: (body: Body<'DELETE /v1/users/me'>) => request('DELETE /v1/users/me', { body }),
      export: () => request('GET /v1/users/me/export'),
      changePassword: (body: Body<'POST /v1/auth/password/change'>) =>
        request('POST /v1/auth/password/change', { body }),
      /** Mails a reset link, if such an account exists. */
      forgotPassword: (email: string) =>
        request('POST /v1/auth/password/forgot', { body: { email } }),
      resetPassword: (body: Body<'POST /v1/auth/password/reset'>) =>
        request('POST /v1/auth/password/reset', { body }),
      verifyEmail: (token: string) => request('POST /v1/auth/verify-email', { body: { token } }),
      resendVerification: () => request('POST /v1/auth/verify-email/resend'),
      changeEmail: (body: Body<'POST /v1/auth/email/change'>) =>
        request('POST /v1/auth/email/change', { body }),
      confirmEmail: (token: string) => request('POST /v1/auth/email/confirm', { body: { token } }),
      undoEmail: (token: string) => request('POST /v1/auth/email/undo', { body: { token } }),
    },

    sessions: {
      ...listOf('GET /v1/auth/sessions'),
      end: (id: string) => request('DELETE /v1/auth/sessions/{id}', { params: { id } }),
    },

    /** The second factor: codes of an authenticator app. */
    totp: {
      /** Needs the password, unless the session was confirmed within the last 5 minutes. */
      setUp: (body: Body<'POST /v1/auth/totp'> = {}) => request('POST /v1/auth/totp', { body }),
      confirm: (code: string) => request('POST /v1/auth/totp/confirm', { body: { code } }),
      remove: (body: Body<'DELETE /v1/auth/totp'>) => request('DELETE /v1/auth/totp', { body }),
    },
  }
}
