import type { Static } from '@sinclair/typebox'
import { StartError } from '../lib/errors.ts'
import { banKinds } from '../lib/vocabulary.ts'
import type { Ban } from '../modules/accounts/bans/bans.ts'
import { type Call, listAll, listing, withService } from './call.ts'
import { readOperands, readWord, refuseArguments, type Terminal, wrongUsage } from './terminal.ts'

type BanItem = Static<typeof Ban>

const path = '/v1/admin/bans'
const usage = `ban add KIND VALUE, remove KIND VALUE or list; the kinds are ${banKinds.join(', ')}`

const list = listing<BanItem>(path, 'id', 'kind', 'value', 'reason', 'created_at', 'until')

export async function ban([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'list') return list(args, terminal)
  if (action !== 'add' && action !== 'remove') throw wrongUsage(usage)
  const options = { reason: { type: 'string' }, until: { type: 'string' } } as const
  const { operands, values } = readOperands(args, action === 'add' ? options : {})
  const [word, value = '', ...rest] = operands
  const kind = readWord('kind', banKinds, word)
  refuseArguments(rest)
  if (value === '') throw wrongUsage(usage)
  return withService(terminal, async (call) => {
    if (action === 'add') await call('POST', path, { kind, value, ...values })
    else await remove(call, kind, value)
    terminal.out(`${kind} ${value} is ${action === 'add' ? '' : 'no longer '}banned`)
  })
}

async function remove(call: Call, kind: string, value: string) {
  const query = `${path}?kind=${kind}&value=${encodeURIComponent(value)}`
  const [found] = await listAll<BanItem>(call, query)
  if (!found) throw new StartError(`${kind} ${value} is not banned`)
  await call('DELETE', `${path}/${found.id}`)
}
