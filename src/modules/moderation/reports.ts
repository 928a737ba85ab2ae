import { isDeepStrictEqual } from 'node:util'
import type { Static } from '@sinclair/typebox'
import type { Core } from '../../core.ts'
import type { ByUser } from '../../db/audit-trail.ts'
import type { TakeText } from '../../db/text-quota.ts'
import { day, timeLeft } from '../../lib/clock.ts'
import { AppError, invalidField, throttled } from '../../lib/errors.ts'
import { getById, parseId } from '../../lib/ids.ts'
import type { ReportStatus } from '../../lib/vocabulary.ts'
import { type NewReport, type ReportCreatedFrame, type ReportUpdate, reportView } from './model.ts'
import type { ReportDetail, ReportItem, ReportRow, ReportStore } from './report-store.ts'

/** A message and its neighbours at the time of the report, oldest first. */
export type Excerpt = {
  /** Null for a notice. */
  senderId: string | null
  messages: readonly { file_url: string | null; [field: string]: unknown }[]
}

/** Called inside a `write`. */
export type ReportNeighbours = {
  findExcerpt: (userId: string, messageId: string) => Excerpt | undefined
  /** @returns whether it removed the message; undefined when there is none */
  removeMessage: (messageId: string) => boolean | undefined
  files: {
    hold: (reportId: string, fileUrls: readonly string[]) => void
    release: (reportId: string) => void
  }
  takeText: TakeText
}

type Draft = Static<typeof NewReport>

type Parts = {
  store: ReportStore
  isPresent: (userId: string) => boolean
} & ReportNeighbours

const perDay = 20

export type Reports = ReturnType<typeof createReports>

export function createReports(core: Core, parts: Parts) {
  const { store, isPresent, findExcerpt, removeMessage, files, takeText } = parts
  const { write, afterCommit, audit, events, hub, newId, clock } = core

  /** The reported user, and the user or message that the report is about.
   *  @throws not_found · validation_error (oneself, a notice) */
  function targetOf(reporterId: string, { user_id, message_id }: Draft) {
    const id = parseId(message_id ?? user_id ?? '') ?? ''
    const target = message_id ? messageOf(reporterId, id) : personOf(id)
    if (!target) throw new AppError('not_found')
    if (target.reportedId === reporterId) {
      throw invalidField(message_id ? 'message_id' : 'user_id', 'oneself')
    }
    return target
  }

  const personOf = (id: string) => (isPresent(id) ? { targetId: id, reportedId: id } : undefined)

  function messageOf(reporterId: string, id: string) {
    const excerpt = findExcerpt(reporterId, id)
    if (!excerpt) return undefined
    const { senderId: reportedId, messages } = excerpt
    if (reportedId === null) throw invalidField('message_id', 'from_platform')
    return { targetId: id, reportedId, messageId: id, excerpt: [...messages] }
  }

  function mustBeWithinQuota(reporterId: string) {
    const first = store.findMadeBefore(reporterId, perDay - 1)
    const wait = timeLeft(first?.createdAt, day, clock.now())
    if (wait > 0) throw throttled('quota_exceeded', wait)
  }

  function open(reporterId: string, draft: Draft): ReportRow {
    const target = targetOf(reporterId, draft)
    const first = store.findOpen(reporterId, target.targetId)
    if (first) return first
    mustBeWithinQuota(reporterId)
    const { reason } = draft
    const body = draft.body?.trim()
    takeText(reporterId, body)
    const common = { id: newId(), reporterId, reason, body, createdAt: clock.now() }
    const row = store.insert({ ...common, ...target, status: 'open' })
    files.hold(row.id, (row.excerpt ?? []).flatMap(urlsIn))
    events.publish({ type: 'report.created', ids: { report_id: row.id } })
    const frame: ReportCreatedFrame = { type: 'report_created', report: reportView(get(row.id)) }
    afterCommit(() => hub.sendToAdmins(frame))
    return row
  }

  const get = (idText: string): ReportDetail => getById(idText, store.find)

  /** Resolving a report deletes its excerpt. */
  function changesOf({ report }: ReportItem, status: ReportStatus | undefined, by: ByUser) {
    if (status === undefined || status === report.status) return {}
    if (status === 'open') {
      if (store.findOpen(report.reporterId, report.targetId)) throw new AppError('report_open')
      return { status, resolvedAt: null, resolvedById: null }
    }
    return { status, resolvedAt: clock.now(), resolvedById: by.actor.id, excerpt: null }
  }

  return {
    /** Opens a report, or returns the reporter's open report about the same target.
     *  @throws not_found (unknown user, or a message of another conversation) · validation_error (oneself) ·
     *  quota_exceeded (20 a day) · text_quota_exceeded */
    open: (reporterId: string, draft: Draft): Promise<ReportRow> =>
      write(() => open(reporterId, draft)),

    list: store.list,

    /** A report with its excerpt. Records the viewer in the audit log.
     *  @throws not_found */
    view: (idText: string, by: ByUser): Promise<ReportDetail> =>
      write(() => {
        const item = get(idText)
        audit.record({ action: 'report_viewed', ...by, target: targetIn(item) })
        return item
      }),

    /** @throws report_open (the reporter has a newer open report about the same target) */
    update: (idText: string, changes: Static<typeof ReportUpdate>, by: ByUser) =>
      write(() => {
        const item = get(idText)
        const status = changes.status ?? undefined
        const note = changes.note?.trim() ?? item.report.note
        store.update(item.report.id, { note, ...changesOf(item, status, by) })
        if (status === 'resolved') files.release(item.report.id)
        const after = get(idText)
        if (!isDeepStrictEqual(item, after))
          audit.record({ action: 'report_changed', ...by, target: targetIn(item) })
        return after
      }),

    /** Removes a message by any author. Idempotent.
     *  @throws not_found */
    removeMessage: (idText: string, by: ByUser): Promise<void> =>
      write(() => {
        const id = parseId(idText) ?? ''
        const isRemoved = removeMessage(id)
        if (isRemoved === undefined) throw new AppError('not_found')
        if (isRemoved)
          audit.record({ action: 'message_removed', ...by, target: { type: 'message', id } })
      }),
  }
}

function urlsIn({ file_url, attachments }: Record<string, unknown>): string[] {
  if (Array.isArray(attachments)) return attachments.flatMap(urlsIn)
  return typeof file_url === 'string' ? [file_url] : []
}

const targetIn = ({ report }: ReportItem) => ({ type: 'report', id: report.id }) as const
