import { ListFilter, ScrollText } from 'lucide-preact'
import type { AuditEntry, CursorPage } from '../../../../client/src/contract.ts'
import { useList } from '../../ui/resource.ts'
import { withQuery } from '../../ui/router.ts'
import { Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { inWords } from '../names.ts'
import { pageQuery, pageSize } from '../page-query.ts'
import { useRefresh } from '../refresh.ts'
import { RowList } from '../row-list.tsx'
import { request, user } from '../session.ts'
import { AuditFilters, auditFilter } from './audit-filters.tsx'

export function AuditLog() {
  const filter = auditFilter()
  const list = useList(
    JSON.stringify(filter),
    (cursor, signal) =>
      request('GET /v1/admin/audit-log', {
        query: { ...pageQuery(cursor), ...filter },
        signal,
      }) as Promise<CursorPage<AuditEntry>>, // with `limit` the response has a cursor
  )
  useRefresh(list.reload, { isPaused: () => list.items.length > pageSize })
  return (
    <>
      <AuditFilters filter={filter} />
      <RowList
        label="Audit log"
        list={list}
        empty={
          <Empty icon={ScrollText} title="Nothing was recorded">
            <p>What admins, people and services do would be here, as far as the filter lets it.</p>
          </Empty>
        }
        render={(entry) => <EntryRow entry={entry} />}
      />
    </>
  )
}

function EntryRow({ entry }: { entry: AuditEntry }) {
  const { at, action, actor, target, ip, details } = entry
  const isOnOneself = target.id !== null && target.id === actor.id
  return (
    <>
      <div class="main">
        <h2>
          <a class="quiet" href={withQuery({ action })}>
            {inWords(action)}
          </a>
        </h2>
        <p class="small row wrap parties">
          <span class="soft">by</span>
          <Party party={actor} filter="actor_id" />
          {target.type && !isOnOneself && (
            <>
              <span class="soft">on</span>
              <Party party={target} filter="target_id" />
            </>
          )}
        </p>
        {details && <Details details={details} />}
      </div>
      <p class="soft small when">
        <Time at={at} />
        {ip && <span class="mono">{ip}</span>}
      </p>
    </>
  )
}

type PartyProps = { party: AuditEntry['actor']; filter: 'actor_id' | 'target_id' }

/** A person, service key or ticket, as a link where it has a page. */
function Party({ party: { type, id }, filter }: PartyProps) {
  if (id === null) return <span>{type === 'user' ? 'somebody unknown' : inWords(type ?? '–')}</span>
  const what = `${type === 'user' ? 'Person' : inWords(type ?? 'something')} …${id.slice(-6)}`
  const address = type === null ? undefined : pages[type]?.(id)
  const name = id === user.value?.id ? 'You' : what
  return (
    <span class="row party" title={id}>
      {address ? <a href={address}>{name}</a> : <span>{name}</span>}
      <a
        class="narrow"
        href={withQuery({ [filter]: id })}
        aria-label={`Only ${filter === 'actor_id' ? 'by' : 'to'} ${name}`}
      >
        <ListFilter />
      </a>
    </span>
  )
}

const pages: Record<string, (id: string) => string> = {
  user: (id) => `/console/people/${id}`,
  ticket: (id) => `/console/desk/${id}`,
  report: (id) => `/console/reports/${id}`,
  webhook: (id) => `/console/system/webhooks/${id}`,
  service_key: () => '/console/system/keys',
  canned_reply: () => '/console/system/replies',
}

function Details({ details }: { details: Record<string, string> }) {
  return (
    <dl class="details small">
      {Object.entries(details).map(([name, value]) => (
        <div key={name}>
          <dt class="soft">{inWords(name)}</dt>
          <dd class="prose">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
