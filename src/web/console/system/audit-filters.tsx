import { Field } from '../../ui/field.tsx'
import { navigate, query, withQuery } from '../../ui/router.ts'
import { inWords } from '../names.ts'
import { auditActions } from './audit-actions.ts'

const names = ['action', 'actor_id', 'target_id', 'from', 'to'] as const
export type AuditFilter = Partial<Record<(typeof names)[number], string>>

/** The filter in the URL; times in ISO 8601. */
export function auditFilter(): AuditFilter {
  const given = names.flatMap((name) => {
    const value = query.value.get(name)
    return value ? [[name, value]] : []
  })
  return Object.fromEntries(given)
}

/** Filters, kept in the URL so that a link can be shared. */
export function AuditFilters({ filter }: { filter: AuditFilter }) {
  const isNarrowed = Object.keys(filter).length > 0
  return (
    <search class="filters">
      <ActionFilter action={filter.action} />
      <TextFilter name="actor_id" label="Actor ID" value={filter.actor_id} />
      <TextFilter name="target_id" label="Target ID" value={filter.target_id} />
      <TimeFilter name="from" label="From" value={filter.from} />
      <TimeFilter name="to" label="Before" value={filter.to} />
      {isNarrowed && (
        <a class="button" href="/console/system/audit">
          Show all
        </a>
      )}
    </search>
  )
}

const set = (name: string, value: string | undefined) =>
  navigate(withQuery({ [name]: value }), 'replace')

function ActionFilter({ action }: { action: string | undefined }) {
  // The URL may contain an action that this page does not know.
  const actions: string[] = [...new Set([...auditActions, ...(action ? [action] : [])])]
  return (
    <Field label="Action">
      {(attributes) => (
        <select
          value={action ?? ''}
          onChange={(event) => set('action', event.currentTarget.value)}
          {...attributes}
        >
          <option value="">All</option>
          {actions.map((name) => (
            <option key={name} value={name}>
              {inWords(name)}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

type FilterProps = { name: string; label: string; value: string | undefined }

function TextFilter({ name, label, value = '' }: FilterProps) {
  return (
    <Field label={label}>
      {(attributes) => (
        <input
          value={value}
          spellcheck={false}
          onChange={(event) => set(name, event.currentTarget.value.trim())}
          {...attributes}
        />
      )}
    </Field>
  )
}

function TimeFilter({ name, label, value }: FilterProps) {
  return (
    <Field label={label}>
      {(attributes) => (
        <input
          type="datetime-local"
          value={localTime(value)}
          onChange={({ currentTarget: { value } }) =>
            set(name, value && new Date(value).toISOString())
          }
          {...attributes}
        />
      )}
    </Field>
  )
}

/** In local time without an offset, the format of `datetime-local`. */
function localTime(at: string | undefined): string {
  const time = at === undefined ? Number.NaN : Date.parse(at)
  if (Number.isNaN(time)) return ''
  const offset = new Date(time).getTimezoneOffset() * 60_000
  return new Date(time - offset).toISOString().slice(0, 16)
}
