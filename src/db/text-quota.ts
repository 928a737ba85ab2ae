import { eq } from 'drizzle-orm'
import type { Core } from '../core.ts'
import { day } from '../lib/clock.ts'
import { AppError } from '../lib/errors.ts'
import { createLru } from '../lib/lru.ts'
import { textUsage, users } from './schema.ts'

const perDay = 50_000_000
const perDayUnverified = 5_000_000
/** A restart loses at most this much of a user's count. */
const saveEveryBytes = 65_536
const rememberedUsers = 20_000

/** Charges the texts to the user's daily quota, inside the `write` that stores them.
 *  @throws text_quota_exceeded */
export type TakeText = (userId: string, ...texts: (string | null | undefined)[]) => void

type Usage = { day: number; bytes: number; savedBytes: number; mayBytes: number }

/** Since midnight (UTC). Counts in memory and saves rarely, to add no write to each message. */
export function createTextQuota({ orm, clock, afterCommit }: Core): TakeText {
  const known = createLru<Usage>(rememberedUsers)
  const save = orm.$client.prepare<unknown, [string, number, number]>(
    'INSERT OR REPLACE INTO text_usage (user_id, day, bytes) VALUES (?, ?, ?)',
  )

  function find(userId: string, today: number): Usage {
    const usage = known.get(userId)
    if (usage?.day === today) return usage
    const row = orm.select().from(textUsage).where(eq(textUsage.userId, userId)).get()
    const bytes = row?.day === today ? row.bytes : 0
    const found = { day: today, bytes, savedBytes: bytes, mayBytes: perDayUnverified }
    known.set(userId, found)
    return found
  }

  const isVerified = (userId: string) =>
    orm.select({ is: users.emailVerified }).from(users).where(eq(users.id, userId)).get()?.is

  return (userId, ...texts) => {
    const now = clock.now()
    const today = now - (now % day)
    const usage = find(userId, today)
    let bytes = usage.bytes
    for (const text of texts) if (text) bytes += Buffer.byteLength(text)
    const added = bytes - usage.bytes
    if (bytes > usage.mayBytes && isVerified(userId)) usage.mayBytes = perDay
    if (bytes > usage.mayBytes) throw new AppError('text_quota_exceeded')
    const isDue = bytes - usage.savedBytes >= saveEveryBytes
    if (isDue) save.run(userId, today, bytes)
    afterCommit(() => {
      usage.bytes += added
      if (isDue) usage.savedBytes = bytes
    })
  }
}
