import type { Orm } from '../../db/open.ts'
import { parseId } from '../../lib/ids.ts'
import type { TicketFilter } from './desk-store.ts'

export type SearchStore = ReturnType<typeof createSearchStore>

// One token of the index. Several tokens would become a phrase query, which `detail=column` does not support.
const word = /[\p{L}\p{N}\p{M}\p{Co}]+/gu
const hasLetter = /[\p{L}\p{N}\p{Co}]/u
/** The index of people is made of trigrams. */
const shortestPart = 3
// A word that matches more owners than this needs another word beside it.
const maxOwners = 200
/** Pages of the index that one step writes: a millisecond or two. */
const mergedPages = 16

/** Each word of a search is one walk along the index. */
export const maxWords = 8

/** SQL over the full-text indexes of people and of tickets. The ticket index holds the words of each ticket and its
 *  filter values, so that one walk, newest ticket first, finds a page. */
export function createSearchStore({ $client: sqlite }: Orm) {
  const countChanges = () =>
    sqlite.query<{ n: number }, []>('SELECT total_changes() AS n').get()?.n ?? 0

  const shortNames = () =>
    sqlite.query<{ id: string }, [string, number]>(
      'SELECT id FROM users WHERE display_name = ? COLLATE NOCASE AND length(display_name) < 3 LIMIT ?',
    )

  return {
    /** People whose name or address contains a text, newest first, ignoring accents and case. A text of one or two
     *  characters must be the whole name. */
    listOwners(text: string): string[] {
      if (text.length < shortestPart)
        return shortNames()
          .all(text, maxOwners)
          .map(({ id }) => id)
      const owners = sqlite.query<{ id: string }, [string, number]>(
        `SELECT (SELECT id FROM users WHERE n = user_search.rowid) AS id FROM user_search
         WHERE user_search MATCH ? ORDER BY rowid DESC LIMIT ?`,
      )
      return owners.all(`{display_name email} : ${quoted(text)}`, maxOwners).map(({ id }) => id)
    },
    /** Numbers of tickets, newest first, below `before` or from the start. */
    list(match: string, { limit, before }: { limit: number; before?: number | undefined }) {
      const page = sqlite.query<{ n: number }, [string, number, number]>(
        'SELECT rowid AS n FROM ticket_search WHERE ticket_search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?',
      )
      return page.all(match, before ?? Number.MAX_SAFE_INTEGER, limit).map(({ n }) => n)
    },
    /** Merges some of the parts that commits added to the index.
     *  @returns whether there was something to merge (https://sqlite.org/fts5.html#the_merge_command) */
    mergeSome(pages = mergedPages): boolean {
      const before = countChanges()
      sqlite.query("INSERT INTO ticket_search (ticket_search, rank) VALUES ('merge', ?)").run(pages)
      return countChanges() - before > 1
    },
  }
}

/** The FTS5 query for tickets that pass the filter and have every word of `q` in their texts or in the name or
 *  address of their owner. The last word may be a prefix. An id finds its ticket alone.
 *  @returns undefined when there is no word in `q` */
export function matchOf(
  q: string,
  filter: TicketFilter,
  listOwners: SearchStore['listOwners'],
): string | undefined {
  const terms = termsOf(q, listOwners)
  if (terms === undefined) return undefined
  const found = [terms, ...facetsOf(filter).map(facetTerm)].join(' AND ')
  return filter.isWaiting === false ? `(${found}) NOT ${facetTerm([waiting])}` : found
}

function termsOf(q: string, listOwners: SearchStore['listOwners']): string | undefined {
  const id = parseId(q.trim())
  if (id !== undefined) return `id : "${id}"`
  // An address is several words in the index of tickets, but one text in the index of people.
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
  // Choice: a single letter is no prefix, because too many words begin with it.
  const isBeginning = isLast && [...(words.at(-1) ?? '')].length > 1
  return `{subject body} : (${words.map(quoted).join(' AND ')}${isBeginning ? ' *' : ''})`
}

// Quotes keep FTS5 from reading a word as an operator.
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

const facetTerm = (words: readonly string[]) => `facets : (${words.map(quoted).join(' OR ')})`

const waiting = 'waiting'

/** The index words of a ticket's filter values, one list for each filter. A ticket must have one word of each list. */
function facetsOf(filter: TicketFilter): string[][] {
  const { statuses, priority, category, assigneeId, userId, isWaiting } = filter
  const facets = {
    priority,
    category,
    assignee: assigneeId === null ? 'none' : assigneeId,
    user: userId,
  }
  return [
    ...Object.entries(facets).flatMap(([name, value]) =>
      value === undefined ? [] : [[name + value]],
    ),
    ...(statuses ? [statuses.map((status) => `status${status.replace('_', '')}`)] : []),
    ...(isWaiting ? [[waiting]] : []),
  ]
}
