import { count } from '../../ui/format.ts'
import { type Role, roleTitles } from '../people/roles.ts'

type Audience = { audience: 'all' | 'role' | 'users'; role: Role | null; people?: unknown[] }

/** Whom it is for, within a sentence. */
export function audienceText({ audience, role, people }: Audience): string {
  if (audience === 'all') return 'everybody'
  if (audience === 'role') return `all with the role ${role === null ? '' : roleTitles[role]}`
  return people === undefined ? 'single people' : `${count(people.length)} chosen by name`
}
