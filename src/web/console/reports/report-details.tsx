import { useEffect, useRef } from 'preact/hooks'
import type { ManagedUser, Report, ReportDetail } from '../../../../client/src/contract.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { useResource } from '../../ui/resource.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { BackLink } from '../panes.tsx'
import { useRefresh } from '../refresh.ts'
import { request, user } from '../session.ts'
import { reasonTitles } from './reasons.ts'
import { ReportActions } from './report-actions.tsx'
import { ReportExcerpt } from './report-excerpt.tsx'

type ReportDetailsProps = {
  id: string
  /** False once a colleague has resolved it. */
  isListed: boolean
  onChange: (report: Report) => void
}

/** A report with everything that is needed to judge it. */
export type ReportContext = {
  report: ReportDetail
  /** Null when the account was deleted. */
  reported: ManagedUser | null
  /** When an admin removed the message. The copy in the report has no such field. */
  removedAt: string | undefined
}

export function ReportDetails({ id, isListed, onChange }: ReportDetailsProps) {
  const found = useResource(id, (signal) => loadContext(id, signal))
  const heading = useRef<HTMLHeadingElement>(null)
  const { data } = found
  useRefresh(found.reload)
  // No polling: each read of a report is recorded in the audit log.
  const wasListed = useRef(isListed)
  useEffect(() => {
    if (wasListed.current && !isListed && data?.report.status === 'open') found.reload()
    wasListed.current = isListed
  }, [isListed])

  function change(changes: Partial<ReportContext>) {
    found.update((before) => ({ ...before, ...changes }))
    if (changes.report) onChange(changes.report)
    // The pressed button may be gone.
    heading.current?.focus()
  }

  return (
    <article>
      <BackLink area="reports" title="Reports" />
      {data ? (
        <>
          <Head report={data.report} heading={heading} />
          <People found={data} />
          {data.report.body !== null && (
            <section class="stack tight">
              <h3>What {data.report.reporter.display_name} says</h3>
              <blockquote class="prose">{data.report.body}</blockquote>
            </section>
          )}
          {data.report.status === 'resolved' && <Resolution report={data.report} />}
          <ReportExcerpt found={data} />
          <ReportActions found={data} onChange={change} />
        </>
      ) : (
        <Missing error={found.error} retry={found.reload} />
      )}
    </article>
  )
}

function Missing({ error, retry }: { error: unknown; retry: () => void }) {
  return error === undefined ? <Loading rows={8} /> : <Failure error={error} retry={retry} />
}

async function loadContext(id: string, signal: AbortSignal): Promise<ReportContext> {
  const report = await request('GET /v1/admin/reports/{id}', { params: { id }, signal })
  const [reported, removedAt] = await Promise.all([
    findPerson(report.reported.id, signal),
    findRemoval(report, signal),
  ])
  return { report, reported, removedAt }
}

async function findPerson(id: string, signal: AbortSignal) {
  try {
    return await request('GET /v1/admin/users/{id}', { params: { id }, signal })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return null
    throw error
  }
}

async function findRemoval({ status, message_id }: ReportDetail, signal: AbortSignal) {
  if (status === 'resolved' || message_id === null) return undefined
  const query = { action: 'message_removed', target_id: message_id, per_page: 1 }
  const { data } = await request('GET /v1/admin/audit-log', { query, signal })
  return data[0]?.at
}

type HeadProps = { report: Report; heading: { current: HTMLHeadingElement | null } }

function Head({ report, heading }: HeadProps) {
  const { reason, status, created_at, message_id } = report
  return (
    <header class="stack tight">
      <div class="row wrap">
        <h2 class="report-title" ref={heading} tabIndex={-1}>
          {reasonTitles[reason]}
        </h2>
        <span class={`badge ${status === 'open' ? 'warning' : 'good'}`}>
          {status === 'open' ? 'Open' : 'Resolved'}
        </span>
      </div>
      <p class="soft small">
        About a {message_id === null ? 'person' : 'message'}, <Time at={created_at} />. Opening a
        report is recorded in the audit log.
      </p>
    </header>
  )
}

function People({ found }: { found: ReportContext }) {
  const { report, reported } = found
  return (
    <div class="report-people">
      <Person title="Reported" person={report.reported} isGone={reported === null}>
        {reported?.disabled && <span class="badge danger">Disabled</span>}
      </Person>
      <Person title="Reported by" person={report.reporter} />
    </div>
  )
}

type PersonProps = {
  title: string
  person: Report['reporter']
  isGone?: boolean
  children?: preact.ComponentChildren
}

function Person({ title, person, isGone = false, children }: PersonProps) {
  const { id, display_name: name } = person
  return (
    <div class="row">
      <Avatar name={name} />
      <div class="entry-lines">
        <span class="small soft">{title}</span>
        <span class="row wrap">
          {isGone ? <span>{name}</span> : <a href={`/console/people/${id}`}>{name}</a>}
          {children}
        </span>
      </div>
    </div>
  )
}

function Resolution({ report }: { report: ReportDetail }) {
  const { note, resolved_at, resolved_by_id } = report
  return (
    <section class="stack tight">
      <h3>Resolved</h3>
      {note !== null && <p class="prose">{note}</p>}
      <p class="soft small">
        {resolved_by_id === user.value?.id ? 'By you' : 'By another admin'}{' '}
        {resolved_at !== null && <Time at={resolved_at} />}
      </p>
    </section>
  )
}
