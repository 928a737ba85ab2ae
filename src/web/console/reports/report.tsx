import type { ComponentChildren, Ref } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ManagedUser, Message, Report, ReportDetail } from '../../../../client/src/contract.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { Avatar } from '../../kit/avatar.tsx'
import { ActionButton, Button } from '../../kit/button.tsx'
import { TextArea } from '../../kit/field.tsx'
import { MessageFiles } from '../../kit/file-link.tsx'
import { askForm, useFocusWhenLost } from '../../kit/form.tsx'
import { absoluteTime, plural } from '../../kit/format.ts'
import { Loaded, Section } from '../../kit/list.tsx'
import { useTitle } from '../../kit/router.ts'
import { useShortcut } from '../../kit/shortcuts.tsx'
import { Filled, fill, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { toast } from '../../kit/toast.tsx'
import { mutate, patch, totalOf, useQuery } from '../data.ts'
import { BackLink } from '../panes.tsx'
import { user } from '../session.ts'

const words = texts.console.reports
const { disable } = texts.console.people
const { note: noteLabel } = texts.console.desk.composer

const route = 'GET /v1/admin/reports/{id}'
const listRoute = 'GET /v1/admin/reports'
const personRoute = 'GET /v1/admin/users/{id}'

type ReportProps = { report: ReportDetail }

/** @param isListed false once a colleague has resolved it; undefined while the open ones are not shown */
export function ReportDetails(props: { id: string; isListed: boolean | undefined }) {
  const { id, isListed } = props
  // Each read of a report is recorded in the audit log.
  const found = useQuery(route, { params: { id } }, { isOnce: true })
  const { data } = found
  const wasListed = useRef(isListed)
  useEffect(() => {
    if (isListed === undefined) return
    if (wasListed.current && !isListed && data?.status === 'open') found.reload()
    wasListed.current = isListed
  }, [isListed])
  useTitle(data && fill(words.heading, { name: data.reported.display_name }))
  return (
    <article class="stack">
      <BackLink area="reports" />
      <Loaded from={found} rows={8}>
        {(report) => <Case report={report} />}
      </Loaded>
    </article>
  )
}

function Case({ report }: ReportProps) {
  const { reported: side, reporter, message_id, status, body } = report
  const person = useQuery(personRoute, { params: { id: side.id } })
  const isGone = person.error instanceof ApiError && person.error.code === 'not_found'
  // The copy in the report does not say when the message was removed.
  const removals = useQuery(
    'GET /v1/admin/audit-log',
    status === 'resolved' || message_id === null
      ? undefined
      : { query: { action: 'message_removed', target_id: message_id, per_page: 1 } },
  )
  const [removedNow, setRemovedNow] = useState<string>()
  const removedAt = removedNow ?? removals.data?.data[0]?.at
  // The pressed button may be gone.
  const isDisabled = person.data?.disabled === true
  const head = useFocusWhenLost<HTMLElement>(`${status} ${removedNow} ${isDisabled}`, 'h2')
  return (
    <>
      <Head report={report} frame={head} />
      <div class="report-people">
        <Person title={words.reported} person={side} isGone={isGone}>
          {isDisabled && <span class="badge danger">{texts.console.people.disabled}</span>}
        </Person>
        <Person title={words.reporter} person={reporter} />
      </div>
      <Earlier report={report} />
      {body !== null && (
        <Section title={fill(words.what, { name: reporter.display_name })}>
          <blockquote class="prose report-text" dir="auto">
            {body}
          </blockquote>
        </Section>
      )}
      {status === 'resolved' && <Resolution report={report} />}
      <Excerpt report={report} removedAt={removedAt} />
      <Actions
        report={report}
        person={person.data}
        isRemoved={removedAt !== undefined}
        onRemoved={() => setRemovedNow(new Date().toISOString())}
      />
    </>
  )
}

function Head({ report, frame }: { report: Report; frame: Ref<HTMLElement> }) {
  const { reason, status, created_at, message_id } = report
  return (
    <header class="stack tight" ref={frame}>
      <div class="row wrap">
        <h2 tabIndex={-1}>{texts.reportReasons[reason]}</h2>
        <span class={`badge ${status === 'open' ? 'warning' : 'good'}`}>{words[status]}</span>
      </div>
      <p class="soft small">
        <Filled
          text={message_id === null ? words.personAt : words.messageAt}
          values={{ time: <Time at={created_at} /> }}
        />
      </p>
    </header>
  )
}

type PersonProps = {
  title: string
  person: Report['reporter']
  isGone?: boolean
  children?: ComponentChildren
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

const shownReports = 5

/** Other reports about the same person. */
function Earlier({ report: { id, reported } }: { report: Report }) {
  const query = { reported_id: reported.id, per_page: shownReports + 1 }
  const { data } = useQuery(listRoute, { query })
  const others = data?.data.filter((other) => other.id !== id).slice(0, shownReports) ?? []
  if (others.length === 0) return null
  const total = (totalOf(data) ?? 1) - 1
  return (
    <Section title={plural(words.others, total)}>
      <ReportLines reports={others} />
    </Section>
  )
}

export function ReportLines({ reports }: { reports: Report[] }) {
  return (
    <ul class="lines">
      {reports.map(({ id, reason, status, reporter, created_at }) => (
        <li key={id} class="row between">
          <a class="truncate" href={`/console/reports/${id}`}>
            {fill(words.by, { reason: texts.reportReasons[reason], name: reporter.display_name })}
          </a>
          <span class="small soft end">
            {words[status]} · <Time at={created_at} />
          </span>
        </li>
      ))}
    </ul>
  )
}

function Resolution({ report }: ReportProps) {
  const { note, resolved_at: at, resolved_by_id } = report
  const isOwn = resolved_by_id === user.value?.id
  return (
    <Section title={words.resolved}>
      {note !== null && (
        <p class="prose" dir="auto">
          {note}
        </p>
      )}
      <p class="soft small">
        <Filled
          text={isOwn ? words.resolvedByYou : words.resolvedByOther}
          values={{ time: at !== null && <Time at={at} /> }}
        />
      </p>
    </Section>
  )
}

type ExcerptProps = ReportProps & { removedAt: string | undefined }

/** The messages around the reported one, oldest first. */
function Excerpt({ report, removedAt }: ExcerptProps) {
  const { messages, message_id, status } = report
  const frame = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const element = frame.current
    const marked = element?.querySelector<HTMLElement>('.is-reported')
    if (!element || !marked) return
    element.scrollTop = marked.offsetTop - (element.clientHeight - marked.offsetHeight) / 2
  }, [])
  if (message_id === null) return null
  return (
    <Section title={words.context}>
      {messages === null ? (
        <p class="soft">{status === 'resolved' ? words.copiesDeleted : words.nothingKept}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
        <section class="excerpt" ref={frame} tabIndex={0} aria-label={words.conversation}>
          <ol>
            {messages.map((message) => (
              <Line key={message.id} message={message} report={report} removedAt={removedAt} />
            ))}
          </ol>
        </section>
      )}
    </Section>
  )
}

function Line({ message, report, removedAt }: ExcerptProps & { message: Message }) {
  const { reporter, reported, message_id } = report
  const isReported = message.id === message_id
  const sender = message.sender_id === reporter.id ? reporter : reported
  const isEmpty = message.body === '' && message.file_url === null
  return (
    <li class={isReported ? 'is-reported' : ''}>
      <p class="row wrap small">
        <strong>{message.type === 'notice' ? words.notice : sender.display_name}</strong>
        <time class="soft" dateTime={message.created_at}>
          {absoluteTime(message.created_at)}
        </time>
        {isReported && <span class="badge danger">{words.reportedMessage}</span>}
      </p>
      {message.deleted_at !== undefined && (
        <p class="small soft">{isEmpty ? texts.kit.removedMessage : words.removedBefore}</p>
      )}
      {message.body !== '' && (
        <p class="prose" dir="auto">
          {message.body}
        </p>
      )}
      <MessageFiles message={message} />
      {isReported && removedAt !== undefined && (
        <p class="small soft">
          <Filled text={words.removedAt} values={{ time: <Time at={removedAt} /> }} />
        </p>
      )}
    </li>
  )
}

type ActionsProps = ReportProps & {
  person: ManagedUser | undefined
  isRemoved: boolean
  onRemoved: () => void
}

function Actions({ report, person, isRemoved, onRemoved }: ActionsProps) {
  const { message_id, status, reported } = report
  const isOpen = status === 'open'
  async function resolve() {
    if (!isOpen) return
    const resolved = await askToResolve(report)
    if (!resolved) return
    patch(route, { params: { id: report.id } }, () => resolved)
    toast(words.resolve.done)
  }
  useShortcut('e', words.resolve.title, resolve)
  const canDisable = person !== undefined && !person.disabled && person.id !== user.value?.id
  if (!isOpen && !canDisable) return null
  return (
    <div class="report-actions row wrap">
      {isOpen && (
        <Button tone="primary" onClick={resolve} title={`${words.resolve.action} (e)`}>
          {words.resolve.button}
        </Button>
      )}
      {isOpen && message_id !== null && !isRemoved && (
        <ActionButton
          tone="danger"
          texts={words.removeMessage}
          values={{ name: reported.display_name }}
          work={async () => {
            await mutate('DELETE /v1/admin/messages/{id}', { params: { id: message_id } })
            onRemoved()
          }}
        />
      )}
      {canDisable && (
        <ActionButton
          tone="danger"
          texts={{ ...disable, button: words.disablePerson }}
          values={{ name: person.display_name }}
          work={async () => {
            const params = { id: person.id }
            const changed = await mutate('PATCH /v1/admin/users/{id}', {
              params,
              body: { disabled: true },
            })
            patch(personRoute, { params }, () => changed)
          }}
        />
      )}
    </div>
  )
}

const askToResolve = ({ id, message_id }: ReportDetail) =>
  askForm({
    ...words.resolve,
    text: message_id === null ? words.resolve.text : words.resolve.textOfMessage,
    fields: (
      <TextArea label={noteLabel} hint={words.noteHint} name="note" rows={4} maxLength={2_000} />
    ),
    submit(given) {
      const note = String(given.get('note')).trim()
      const body = { status: 'resolved', ...(note !== '' && { note }) } as const
      // It leaves the list, and the badge counts anew.
      const refreshes: [typeof listRoute] = [listRoute]
      return mutate('PATCH /v1/admin/reports/{id}', { params: { id }, body }, { refreshes })
    },
  })
