import { and, asc, eq, gt, isNotNull, isNull, or, sql } from 'drizzle-orm'
import type { Orm } from '../../../db/open.ts'
import { users } from '../../../db/schema.ts'
import { countRows } from '../../../db/statements.ts'
import { parseId } from '../../../lib/ids.ts'
import { type Listing, type ListRange, listByPosition } from '../../../lib/list-range.ts'
import type { Role } from '../../../lib/vocabulary.ts'
import type { UserRow } from '../store.ts'

export type UserFilter = {
  q?: string | undefined
  role?: Role | undefined
  isDisabled?: boolean | undefined
  isVerified?: boolean | undefined
}

/** The highest count of a search. Numbered pages end there; the cursor form continues. */
export const maxFound = 1_000
/** The index consists of trigrams, so it cannot find shorter texts. */
const shortestPart = 3

/** Users who are not deleted, oldest account first. */
export function searchUsers(orm: Orm, filter: UserFilter, range: ListRange): Listing<UserRow> {
  return listByPosition(range, {
    name: 'users',
    list({ limit, offset, before }) {
      const found = orm.select().from(users).where(matching(filter, before))
      return found.orderBy(asc(users.id)).limit(limit).offset(offset).all()
    },
    count() {
      const found = countRows(orm, users, matching(filter))
      return filter.q === undefined ? found : Math.min(found, maxFound)
    },
    position: ({ id }) => id,
  })
}

function matching(filter: UserFilter, after?: string) {
  const { q, role, isDisabled, isVerified } = filter
  const disabled = isDisabled ? isNotNull : isNull
  const passes = and(
    isNull(users.deletedAt),
    role && eq(users.role, role),
    isDisabled === undefined ? undefined : disabled(users.disabledAt),
    isVerified === undefined ? undefined : eq(users.emailVerified, isVerified),
    after === undefined ? undefined : gt(users.id, after),
  )
  if (q === undefined) return passes
  const found = sql`${users.n} IN (
    SELECT rowid FROM user_search WHERE user_search MATCH ${matchOf(q, filter)}
      AND rowid > coalesce((SELECT n FROM users WHERE id = ${after ?? ''}), 0)
    ORDER BY rowid LIMIT ${maxFound})`
  const hasId = [eq(users.id, parseId(q) ?? ''), eq(users.externalId, q)]
  return or(found, ...hasId.map((condition) => and(condition, passes)))
}

/** A text that is too short for the index must be the beginning of a name, of its second word or of an address. The
 *  index also contains the values of filters, so that its scan stops at the limit. */
function matchOf(q: string, { role, isDisabled, isVerified }: UserFilter): string {
  const text = q.normalize('NFC')
  const missing = Math.max(0, shortestPart - [...text].length)
  const columns = missing > 0 ? 'facets' : '{display_name email}'
  const facets = [
    role && `r:${role.slice(0, 1)}`,
    isDisabled !== undefined && `d:${Number(isDisabled)}`,
    isVerified !== undefined && `v:${Number(isVerified)}`,
  ].filter((facet) => typeof facet === 'string')
  const terms = facets.map((facet) => `facets : "${facet}"`)
  return [`${columns} : "${'^'.repeat(missing)}${text.replaceAll('"', '""')}"`, ...terms].join(
    ' AND ',
  )
}
