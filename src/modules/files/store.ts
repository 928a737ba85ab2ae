import { and, asc, eq, gt, isNotNull, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { files, fileUses } from '../../db/schema.ts'
import { eachRow } from '../../db/statements.ts'

export type FileRow = typeof files.$inferSelect
export type FileStore = ReturnType<typeof createFileStore>

/** SQL over files and what uses them. */
export function createFileStore(orm: Orm) {
  const stored = (id: string) => and(eq(files.id, id), isNotNull(files.storedAt))
  const isUsed = (id: string): boolean =>
    orm.select().from(fileUses).where(eq(fileUses.fileId, id)).limit(1).get() !== undefined

  return {
    insert(row: FileRow): void {
      orm.insert(files).values(row).run()
    },
    /** @returns undefined when it is gone meanwhile */
    update: (id: string, changes: Partial<FileRow>): FileRow | undefined =>
      orm.update(files).set(changes).where(eq(files.id, id)).returning().get(),
    /** One whose bytes are there. */
    find: (id: string): FileRow | undefined => orm.select().from(files).where(stored(id)).get(),
    delete(id: string): void {
      orm.delete(files).where(eq(files.id, id)).run()
    },
    /** The sum over somebody's files, of which each counts `leastBytes` at least. */
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
    /** Every file of somebody whose bytes are there. */
    *eachOf(ownerId: string): Generator<FileRow> {
      const rows = eachRow<FileRow>((last, limit) => {
        const next = and(eq(files.ownerId, ownerId), gt(files.id, last?.id ?? ''))
        return orm.select().from(files).where(next).orderBy(asc(files.id)).limit(limit).all()
      })
      for (const row of rows) if (row.storedAt !== null) yield row
    },
    /** @returns whether there is such a file */
    addUse(usedBy: string, id: string): boolean {
      const found = orm.update(files).set({ unusedSince: null }).where(stored(id)).returning().get()
      if (!found) return false
      orm.insert(fileUses).values({ usedBy, fileId: id }).onConflictDoNothing().run()
      return true
    },
    /** @returns the files that nothing else uses */
    deleteUses(usedBy: string): string[] {
      const uses = orm.delete(fileUses).where(eq(fileUses.usedBy, usedBy)).returning().all()
      return uses.map(({ fileId }) => fileId).filter((id) => !isUsed(id))
    },
  }
}
