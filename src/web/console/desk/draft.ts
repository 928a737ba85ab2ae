import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import type { UploadedFile } from '../../../../client/src/client.ts'
import { uniqueId } from '../../../../client/src/platform.ts'
import { user } from '../session.ts'
import type { Status } from './views.ts'

const kinds = ['reply', 'note'] as const
export type Kind = (typeof kinds)[number]
export type Draft = {
  text: string
  files: UploadedFile[]
  /** The content and status of the last attempt, which may have succeeded, with its idempotency key. The same is sent
   *  with the same key. */
  tried?: { content: string; clientId: string } | undefined
}

const empty: Draft = { text: '', files: [] }
const draftKey = (ticketId: string, kind: Kind) =>
  `hostline draft ${user.value?.id} ${ticketId} ${kind}`

type Edit = (kind: Kind, change: (draft: Draft) => Draft) => void

/** The composers that are shown, by ticket: a ticket may be left, and opened again, before a reply or a file is stored. */
const shown = new Map<string, Edit>()

/** Rises with each draft that begins or ends. */
const changes = signal(0)

/** Whether a ticket has an unsent reply or note in this browser. */
export function hasDraft(ticketId: string): boolean {
  // Read, so that what shows it is drawn again.
  void changes.value
  return kinds.some((kind) => !isEmpty(stored(draftKey(ticketId, kind))))
}

/** Unsent replies and notes, kept over reloads by ticket and kind. */
export function useDrafts(ticketId: string) {
  const keyOf = (kind: Kind) => draftKey(ticketId, kind)
  const [drafts, setDrafts] = useState(() => ({
    reply: stored(keyOf('reply')),
    note: stored(keyOf('note')),
  }))

  const edit: Edit = (kind, change) => {
    setDrafts((before) => {
      const draft = change(before[kind])
      store(keyOf(kind), draft)
      return { ...before, [kind]: draft }
    })
  }

  useEffect(() => {
    const kindOf = (key: string | null) => kinds.find((one) => keyOf(one) === key)
    // Tabs that show the same ticket have one draft.
    const follow = ({ key }: StorageEvent) => {
      const kind = kindOf(key)
      if (kind) setDrafts((before) => ({ ...before, [kind]: stored(keyOf(kind)) }))
    }
    addEventListener('storage', follow)
    return () => removeEventListener('storage', follow)
  }, [ticketId])
  useLayoutEffect(() => {
    shown.set(ticketId, edit)
    return () => void shown.delete(ticketId)
  }, [ticketId])

  /** Changes the draft also after the ticket was left. */
  const change: Edit = (kind, by) => {
    const key = keyOf(kind)
    const editShown = shown.get(ticketId)
    if (editShown) editShown(kind, by)
    else store(key, by(stored(key)))
  }
  const clear = (kind: Kind, sent: Draft) => change(kind, (before) => without(before, sent))
  const attach = (kind: Kind, file: UploadedFile) =>
    change(kind, (before) => ({ ...before, files: [...before.files, file] }))

  /** The idempotency key of a draft: the same as long as its content and the wanted status are unchanged, also for an
   *  attempt of another tab. */
  function attemptOf(kind: Kind, { text, files, tried }: Draft, status: Status | '') {
    const content = JSON.stringify([text.trim(), files.map(({ file_url }) => file_url), status])
    const attempts = [tried, stored(keyOf(kind)).tried]
    return attempts.find((one) => one?.content === content) ?? { content, clientId: uniqueId() }
  }

  return { drafts, edit, clear, attach, attemptOf }
}

/** Removes what was sent from a draft; later text and files stay. */
function without({ text, files }: Draft, sent: Draft): Draft {
  const isSent = new Set(sent.files.map(({ id }) => id))
  return { text: text === sent.text ? '' : text, files: files.filter(({ id }) => !isSent.has(id)) }
}

const isEmpty = ({ text, files }: Draft) => text === '' && files.length === 0

function stored(key: string): Draft {
  try {
    return { ...empty, ...JSON.parse(localStorage.getItem(key) ?? '{}') }
  } catch {
    return empty
  }
}

function store(key: string, draft: Draft) {
  try {
    const wasEmpty = isEmpty(stored(key))
    if (isEmpty(draft)) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(draft))
    if (wasEmpty !== isEmpty(draft)) changes.value++
  } catch {
    // Storage is full or disabled: the draft lives only as long as the page.
  }
}
