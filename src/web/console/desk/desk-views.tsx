import { count } from '../../ui/format.ts'
import { navigate } from '../../ui/router.ts'
import { deskCounts } from '../counts.ts'
import { defaultView, filter, views } from './views.ts'

/** The views with their counts, in the sidebar. */
export function DeskViews() {
  return (
    <ul class="views" aria-label="Views">
      {views.map(({ name, title, icon: Icon }) => (
        <li key={name}>
          <a
            href={addressOf(name)}
            aria-current={name === filter.value.view.name ? 'true' : undefined}
          >
            <Icon />
            <span class="truncate">{title}</span>
            <span class="number amount">{amountOf(name)}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

/** The views as a select, on phones. */
export function ViewSelect() {
  return (
    <select
      class="view-select"
      aria-label="View"
      value={filter.value.view.name}
      onChange={(event) => navigate(addressOf(event.currentTarget.value))}
    >
      {views.map(({ name, title }) => (
        <option key={name} value={name}>
          {[title, amountOf(name)].filter(Boolean).join(' · ')}
        </option>
      ))}
    </select>
  )
}

/** Empty until it is loaded. */
export function amountOf(name: (typeof views)[number]['name']): string {
  const amount = deskCounts.value?.[name]
  return amount === undefined ? '' : count(amount)
}

const addressOf = (name: string) => `/console/desk${name === defaultView ? '' : `?view=${name}`}`
