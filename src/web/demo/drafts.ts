import { type Signal, signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import type { UploadedFile } from '../../../client/src/contract.ts'
import { uniqueId } from '../../../client/src/platform.ts'
import { maxFiles, useUploads } from '../kit/uploads.tsx'
import { useMe } from './session.ts'

/** Form values by field name. */
type Draft = Signal<Readonly<Record<string, string>>>

const drafts = new Map<string, Draft>()
const attempts = new WeakMap<Draft, { content: string; client_id: string }>()

/** Unsent input, kept while the user looks elsewhere or changes the language. */
export function useDraft(place: string): Draft {
  const { side, user } = useMe()
  const key = `${side} ${user.id} ${place}`
  const draft = drafts.get(key) ?? signal({})
  drafts.set(key, draft)
  return draft
}

/** The files of a ticket, uploaded as soon as they are chosen. */
export function useFiles() {
  const { client } = useMe()
  const [files, setFiles] = useState<UploadedFile[]>([])
  const sending = useUploads({
    send: client.files.upload,
    room: maxFiles - files.length,
    add: (stored) => setFiles((before) => [...before, stored]),
  })
  return {
    files,
    sending,
    isUploading: sending.uploads.length > 0,
    removeFile: ({ id }: UploadedFile) =>
      setFiles((before) => before.filter((file) => file.id !== id)),
    clear: () => setFiles([]),
  }
}

/** Sends a draft and clears it. The response may be lost: unchanged content keeps its `client_id`, so that the
 *  service stores it once. */
export async function sendDraft<Content extends object, Answer>(
  draft: Draft,
  content: Content,
  send: (content: Content & { client_id: string }) => Promise<Answer>,
): Promise<Answer> {
  const written = draft.value
  const key = JSON.stringify(content)
  const before = attempts.get(draft)
  const attempt = before?.content === key ? before : { content: key, client_id: uniqueId() }
  attempts.set(draft, attempt)
  const response = await send({ ...content, client_id: attempt.client_id })
  if (attempts.get(draft) === attempt) attempts.delete(draft)
  if (draft.value === written) draft.value = {} // later input stays
  return response
}
