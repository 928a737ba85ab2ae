import { asc, eq, inArray, or } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { users } from '../../db/schema.ts'
import { parseId } from '../../lib/ids.ts'
import type { RowRange } from '../../lib/list-range.ts'
import type { Role } from '../../lib/vocabulary.ts'
import type { UserRow } from './store.ts'

export type UserFilter = {
  /** Any part of a name or an address, an id or an external id. */
  q?: string | undefined
  role?: Role | undefined
  isDisabled?: boolean | undefined
  isVerified?: boolean | undefined
}

/** The highest count of a search. Numbered pages end there; cursor pages go on. */
export const maxFound = 1_000
/** The index knows no shorter part of a text. */
const shortestPart = 3

/** SQL over the full-text index of people: one walk along it, oldest account first, that ends with the page. */
export function createUserSearchStore(orm: Orm) {
  const sqlite = orm.$client

  function walk(match: string, { limit, offset, before: after = '' }: RowRange): number[] {
    const numbers = sqlite.query<{ n: number }, [string, string, number, number]>(
      `SELECT rowid AS n FROM user_search
       WHERE user_search MATCH ? AND rowid > coalesce((SELECT n FROM users WHERE id = ?), 0)
       ORDER BY rowid LIMIT ? OFFSET ?`,
    )
    return numbers.all(match, after, limit, offset).map(({ n }) => n)
  }

  /** Finds the user with exactly this id or external id, if it passes the filter. */
  function called(q: string, { role, isDisabled, isVerified }: UserFilter, after = ''): number[] {
    const rows = orm
      .select()
      .from(users)
      .where(or(eq(users.id, parseId(q) ?? ''), eq(users.externalId, q)))
      .all()
    return rows
      .filter(
        (user) =>
          user.id > after &&
          user.deletedAt === null &&
          (role ?? user.role) === user.role &&
          (isVerified ?? user.emailVerified) === user.emailVerified &&
          (isDisabled === undefined || isDisabled === (user.disabledAt !== null)),
      )
      .map(({ n }) => n)
  }

  function find(filter: UserFilter, { limit, offset, before }: RowRange): number[] {
    const { q } = filter
    const match = matchOf(filter)
    if (q === undefined) return walk(match, { limit, offset, before })
    const end = Math.min(offset + limit, maxFound)
    const found = walk(match, { limit: end, offset: 0, before })
    const all = new Set([...called(q, filter, before), ...found])
    return [...all].sort((a, b) => a - b).slice(offset, end)
  }

  return {
    list(filter: UserFilter, range: RowRange): UserRow[] {
      const found = find(filter, range)
      if (found.length === 0) return []
      return orm.select().from(users).where(inArray(users.n, found)).orderBy(asc(users.n)).all()
    },
    /** Everybody who passes a filter; of a search at most `maxFound`. */
    count(filter: UserFilter): number {
      if (filter.q !== undefined) return find(filter, { limit: maxFound, offset: 0 }).length
      const all = sqlite.query<{ n: number }, [string]>(
        'SELECT count(*) AS n FROM user_search WHERE user_search MATCH ?',
      )
      return all.get(matchOf(filter))?.n ?? 0
    },
  }
}

/** The FTS query. The text is quoted, so it cannot act as an operator. */
function matchOf({ q, role, isDisabled, isVerified }: UserFilter): string {
  const facets = [
    role && `r:${role.slice(0, 1)}`,
    isDisabled !== undefined && `d:${Number(isDisabled)}`,
    isVerified !== undefined && `v:${Number(isVerified)}`,
  ].filter((facet) => typeof facet === 'string')
  const terms = facets.map((facet) => `facets : "${facet}"`)
  return [...(q === undefined ? [] : [termOf(q)]), ...terms].join(' AND ')
}

/** A text that is too short for the index is how a name, its second word or an address begins. */
function termOf(q: string): string {
  const text = q.normalize('NFC')
  const missing = shortestPart - [...text].length
  const columns = missing > 0 ? 'facets' : '{display_name email}'
  return `${columns} : "${'^'.repeat(Math.max(0, missing))}${text.replaceAll('"', '""')}"`
}
