import type { Retention } from '../modules/operator/model.ts'
import { withService } from './call.ts'
import { refuseArguments, type Terminal, wrongUsage } from './terminal.ts'

export async function retention([option, ...rest]: string[], terminal: Terminal): Promise<void> {
  if (option !== '--dry-run') throw wrongUsage('retention --dry-run')
  refuseArguments(rest)
  await withService(terminal, async (call) => {
    const plan = await call<Retention>('GET', '/v1/admin/retention')
    const { messages, tickets, last_run_at, next_run_at } = plan
    terminal.out(`messages: ${fateOf(messages, `, reports keep ${messages.held}`)}`)
    terminal.out(`tickets: ${fateOf(tickets)}`)
    terminal.out(`last run: ${last_run_at ?? 'never'}`)
    terminal.out(`next run: ${next_run_at ?? 'none, because both settings are 0'}`)
  })
}

function fateOf({ days, due }: Retention['tickets'], kept = ''): string {
  return days === 0 ? 'kept for ever' : `${due} of more than ${days} days would be deleted${kept}`
}
