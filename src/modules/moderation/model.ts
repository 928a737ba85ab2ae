import { type Static, Type } from '@sinclair/typebox'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime } from '../../lib/clock.ts'
import { problem } from '../../lib/errors.ts'
import { Id, Maybe, Nullable, OneOf, Refined, Text, Timestamp } from '../../lib/fields.ts'
import { exactlyOneOf, shownAs } from '../../lib/shown-as.ts'
import { reportReasons, reportStatuses } from '../../lib/vocabulary.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import type { BlockItem } from './block-store.ts'
import type { ReportDetail as Detail, ReportItem, ReportRow } from './report-store.ts'

const open = { additionalProperties: true } as const
const ReasonField = OneOf(reportReasons)
export const ReportStatusField = OneOf(reportStatuses)
const ReportText = Text({ min: 1, max: 2_000, trimmed: true, notBlank: true })
const Person = Type.Object({ id: Type.String(), display_name: Type.String() })

export const Block = Type.Object(
  {
    user: Type.Object({
      ...Person.properties,
      avatar_url: Type.String({ format: 'uri' }),
    }),
    blocked_at: Timestamp,
  },
  { title: 'Block' },
)

const target = {
  user_id: Id({ description: 'The person who is reported.' }),
  message_id: Id({ description: 'A message of one of your conversations.' }),
}
const complaint = { reason: ReasonField, body: Maybe(ReportText) }

export const NewReport = Refined(
  shownAs(
    Type.Object(
      { user_id: Maybe(target.user_id), message_id: Maybe(target.message_id), ...complaint },
      { title: 'NewReport', ...open },
    ),
    exactlyOneOf(
      'NewReport',
      {
        user_id: { title: 'NewReportOfPerson', schema: target.user_id },
        message_id: { title: 'NewReportOfMessage', schema: target.message_id },
      },
      complaint,
    ),
  ),
  ({ user_id, message_id }) => {
    const isOne = (user_id ?? null) === null ? (message_id ?? null) !== null : !message_id
    return isOne ? {} : { user_id: problem('one_target') }
  },
)

export const ReportUpdate = Refined(
  Type.Object(
    { status: Maybe(ReportStatusField), note: Maybe(ReportText) },
    { title: 'ReportUpdate', ...open },
  ),
  ({ status, note }) => (status || note ? {} : { body: problem('nothing_to_change') }),
)

/** A report as whoever made it sees it. */
export const OwnReport = Type.Object(
  { id: Type.String(), status: ReportStatusField, created_at: Timestamp },
  { title: 'OwnReport' },
)

export const Report = Type.Object(
  {
    id: Type.String(),
    reporter: Person,
    reported: Person,
    message_id: Nullable(Type.String()),
    reason: ReasonField,
    body: Nullable(Type.String()),
    status: ReportStatusField,
    note: Nullable(Type.String()),
    resolved_by_id: Nullable(Type.String()),
    resolved_at: Nullable(Timestamp),
    created_at: Timestamp,
  },
  { title: 'Report' },
)

/** A report with what was said around the message. */
export const ReportDetail = Type.Object(
  {
    ...Report.properties,
    messages: Nullable(
      Type.Array(Type.Object({}, open), {
        description:
          'The message with up to 20 before and after it as they were when it was reported, oldest first; null once it is resolved, and where a person is reported.',
      }),
    ),
  },
  { title: 'ReportDetail' },
)

export const ReportCreatedFrame = Type.Object(
  { type: Type.Literal('report_created'), report: Report },
  { description: 'Asked for with `support`, by admins: somebody has reported something.' },
)
export type ReportCreatedFrame = Static<typeof ReportCreatedFrame>

export const serverFrames: ServerFrames = {
  report_created: { schema: ReportCreatedFrame, group: 'support' },
}

export function blockView({ user, blockedAt }: BlockItem, avatarUrl: AvatarUrl) {
  const { id, displayName } = user
  return {
    user: { id, display_name: displayName, avatar_url: avatarUrl(user) },
    blocked_at: isoTime(blockedAt),
  }
}

export function ownReportView({ id, status, createdAt }: ReportRow): Static<typeof OwnReport> {
  return { id, status, created_at: isoTime(createdAt) }
}

/** A report as it is exported to whoever made it. */
export function exportedReportView(row: ReportRow) {
  const { reportedId, messageId, reason, body } = row
  return { ...ownReportView(row), user_id: reportedId, message_id: messageId, reason, body }
}

export function reportView({ report, reporter, reported }: ReportItem): Static<typeof Report> {
  const { id, messageId, reason, body, status, note, resolvedById, resolvedAt } = report
  return {
    id,
    reporter: { id: reporter.id, display_name: reporter.displayName },
    reported: { id: reported.id, display_name: reported.displayName },
    message_id: messageId,
    reason,
    body,
    status,
    note,
    resolved_by_id: resolvedById,
    resolved_at: resolvedAt === null ? null : isoTime(resolvedAt),
    created_at: isoTime(report.createdAt),
  }
}

export function reportDetailView(detail: Detail): Static<typeof ReportDetail> {
  const { excerpt } = detail
  return { ...reportView(detail), messages: excerpt && [...excerpt] }
}
