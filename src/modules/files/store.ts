import { Type } from '@sinclair/typebox'
import {
  and,
  desc,
  eq,
  getTableColumns,
  inArray,
  isNotNull,
  isNull,
  notLike,
  or,
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
import { countRows, eachOf, hasRow, listColumn, rowsOf } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import { type Listing, type ListRange, listByPosition } from '../../lib/list-range.ts'

/** Prefix of `used_by` for reports. */
export const reportPrefix = 'report:'
/** `used_by` of the platform's logo. */
export const logoUse = 'setting:logo_url'

const isNoReport = notLike(fileUses.usedBy, `${reportPrefix}%`)

/** The removal of a message and of its files, in one write, takes less than this; ms. */
const oneRemoval = 1_000

export type FileRow = typeof files.$inferSelect
type IdIn = (url: string) => string | undefined
type IsOf = (url: string) => boolean
type Releasing = { limit: number; isWithReports: boolean }
export type FileStore = ReturnType<typeof createFileStore>

export function createFileStore(orm: Orm) {
  const rows = rowsOf(orm, files)
  const stored = (id: string) => and(eq(files.id, id), isNotNull(files.storedAt))
  const shown = (id: string) => and(stored(id), isNull(files.removedAt))
  const isUsed = (id: string): boolean => hasRow(orm, fileUses, eq(fileUses.fileId, id))

  function listUsed(usedBy: string): FileRow[] {
    const uses = orm.select(getTableColumns(files)).from(fileUses)
    const used = uses.innerJoin(files, eq(files.id, fileUses.fileId))
    return used.where(eq(fileUses.usedBy, usedBy)).all()
  }

  function clearPictures(usedBy: string[], isOf: IsOf): void {
    const { id, attachments, picture } = messages
    const isShown = inArray(id, usedBy)
    const found = orm.select({ id, attachments, picture }).from(messages).where(isShown).all()
    // One statement for messages with one file: the same photo may be in thousands.
    const single = found.filter((row) => row.picture !== null && row.attachments === null)
    const ids = single.map((row) => row.id)
    if (ids.length > 0) orm.update(messages).set({ picture: null }).where(inArray(id, ids)).run()
    for (const row of found) {
      if (row.attachments === null) continue
      const left = pictureWithout(row.attachments, row.picture, isOf)
      orm.update(messages).set({ picture: left }).where(eq(id, row.id)).run()
    }
    const known = new Set(found.map((row) => row.id))
    const others = usedBy.filter((text) => !known.has(text))
    clearOthers(others, isOf)
  }

  function clearOthers(usedBy: string[], isOf: IsOf): void {
    if (usedBy.length === 0) return
    for (const table of [ticketMessages, ticketNotes]) {
      for (const row of orm.select().from(table).where(inArray(table.id, usedBy)).all()) {
        const attachments = withoutPicture(row.attachments, isOf)
        orm.update(table).set({ attachments }).where(eq(table.id, row.id)).run()
      }
    }
    const reportIds = usedBy.flatMap((text) =>
      text.startsWith(reportPrefix) ? [text.slice(reportPrefix.length)] : [],
    )
    if (reportIds.length === 0) return
    for (const row of orm.select().from(reports).where(inArray(reports.id, reportIds)).all()) {
      const excerpt = withoutPicture(row.excerpt, isOf)
      orm.update(reports).set({ excerpt }).where(eq(reports.id, row.id)).run()
    }
  }

  return {
    ...rows,
    /** A complete file that was not removed. */
    find: (id: string): FileRow | undefined => orm.select().from(files).where(shown(id)).get(),
    /** A complete file, including one that was removed and is kept for reports. */
    findKept: (id: string): FileRow | undefined => orm.select().from(files).where(stored(id)).get(),
    /** Also an incomplete file, or one that is being erased. */
    findAny: rows.find,
    countBytes(ownerId: string, leastBytes: number): number {
      const bytes = sql<number>`coalesce(sum(max(${files.size}, ${leastBytes})), 0)`
      return orm.select({ bytes }).from(files).where(eq(files.ownerId, ownerId)).get()?.bytes ?? 0
    },
    /** Files of an owner, except those that are being erased. */
    listSomeOf(ownerId: string, limit: number): FileRow[] {
      const isLeft = or(isNotNull(files.storedAt), isNotNull(files.unusedSince))
      const own = and(eq(files.ownerId, ownerId), isLeft)
      return orm.select().from(files).where(own).limit(limit).all()
    },
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
          const rows = orm
            .select()
            .from(files)
            .where(before === undefined ? own : and(own, beyond))
          const sorted = rows.orderBy(desc(files.createdAt), desc(files.id))
          return sorted.limit(limit).offset(offset).all()
        },
        count: () => countRows(orm, files, own),
      })
    },
    eachOf: (ownerId: string) =>
      eachOf(orm, files, 'id', eq(files.ownerId, ownerId)).filter((row) => row.storedAt !== null),
    /** @param ownerId requires a file of this owner that was not removed
     *  @returns whether there is such a file */
    addUse(usedBy: string, id: string, ownerId?: string): boolean {
      const which = ownerId === undefined ? stored(id) : and(shown(id), eq(files.ownerId, ownerId))
      const found = orm.update(files).set({ unusedSince: null }).where(which).returning().get()
      if (!found) return false
      orm.insert(fileUses).values({ usedBy, fileId: id }).onConflictDoNothing().run()
      return true
    },
    isUsed,
    /** @param isWithReports whether reports, which may keep a removed file, lose it, too
     *  @returns whether there may be more */
    releaseSome(id: string, { limit, isWithReports }: Releasing, idIn: IdIn): boolean {
      const ofFile = and(eq(fileUses.fileId, id), isWithReports ? undefined : isNoReport)
      const some = listColumn(orm, fileUses.usedBy, ofFile, { limit })
      if (some.length === 0) return false
      clearPictures(some, (url) => idIn(url) === id)
      const which = and(eq(fileUses.fileId, id), inArray(fileUses.usedBy, some))
      orm.delete(fileUses).where(which).run()
      return some.length === limit
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
    isInMessage(id: string): boolean {
      const uses = orm.select({ one: sql`1` }).from(fileUses)
      const inMessages = uses.innerJoin(messages, eq(messages.id, fileUses.usedBy))
      return inMessages.where(eq(fileUses.fileId, id)).limit(1).get() !== undefined
    },
    listUsed,
    /** @returns the files that are no longer used */
    deleteUses(usedBy: string): FileRow[] {
      const used = listUsed(usedBy)
      orm.delete(fileUses).where(eq(fileUses.usedBy, usedBy)).run()
      return used.filter(({ id }) => !isUsed(id))
    },
    deleteUse(usedBy: string, id: string): boolean {
      const one = and(eq(fileUses.usedBy, usedBy), eq(fileUses.fileId, id))
      return orm.delete(fileUses).where(one).returning().get() !== undefined
    },
  }
}

function pictureWithout(attachments: string, picture: string | null, isOf: IsOf): string {
  const shown = JSON.parse(attachments) as { file_url: string }[]
  const pictures = JSON.parse(picture ?? '[]') as (Picture | null)[]
  return JSON.stringify(shown.map(({ file_url }, n) => (isOf(file_url) ? null : pictures[n])))
}

/** A copy without size and placeholder of a file, at any depth. */
function withoutPicture<T>(value: T, isOf: IsOf): T {
  return JSON.parse(JSON.stringify(value), (_, part) => {
    if (typeof part?.file_url !== 'string' || !isOf(part.file_url)) return part
    const { width: _width, height: _height, placeholder: _placeholder, ...left } = part
    return left
  })
}

export const fileRetention = (
  startedAt: number,
  onDelete: (id: string, isImage: boolean) => void,
): readonly RetentionRule[] => {
  const rule = (days: number, which: string, isImage: boolean): RetentionRule => ({
    key: [files.id],
    time: files.unusedSince,
    days,
    which,
    onDelete: (id) => onDelete(id, isImage),
  })
  return [
    rule(1, 'picture IS NOT NULL', true),
    rule(1, 'picture IS NULL', false),
    // Uploads that an earlier process could not finish.
    rule(0, `stored_at IS NULL AND created_at < ${startedAt}`, false),
  ]
}
