import type { Database } from 'bun:sqlite'
import { createIds } from '../../src/lib/ids.ts'

/** Inserts followers of a host directly: there are too many to register.
 *  @returns their ids, in order */
export function addFollowers(sqlite: Database, hostId: string, count: number): string[] {
  const newId = createIds({ now: Date.now, every: () => () => {} })
  const user = sqlite.prepare(
    "INSERT INTO users (id, email, display_name, locale, role, password_hash, created_at) VALUES (?1, ?1, 'Fan', 'en', 'user', 'none', 0)",
  )
  const follow = sqlite.prepare('INSERT INTO follows VALUES (?, ?, 0)')
  const ids = Array.from({ length: count }, newId)
  sqlite.transaction(() => {
    for (const id of ids) {
      user.run(id)
      follow.run(hostId, id)
    }
  })()
  return ids
}
