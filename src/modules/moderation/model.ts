import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Change,
  described,
  Id,
  Maybe,
  NamedPerson,
  Nullable,
  named,
  OneOf,
  PersonWithAvatar,
  Rarely,
  Refined,
  Sample,
  Schema,
  Timestamp,
  TrimmedText,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { problem } from '../../lib/errors.ts'
import { reportReasons, reportStatuses } from '../../lib/vocabulary.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import type { BlockItem } from './block-store.ts'
import type { ReportDetail as Detail, ReportItem, ReportRow } from './report-store.ts'

const ReasonField = OneOf(reportReasons, { title: 'ReportReason' })
export const ReportStatusField = OneOf(reportStatuses, { title: 'ReportStatus' })
const bodyText = 'They send the same advertisement every day.'
const Reported = NamedPerson(samples.guest)

export const Block = Schema('Block', {
  user: PersonWithAvatar(samples.guest),
  blocked_at: described(Timestamp, 'When you blocked them.'),
})

export const NewReport = Refined(
  Body(
    'NewReport',
    {
      user_id: Maybe(Id({ description: 'The reported person.' })),
      message_id: Maybe(Id({ description: 'A message of one of your conversations.' })),
      reason: described(ReasonField, 'The kind of offence.'),
      body: Maybe(TrimmedText(2_000, 'A description for the admins.', bodyText)),
    },
    {
      description: 'About a user or a message.',
      examples: [{ user_id: samples.guest.id, reason: 'spam', body: bodyText }],
    },
  ),
  ({ user_id, message_id }) => {
    const isOne = (user_id ?? null) === null ? (message_id ?? null) !== null : !message_id
    return isOne ? {} : { user_id: problem('one_target') }
  },
)

export const ReportUpdate = Change(
  Body('ReportUpdate', {
    status: Maybe({
      ...ReportStatusField,
      description: 'Whether the report is handled.',
      examples: ['resolved'],
    }),
    note: Maybe(TrimmedText(2_000, 'A note for other admins.', 'Spoke to them.')),
  }),
)

const message_id = described(
  Nullable(Sample(samples.messageId)),
  'The reported message; null for a report about a person.',
)
const body = Nullable(Sample(bodyText))

export const OwnReport = Schema('OwnReport', {
  id: Sample(samples.recordId),
  status: ReportStatusField,
  created_at: Timestamp,
})

export const ExportedReport = Schema('ExportedReport', {
  ...OwnReport.properties,
  user_id: Sample(samples.guest.id, 'The reported person.'),
  message_id,
  reason: ReasonField,
  body,
})

export const Report = Schema('Report', {
  id: Sample(samples.recordId),
  reporter: NamedPerson(samples.host),
  reported: Reported,
  message_id,
  reason: ReasonField,
  body,
  status: ReportStatusField,
  note: Rarely(Type.String()),
  resolved_by_id: described(Rarely(Type.String()), 'The admin who handled it.'),
  resolved_at: Rarely(Timestamp),
  created_at: Timestamp,
})

export const ReportDetail = Schema('ReportDetail', {
  ...Report.properties,
  messages: Nullable(
    Type.Array(named('Message'), {
      description:
        'The reported message with up to 20 messages before and after it, at the time of the report, oldest first. Null if the report is resolved or is about a person.',
    }),
  ),
})

export const ReportCreatedFrame = Type.Object(
  { type: Type.Literal('report_created'), report: Report },
  { description: 'With `events=support`, for admins: somebody has reported something.' },
)
export type ReportCreatedFrame = Static<typeof ReportCreatedFrame>

export const serverFrames: ServerFrames = {
  report_created: { schema: ReportCreatedFrame, group: 'support' },
}

export function blockView({ user, blockedAt }: BlockItem, avatarUrl: AvatarUrl) {
  const { id, displayName } = user
  return {
    user: { id, display_name: displayName, avatar_url: avatarUrl({ ...user, avatarUrl: null }) },
    blocked_at: isoTime(blockedAt),
  }
}

export function ownReportView({ id, status, createdAt }: ReportRow): Static<typeof OwnReport> {
  return { id, status, created_at: isoTime(createdAt) }
}

export function exportedReportView(row: ReportRow): Static<typeof ExportedReport> {
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
    resolved_at: timeOrNull(resolvedAt),
    created_at: isoTime(report.createdAt),
  }
}

type ShownFile = { file_url?: unknown }

/** @param deskUrl returns the URL at which the desk can read a file */
export function reportDetailView(detail: Detail, deskUrl: (fileUrl: string) => string) {
  const forDesk = <T extends ShownFile>(shown: T): T =>
    typeof shown.file_url === 'string' ? { ...shown, file_url: deskUrl(shown.file_url) } : shown
  const messages = detail.excerpt?.map((message) => ({
    ...forDesk(message),
    ...(Array.isArray(message['attachments']) && {
      attachments: message['attachments'].map(forDesk),
    }),
  }))
  return { ...reportView(detail), messages: messages ?? null }
}
