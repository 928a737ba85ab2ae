import type { ManagedUser } from '../../../../client/src/contract.ts'

export type Role = ManagedUser['role']

export const roleTitles: Record<Role, string> = {
  guest: 'Guest',
  user: 'User',
  verified_user: 'Verified user',
  host: 'Host',
  admin: 'Admin',
}

export const roleMeanings: Record<Role, string> = {
  guest: 'Visits, such as somebody who waits for a call.',
  user: 'Uses the platform; the address is not verified yet.',
  verified_user: 'Uses the platform; the address is verified.',
  host: 'Has followers and writes to all of them.',
  admin: 'Sees and does everything in this console. They have to log in again.',
}

/** Parses the value of a role select. */
export const roleOf = (text: string | null): Role | undefined =>
  (Object.keys(roleTitles) as Role[]).find((role) => role === text)
