import type { Core, Module } from '../../core.ts'
import { createAvatarUrls } from '../../lib/avatar.ts'
import { createBlockStore } from './block-store.ts'
import { createBlocks } from './blocks.ts'
import { blockView, exportedReportView, reportView, serverFrames } from './model.ts'
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

export function createModeration(
  core: Core,
  { deskUrl, ...neighbours }: ReportNeighbours & { deskUrl: (fileUrl: string) => string },
) {
  const blockStore = createBlockStore(core.orm)
  const reportStore = createReportStore(core.orm)
  const blocks = createBlocks(core, blockStore)
  const reports = createReports(core, {
    store: reportStore,
    isPresent: blockStore.isPresent,
    ...neighbours,
  })
  const avatarUrl = createAvatarUrls(core.config.publicUrl)

  return {
    retention: reportRetention,
    routes: moderationRoutes({ blocks, reports, avatarUrl, deskUrl }),
    serverFrames,
    eventData: {
      'report.created'({ report_id = '' }) {
        const item = reportStore.find(report_id)
        return item && { report: reportView(item) }
      },
    },
    exportOf: (userId: string) => ({
      blocks: blockStore.each(userId).map((item) => blockView(item, avatarUrl)),
      reports: reportStore.eachBy(userId).map(exportedReportView),
    }),
    erase: blocks.erase,
    mayTalk: blocks.mayTalk,
    listBlockedEitherWay: blocks.listBlockedEitherWay,
  } satisfies Module & Record<string, unknown>
}
