import { signal } from '@preact/signals'
import { request } from '../session.ts'

type Admin = { id: string; display_name: string }

/** Whom a ticket can be assigned to; empty until the service has said. */
export const admins = signal<Admin[]>([])

export async function loadAdmins(): Promise<void> {
  try {
    const query = { role: 'admin', disabled: false, per_page: 100 } as const
    const { data } = await request('GET /v1/admin/users', { query })
    admins.value = data.map(({ id, display_name }) => ({ id, display_name }))
  } catch {
    // A ticket still names its assignee; the next time the desk is opened asks again.
  }
}
