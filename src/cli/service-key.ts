import type { Static } from '@sinclair/typebox'
import { day, isoTime, parseTime } from '../lib/clock.ts'
import { grantableScopes } from '../lib/vocabulary.ts'
import type { CreatedServiceKey, ServiceKey } from '../modules/platform/model.ts'
import { listAll, withService } from './call.ts'
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

export async function serviceKey([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'create') return create(args, terminal)
  if (action === 'list') return list(args, terminal)
  if (action === 'revoke') return revoke(args, terminal)
  throw wrongUsage('service-key create, list or revoke')
}

function create(args: string[], terminal: Terminal) {
  const { name, scope, expires } = readOptions(args, {
    name: { type: 'string' },
    scope: { type: 'string', multiple: true },
    expires: { type: 'string' },
  })
  if (name === undefined) throw wrongUsage('service-key create needs --name')
  const words = scope?.flatMap((list) => list.split(',')) ?? []
  if (words.length === 0) {
    throw wrongUsage(`service-key create needs --scope: ${grantableScopes.join(', ')}`)
  }
  const scopes = words.map((word) => readWord('scope', grantableScopes, word))
  const wanted = { name, scopes, ...(expires !== undefined && { expires_at: readExpiry(expires) }) }
  return withService(terminal, async (call) => {
    type Created = Static<typeof CreatedServiceKey>
    const made = await call<Created>('POST', '/v1/admin/service-keys', wanted)
    terminal.out([made.id, made.name, made.scopes.join(',')].join('\t'))
    terminal.out(`key: ${made.key}`)
  })
}

/** A number of days from now, or a time. */
function readExpiry(text: string): string {
  const [, days] = /^(\d{1,4})d$/.exec(text) ?? []
  const time = days === undefined ? parseTime(text) : Date.now() + Number(days) * day
  if (time === undefined) throw wrongUsage('--expires takes days such as 90d, or an ISO 8601 time')
  return isoTime(time)
}

function list(args: string[], terminal: Terminal) {
  const options = readListOptions(args)
  return withService(terminal, async (call) => {
    const found = await Array.fromAsync(
      listAll<Static<typeof ServiceKey>>(call, '/v1/admin/service-keys'),
    )
    const rows = found.map(({ scopes, ...row }) => ({ ...row, scopes: scopes.join(',') }))
    const names = [
      'id',
      'name',
      'scopes',
      'created_at',
      'expires_at',
      'last_used_at',
      'revoked_at',
    ] as const
    printList(terminal, names, rows, options)
  })
}

function revoke([id, ...rest]: string[], terminal: Terminal) {
  if (id === undefined) throw wrongUsage('service-key revoke needs the id of a key')
  refuseArguments(rest)
  return withService(terminal, async (call) => {
    await call('DELETE', `/v1/admin/service-keys/${id}`).catch(
      explained({ not_found: `there is no service key ${id}` }),
    )
    terminal.out(`${id} is revoked`)
  })
}
