import { isoTime } from '../lib/clock.ts'
import { AppError, StartError } from '../lib/errors.ts'
import { textProblem } from '../lib/text.ts'
import { type ServiceScope, serviceScopes } from '../lib/vocabulary.ts'
import { serviceKeyNameRule } from '../modules/platform/model.ts'
import { commandLine, withDirectory } from './directory.ts'
import type { Terminal } from './terminal.ts'
import { readOptions, refuseArguments, wrongUsage } from './usage.ts'

/** `hostline service-key …`: what other parts of the platform call us with. */
export async function serviceKey([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'create') return create(args, terminal)
  if (action === 'list') return list(args, terminal)
  if (action === 'revoke') return revoke(args, terminal)
  throw wrongUsage('service-key create, list or revoke')
}

async function create(args: string[], terminal: Terminal) {
  const { values, positionals } = readOptions(args, {
    name: { type: 'string' },
    scope: { type: 'string', multiple: true },
  })
  refuseArguments(positionals)
  const name = values.name?.trim() ?? ''
  if (textProblem(name, serviceKeyNameRule)) {
    throw wrongUsage('service-key create needs --name with 1 to 80 characters')
  }
  const scopes = values.scope?.flatMap((list) => list.split(',')).map(parseScope)
  await withDirectory(terminal, async ({ serviceKeys }) => {
    const { row, key } = await serviceKeys.create({ name, scopes }, commandLine)
    terminal.out([row.id, row.name, row.scopes.join(',')].join('\t'))
    terminal.out(`key: ${key}`)
  })
}

async function list(args: string[], terminal: Terminal) {
  refuseArguments(args)
  await withDirectory(terminal, async ({ serviceKeys }) => {
    for (const { id, name, scopes, createdAt, lastUsedAt, revokedAt } of serviceKeys.listAll()) {
      const used = lastUsedAt === null ? 'never used' : `used ${isoTime(lastUsedAt)}`
      const state = revokedAt === null ? used : `revoked ${isoTime(revokedAt)}`
      terminal.out([id, name, scopes.join(','), isoTime(createdAt), state].join('\t'))
    }
  })
}

async function revoke([id = '', ...rest]: string[], terminal: Terminal) {
  refuseArguments(rest)
  await withDirectory(terminal, ({ serviceKeys }) =>
    serviceKeys.revoke(id, commandLine).catch((error: unknown) => {
      const isUnknown = error instanceof AppError && error.kind === 'not_found'
      throw isUnknown ? new StartError(`there is no service key ${id}`) : error
    }),
  )
}

function parseScope(text: string): ServiceScope {
  const scope = serviceScopes.find((known) => known === text)
  if (!scope) throw wrongUsage(`the scope must be one of ${serviceScopes.join(', ')}`)
  return scope
}
