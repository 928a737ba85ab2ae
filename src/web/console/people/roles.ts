import type { ManagedUser } from '../../../../client/src/contract.ts'
import { texts } from '../../kit/texts.tsx'

export type Role = ManagedUser['role']

const names = ['guest', 'user', 'verified_user', 'host', 'admin'] as const satisfies Role[]

export const roleTitles: Record<Role, string> = texts.console.people.roles

export const roleOptions = names.map((role) => [role, roleTitles[role]] as const)

/** Parses a role in the URL or of a form. */
export const roleOf = (text: string | null): Role | undefined => names.find((role) => role === text)
