import { isoTime, parseTime } from '../lib/clock.ts'
import { textProblem } from '../lib/text.ts'
import { grantableScopes } from '../lib/vocabulary.ts'
import { serviceKeyNameRule } from '../modules/platform/model.ts'
import { createServiceKeys } from '../modules/platform/service-keys.ts'
import { commandLine, withCore } from './open.ts'
import {
  explained,
  printList,
  readListOptions,
  readOptions,
  readWord,
  refuseArguments,
  type Terminal,
  wrongUsage,
} from './terminal.ts'

const day = 86_400_000

/** `hostline service-key …`: the keys of the platform's other services. */
export async function serviceKey([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'create') return create(args, terminal)
  if (action === 'list') return list(args, terminal)
  if (action === 'revoke') return revoke(args, terminal)
  throw wrongUsage('service-key create, list or revoke')
}

function create(args: string[], terminal: Terminal) {
  const values = readOptions(args, {
    name: { type: 'string' },
    scope: { type: 'string', multiple: true },
    expires: { type: 'string' },
  })
  const name = values.name?.trim() ?? ''
  if (textProblem(name, serviceKeyNameRule)) {
    throw wrongUsage('service-key create needs --name with 1 to 80 characters')
  }
  const words = values.scope?.flatMap((list) => list.split(',')) ?? []
  if (words.length === 0) {
    throw wrongUsage(`service-key create needs --scope: ${grantableScopes.join(', ')}`)
  }
  const scopes = words.map((word) => readWord('scope', grantableScopes, word))
  const expiresAt = values.expires === undefined ? undefined : readExpiry(values.expires)
  return withCore(terminal, async (core) => {
    const made = { name, scopes, expiresAt }
    const { row, key } = await createServiceKeys(core).create(made, commandLine)
    terminal.out([row.id, row.name, row.scopes.join(',')].join('\t'))
    terminal.out(`key: ${key}`)
  })
}

/** Days from now, or a time. */
function readExpiry(text: string): number {
  const [, days] = /^(\d{1,4})d$/.exec(text) ?? []
  const time = days === undefined ? parseTime(text) : Date.now() + Number(days) * day
  if (time === undefined) throw wrongUsage('--expires takes days such as 90d, or an ISO 8601 time')
  return time
}

function list(args: string[], terminal: Terminal) {
  const options = readListOptions(args)
  const time = (at: number | null) => (at === null ? null : isoTime(at))
  return withCore(terminal, (core) => {
    const rows = createServiceKeys(core)
      .listAll()
      .map(({ id, name, scopes, ...row }) => ({
        id,
        name,
        scopes: scopes.join(','),
        created_at: isoTime(row.createdAt),
        expires_at: time(row.expiresAt),
        last_used_at: time(row.lastUsedAt),
        revoked_at: time(row.revokedAt),
      }))
    const names = Object.keys(rows[0] ?? { id: '' }) as (keyof (typeof rows)[number])[]
    printList(terminal, names, rows, options)
  })
}

function revoke([id, ...rest]: string[], terminal: Terminal) {
  if (id === undefined) throw wrongUsage('service-key revoke needs the id of a key')
  refuseArguments(rest)
  return withCore(terminal, async (core) => {
    await createServiceKeys(core)
      .revoke(id, commandLine)
      .catch(explained({ not_found: `there is no service key ${id}` }))
    terminal.out(`${id} is revoked`)
  })
}
