import type { ComponentChildren } from 'preact'
import type { System } from '../../../../client/src/contract.ts'
import { bytes, count, duration } from '../../ui/format.ts'
import { useResource } from '../../ui/resource.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { useRefresh } from '../refresh.ts'
import { request } from '../session.ts'
import { DeliveryStates } from './delivery-states.tsx'
import { Outbox } from './outbox.tsx'
import { ReplicationState } from './replication-state.tsx'
import { Traffic } from './traffic.tsx'
import { Warnings } from './warnings.tsx'

export function Overview() {
  const { data, error, reload } = useResource('system', (signal) =>
    request('GET /v1/admin/system', { signal }),
  )
  useRefresh(reload, { seconds: 30 })
  if (!data)
    return error === undefined ? <OverviewLoading /> : <Failure error={error} retry={reload} />
  return (
    <>
      {data.warnings.length > 0 && <Warnings warnings={data.warnings} />}
      <Figures system={data} />
      <Traffic system={data} />
      <DeliveryStates system={data} />
      {data.replication && <ReplicationState replication={data.replication} />}
      <Outbox rows={data.outbox} />
    </>
  )
}

function OverviewLoading() {
  return (
    <>
      <div class="card">
        <Loading rows={3} />
      </div>
      <div class="charts">
        {['requests', 'latency', 'failed', 'frames'].map((name) => (
          <div class="card" key={name}>
            <Loading rows={4} />
          </div>
        ))}
      </div>
    </>
  )
}

function Figures({ system }: { system: System }) {
  const { last_backup_at: backup } = system
  return (
    <dl class="figures card" aria-label="The service">
      <Figure name="Version">{system.version}</Figure>
      <Figure name="Running for">{duration(system.uptime_seconds)}</Figure>
      <Figure name="Live sockets" more={`of ${people(system.socket_users)}`}>
        {count(system.sockets)}
      </Figure>
      <Figure name="Database" more={`and ${bytes(system.wal_bytes)} of wal`}>
        {bytes(system.database_bytes)}
      </Figure>
      <Figure name="Free disk">{bytes(system.free_disk_bytes)}</Figure>
      <Figure name="Last backup">{backup ? <Time at={backup} /> : 'Never'}</Figure>
    </dl>
  )
}

const people = (number: number) => (number === 1 ? '1 person' : `${count(number)} people`)

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
