import type { Answer } from '../../../../client/src/client.ts'

export type CannedReply = Answer<'POST /v1/admin/support/canned-replies'>
/** The position of the slash, and the search word after it. */
export type Slash = { start: number; word: string }

/** @returns the slash of the word at the caret, if that word begins with one */
export function cannedAt(text: string, caret: number): Slash | undefined {
  const word = /(?:^|\s)\/([^\n/]{0,40})$/.exec(text.slice(0, caret))?.[1]
  if (word === undefined) return undefined
  return { start: caret - word.length - 1, word }
}

/** Matches in the title come before matches in the text. */
export function matching(replies: CannedReply[], word: string): CannedReply[] {
  const wanted = word.trim().toLowerCase()
  const has = (text: string) => text.toLowerCase().includes(wanted)
  const named = replies.filter(({ title }) => has(title))
  return [...named, ...replies.filter(({ title, body }) => !has(title) && has(body))]
}
