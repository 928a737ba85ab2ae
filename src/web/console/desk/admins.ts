import { signal } from '@preact/signals'
import { request } from '../session.ts'

type Admin = { id: string; display_name: string }

/** The possible assignees of a ticket; empty until they are loaded. */
export const admins = signal<Admin[]>([])

export async function loadAdmins(): Promise<void> {
  try {
    const found: Admin[] = []
    let cursor: string | null | undefined
    do {
      const query = {
        role: 'admin',
        disabled: false,
        limit: 100,
        ...(cursor && { cursor }),
      } as const
      const part = await request('GET /v1/admin/users', { query })
      found.push(...part.data.map(({ id, display_name }) => ({ id, display_name })))
      cursor = 'cursor' in part.pagination ? part.pagination.cursor : null
    } while (cursor)
    admins.value = found
  } catch {
    // Tickets still show their assignee; the next visit of the desk tries again.
  }
}
