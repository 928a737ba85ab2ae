import { Type } from '@sinclair/typebox'
import {
  and,
  desc,
  eq,
  getTableColumns,
  isNotNull,
  isNull,
  notLike,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { Picture } from '../../api/fields.ts'
import type { Orm } from '../../db/open.ts'
import {
  files,
  fileUses,
  messages,
  removedMessages,
  reports,
  ticketMessages,
  ticketNotes,
} from '../../db/schema.ts'
import { countRows, eachOf, hasRow, listColumn } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import { type Listing, type ListRange, listByPosition } from '../../lib/list-range.ts'

/** Prefix of `used_by` for reports. */
export const reportPrefix = 'report:'
/** `used_by` of the platform's logo. */
export const logoUse = 'setting:logo_url'

/** The removal of a message and of its files, in one write, takes less than this; ms. */
const oneRemoval = 1_000

export type FileRow = typeof files.$inferSelect
export type FileStore = ReturnType<typeof createFileStore>

export function createFileStore(orm: Orm) {
  const sqlite = orm.$client
  const stored = (id: string) => and(eq(files.id, id), isNotNull(files.storedAt))
  const shown = (id: string) => and(stored(id), isNull(files.removedAt))
  const isUsed = (id: string): boolean => hasRow(orm, fileUses, eq(fileUses.fileId, id))

  const listUsed = (usedBy: string): FileRow[] =>
    orm
      .select(getTableColumns(files))
      .from(fileUses)
      .innerJoin(files, eq(files.id, fileUses.fileId))
      .where(eq(fileUses.usedBy, usedBy))
      .all()
  const selectMessages = (fileId: string, which?: SQL) =>
    orm
      .select(getTableColumns(messages))
      .from(fileUses)
      .innerJoin(messages, eq(messages.id, fileUses.usedBy))
      .where(and(eq(fileUses.fileId, fileId), which))

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
    /** Also true during the upload. */
    isKnown: (id: string): boolean => hasRow(orm, files, eq(files.id, id)),
    delete: (id: string): FileRow | undefined =>
      orm.delete(files).where(eq(files.id, id)).returning().get(),
    /** The quota used by an owner; each file counts at least `leastBytes`. */
    countBytes(ownerId: string, leastBytes: number): number {
      const bytes = sql<number>`coalesce(sum(max(${files.size}, ${leastBytes})), 0)`
      return orm.select({ bytes }).from(files).where(eq(files.ownerId, ownerId)).get()?.bytes ?? 0
    },
    listIdsOf: (ownerId: string, limit: number): string[] =>
      listColumn(orm, files.id, eq(files.ownerId, ownerId), { limit }),
    countOf: (ownerId: string): number => countRows(orm, files, eq(files.ownerId, ownerId)),
    /** Complete files of an owner that were not removed, newest first. */
    list: (ownerId: string, range: ListRange): Listing<FileRow> => {
      // The partial index holds only such files.
      const own = sql`${files.ownerId} = ${ownerId} AND stored_at IS NOT NULL AND removed_at IS NULL`
      return listByPosition(range, {
        name: 'files',
        shape: Type.Tuple([Type.Integer(), Type.String()]),
        position: ({ createdAt, id }): [number, string] => [createdAt, id],
        list: ({ limit, offset, before }) => {
          const [createdAt, id] = before ?? []
          const beyond = sql`(${files.createdAt}, ${files.id}) < (${createdAt}, ${id})`
          return orm
            .select()
            .from(files)
            .where(before === undefined ? own : and(own, beyond))
            .orderBy(desc(files.createdAt), desc(files.id))
            .limit(limit)
            .offset(offset)
            .all()
        },
        count: () => countRows(orm, files, own),
      })
    },
    /** Every complete file of an owner. */
    eachOf: (ownerId: string) =>
      eachOf(orm, files, 'id', eq(files.ownerId, ownerId)).filter((row) => row.storedAt !== null),
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
    /** Removes size and placeholder of a file from the messages and tickets that show it. */
    clearPictures(id: string, idIn: (url: string) => string | undefined): void {
      const isOf = (url: string) => idIn(url) === id
      // One statement for messages with one file: the same photo may be in thousands.
      sqlite.run(
        `UPDATE messages SET picture = NULL FROM file_uses
         WHERE file_id = ? AND messages.id = used_by AND attachments IS NULL`,
        [id],
      )
      for (const row of selectMessages(id, isNotNull(messages.attachments)).all()) {
        const one = and(eq(messages.conversationId, row.conversationId), eq(messages.seq, row.seq))
        orm
          .update(messages)
          .set({ picture: pictureWithout(row, isOf) })
          .where(one)
          .run()
      }
      for (const table of [ticketMessages, ticketNotes]) {
        const { id: textId, attachments } = table
        const ofTickets = orm
          .select({ textId, attachments })
          .from(fileUses)
          .innerJoin(table, eq(textId, fileUses.usedBy))
          .where(eq(fileUses.fileId, id))
          .all()
        for (const row of ofTickets) {
          const left = withoutPicture(row.attachments, isOf)
          orm.update(table).set({ attachments: left }).where(eq(textId, row.textId)).run()
        }
      }
    },
    /** Removes size and placeholder of a file from the reports that hold it. */
    clearReported(id: string, idIn: (url: string) => string | undefined): void {
      const { id: reportId, excerpt } = reports
      const isHeld = eq(reportId, sql`substr(${fileUses.usedBy}, ${reportPrefix.length + 1})`)
      const held = orm
        .select({ reportId, excerpt })
        .from(fileUses)
        .innerJoin(reports, isHeld)
        .where(eq(fileUses.fileId, id))
        .all()
      for (const row of held) {
        const left = withoutPicture(row.excerpt, (url) => idIn(url) === id)
        orm.update(reports).set({ excerpt: left }).where(eq(reportId, row.reportId)).run()
      }
    },
    /** Removes sizes and placeholders from the removed message that showed a file. It is no use of the file any more, but
     *  both were removed in one write, so the index of removals leads to it. */
    clearRemoved(id: string): void {
      const { said, removedAt } = removedMessages
      const left = sql`json_set(${said}, '$.picture', null)`
      const until = sql`(SELECT removed_at FROM files WHERE id = ${id})`
      const isRecent = sql`${removedAt} BETWEEN ${until} - ${oneRemoval} AND ${until}`
      const which = and(isRecent, sql`instr(${said}, ${id}) > 0`)
      orm.update(removedMessages).set({ said: left }).where(which).run()
    },
    /** Whether a message uses the file. */
    isInMessage: (id: string): boolean => selectMessages(id).limit(1).get() !== undefined,
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

/** The column `picture` of a message without size and placeholder of a file. */
function pictureWithout(
  { attachments, picture }: typeof messages.$inferSelect,
  isOf: (url: string) => boolean,
): string | null {
  if (attachments === null) return null
  const shown = JSON.parse(attachments) as { file_url: string }[]
  const pictures = JSON.parse(picture ?? '[]') as (Picture | null)[]
  return JSON.stringify(shown.map(({ file_url }, n) => (isOf(file_url) ? null : pictures[n])))
}

/** A copy without size and placeholder of a file, at any depth. */
function withoutPicture<T>(value: T, isOf: (url: string) => boolean): T {
  return JSON.parse(JSON.stringify(value), (_, part) => {
    if (typeof part?.file_url !== 'string' || !isOf(part.file_url)) return part
    const { width: _width, height: _height, placeholder: _placeholder, ...left } = part
    return left
  })
}

/** Unused files and incomplete uploads. */
export const fileRetention = (
  onDelete: (id: string, isImage: boolean) => void,
): readonly RetentionRule[] =>
  [true, false].map((isImage) => ({
    key: [files.id],
    time: files.unusedSince,
    days: 1,
    which: isImage ? 'picture IS NOT NULL' : 'picture IS NULL',
    onDelete: (id) => onDelete(id, isImage),
  }))
