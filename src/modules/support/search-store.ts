import { and, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { tickets, users } from '../../db/schema.ts'
import { listColumn } from '../../db/statements.ts'
import { parseId } from '../../lib/ids.ts'
import { codePoints } from '../../lib/text.ts'
import { matching, type TicketFilter } from './desk-store.ts'

export type SearchStore = ReturnType<typeof createSearchStore>

// One token of the index. Several tokens would form a phrase query, which `detail=column` does not support.
const word = /[\p{L}\p{N}\p{M}\p{Co}]+/gu
const hasLetter = /[\p{L}\p{N}\p{Co}]/u
/** The index of people uses trigrams. */
const shortestPart = 3
// A word that matches more owners needs a second word to find their tickets.
const maxOwners = 200

/** Limits the cost of a search: each word is one index scan. */
export const maxWords = 8

export function createSearchStore(orm: Orm) {
  return {
    /** Ids of users whose name or address contains a text, newest first, ignoring accents and case. A text of one or two
     *  characters must be the whole name. */
    listOwners(given: string): string[] {
      const text = given.normalize('NFC')
      // As in the partial index, so that SQLite uses it.
      const isShort = sql`display_name = ${text} COLLATE NOCASE AND length(display_name) < 3`
      if (codePoints(text) < shortestPart)
        return listColumn(orm, users.id, isShort, { limit: maxOwners })
      const owners = orm.$client.query<{ id: string }, [string, number]>(
        `SELECT (SELECT id FROM users WHERE n = user_search.rowid) AS id FROM user_search
         WHERE user_search MATCH ? ORDER BY rowid DESC LIMIT ?`,
      )
      return owners.all(`{display_name email} : ${quoted(text)}`, maxOwners).map(({ id }) => id)
    },
    /** Numbers of the matching tickets that pass the filter, newest first, optionally below `before`. */
    list(match: string, filter: TicketFilter, { limit, before }: SearchRange): number[] {
      const found = sql.raw('ticket_search')
      const isFound = and(
        sql`${found} MATCH ${match}`,
        before === undefined ? undefined : sql`${found}.rowid < ${before}`,
        matching(filter),
      )
      // CROSS JOIN fixes the join order, so that the scan of the full-text index ends when the page is full.
      const page = orm.all<{ n: number }>(
        sql`SELECT ${tickets.n} AS n FROM ${found} CROSS JOIN ${tickets} ON ${tickets.n} = ${found}.rowid
          WHERE ${isFound} ORDER BY ${found}.rowid DESC LIMIT ${limit}`,
      )
      return page.map(({ n }) => n)
    },
  }
}

type SearchRange = { limit: number; before?: number | undefined }

/** The last word may be a prefix. An id matches only its ticket.
 *  @returns undefined when `q` contains no word */
export function matchOf(q: string, listOwners: SearchStore['listOwners']): string | undefined {
  const id = parseId(q.trim())
  if (id !== undefined) return `id : "${id}"`
  // An e-mail address is several words in the index of tickets, but one text in the index of people.
  const parts = q
    .split(/\s+/)
    .filter((part) => wordsIn(part).length > 0)
    .slice(0, maxWords)
  if (parts.length === 0) return undefined
  return parts
    .map((part, index) => {
      const inTexts = textTerm(wordsIn(part), index === parts.length - 1)
      const owners = listOwners(part).map((owner) => `"user${owner}"`)
      return owners.length === 0 ? inTexts : `(${inTexts} OR facets : (${owners.join(' OR ')}))`
    })
    .join(' AND ')
}

const wordsIn = (text: string) =>
  (text.match(word) ?? []).filter((part) => hasLetter.test(part)).slice(0, maxWords)

function textTerm(words: string[], isLast: boolean): string {
  // Choice: a single letter is not used as a prefix, because too many words begin with it.
  const isBeginning = isLast && [...(words.at(-1) ?? '')].length > 1
  return `{subject body} : (${words.map(quoted).join(' AND ')}${isBeginning ? ' *' : ''})`
}

// Quotes keep FTS5 from reading a word as an operator.
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
