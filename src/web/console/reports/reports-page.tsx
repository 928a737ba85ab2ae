import { CircleCheck, Flag } from 'lucide-preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Report } from '../../../../client/src/contract.ts'
import { Button } from '../../kit/button.tsx'
import { plural } from '../../kit/format.ts'
import { Segments } from '../../kit/list.tsx'
import { query } from '../../kit/router.ts'
import { Empty } from '../../kit/states.tsx'
import { fill, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { type List, useList } from '../data.ts'
import { ItemRow, PaneRows, Panes, selectedId } from '../panes.tsx'
import { client } from '../session.ts'
import { ReportDetails } from './report.tsx'

const words = texts.console.reports

type Status = Report['status']

export function ReportsPage() {
  const status: Status = query.value.get('status') === 'resolved' ? 'resolved' : 'open'
  const frame = useRef<HTMLDivElement>(null)
  const rows = () => frame.current?.parentElement?.querySelector('.virtual')
  const list = useList(
    'GET /v1/admin/reports',
    { query: { status } },
    {
      every: 30,
      // Rows under the pointer, and a list that was scrolled, must not move.
      isHeld: () => (rows()?.scrollTop ?? 0) > 0 || rows()?.matches(':hover') === true,
    },
  )
  const id = selectedId()
  return (
    <Panes
      area="reports"
      list={
        <>
          <div class="row between report-views" ref={frame}>
            <Segments
              label={words.byStatus}
              name="status"
              value={status}
              options={Object.entries(words.views)}
            />
            <News key={status} status={status} list={list} rows={rows} />
          </div>
          <PaneRows
            label={words.lists[status]}
            list={list}
            listKey={status}
            render={(report) => <Row report={report} />}
            empty={<Empty icon={status === 'open' ? CircleCheck : Flag} {...words.none[status]} />}
          />
        </>
      }
      detail={
        id === undefined ? (
          <Empty icon={Flag} {...words.noneChosen} />
        ) : (
          <ReportDetails
            key={id}
            id={id}
            isListed={status === 'open' ? list.data?.some((report) => report.id === id) : undefined}
          />
        )
      }
    />
  )
}

type NewsProps = { status: Status; list: List<Report>; rows: () => Element | null | undefined }

/** Counts new reports instead of inserting them: a click must not hit a row that has just moved. */
function News({ status, list, rows }: NewsProps) {
  const [arrived, setArrived] = useState<string[]>([])
  const fresh = arrived.filter((id) => !list.items.some((report) => report.id === id))
  const [presses, setPresses] = useState(0)
  // Reading the list again shows which of them are still open. The response may lack what comes from then on.
  useLayoutEffect(() => {
    if (list.isLoading) setArrived([])
  }, [list.isLoading])
  useEffect(() => {
    if (status !== 'open') return
    return client.on('report_created', ({ report }) =>
      setArrived((before) => [...before, report.id]),
    )
  }, [status])
  const isEmpty = list.data?.length === 0
  // An empty list can be read again at once: nothing in it can move.
  useEffect(() => {
    if (isEmpty && fresh.length > 0) list.reload()
  }, [isEmpty, fresh.length])
  // The pressed button is gone.
  useEffect(() => {
    const frame = rows()
    if (presses === 0 || list.isLoading || !frame) return
    frame.scrollTop = 0
    frame.querySelector<HTMLElement>('[data-index="0"] a')?.focus()
    setPresses(0)
  }, [presses, list.isLoading])
  function show() {
    list.reload()
    setPresses(presses + 1)
  }
  return (
    <span role="status">
      {fresh.length > 0 && !isEmpty && (
        <Button tone="ghost" onClick={show}>
          {plural(words.fresh, fresh.length)}
        </Button>
      )}
    </span>
  )
}

function Row({ report }: { report: Report }) {
  const { id, reported, reporter, reason, message_id, created_at } = report
  const text = message_id === null ? words.aboutPerson : words.aboutMessage
  return (
    <ItemRow
      id={id}
      address={`/console/reports/${id}`}
      name={reported.display_name}
      end={<Time at={created_at} />}
    >
      {fill(text, { reason: texts.reportReasons[reason], name: reporter.display_name })}
    </ItemRow>
  )
}
