import { type Role, roleTitles } from '../people/roles.ts'
import type { Addressee } from './draft.ts'

type Audience = { audience: 'all' | 'role' | 'users'; role: Role | null; people?: Addressee[] }

/** The audience as part of a sentence. */
export function audienceText({ audience, role, people }: Audience): string {
  if (audience === 'all') return 'everybody'
  if (audience === 'role') return `all with the role ${role === null ? '' : roleTitles[role]}`
  return people === undefined ? 'single people' : namesText(people)
}

const namesShown = 3

function namesText(people: Addressee[]): string {
  const names = people.slice(0, namesShown).map(({ name }) => name)
  const left = people.length - names.length
  const others = left === 0 ? [] : [`${left} ${left === 1 ? 'other' : 'others'}`]
  return new Intl.ListFormat('en').format([...names, ...others])
}
