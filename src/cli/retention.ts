import type { Retention } from '../modules/operator/model.ts'
import { withService } from './call.ts'
import { refuseArguments, type Terminal, wrongUsage } from './terminal.ts'

export async function retention([option, ...rest]: string[], terminal: Terminal): Promise<void> {
  if (option !== '--dry-run') throw wrongUsage('retention --dry-run')
  refuseArguments(rest)
  await withService(terminal, async (call) => {
    const { last_run_at, next_run_at, ...kinds } = await call<Retention>(
      'GET',
      '/v1/admin/retention',
    )
    for (const [name, { days, due, held }] of Object.entries(kinds)) {
      const plan = `${due} of more than ${days} days would be deleted, reports keep ${held}`
      terminal.out(`${name}: ${days === 0 ? 'kept for ever' : plan}`)
    }
    terminal.out(`last run: ${last_run_at ?? 'never'}`)
    terminal.out(`next run: ${next_run_at ?? 'none, because both settings are 0'}`)
  })
}
