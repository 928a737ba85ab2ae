import type { Core, Module } from '../../core.ts'
import { createAvatarUrls } from '../../lib/avatar.ts'
import type { Blocks } from './blocks.ts'
import {
  Block,
  blockView,
  ExportedReport,
  exportedReportView,
  reportView,
  serverFrames,
} from './model.ts'
import { createReportStore, reportRetention } from './report-store.ts'
import { createReports, type ReportNeighbours } from './reports.ts'
import { moderationRoutes } from './routes.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    report_viewed: 'report'
    report_changed: 'report'
    message_removed: 'message'
  }
}

type Neighbours = ReportNeighbours & { blocks: Blocks; deskUrl: (fileUrl: string) => string }

export function createModeration(core: Core, { blocks, deskUrl, ...neighbours }: Neighbours) {
  const reportStore = createReportStore(core.orm)
  const { isPresent } = blocks
  const reports = createReports(core, { store: reportStore, isPresent, ...neighbours })
  const avatarUrl = createAvatarUrls(core.config.publicUrl)

  return {
    retention: reportRetention,
    routes: (app) => moderationRoutes(app, { blocks, reports, avatarUrl, deskUrl }),
    serverFrames,
    eventData: {
      'report.created'({ report_id = '' }) {
        const item = reportStore.find(report_id)
        return item && { report: reportView(item) }
      },
    },
    exports: {
      blocks: {
        description: 'The people whom the person has blocked.',
        item: Block,
        each: (userId) => blocks.each(userId).map((item) => blockView(item, avatarUrl)),
      },
      reports: {
        description: 'The reports that the person has sent.',
        item: ExportedReport,
        each: (userId) => reportStore.eachBy(userId).map(exportedReportView),
      },
    },
    erase: blocks.erase,
    purge: {
      reports: {
        count: (userId: string) => [reportStore.countBy(userId)],
        some(userId: string, limit: number) {
          const ids = reportStore.deleteSomeBy(userId, limit)
          ids.forEach(neighbours.files.release)
          const last = ids.at(-1)
          return last === undefined ? undefined : { last, count: ids.length }
        },
      },
    },
  } satisfies Module & Record<string, unknown>
}
