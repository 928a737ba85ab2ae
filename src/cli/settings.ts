import { Kind } from '@sinclair/typebox'
import type { Retention } from '../modules/operator/model.ts'
import { definitions, type SettingName, type SettingValues, settingNames } from '../settings.ts'
import { withService } from './call.ts'
import {
  printList,
  readJsonOption,
  readWord,
  refuseArguments,
  type Terminal,
  withActions,
  wrongUsage,
} from './terminal.ts'

const path = '/v1/admin/settings'

export const settings = withActions('settings', { list, set })

function list(args: string[], terminal: Terminal) {
  const isJson = readJsonOption(args)
  return withService(terminal, async (call) => {
    const values = await call<SettingValues>('GET', path)
    if (isJson) return terminal.out(JSON.stringify(values, null, 2))
    const rows = settingNames.map((name) => ({ name, value: shown(values[name]) }))
    printList(terminal, ['name', 'value'], rows)
  })
}

async function set([key, text, ...rest]: string[], terminal: Terminal) {
  if (key === undefined || text === undefined) throw wrongUsage('settings set KEY VALUE')
  refuseArguments(rest)
  const name = readWord('key', settingNames, key)
  const value = parse(name, text)
  await withService(terminal, async (call) => {
    const values = await call<SettingValues>('PATCH', path, { [name]: value })
    terminal.out(`${name} is ${shown(values[name]) ?? 'not set'}`)
  })
}

/** An empty value is the default. Numbers and objects are JSON, everything else is taken as it is. */
function parse(name: SettingName, text: string): unknown {
  if (text === '') return null
  const { [Kind]: kind, examples } = definitions[name].schema
  const isText = !['Integer', 'Object'].includes(kind)
  try {
    return isText ? text : JSON.parse(text)
  } catch {
    throw wrongUsage(`${name} must be JSON such as ${JSON.stringify(examples[0])}`)
  }
}

const shown = (value: unknown) =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as string | null)

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
