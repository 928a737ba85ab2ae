import type { Static } from '@sinclair/typebox'
import { StartError } from '../lib/errors.ts'
import type { Rotation, SigningKey } from '../modules/accounts/model.ts'
import { withService } from './call.ts'
import { printList, readJsonOption, readOptions, type Terminal, withActions } from './terminal.ts'

export const keys = withActions('keys', { list, rotate })

function list(args: string[], terminal: Terminal) {
  const isJson = readJsonOption(args)
  return withService(terminal, async (call) => {
    const rows = await call<Static<typeof SigningKey>[]>('GET', '/v1/operator/keys')
    printList(terminal, ['kid', 'state', 'created_at'], rows, isJson)
  })
}

function rotate(args: string[], terminal: Terminal) {
  const { now = false } = readOptions(args, { now: { type: 'boolean' } })
  return withService(terminal, async (call) => {
    const path = '/v1/operator/keys/rotate'
    const { ready_at: readyAt } = await call<Static<typeof Rotation>>('POST', path, { now })
    if (readyAt === null) {
      terminal.out(`rotated: ${now ? 'the old keys are withdrawn' : 'nobody is logged out'}`)
      return
    }
    const reason = 'the next key must first have been published for an hour'
    throw new StartError(`${reason}: rotate at ${readyAt} or later, or with --now`)
  })
}
