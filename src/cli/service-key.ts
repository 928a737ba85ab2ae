import { isoTime } from '../lib/clock.ts'
import { textProblem } from '../lib/text.ts'
import { serviceScopes } from '../lib/vocabulary.ts'
import { serviceKeyNameRule } from '../modules/platform/model.ts'
import { createServiceKeys } from '../modules/platform/service-keys.ts'
import { commandLine, withCore } from './open.ts'
import {
  explained,
  readOptions,
  readWord,
  refuseArguments,
  type Terminal,
  wrongUsage,
} from './terminal.ts'

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
  })
  const name = values.name?.trim() ?? ''
  if (textProblem(name, serviceKeyNameRule)) {
    throw wrongUsage('service-key create needs --name with 1 to 80 characters')
  }
  const words = values.scope?.flatMap((list) => list.split(','))
  const scopes = words?.map((word) => readWord('scope', serviceScopes, word))
  return withCore(terminal, async (core) => {
    const { row, key } = await createServiceKeys(core).create({ name, scopes }, commandLine)
    terminal.out([row.id, row.name, row.scopes.join(',')].join('\t'))
    terminal.out(`key: ${key}`)
  })
}

function list(args: string[], terminal: Terminal) {
  refuseArguments(args)
  return withCore(terminal, (core) => {
    for (const row of createServiceKeys(core).listAll()) {
      const { id, name, scopes, createdAt, lastUsedAt, revokedAt } = row
      const used = lastUsedAt === null ? 'never used' : `used ${isoTime(lastUsedAt)}`
      const state = revokedAt === null ? used : `revoked ${isoTime(revokedAt)}`
      terminal.out([id, name, scopes.join(','), isoTime(createdAt), state].join('\t'))
    }
  })
}

function revoke([id = '', ...rest]: string[], terminal: Terminal) {
  refuseArguments(rest)
  return withCore(terminal, (core) =>
    createServiceKeys(core)
      .revoke(id, commandLine)
      .catch(explained({ not_found: `there is no service key ${id}` })),
  )
}
