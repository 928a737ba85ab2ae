import { useState } from 'preact/hooks'
import type { Answer } from '../../../../client/src/client.ts'
import { user } from '../session.ts'

export type Kind = 'reply' | 'note'
export type StoredFile = Answer<'POST /v1/files'>
export type Draft = {
  text: string
  files: StoredFile[]
  /** What was last tried and perhaps arrived, with its idempotency key: the same again is the same request. */
  tried?: { content: string; clientId: string } | undefined
}

const empty: Draft = { text: '', files: [] }

/** What somebody has begun to write, kept over reloads by ticket and kind. */
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
    // The storage is full or switched off: the draft lives as long as the page.
  }
}
