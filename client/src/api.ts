import type {
  Answer,
  Body,
  CursorPage,
  Item,
  Message,
  MessageCursorPage,
  NewMessage,
  PageOf,
  PageRoute,
  Query,
  Route,
} from './contract.ts'
import type { HttpRequest, Request, RequestOptions } from './http.ts'
import { uniqueId } from './platform.ts'
import type { Progress } from './upload.ts'
import { type PushRegistration, subscribeWith } from './web-push.ts'

type Params = Record<string, string>
type PageQuery<R extends Route> = Omit<Query<R>, 'limit' | 'cursor'>
type EachQuery<R extends Route> = Omit<Query<R>, 'page' | 'per_page' | 'cursor'>
type UploadOptions = RequestOptions & {
  /** The default name and type are those of a `File`. */
  name?: string | undefined
  type?: string | undefined
  onProgress?: Progress | undefined
}

type MessagesRoute = 'GET /v1/chat/conversations/{id}/messages'

export type Api = ReturnType<typeof createApi>

/** The operations of the service, grouped by subject. All throw `ApiError` when the service refuses.
 *  @param send sends a request and reads its response */
export function createApi(send: (request: HttpRequest) => Promise<unknown>) {
  // The contract guarantees the types of operations and responses.
  const request: Request = (route: Route, options?: object) => send({ route, ...options }) as never

  /** Lists by page, or iterates over the whole list by cursor, which new rows do not disturb. */
  const listOf = <R extends PageRoute>(route: R, params?: Params) => ({
    list: (query?: PageQuery<R>, more?: RequestOptions) =>
      send({ route, params, query: query as HttpRequest['query'], ...more }) as Promise<PageOf<R>>,
    async *each(query?: EachQuery<R>, more?: RequestOptions): AsyncGenerator<Item<R>, void> {
      for (let cursor: string | undefined | null; cursor !== null; ) {
        const part = {
          route,
          params,
          query: { limit: 50, ...(query as HttpRequest['query']), cursor },
          ...more,
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
  async function* messagesSince(
    since: string,
    more?: RequestOptions,
  ): AsyncGenerator<Message, void> {
    for (let last: string | undefined = since; last !== undefined; ) {
      const query = { since: last, limit: 100 }
      const answer: MessageCursorPage = await request('GET /v1/chat/messages', { query, ...more })
      yield* answer.data
      last = answer.pagination.has_more ? answer.data.at(-1)?.id : undefined
    }
  }

  const registerPushToken = (
    body: Body<'POST /v1/notifications/push-tokens'>,
    more?: RequestOptions,
  ) => request('POST /v1/notifications/push-tokens', { body, ...more })
  const removePushToken = (id: string, more?: RequestOptions) =>
    request('DELETE /v1/notifications/push-tokens/{id}', { params: { id }, ...more })

  return {
    request,

    conversations: {
      /** Most recent activity first. */
      ...conversations,
      get: (id: string, more?: RequestOptions) =>
        request('GET /v1/chat/conversations/{id}', { params: { id }, ...more }),
      /** Finds the conversation with another user, or creates it. */
      open: (userId: string, more?: RequestOptions) =>
        request('POST /v1/chat/conversations', { body: { user_id: userId }, ...more }),
      /** Marks messages as read: all, or those up to a message. */
      markRead: (id: string, upTo?: string, more?: RequestOptions) =>
        request('PUT /v1/chat/conversations/{id}/read', {
          params: { id },
          ...(upTo !== undefined && { body: { message_id: upTo } }),
          ...more,
        }),
      /** Takes it out of the list until its next message. */
      archive: (id: string, more?: RequestOptions) =>
        request('PUT /v1/chat/conversations/{id}/archive', { params: { id }, ...more }),
      unarchive: (id: string, more?: RequestOptions) =>
        request('DELETE /v1/chat/conversations/{id}/archive', { params: { id }, ...more }),
      /** Mutes its pushes, permanently or until a time (ISO 8601). */
      mute: (id: string, until?: string, more?: RequestOptions) =>
        request('PUT /v1/chat/conversations/{id}/mute', {
          params: { id },
          ...(until !== undefined && { body: { until } }),
          ...more,
        }),
      unmute: (id: string, more?: RequestOptions) =>
        request('DELETE /v1/chat/conversations/{id}/mute', { params: { id }, ...more }),
      /** Number of unread messages in all conversations. */
      unreadCount: (more?: RequestOptions) => request('GET /v1/chat/unread-count', more),
    },

    messages: {
      /** Newest first. */
      list: (id: string, query?: PageQuery<MessagesRoute>, more?: RequestOptions) =>
        messagesOf(id).list(query, more),
      each: (id: string, query?: EachQuery<MessagesRoute>, more?: RequestOptions) =>
        messagesOf(id).each(query, more),
      since: messagesSince,
      /** Sends a single request. Use `client.send` for reliable delivery. */
      send: (id: string, body: NewMessage, more?: RequestOptions) =>
        request('POST /v1/chat/conversations/{id}/messages', {
          params: { id },
          body,
          ...more,
        }),
      /** Removes the text of one's own message for both users; the message keeps its place. */
      remove: (id: string, messageId: string, more?: RequestOptions) =>
        request('DELETE /v1/chat/conversations/{id}/messages/{message_id}', {
          params: { id, message_id: messageId },
          ...more,
        }),
    },

    broadcasts: {
      /** Sends a message to all followers of a host. */
      send: (broadcast: Body<'POST /v1/chat/broadcast'>, more?: RequestOptions) =>
        request('POST /v1/chat/broadcast', {
          body: { client_id: uniqueId(), ...broadcast },
          ...more,
        }),
      get: (id: string, more?: RequestOptions) =>
        request('GET /v1/chat/broadcasts/{id}', { params: { id }, ...more }),
    },

    files: {
      /** One's own uploads, newest first. */
      ...listOf('GET /v1/files'),
      /** Uploads a file. The result fits into a file message: `send(id, { type: 'file', body: '', ...file })`. */
      async upload(bytes: Blob & { name?: string }, options: UploadOptions = {}) {
        const { name = bytes.name, type = bytes.type, onProgress, ...more } = options
        const headers = {
          'content-type': type || 'application/octet-stream',
          ...(name !== undefined && { 'x-file-name': encodeURIComponent(name) }),
        }
        const file = { bytes, onProgress }
        const stored = await send({ route: 'POST /v1/files', headers, file, ...more })
        return stored as Answer<'POST /v1/files'>
      },
      /** Removes one's own upload; links to it stop working. */
      remove: (id: string, more?: RequestOptions) =>
        request('DELETE /v1/files/{id}', { params: { id }, ...more }),
    },

    blocks: {
      ...listOf('GET /v1/users/blocks'),
      add: (userId: string, more?: RequestOptions) =>
        request('PUT /v1/users/blocks/{user_id}', { params: { user_id: userId }, ...more }),
      remove: (userId: string, more?: RequestOptions) =>
        request('DELETE /v1/users/blocks/{user_id}', { params: { user_id: userId }, ...more }),
    },

    report: (body: Body<'POST /v1/reports'>, more?: RequestOptions) =>
      request('POST /v1/reports', { body, ...more }),

    tickets: {
      ...listOf('GET /v1/support/tickets'),
      create: (ticket: Body<'POST /v1/support/tickets'>, more?: RequestOptions) =>
        request('POST /v1/support/tickets', {
          body: { client_id: uniqueId(), ...ticket },
          ...more,
        }),
      get: (id: string, more?: RequestOptions) =>
        request('GET /v1/support/tickets/{id}', { params: { id }, ...more }),
      reply: (
        id: string,
        reply: Body<'POST /v1/support/tickets/{id}/messages'>,
        more?: RequestOptions,
      ) =>
        request('POST /v1/support/tickets/{id}/messages', {
          params: { id },
          body: { client_id: uniqueId(), ...reply },
          ...more,
        }),
      close: (id: string, more?: RequestOptions) =>
        request('POST /v1/support/tickets/{id}/close', { params: { id }, ...more }),
    },

    notifications: {
      /** Newest first; `{ unread: true }` for the unread ones. */
      ...listOf('GET /v1/notifications'),
      unreadCount: (more?: RequestOptions) => request('GET /v1/notifications/unread-count', more),
      markRead: (id: string, more?: RequestOptions) =>
        request('PUT /v1/notifications/{id}/read', { params: { id }, ...more }),
      markAllRead: (more?: RequestOptions) => request('PUT /v1/notifications/read-all', more),
      preferences: (more?: RequestOptions) => request('GET /v1/notifications/preferences', more),
      /** Changes the given preferences only. */
      updatePreferences: (body: Body<'PUT /v1/notifications/preferences'>, more?: RequestOptions) =>
        request('PUT /v1/notifications/preferences', { body, ...more }),
    },

    pushTokens: {
      ...listOf('GET /v1/notifications/push-tokens'),
      /** Registers a device's FCM token. Call it again after each login. */
      register: registerPushToken,
      remove: removePushToken,
      /** Subscribes this browser. Ask the user first, because the browser then asks for permission.
       *  @param registration of a service worker such as `hostline-client/service-worker.js`
       *  @throws the browser's error when the user declines */
      async subscribe({ pushManager }: PushRegistration, more?: RequestOptions) {
        const { public_key } = await request('GET /v1/notifications/web-push-key', more)
        const subscription = await subscribeWith(pushManager, public_key)
        return registerPushToken({ platform: 'web', token: JSON.stringify(subscription) }, more)
      },
      /** Ends this browser's subscription. Without the id the service forgets the token at its next push. */
      async unsubscribe(
        { pushManager }: PushRegistration,
        tokenId?: string,
        more?: RequestOptions,
      ): Promise<void> {
        if (tokenId !== undefined) await removePushToken(tokenId, more)
        await (await pushManager.getSubscription())?.unsubscribe()
      },
    },

    account: {
      get: (more?: RequestOptions) => request('GET /v1/users/me', more),
      update: (body: Body<'PATCH /v1/users/me'>, more?: RequestOptions) =>
        request('PATCH /v1/users/me', { body, ...more }),
      /** Re-authenticates the session for some minutes. Requests refused with the reason `confirm_required` then
       *  succeed. */
      confirm: (body: Body<'POST /v1/auth/confirm'>, more?: RequestOptions) =>
        request('POST /v1/auth/confirm', { body, ...more }),
      /** Mails a code for `confirm`, for people without a password. */
      mailConfirmCode: (more?: RequestOptions) => request('POST /v1/auth/confirm/code', more),
      /** Deletes the account permanently. */
      remove: (body: Body<'DELETE /v1/users/me'>, more?: RequestOptions) =>
        request('DELETE /v1/users/me', { body, ...more }),
      export: (more?: RequestOptions) => request('GET /v1/users/me/export', more),
      changePassword: (body: Body<'POST /v1/auth/password/change'>, more?: RequestOptions) =>
        request('POST /v1/auth/password/change', { body, ...more }),
      /** Mails a reset link, if such an account exists. */
      forgotPassword: (email: string, more?: RequestOptions) =>
        request('POST /v1/auth/password/forgot', { body: { email }, ...more }),
      resetPassword: (body: Body<'POST /v1/auth/password/reset'>, more?: RequestOptions) =>
        request('POST /v1/auth/password/reset', { body, ...more }),
      verifyEmail: (token: string, more?: RequestOptions) =>
        request('POST /v1/auth/verify-email', { body: { token }, ...more }),
      resendVerification: (more?: RequestOptions) =>
        request('POST /v1/auth/verify-email/resend', more),
      changeEmail: (body: Body<'POST /v1/auth/email/change'>, more?: RequestOptions) =>
        request('POST /v1/auth/email/change', { body, ...more }),
      confirmEmail: (token: string, more?: RequestOptions) =>
        request('POST /v1/auth/email/confirm', { body: { token }, ...more }),
      undoEmail: (token: string, more?: RequestOptions) =>
        request('POST /v1/auth/email/undo', { body: { token }, ...more }),
    },

    sessions: {
      ...listOf('GET /v1/auth/sessions'),
      end: (id: string, more?: RequestOptions) =>
        request('DELETE /v1/auth/sessions/{id}', { params: { id }, ...more }),
    },

    /** The second factor: codes of an authenticator app. */
    totp: {
      /** Needs the password, unless the session was confirmed within the last 5 minutes. */
      setUp: (body: Body<'POST /v1/auth/totp'> = {}, more?: RequestOptions) =>
        request('POST /v1/auth/totp', { body, ...more }),
      confirm: (code: string, more?: RequestOptions) =>
        request('POST /v1/auth/totp/confirm', { body: { code }, ...more }),
      /** Answers with ten new recovery codes; the old ones no longer work. */
      renewCodes: (body: Body<'POST /v1/auth/totp/recovery-codes'>, more?: RequestOptions) =>
        request('POST /v1/auth/totp/recovery-codes', { body, ...more }),
      remove: (body: Body<'DELETE /v1/auth/totp'>, more?: RequestOptions) =>
        request('DELETE /v1/auth/totp', { body, ...more }),
    },
  }
}
