import { and, asc, eq, getTableColumns, gt, gte, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { reports, users } from '../../db/schema.ts'
import { eachRow, listById } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import type { ReportStatus } from '../../lib/vocabulary.ts'

export type ReportRow = typeof reports.$inferSelect
type Side = { id: string; displayName: string }
/** A report with the names of both users, without the excerpt. */
export type ReportItem = {
  id: string
  report: Omit<ReportRow, 'excerpt'>
  reporter: Side
  reported: Side
}
export type ReportDetail = ReportItem & Pick<ReportRow, 'excerpt'>

export type ReportStore = ReturnType<typeof createReportStore>

export function createReportStore(orm: Orm) {
  const reporters = alias(users, 'reporters')
  const reported = alias(users, 'reported')
  const { excerpt, ...columns } = getTableColumns(reports)
  const item = {
    id: reports.id,
    report: columns,
    reporter: { id: reporters.id, displayName: reporters.displayName },
    reported: { id: reported.id, displayName: reported.displayName },
  }
  const inStatus = (status: ReportStatus | undefined) => status && eq(reports.status, status)

  return {
    insert: (row: typeof reports.$inferInsert): ReportRow =>
      orm.insert(reports).values(row).returning().get(),
    /** The reporter's open report about a user or a message. */
    findOpen: (reporterId: string, targetId: string): ReportRow | undefined =>
      orm
        .select()
        .from(reports)
        .where(
          and(
            eq(reports.reporterId, reporterId),
            eq(reports.targetId, targetId),
            // As in the partial index, so that SQLite uses it.
            sql`status = 'open'`,
          ),
        )
        .get(),
    find: (id: string): ReportDetail | undefined =>
      orm
        .select({ ...item, excerpt })
        .from(reports)
        .innerJoin(reporters, eq(reporters.id, reports.reporterId))
        .innerJoin(reported, eq(reported.id, reports.reportedId))
        .where(eq(reports.id, id))
        .get(),
    /** Newest first. */
    list: (status: ReportStatus | undefined, range: ListRange): Listing<ReportItem> =>
      listById(orm, range, {
        name: 'reports',
        id: reports.id,
        which: inStatus(status),
        select: (which) =>
          orm
            .select(item)
            .from(reports)
            .innerJoin(reporters, eq(reporters.id, reports.reporterId))
            .innerJoin(reported, eq(reported.id, reports.reportedId))
            .where(which),
      }),
    /** The times of the reporter's reports after the id `since`, oldest first. */
    listTimesSince: (reporterId: string, since: string): number[] =>
      orm
        .select({ at: reports.createdAt })
        .from(reports)
        .where(and(eq(reports.reporterId, reporterId), gte(reports.id, since)))
        .orderBy(asc(reports.id))
        .all()
        .map(({ at }) => at),
    eachBy: (reporterId: string) =>
      eachRow<ReportRow>((last, limit) =>
        orm
          .select()
          .from(reports)
          .where(and(eq(reports.reporterId, reporterId), gt(reports.id, last?.id ?? '')))
          .orderBy(asc(reports.id))
          .limit(limit)
          .all(),
      ),
    update(id: string, changes: Partial<ReportRow>) {
      orm.update(reports).set(changes).where(eq(reports.id, id)).run()
    },
  }
}

export const reportRetention: readonly RetentionRule[] = [
  { key: [reports.id], time: reports.resolvedAt, days: 365 },
]
