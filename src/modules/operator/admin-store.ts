import { and, asc, eq, isNull } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { users } from '../../db/schema.ts'

export const listVerifiedAdmins = (orm: Orm) =>
  orm
    .select({ email: users.email, locale: users.locale, displayName: users.displayName })
    .from(users)
    .where(
      and(
        eq(users.role, 'admin'),
        eq(users.emailVerified, true),
        isNull(users.disabledAt),
        isNull(users.deletedAt),
      ),
    )
    .orderBy(asc(users.id))
    .all()

export const findAdmin = (orm: Orm, id: string) =>
  orm
    .select({ id: users.id, email: users.email, displayName: users.displayName })
    .from(users)
    .where(and(eq(users.id, id), eq(users.role, 'admin')))
    .get()
