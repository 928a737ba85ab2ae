import { request } from '../session.ts'
import type { Draft } from './draft.ts'

export async function countRecipients({ audience, role, people }: Draft, signal?: AbortSignal) {
  if (audience === 'users') return people.length
  const query = { disabled: false, per_page: 1, ...(audience === 'role' && { role }) }
  const { pagination } = await request('GET /v1/admin/users', {
    query,
    ...(signal && { signal }),
  })
  return 'total' in pagination ? pagination.total : 0
}
