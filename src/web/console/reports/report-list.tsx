import { CircleCheck, Flag } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Report } from '../../../../client/src/contract.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { count } from '../../ui/format.ts'
import type { List } from '../../ui/resource.ts'
import { withQuery } from '../../ui/router.ts'
import { Empty, Failure, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'
import { selectedId } from '../panes.tsx'
import { useRefresh } from '../refresh.ts'
import { client } from '../session.ts'
import { reasonTitles } from './reasons.ts'

type ReportListProps = { status: Report['status']; list: List<Report> }

/** Newest first. */
export function ReportList({ status, list }: ReportListProps) {
  const { fresh, show } = useFreshReports(status, list)
  const frame = useRef<HTMLDivElement>(null)
  // Rows under the pointer, and a list that was scrolled, must not move.
  const isPaused = () => {
    const rows = frame.current?.parentElement?.querySelector('.virtual')
    return Boolean(rows && (rows.scrollTop > 0 || rows.matches(':hover')))
  }
  useRefresh(list.reload, { seconds: 30, isPaused })
  const [presses, setPresses] = useState(0)
  // The pressed button is gone.
  useEffect(() => {
    const rows = frame.current?.parentElement?.querySelector('.virtual')
    if (presses === 0 || !rows) return
    rows.scrollTop = 0
    rows.querySelector<HTMLElement>('[data-index="0"] a')?.focus()
  }, [presses])

  function press() {
    show()
    setPresses(presses + 1)
  }

  return (
    <>
      <div class="row between report-views" ref={frame}>
        <nav class="row" aria-label="Reports by status">
          <ViewLink title="Open" value={undefined} isCurrent={status === 'open'} />
          <ViewLink title="Resolved" value="resolved" isCurrent={status === 'resolved'} />
        </nav>
        <span role="status">
          {fresh > 0 && (
            <button type="button" class="button ghost" onClick={press}>
              {count(fresh)} new · Show
            </button>
          )}
        </span>
      </div>
      <Rows status={status} list={list} />
    </>
  )
}

function ViewLink({ title, value, isCurrent }: ViewLinkProps) {
  return (
    <a
      class="view-link"
      href={withQuery({ status: value }, '/console/reports')}
      aria-current={isCurrent ? 'page' : undefined}
    >
      {title}
    </a>
  )
}
type ViewLinkProps = { title: string; value: string | undefined; isCurrent: boolean }

function Rows({ status, list }: ReportListProps) {
  const { items, error, isLoading } = list
  if (items.length === 0 && error !== undefined) {
    return <Failure error={error} retry={list.retry} />
  }
  if (items.length === 0 && isLoading) return <Loading rows={6} />
  if (items.length === 0) return <Nothing status={status} />
  return (
    <>
      <div class="pane-rows">
        <VirtualList
          label={status === 'open' ? 'Open reports' : 'Resolved reports'}
          items={items}
          keyOf={({ id }) => id}
          rowHeight={64}
          render={(report) => <Row report={report} />}
          {...(error === undefined && { onEnd: list.loadMore })}
        />
      </div>
      {error !== undefined && <Failure error={error} retry={list.retry} />}
    </>
  )
}

function Nothing({ status }: Pick<ReportListProps, 'status'>) {
  return status === 'open' ? (
    <Empty icon={CircleCheck} title="Nothing is open">
      <p>When somebody reports a person or a message, it is listed here at once.</p>
    </Empty>
  ) : (
    <Empty icon={Flag} title="Nothing was resolved yet">
      <p>Resolved reports are listed here, without what was said.</p>
    </Empty>
  )
}

function Row({ report }: { report: Report }) {
  const { id, reported, reporter, reason, message_id } = report
  const about = message_id === null ? 'person' : 'message'
  return (
    <a
      class="entry"
      href={withQuery({}, `/console/reports/${id}`)}
      data-id={id}
      aria-current={id === selectedId() ? 'true' : undefined}
    >
      <Avatar name={reported.display_name} />
      <span class="entry-lines">
        <span class="row between">
          <strong class="truncate">{reported.display_name}</strong>
          <Time at={report.created_at} />
        </span>
        <span class="truncate">
          {reasonTitles[reason]} · {about}, from {reporter.display_name}
        </span>
      </span>
    </a>
  )
}

/** Counts new reports instead of inserting them: a click must not hit a row that has just moved. */
function useFreshReports(status: Report['status'], list: List<Report>) {
  const [fresh, setFresh] = useState<Report[]>([])
  const isShown = ({ id }: Report) => list.items.some((report) => report.id === id)
  const waiting = fresh.filter((report) => !isShown(report))
  const isEmpty = list.items.length === 0
  useEffect(() => {
    if (status !== 'open') return
    return client.on('report_created', ({ report }) => setFresh((before) => [report, ...before]))
  }, [status])

  function show() {
    list.update((reports) => [...waiting, ...reports])
    setFresh([])
  }

  // An empty list can be reloaded at once: nothing in it can move.
  useEffect(() => {
    if (isEmpty && !list.isLoading && waiting.length > 0) show()
  })
  return { fresh: waiting.length, show }
}
