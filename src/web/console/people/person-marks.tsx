import type { ManagedUser } from '../../../../client/src/contract.ts'
import { roleTitles } from './roles.ts'

/** Badges for an unusual role or state. */
export function PersonMarks({ person }: { person: ManagedUser }) {
  const { role, disabled, email_verified } = person
  return (
    <span class="row">
      {disabled && <span class="badge danger">Disabled</span>}
      {!disabled && !email_verified && <span class="badge warning">Unverified</span>}
      {(role === 'admin' || role === 'host' || role === 'guest') && (
        <span class={`badge ${role === 'admin' ? 'accent' : ''}`}>{roleTitles[role]}</span>
      )}
    </span>
  )
}
