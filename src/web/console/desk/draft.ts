import { useState } from 'preact/hooks'
import type { Answer } from '../../../../client/src/client.ts'
import { user } from '../session.ts'

export type Kind = 'reply' | 'note'
export type StoredFile = Answer<'POST /v1/files'>
export type Draft = {
  text: string
  files: StoredFile[]
  /** The content of the last attempt, which may have succeeded, with its idempotency key. Unchanged content is sent
   *  with the same key. */
  tried?: { content: string; clientId: string } | undefined
}

const empty: Draft = { text: '', files: [] }

/** Unsent replies and notes, kept over reloads by ticket and kind. */
export function useDrafts(ticketId: string) {
  const keyOf = (kind: Kind) => `hostline draft ${user.value?.id} ${ticketId} ${kind}`
  const [drafts, setDrafts] = useState(() => ({
    reply: stored(keyOf('reply')),
    note: stored(keyOf('note')),
  }))

  function edit(kind: Kind, change: (draft: Draft) => Draft) {
    setDrafts((before) => {
      const draft = change(before[kind])
      store(keyOf(kind), draft)
      return { ...before, [kind]: draft }
    })
  }

  return { drafts, edit, clear: (kind: Kind) => edit(kind, () => empty) }
}

function stored(key: string): Draft {
  try {
    return { ...empty, ...JSON.parse(localStorage.getItem(key) ?? '{}') }
  } catch {
    return empty
  }
}

function store(key: string, draft: Draft) {
  try {
    if (draft.text === '' && draft.files.length === 0) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(draft))
  } catch {
    // Storage is full or disabled: the draft lives only as long as the page.
  }
}
