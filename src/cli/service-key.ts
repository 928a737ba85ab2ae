import type { Static } from '@sinclair/typebox'
import { day, isoTime, parseTime } from '../lib/clock.ts'
import { grantableScopes } from '../lib/vocabulary.ts'
import type { CreatedServiceKey, ServiceKey } from '../modules/platform/model.ts'
import { listing, withService } from './call.ts'
import {
  explained,
  readOperand,
  readOptions,
  readWord,
  type Terminal,
  withActions,
  wrongUsage,
} from './terminal.ts'

const path = '/v1/admin/service-keys'
const shown = ['id', 'name', 'scopes', 'created_at', 'expires_at', 'last_used_at'] as const

export const serviceKey = withActions('service-key', {
  create,
  list: listing<Static<typeof ServiceKey>>(path, ...shown, 'revoked_at'),
  revoke,
})

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
    const made = await call<Created>('POST', path, wanted)
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

function revoke(args: string[], terminal: Terminal) {
  const { operand: id } = readOperand(args, 'service-key revoke needs the id of a key', {})
  return withService(terminal, async (call) => {
    await call('DELETE', `${path}/${id}`).catch(
      explained({ not_found: `there is no service key ${id}` }),
    )
    terminal.out(`${id} is revoked`)
  })
}
