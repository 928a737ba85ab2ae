import { ListFilter, ScrollText } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AuditEntry } from '../../../../client/src/contract.ts'
import { useIsShown } from '../../kit/button.tsx'
import { TextField } from '../../kit/field.tsx'
import { localTime } from '../../kit/format.ts'
import { RowList } from '../../kit/list.tsx'
import { query, setQuery, withQuery } from '../../kit/router.ts'
import { Select } from '../../kit/select.tsx'
import { Empty } from '../../kit/states.tsx'
import { Filled, fill, named, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { toastError } from '../../kit/toast.tsx'
import { useList } from '../data.ts'
import { request, user } from '../session.ts'

const words = texts.console.system.audit

export function AuditLog() {
  const filter = auditFilter()
  const list = useList('GET /v1/admin/audit-log', { query: filter })
  const parties = list.items.flatMap(({ actor, target }) => [actor, target])
  const nameOf = (id = '') => parties.find((party) => party.id === id)?.name ?? id
  return (
    <>
      <Filters filter={filter} nameOf={nameOf} />
      <RowList
        label={texts.console.system.tabs.audit}
        list={list}
        empty={<Empty icon={ScrollText} {...words.none} />}
        render={(entry) => <EntryRow entry={entry} />}
      />
    </>
  )
}

function EntryRow({ entry }: { entry: AuditEntry }) {
  const { at, action, actor, target, ip, details } = entry
  const hasTarget = target.type !== null && !(target.id !== null && target.id === actor.id)
  return (
    <>
      <div class="main">
        <div class="parties">
          <h2>
            <a class="quiet" href={withQuery({ action })}>
              {named(words.actions, action)}
            </a>
          </h2>
          <p class="small">
            <Filled
              text={hasTarget ? words.byOn : words.by}
              values={{
                actor: <Party party={actor} filter="actor_id" />,
                target: <Party party={target} filter="target_id" />,
              }}
            />
          </p>
        </div>
        {details && (
          <dl class="details small">
            {Object.entries(details).map(([name, value]) => (
              <div key={name}>
                <dt class="soft">{named(texts.fields, name)}</dt>
                <dd class="prose">{value}</dd>
              </div>
            ))}
          </dl>
        )}
      </div>
      <p class="soft small end">
        <Time at={at} />
        {ip && <span class="mono">{ip}</span>}
      </p>
    </>
  )
}

type PartyProps = { party: AuditEntry['actor']; filter: 'actor_id' | 'target_id' }

/** A person, service key or ticket, as a link where it has a page. */
function Party({ party: { type, id, name: known }, filter }: PartyProps) {
  const kind = named(words.types, type ?? '–')
  if (id === null) return <span>{type === 'user' ? words.unknown : kind}</span>
  const address = type === null ? undefined : pages[type]?.(id)
  const name = id === user.value?.id ? words.you : (known ?? `${kind} …${id.slice(-6)}`)
  return (
    <span class="party" title={id}>
      {address ? <a href={address}>{name}</a> : <span>{name}</span>}
      <a
        class="narrow"
        href={withQuery({ [filter]: id })}
        aria-label={fill(filter === 'actor_id' ? words.onlyBy : words.onlyTo, { name })}
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
  setting: (id) => `/console/system/${id === 'texts' ? 'mails' : 'settings'}`,
  ban: () => '/console/system/bans',
}

const names = ['action', 'actor_id', 'target_id', 'from', 'to'] as const
type AuditFilter = Partial<Record<(typeof names)[number], string>>

/** The filter in the URL; times in ISO 8601. */
function auditFilter(): AuditFilter {
  const given = names.flatMap((name) => {
    const value = query.value.get(name)
    return value ? [[name, value]] : []
  })
  return Object.fromEntries(given)
}

/** Filters, kept in the URL so that a link can be shared. */
function Filters({ filter, nameOf }: { filter: AuditFilter; nameOf: (id?: string) => string }) {
  const { action = '' } = filter
  // The URL may contain an action that this page does not know.
  const actions = [...new Set([...Object.keys(words.actions), ...(action ? [action] : [])])]
  const options = actions.map((name) => [name, named(words.actions, name)] as const)
  return (
    <search class="filters">
      <Select
        isField
        label={words.action}
        value={action}
        options={[['', words.all], ...options.sort(([, a], [, b]) => a.localeCompare(b))]}
        choose={(chosen) => setQuery({ action: chosen })}
      />
      <PartyFilter name="actor_id" label={words.actor} value={nameOf(filter.actor_id)} />
      <PartyFilter name="target_id" label={words.target} value={nameOf(filter.target_id)} />
      <TimeFilter name="from" label={words.from} value={filter.from} />
      <TimeFilter name="to" label={words.before} value={filter.to} />
      {Object.keys(filter).length > 0 && (
        <a class="button" href="/console/system/audit">
          {words.showAll}
        </a>
      )}
    </search>
  )
}

type FilterProps = { name: string; label: string; value: string | undefined }

function PartyFilter({ name, label, value = '' }: FilterProps) {
  const [text, setText] = useState(value)
  const isTyped = useRef(false)
  useEffect(() => {
    if (!isTyped.current) setText(value)
  }, [value])
  const isShown = useIsShown()
  const wanted = useRef('')
  async function narrow(given: string) {
    isTyped.current = false
    wanted.current = given
    const id = await idOf(given)
    if (wanted.current === given && isShown.current) setQuery({ [name]: id })
  }
  return (
    <TextField
      label={label}
      placeholder={texts.console.people.searchHint}
      value={text}
      spellcheck={false}
      onInput={({ currentTarget }) => {
        isTyped.current = true
        setText(currentTarget.value)
      }}
      onChange={({ currentTarget }) => void narrow(currentTarget.value.trim()).catch(toastError)}
    />
  )
}

/** An id stays; for anything else, the person who is found first. */
async function idOf(text: string): Promise<string> {
  if (text === '' || /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text)) return text
  const found = await request('GET /v1/admin/users', { query: { q: text, per_page: 1 } })
  return found.data[0]?.id ?? text
}

function TimeFilter({ name, label, value }: FilterProps) {
  return (
    <TextField
      label={label}
      type="datetime-local"
      value={localTime(Date.parse(value ?? ''))}
      onChange={({ currentTarget: { value } }) =>
        setQuery({ [name]: value && new Date(value).toISOString() })
      }
    />
  )
}
