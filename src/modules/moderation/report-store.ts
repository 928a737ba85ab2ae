import { and, desc, eq, getTableColumns, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/open.ts'
import { reports, users } from '../../db/schema.ts'
import { countRows, deleteSome, eachOf, listById, rowsOf } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import type { ListRange } from '../../lib/list-range.ts'
import type { ReportStatus } from '../../lib/vocabulary.ts'

export type ReportRow = typeof reports.$inferSelect
export type ReportDetail = NonNullable<ReturnType<ReportStore['find']>>
export type ReportItem = Omit<ReportDetail, 'excerpt'>

export type ReportFilter = { status?: ReportStatus | undefined; reportedId?: string | undefined }

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
  const matching = ({ status, reportedId }: ReportFilter) =>
    and(
      status && eq(reports.status, status),
      reportedId === undefined ? undefined : eq(reports.reportedId, reportedId),
    )

  return {
    ...rowsOf(orm, reports),
    findOpen(reporterId: string, targetId: string): ReportRow | undefined {
      const ofBoth = and(eq(reports.reporterId, reporterId), eq(reports.targetId, targetId))
      // As in the partial index, so that SQLite uses it.
      const isOpen = sql`status = 'open'`
      return orm.select().from(reports).where(and(ofBoth, isOpen)).get()
    },
    find: (id: string) =>
      orm
        .select({ ...item, excerpt })
        .from(reports)
        .innerJoin(reporters, eq(reporters.id, reports.reporterId))
        .innerJoin(reported, eq(reported.id, reports.reportedId))
        .where(eq(reports.id, id))
        .get(),
    list: (filter: ReportFilter, range: ListRange) =>
      listById(orm, range, {
        id: reports.id,
        which: matching(filter),
        select: (which) =>
          orm
            .select(item)
            .from(reports)
            .innerJoin(reporters, eq(reporters.id, reports.reporterId))
            .innerJoin(reported, eq(reported.id, reports.reportedId))
            .where(which),
      }),
    /** The report that the reporter made before their newest `count`. */
    findMadeBefore: (reporterId: string, count: number): Pick<ReportRow, 'createdAt'> | undefined =>
      orm
        .select({ createdAt: reports.createdAt })
        .from(reports)
        .where(eq(reports.reporterId, reporterId))
        .orderBy(desc(reports.id))
        .limit(1)
        .offset(count)
        .get(),
    eachBy: (reporterId: string) => eachOf(orm, reports, 'id', eq(reports.reporterId, reporterId)),
    countBy: (reporterId: string): number =>
      countRows(orm, reports, eq(reports.reporterId, reporterId)),
    deleteSomeBy: (reporterId: string, limit: number): string[] =>
      deleteSome(orm, reports.id, eq(reports.reporterId, reporterId), limit),
  }
}

export const reportRetention: readonly RetentionRule[] = [
  { key: [reports.id], time: reports.resolvedAt, days: 365 },
]
