import type { Answer } from '../../../../client/src/client.ts'

export type CannedReply = Answer<'POST /v1/admin/support/canned-replies'>
/** Where a slash begins to ask for a canned reply, and what follows it. */
export type Slash = { start: number; word: string }

/** @returns the slash that the caret is behind, if it begins a word */
export function cannedAt(text: string, caret: number): Slash | undefined {
  const word = /(?:^|\s)\/([^\n/]{0,40})$/.exec(text.slice(0, caret))?.[1]
  if (word === undefined) return undefined
  return { start: caret - word.length - 1, word }
}

/** Those that have it in their title come first, then those that have it in their text. */
export function matching(replies: CannedReply[], word: string): CannedReply[] {
  const wanted = word.trim().toLowerCase()
  const has = (text: string) => text.toLowerCase().includes(wanted)
  const named = replies.filter(({ title }) => has(title))
  return [...named, ...replies.filter(({ title, body }) => !has(title) && has(body))]
}
