import { and, eq, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { notificationPreferences } from '../../db/schema.ts'
import type { NotificationType } from '../../lib/vocabulary.ts'

export type PreferenceRow = typeof notificationPreferences.$inferSelect
export type PreferenceStore = ReturnType<typeof createPreferenceStore>

/** SQL over what users have switched off or on. */
export function createPreferenceStore(orm: Orm) {
  const one = orm
    .select()
    .from(notificationPreferences)
    .where(
      and(
        eq(notificationPreferences.userId, sql.placeholder('userId')),
        eq(notificationPreferences.type, sql.placeholder('type')),
      ),
    )
    .prepare()

  return {
    find: (userId: string, type: NotificationType): PreferenceRow | undefined =>
      one.get({ userId, type }),
    upsert(row: PreferenceRow) {
      const { inApp, push, email } = row
      const { userId, type } = notificationPreferences
      orm
        .insert(notificationPreferences)
        .values(row)
        .onConflictDoUpdate({ target: [userId, type], set: { inApp, push, email } })
        .run()
    },
    deleteOfUser(userId: string) {
      orm.delete(notificationPreferences).where(eq(notificationPreferences.userId, userId)).run()
    },
  }
}
