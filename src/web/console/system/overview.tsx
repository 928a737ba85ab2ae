import { TriangleAlert } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import type { Deliveries, System } from '../../../../client/src/contract.ts'
import { Copyable } from '../../kit/copy.tsx'
import { bytes, count, duration, plural } from '../../kit/format.ts'
import { Loaded, Section } from '../../kit/list.tsx'
import { fill, named, texts } from '../../kit/texts.tsx'
import { Time, Times } from '../../kit/time.tsx'
import { useQuery } from '../data.ts'
import { Traffic } from './chart.tsx'

const words = texts.console.system.overview
const jobs = texts.console.system.jobs
const { channels } = texts.console.people.deliveries

export function Overview() {
  const system = useQuery('GET /v1/admin/system', {}, { every: 30 })
  return (
    <Loaded from={system} rows={12}>
      {(data) => (
        <>
          {data.warnings.length > 0 && <Warnings warnings={data.warnings} />}
          <Figures system={data} />
          <Traffic system={data} />
          <DeliveryStates system={data} />
          {data.replication && <ReplicationState replication={data.replication} />}
          <Outbox rows={data.outbox} />
        </>
      )}
    </Loaded>
  )
}

function Figures({ system }: { system: System }) {
  const { last_backup_at: backup } = system
  return (
    <dl class="figures card" aria-label={words.service}>
      <Figure name={words.version}>{system.version}</Figure>
      <Figure name={words.uptime}>{duration(system.uptime_seconds)}</Figure>
      <Figure name={words.sockets} more={plural(words.socketUsers, system.socket_users)}>
        {count(system.sockets)}
      </Figure>
      <Figure name={words.database} more={fill(words.wal, { size: bytes(system.wal_bytes) })}>
        {bytes(system.database_bytes)}
      </Figure>
      <Figure name={words.disk}>{bytes(system.free_disk_bytes)}</Figure>
      <Figure name={words.backup}>{backup ? <Time at={backup} /> : words.never}</Figure>
    </dl>
  )
}

type FigureProps = { name: string; more?: string; children: ComponentChildren }

function Figure({ name, more, children }: FigureProps) {
  return (
    <div>
      <dt class="soft small">{name}</dt>
      <dd class="number">{children}</dd>
      {more && <dd class="soft small number">{more}</dd>}
    </div>
  )
}

const known = texts.console.system.warnings
type Code = keyof typeof known
type Remedy = { setting?: string; link?: { href: string; text: string } }

const remedies: { [C in Code]?: Remedy } = {
  no_smtp: { setting: 'SMTP_URL=smtps://user:password@mail.example.com' },
  public_url_http: { setting: 'PUBLIC_URL=https://chat.example.com' },
  no_admin_totp: {
    setting: 'ADMIN_TOTP=required',
    link: { href: '/console/account', text: words.setUpOwn },
  },
  origin_refused: {
    setting: 'CORS_ORIGINS=https://app.example.com',
    link: { href: '/console/system/audit?action=origin_refused', text: words.show },
  },
  no_backup: { setting: 'hostline backup /var/backups/hostline' },
  replica_lag: { setting: 'hostline check' },
  replica_unrestorable: { setting: 'hostline check' },
  replica_drill_failed: { setting: 'hostline replica verify' },
  replica_no_snapshot: { setting: 'hostline replica status' },
  dead_jobs: { link: { href: '/console/system/jobs', text: words.show } },
  webhooks_failing: { link: { href: '/console/system/webhooks', text: words.show } },
  webhook_events_dropped: { link: { href: '/console/system/webhooks', text: words.show } },
}

function Warnings({ warnings }: Pick<System, 'warnings'>) {
  return (
    <Section title={words.warnings} level={2}>
      <ul class="entries">
        {warnings.map((warning) => (
          <li key={warning.code}>
            <Warning {...warning} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Warning({ code, message }: System['warnings'][number]) {
  const { title, text } = isKnown(code) ? known[code] : { title: message, text: '' }
  const { setting, link }: Remedy = (isKnown(code) && remedies[code]) || {}
  return (
    <>
      <div class="main warning">
        <TriangleAlert />
        <div>
          <h3>{title}</h3>
          <p class="soft small">
            {text} {link && <a href={link.href}>{link.text}</a>}
          </p>
        </div>
      </div>
      {setting && <Copyable text={setting} name={fill(words.whatToSet, { title })} />}
    </>
  )
}

const isKnown = (code: string): code is Code => code in known

function DeliveryStates({ system }: { system: System }) {
  return (
    <Section title={words.deliveries} level={2}>
      <ul class="entries">
        <DeliveryState name={channels.email} state={system.mail} unset={words.mailUnset} />
        <DeliveryState name={words.push} state={system.push} unset={words.pushUnset} />
        <WebhookState webhooks={system.webhooks} />
      </ul>
    </Section>
  )
}

type RowProps = {
  name: string
  badge: ComponentChildren
  about?: string
  error?: string | null
  end: ComponentChildren
}

const StateRow = ({ name, badge, about, error, end }: RowProps) => (
  <li>
    <div class="main">
      <h3 class="row wrap">
        {name} {badge}
      </h3>
      {about && <p class="soft small">{about}</p>}
      {error && <p class="small prose">{error}</p>}
    </div>
    <p class="soft small">{end}</p>
  </li>
)

type StateProps = { name: string; state: Deliveries; unset: string }

function DeliveryState({ name, state, unset }: StateProps) {
  const { last_sent_at: sentAt, last_failed_at: failedAt, last_error: error } = state
  const sent: [string, string?] = sentAt === null ? [words.nothingSent] : [words.lastSent, sentAt]
  return (
    <StateRow
      name={name}
      badge={<DeliveryBadge state={state} unset={unset} />}
      error={error}
      end={<Times of={[sent, [words.lastFailure, failedAt]]} />}
    />
  )
}

function DeliveryBadge({ state, unset }: Omit<StateProps, 'name'>) {
  const { configured, last_sent_at: sentAt, last_failed_at: failedAt } = state
  if (failedAt && failedAt > (sentAt ?? ''))
    return <span class="badge danger">{words.failing}</span>
  if (!configured) return <span class="badge">{unset}</span>
  return sentAt ? (
    <span class="badge good">{words.works}</span>
  ) : (
    <span class="badge">{words.setUp}</span>
  )
}

function WebhookState({ webhooks }: Pick<System, 'webhooks'>) {
  const { total, disabled, failing } = webhooks
  const states = [
    total === 0 && words.webhooksNone,
    disabled > 0 && fill(words.webhooksOff, { count: count(disabled) }),
    failing > 0 && fill(words.webhooksFailing, { count: count(failing) }),
  ].filter((text) => text !== false)
  const tone = failing + disabled > 0 ? 'danger' : total > 0 ? 'good' : ''
  const text = total === 0 ? words.addOne : fill(words.showAll, { count: count(total) })
  return (
    <StateRow
      name={texts.console.system.tabs.webhooks}
      badge={<span class={`badge ${tone}`}>{states.join(', ') || words.webhooksWork}</span>}
      end={<a href="/console/system/webhooks">{text}</a>}
    />
  )
}

type Replication = NonNullable<System['replication']>

/** An upload takes about a second, so a small lag is normal. */
const inStepSeconds = 5
const lateSeconds = 60

/** How far the replica in the bucket is behind. */
function ReplicationState({ replication }: { replication: Replication }) {
  const { last_stored_at: storedAt, last_snapshot_at: snapshotAt, ack } = replication
  const { last_failed_at: failedAt, last_error: error, standby_allowed: mayTakeOver } = replication
  return (
    <Section title={words.replication} level={2}>
      <ul class="entries">
        <StateRow
          name={words.bucket}
          badge={<StepBadge replication={replication} />}
          about={`${ack === 'bucket' ? words.ackBucket : words.ackDisk} ${mayTakeOver ? words.standby : ''}`}
          error={error}
          end={
            <Times
              of={[
                storedAt === null ? [words.nothingStored] : [words.lastStored, storedAt],
                [words.lastSnapshot, snapshotAt],
                [words.lastFailure, failedAt],
              ]}
            />
          }
        />
      </ul>
    </Section>
  )
}

function StepBadge({ replication: { lag_seconds: lag } }: { replication: Replication }) {
  if (lag <= inStepSeconds) return <span class="badge good">{words.inStep}</span>
  const tone = lag > lateSeconds ? 'danger' : ''
  return <span class={`badge ${tone}`}>{fill(words.behind, { time: duration(lag) })}</span>
}

function Outbox({ rows }: { rows: System['outbox'] }) {
  const deadFirst = rows.toSorted((one, other) => one.state.localeCompare(other.state))
  const link = (
    <a class="small" href="/console/system/jobs">
      {words.showJobs}
    </a>
  )
  return (
    <Section title={words.outbox} level={2} end={link}>
      <ul class="entries compact">
        {deadFirst.map(({ kind, state, count: number }) => (
          <li key={`${kind} ${state}`}>
            <span class="main">{named(jobs.kinds, kind)}</span>
            <span class={`badge ${state === 'dead' ? 'danger' : ''}`}>{jobs.states[state]}</span>
            <span class="amount number">{count(number)}</span>
          </li>
        ))}
        {rows.length === 0 && <li class="soft small">{words.nothingWaits}</li>}
      </ul>
    </Section>
  )
}
