import { effect, signal } from '@preact/signals'
import type { Answer } from '../../../client/src/client.ts'
import { client, request, user } from './session.ts'
import { throttle } from './throttle.ts'

const pauseMilliseconds = 3_000

/** Tickets by view, and open reports; undefined until they are loaded. */
export const deskCounts = signal<Answer<'GET /v1/admin/support/counts'> | undefined>(undefined)
export const openReports = signal<number | undefined>(undefined)

const tickets = throttle(async () => {
  try {
    deskCounts.value = await request('GET /v1/admin/support/counts')
  } catch {
    // Keeps the old count: the next frame or reconnect counts again.
  }
}, pauseMilliseconds)

const reports = throttle(async () => {
  try {
    const query = { status: 'open', per_page: 1 } as const
    const { pagination } = await request('GET /v1/admin/reports', { query })
    if ('total' in pagination) openReports.value = pagination.total
  } catch {
    // Keeps the old count.
  }
}, pauseMilliseconds)

/** No frame announces a resolved report, so the page asks for the count. */
export const recountReports = reports.schedule

effect(() => {
  if (user.value) return recount()
  tickets.cancel()
  reports.cancel()
  deskCounts.value = undefined
  openReports.value = undefined
})
client.on('status', ({ status }) => status === 'open' && recount())
client.on('resync', recount)
client.on('ticket_created', tickets.schedule)
client.on('ticket_updated', tickets.schedule)
client.on('report_created', reports.schedule)

function recount() {
  tickets.schedule()
  reports.schedule()
}
