import { useRef } from 'preact/hooks'
import { navigate, query, withQuery } from '../../ui/router.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { roleTitles } from './roles.ts'
import { SearchField } from './search-field.tsx'

const filter = (name: string, value: string) =>
  navigate(withQuery({ [name]: value || undefined }), 'replace')

/** Search by name or address, role and state, all kept in the URL. */
export function PeopleFilters() {
  const frame = useRef<HTMLDivElement>(null)
  useShortcut('/', 'Search people', () => frame.current?.querySelector('input')?.focus())
  return (
    <search class="people-filters" ref={frame}>
      <SearchField
        label="Search people"
        placeholder="Name, address or id"
        value={query.value.get('q') ?? ''}
        onSearch={(text) => filter('q', text)}
      />
      <div class="people-selects">
        <FilterSelect name="role" label="Role" any="Any role" options={roleTitles} />
        <FilterSelect
          name="disabled"
          label="State"
          any="Any state"
          options={{ false: 'Enabled', true: 'Disabled' }}
        />
        <FilterSelect
          name="email_verified"
          label="Address"
          any="Any address"
          options={{ true: 'Verified', false: 'Not verified' }}
        />
      </div>
    </search>
  )
}

type FilterSelectProps = {
  name: string
  label: string
  any: string
  options: Record<string, string>
}

function FilterSelect({ name, label, any, options }: FilterSelectProps) {
  return (
    <select
      aria-label={label}
      value={query.value.get(name) ?? ''}
      onChange={(event) => filter(name, event.currentTarget.value)}
    >
      <option value="">{any}</option>
      {Object.entries(options).map(([value, title]) => (
        <option key={value} value={value}>
          {title}
        </option>
      ))}
    </select>
  )
}
