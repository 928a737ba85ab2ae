import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Count,
  described,
  Flag,
  Maybe,
  Nullable,
  OneOf,
  Rarely,
  Refined,
  Sample,
  Schema,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { AuditRow } from '../../db/audit-trail.ts'
import type { RetentionSurvey } from '../../jobs/forgetting.ts'
import { type Job, jobStates } from '../../jobs/outbox.ts'
import { isoTime, timeOrNull } from '../../lib/clock.ts'
import { problem } from '../../lib/errors.ts'
import { type Locale, locales } from '../../lib/i18n.ts'
import { type MailKind, mailKinds, mailTextProblem } from '../../lib/mail-texts.ts'
import { definitions, isSettingName, type SettingName, settingNames } from '../../settings.ts'

const settingSchemas = Object.fromEntries(
  settingNames.map((name) => [name, definitions[name].schema]),
) as { [K in keyof typeof definitions]: (typeof definitions)[K]['schema'] } // the same schemas

export const Settings = Schema('Settings', settingSchemas)

const changedSettings = Body(
  'SettingsUpdate',
  Object.fromEntries(
    settingNames.map((name) => [
      name,
      described(Maybe(settingSchemas[name]), definitions[name].doc),
    ]),
  ) as {
    [K in SettingName]: ReturnType<typeof Maybe<(typeof settingSchemas)[K]>>
  },
  { examples: [{ platform_name: 'Example', accent: '#1d4ed8', logo_url: null }] },
)

export const SettingsUpdate = Refined(changedSettings, (body) => {
  const names = Object.keys(body)
  const unknown = names.filter((name) => !isSettingName(name))
  if (names.length === 0) return { body: problem('nothing_to_change') }
  return Object.fromEntries(unknown.map((name) => [name, problem('unknown_setting')]))
})

const DefaultText = Schema('DefaultMailText', {
  subject: Sample('Confirm your e-mail address'),
  body: Sample('Please confirm that this address is yours.\n\n{link}'),
})

export const MailTextKinds = Schema('MailTextKinds', {
  kinds: Type.Array(
    Schema('MailTextKind', {
      kind: OneOf(mailKinds, { examples: ['verify_email'] }),
      placeholders: Type.Array(Type.String(), { examples: [['platform', 'name', 'link']] }),
      required: Nullable(Type.String(), {
        description: 'The placeholder that a body must have.',
        examples: ['link'],
      }),
      texts: Type.Object(
        Object.fromEntries(locales.map((locale) => [locale, DefaultText])) as Record<
          Locale,
          typeof DefaultText
        >, // one for each of them
        { title: 'DefaultMailTexts', description: 'The default texts by language.' },
      ),
    }),
  ),
})

export const MailTextPreviewRequest = Refined(
  Body('MailTextPreviewRequest', {
    kind: OneOf(mailKinds, { description: 'The mail.', examples: ['verify_email'] }),
    lang: OneOf(locales, { description: 'Its language.', examples: ['en'] }),
    subject: Maybe(Sample('Welcome to {platform}', 'Absent: the text in use.')),
    body: Maybe(Sample('Hello {name},\n\n{link}', 'Absent: the text in use.')),
    settings: described(Maybe(changedSettings), 'Settings in place of those in use.'),
    send: Maybe(Flag('Mails it to the admin, too.', false)),
  }),
  ({ kind, ...texts }) => {
    const parts = ['subject', 'body'] as const
    const problems = parts.flatMap((part) => {
      const text = texts[part]
      if (typeof text !== 'string' || !mailKinds.some((known) => known === kind)) return []
      const found = mailTextProblem(kind as MailKind, part, text) // is one of them
      return found ? [[part, found]] : []
    })
    return Object.fromEntries(problems)
  },
)

export const MailTextPreview = Schema('MailTextPreview', {
  subject: Sample('Welcome to Example'),
  text: Sample('Hello Ada,\n\nhttps://chat.example.com/verify-email#token=…'),
  html: Sample('<!doctype html><html lang="en">…</html>'),
})

const Party = (type: string, id: string) =>
  Schema(
    'AuditParty',
    {
      type: Nullable(Type.String()),
      id: Nullable(Type.String()),
      name: Nullable(Type.String(), { description: 'The name of a user whose account exists.' }),
    },
    { examples: [{ type, id, name: 'Grace Hopper' }] },
  )

export const AuditEntry = Schema('AuditEntry', {
  id: Sample(samples.recordId),
  at: Timestamp,
  action: described(Sample('role_changed'), 'The action, for example `role_changed`.'),
  actor: described(
    Party('user', samples.admin.id),
    'The author of the action: a person, a key, the command line or the service itself.',
  ),
  target: described(Party('user', samples.host.id), 'The object of the action.'),
  ip: Nullable(Sample('203.0.113.7')),
  details: Nullable(
    Type.Record(Type.String(), Type.String(), { examples: [{ from: 'user', to: 'host' }] }),
  ),
})

type NameOf = (id: string | null) => string | undefined

export function auditEntryView(row: AuditRow, nameOf: NameOf): Static<typeof AuditEntry> {
  const party = (type: string | null, id: string | null) => ({ type, id, name: nameOf(id) ?? null })
  return {
    id: row.id,
    at: isoTime(row.at),
    action: row.action,
    actor: party(row.actorType, row.actorId),
    target: party(row.targetType, row.targetId),
    ip: row.ip,
    details: row.details === null ? null : JSON.parse(row.details),
  }
}

export const JobState = OneOf(jobStates, { title: 'JobState' })

export const JobItem = Schema('Job', {
  id: Sample(samples.recordId),
  kind: Sample('verification_mail'),
  state: JobState,
  attempts: Count(2, 'Tries so far.'),
  last_error: Nullable(
    Sample(
      'connect ECONNREFUSED 203.0.113.25:587',
      'The reason of the last failure, with e-mail addresses masked.',
    ),
  ),
  run_at: described(Timestamp, 'When it is tried next.'),
  subject: Nullable(
    Schema(
      'JobSubject',
      {
        type: OneOf(['user', 'ticket', 'webhook']),
        id: Type.String(),
        name: Nullable(Type.String()),
      },
      { examples: [{ type: 'user', id: samples.host.id, name: 'Ada Lovelace' }] },
    ),
    { description: 'The receiver of a mail, push or delivery; `name` for users that exist.' },
  ),
})

export const jobUserId = ({ payload }: Job): string | null => payloadOf(payload).user_id ?? null

type Payload = { user_id?: string | null; ticket_id?: string; webhook_id?: string }
const payloadOf = (payload: unknown) => payload as Payload // the fields that kinds of jobs share

function subjectOf({ payload }: Job, nameOf: NameOf) {
  const { user_id: userId, ticket_id: ticketId, webhook_id: webhookId } = payloadOf(payload)
  if (userId) return { type: 'user' as const, id: userId, name: nameOf(userId) ?? null }
  if (ticketId) return { type: 'ticket' as const, id: ticketId, name: null }
  return webhookId ? { type: 'webhook' as const, id: webhookId, name: null } : null
}

export function jobView(row: Job, nameOf: NameOf): Static<typeof JobItem> {
  return {
    id: row.id,
    kind: row.kind,
    state: row.deadAt === null ? 'waiting' : 'dead',
    attempts: row.attempts,
    last_error: row.lastError,
    run_at: isoTime(row.runAt),
    subject: subjectOf(row, nameOf),
  }
}

const NullableTime = Nullable(Timestamp)
const Latency = (milliseconds: number) =>
  Nullable(Type.Number({ description: 'Milliseconds, accurate to 1 %.', examples: [milliseconds] }))

const Minute = Schema('Minute', {
  at: Timestamp,
  requests: Count(1_260),
  failed: Count(0, 'Responses with 5xx.'),
  frames: Count(310, 'Frames from clients.'),
  p50_ms: Latency(1.2),
  p99_ms: Latency(9.6),
})

const Deliveries = Schema(
  'Deliveries',
  {
    configured: Flag('Whether it is set up.', true),
    last_sent_at: NullableTime,
    last_failed_at: Rarely(Timestamp),
    last_error: Rarely(Type.String()),
  },
  { description: 'The last success and failure since the start.' },
)

const Replication = Schema('Replication', {
  role: OneOf(['leader', 'standby']),
  ack: OneOf(['disk', 'bucket']),
  standby_allowed: Flag('Whether a standby may take over.', true),
  epoch: Nullable(Count(2), { description: 'Increases each time a node becomes the leader.' }),
  position: Nullable(Count(48_213), {
    description: 'The position of the newest stored log entry.',
  }),
  lag_seconds: Type.Number({
    description: 'The age of the oldest change that is not in the bucket yet.',
    examples: [0.4],
  }),
  last_stored_at: NullableTime,
  last_snapshot_at: NullableTime,
  failures: Count(0, 'Failed requests to the bucket since the start.'),
  last_failed_at: Rarely(Timestamp),
  last_error: Rarely(Type.String()),
})

export const SystemState = Schema('System', {
  version: Sample('1.0.0'),
  started_at: Timestamp,
  uptime_seconds: Count(86_400),
  database_bytes: Count(48_234_496),
  wal_bytes: Count(1_318_400),
  free_disk_bytes: Count(21_474_836_480),
  sockets: Count(42, 'Open sockets.'),
  socket_users: Count(37, 'People with an open socket.'),
  last_hour: described(Type.Array(Minute), 'A point for each minute.'),
  outbox: Type.Array(
    Type.Object({ kind: Sample('verification_mail'), state: JobState, count: Count(1) }),
  ),
  mail: Deliveries,
  push: Deliveries,
  webhooks: Type.Object({
    total: Count(2),
    disabled: Count(0),
    failing: Count(
      0,
      'Enabled webhooks to which nothing has been delivered since their last failure.',
    ),
    dropped: Count(0, 'Events that were dropped because too many waited.'),
  }),
  replication: Nullable(Replication, { description: 'Null without a bucket.' }),
  last_backup_at: NullableTime,
  warnings: Type.Array(
    Type.Object({
      code: Sample('no_backup'),
      message: Sample('No backup was made within two days: run hostline backup every day.'),
    }),
  ),
})

export type SystemState = Static<typeof SystemState>

const due = (what: string) =>
  Schema(`Due${what}`, {
    days: Count(365, 'The setting; 0 keeps everything.'),
    due: Count(1_200, `${what} that the next run deletes.`),
    held: Count(0, `${what} as old that stay as long as a report is open.`),
  })

export const Retention = Schema('Retention', {
  messages: due('Messages'),
  tickets: due('Tickets'),
  last_run_at: Nullable(Timestamp),
  next_run_at: Nullable({ ...Timestamp, description: 'Null when both settings are 0.' }),
})
export type Retention = Static<typeof Retention>

export function retentionView(survey: Awaited<ReturnType<RetentionSurvey>>): Retention {
  const { lastRunAt, nextRunAt, ...due } = survey
  return { ...due, last_run_at: timeOrNull(lastRunAt), next_run_at: timeOrNull(nextRunAt) }
}
