import { uniqueId } from '../../../../client/src/platform.ts'
import { request, user } from '../session.ts'
import type { Draft } from './draft.ts'
import type { Message, Note } from './timeline.ts'
import type { Status } from './words.ts'

export type Reply = { draft: Draft; status: Status | undefined; lastMessageId: string | undefined }

/** The idempotency key of a draft: the same as long as its content is unchanged. */
export function attemptOf({ text, files, tried }: Draft): { content: string; clientId: string } {
  const content = JSON.stringify([text.trim(), files.map(({ file_url }) => file_url)])
  return tried?.content === content ? tried : { content, clientId: uniqueId() }
}

/** @throws ApiError, `stale_ticket` when there is a message newer than `lastMessageId` */
export function sendReply(
  id: string,
  clientId: string,
  { draft, status, lastMessageId }: Reply,
): Promise<Message> {
  const attachments = draft.files.map(({ file_url }) => ({ file_url }))
  return request('POST /v1/admin/support/tickets/{id}/messages', {
    params: { id },
    body: {
      body: draft.text.trim(),
      client_id: clientId,
      ...(status && { status }),
      ...(lastMessageId && { last_message_id: lastMessageId }),
      // The contract's type is a tuple of up to five; the composer enforces the limit.
      ...(attachments.length > 0 && { attachments: attachments as never }),
    },
  })
}

/** Notes have no idempotency key: after a lost response the note is searched for before it is sent again.
 *  @param known the notes before the first attempt; undefined on the first attempt */
export async function sendNote(id: string, text: string, known?: Set<string>): Promise<Note> {
  const body = text.trim()
  const params = { id }
  if (known) {
    const ticket = await request('GET /v1/admin/support/tickets/{id}', { params })
    const mine = ticket.notes.filter(({ author }) => author.id === user.value?.id)
    const found = mine.find((note) => note.body === body && !known.has(note.id))
    if (found) return found
  }
  return request('POST /v1/admin/support/tickets/{id}/notes', { params, body: { body } })
}
