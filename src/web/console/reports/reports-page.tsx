import { Flag } from 'lucide-preact'
import type { CursorPage, Report } from '../../../../client/src/contract.ts'
import { type List, useList } from '../../ui/resource.ts'
import { query } from '../../ui/router.ts'
import { Empty } from '../../ui/states.tsx'
import { Panes, selectedId } from '../panes.tsx'
import { request } from '../session.ts'
import { ReportDetails } from './report-details.tsx'
import { ReportList } from './report-list.tsx'
import './reports.css'

export function ReportsPage() {
  const status = query.value.get('status') === 'resolved' ? 'resolved' : 'open'
  const list = useList<Report>(status, async (cursor, signal) => {
    const part = { status, limit: 50, ...(cursor !== undefined && { cursor }) } as const
    const response = await request('GET /v1/admin/reports', { query: part, signal })
    return response as CursorPage<Report> // with `limit` the response has a cursor
  })
  const id = selectedId()
  return (
    <Panes
      area="reports"
      title="Reports"
      list={<ReportList key={status} status={status} list={list} />}
      detail={
        id === undefined ? (
          <Empty icon={Flag} title="No report chosen">
            <p>Choose one to read it. Opening a report is recorded in the audit log.</p>
          </Empty>
        ) : (
          <ReportDetails
            key={id}
            id={id}
            isListed={list.items.some((report) => report.id === id)}
            onChange={(report) => patch(list, report, status)}
          />
        )
      }
    />
  )
}

/** Updates a report in the list, or removes it when it no longer belongs to this view. */
function patch(list: List<Report>, changed: Report, status: Report['status']) {
  list.update((reports) =>
    reports.flatMap((report) => {
      if (report.id !== changed.id) return [report]
      return changed.status === status ? [changed] : []
    }),
  )
}
