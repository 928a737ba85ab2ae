import { isDeepStrictEqual } from 'node:util'
import type { Core, ResolveUser } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import {
  AppError,
  type FieldProblems,
  invalidField,
  problem,
  throwProblems,
} from '../../lib/errors.ts'
import { getById } from '../../lib/ids.ts'
import { type Draft, draftOf } from './model.ts'
import type { NewPlatformMessage, PlatformConversationUpdate } from './platform-model.ts'
import type { ChatService } from './service.ts'
import type { ChatStore, ConversationRow } from './store.ts'

type Parts = { store: ChatStore; chat: ChatService; resolveUser: ResolveUser }

/** The sender of a notice is null, an unknown one undefined. */
type Sender = { senderId: string | null | undefined; isRepeated: boolean }

export type PlatformChat = ReturnType<typeof createPlatformChat>

export function createPlatformChat(core: Core, { store, chat, resolveUser }: Parts) {
  const { write, audit } = core

  /** @throws validation_error (`user_ids`: an unknown user, or twice the same) */
  function pairOf(references: readonly string[], isDeletedToo = false): [string, string] {
    const details: FieldProblems = {}
    const [userId = '', otherId = ''] = references.map((reference, n) => {
      const id = store.findParty(resolveUser(reference) ?? '', isDeletedToo)?.id
      if (id === undefined) details[`user_ids.${n}`] = problem('unknown_user')
      return id
    })
    throwProblems(details)
    if (userId === otherId) throw invalidField('user_ids.1', 'oneself')
    return [userId, otherId]
  }

  const mustFind = (id: string): ConversationRow => getById(id, store.find)

  /** @throws validation_error (`from`: none of the two participants, removed or disabled) · admin_protected */
  function sendAs(
    { senderId, isRepeated }: Sender,
    conversation: ConversationRow,
    draft: Draft,
    by: By,
  ) {
    const { userA, userB } = conversation
    if (senderId !== userA && senderId !== userB) throw invalidField('from', 'one_of_two')
    if (!isRepeated && !store.isReachable(senderId)) throw invalidField('from', 'unknown_user')
    // Like a session, because readers cannot see the difference.
    if (!isRepeated && store.isAdmin(senderId)) throw new AppError('admin_protected')
    const sent = chat.sendOnce(senderId, conversation, draft)
    const target = { type: 'message', id: sent.message.id } as const
    if (!sent.replayed) audit.record({ action: 'message_sent_as', ...by, target })
    return sent
  }

  function senderOf(from: string | null | undefined, clientId: string | null): Sender {
    const senderId = from ? resolveUser(from) : null
    const isRepeated =
      senderId !== undefined &&
      clientId !== null &&
      store.findByClientId(senderId, clientId) !== undefined
    return { senderId, isRepeated }
  }

  function post(message: NewPlatformMessage, clientId: string | null, by: By) {
    const { conversation_id, user_ids, body, from, unread } = message
    const sender = senderOf(from, clientId)
    const conversation = conversation_id
      ? mustFind(conversation_id)
      : chat.openConversation(...pairOf(user_ids ?? [], sender.isRepeated), 'platform')
    const data = message.data ? JSON.stringify(message.data) : null
    const draft = { ...draftOf({ body }), clientId, data }
    if (from) return sendAs(sender, conversation, draft, by)
    return postNotice({ ...draft, isSilent: unread ? 0 : 1 }, conversation)
  }

  function postNotice(notice: Draft & { isSilent: number }, conversation: ConversationRow) {
    const from = { conversationId: conversation.id, senderId: null, broadcastId: null }
    const content = { ...notice, type: 'notice', ...from } as const
    const first = chat.findFirst(content)
    if (first) return { message: first, replayed: true }
    const both = [conversation.userA, conversation.userB]
    return { message: chat.post(content, conversation, both), replayed: false }
  }

  function describe(conversation: ConversationRow) {
    const { id, userA, userB } = conversation
    const participants = [userA, userB].flatMap((userId) => store.findParty(userId, true) ?? [])
    return { ...conversation, data: store.findData(id), participants }
  }

  return {
    /** A message in the name of a participant is subject to the rules for theirs. A repeated call with the same key and
     *  content returns the first message.
     *  @throws not_found (the conversation) · validation_error (unknown users) · admin_protected · as `ChatService.send` */
    send: (message: NewPlatformMessage, clientId: string | undefined, by: By) =>
      write(() => post(message, clientId ?? null, by)),

    /** Idempotent.
     *  @throws not_found · not_owner (a message of a person) */
    remove: (messageId: string, by: By): Promise<void> =>
      write(() => {
        const message = getById(messageId, store.findMessage)
        if (message.senderId !== null) throw new AppError('not_owner')
        const target = { type: 'message', id: message.id } as const
        if (chat.removeAny(message.id)) audit.record({ action: 'message_removed', ...by, target })
      }),

    /** @throws validation_error (unknown users) */
    open: (references: readonly string[]) =>
      write(() => describe(chat.openEmpty(...pairOf(references), 'platform'))),

    /** @throws not_found */
    get: (id: string) => describe(mustFind(id)),

    /** Absent fields keep their value. Both users see the change at once.
     *  @throws not_found */
    update: (id: string, { state, data }: PlatformConversationUpdate) =>
      write(() => {
        const before = describe(mustFind(id))
        const json = data && JSON.stringify(data)
        store.updateConversation(before.id, { state: state ?? undefined, data: json })
        const after = describe(mustFind(id))
        if (!isDeepStrictEqual(before, after))
          chat.publishUpdate(before.id, [before.userA, before.userB])
        return after
      }),
  }
}

export type PlatformConversationRow = ReturnType<PlatformChat['get']>
