import { and, asc, eq, getTableColumns, gt, isNotNull, isNull, notLike, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { files, fileUses, messages } from '../../db/schema.ts'
import { eachRow } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'

/** Prefix of `used_by` for reports. */
export const reportPrefix = 'report:'

export type FileRow = typeof files.$inferSelect
export type FileStore = ReturnType<typeof createFileStore>

export function createFileStore(orm: Orm) {
  const stored = (id: string) => and(eq(files.id, id), isNotNull(files.storedAt))
  const shown = (id: string) => and(stored(id), isNull(files.removedAt))
  const isUsed = (id: string): boolean =>
    orm.select().from(fileUses).where(eq(fileUses.fileId, id)).limit(1).get() !== undefined

  const listUsed = (usedBy: string): FileRow[] =>
    orm
      .select(getTableColumns(files))
      .from(fileUses)
      .innerJoin(files, eq(files.id, fileUses.fileId))
      .where(eq(fileUses.usedBy, usedBy))
      .all()

  return {
    insert(row: FileRow): void {
      orm.insert(files).values(row).run()
    },
    /** @returns undefined when the row has been deleted */
    update: (id: string, changes: Partial<FileRow>): FileRow | undefined =>
      orm.update(files).set(changes).where(eq(files.id, id)).returning().get(),
    /** A complete file that was not removed. */
    find: (id: string): FileRow | undefined => orm.select().from(files).where(shown(id)).get(),
    /** A complete file, including one that was removed and is kept for reports. */
    findKept: (id: string): FileRow | undefined => orm.select().from(files).where(stored(id)).get(),
    delete(id: string): void {
      orm.delete(files).where(eq(files.id, id)).run()
    },
    /** The quota used by an owner; each file counts at least `leastBytes`. */
    countBytes(ownerId: string, leastBytes: number): number {
      const bytes = sql<number>`coalesce(sum(max(${files.size}, ${leastBytes})), 0)`
      return orm.select({ bytes }).from(files).where(eq(files.ownerId, ownerId)).get()?.bytes ?? 0
    },
    listIdsOf: (ownerId: string, limit: number): string[] =>
      orm
        .select({ id: files.id })
        .from(files)
        .where(eq(files.ownerId, ownerId))
        .limit(limit)
        .all()
        .map(({ id }) => id),
    /** Every complete file of an owner. */
    *eachOf(ownerId: string): Generator<FileRow> {
      const rows = eachRow<FileRow>((last, limit) => {
        const next = and(eq(files.ownerId, ownerId), gt(files.id, last?.id ?? ''))
        return orm.select().from(files).where(next).orderBy(asc(files.id)).limit(limit).all()
      })
      for (const row of rows) if (row.storedAt !== null) yield row
    },
    /** @param ownerId requires a file of this owner that was not removed; without it any complete file is accepted
     *  @returns whether there is such a file */
    addUse(usedBy: string, id: string, ownerId?: string): boolean {
      const which = ownerId === undefined ? stored(id) : and(shown(id), eq(files.ownerId, ownerId))
      const found = orm.update(files).set({ unusedSince: null }).where(which).returning().get()
      if (!found) return false
      orm.insert(fileUses).values({ usedBy, fileId: id }).onConflictDoNothing().run()
      return true
    },
    isUsed,
    /** Whether a message uses the file. */
    isInMessage: (id: string): boolean =>
      orm
        .select({ id: messages.id })
        .from(fileUses)
        .innerJoin(messages, eq(messages.id, fileUses.usedBy))
        .where(eq(fileUses.fileId, id))
        .limit(1)
        .get() !== undefined,
    listUsed,
    /** Deletes all uses of files by one user, message, ticket or report.
     *  @returns the files that are no longer used */
    deleteUses(usedBy: string): FileRow[] {
      const used = listUsed(usedBy)
      orm.delete(fileUses).where(eq(fileUses.usedBy, usedBy)).run()
      return used.filter(({ id }) => !isUsed(id))
    },
    /** Deletes the uses of a file except those by reports.
     *  @returns their `used_by` */
    deleteUsesOf: (id: string): string[] =>
      orm
        .delete(fileUses)
        .where(and(eq(fileUses.fileId, id), notLike(fileUses.usedBy, `${reportPrefix}%`)))
        .returning()
        .all()
        .map(({ usedBy }) => usedBy),
  }
}

/** Unused files and incomplete uploads.
 *  @param onDelete receives the id */
export const fileRetention = (onDelete: (id: string) => void): readonly RetentionRule[] => [
  { key: [files.id], time: files.unusedSince, days: 1, onDelete },
]
