import type { Static } from '@sinclair/typebox'
import { StartError } from '../lib/errors.ts'
import { eventTypes } from '../lib/vocabulary.ts'
import type { Webhook, WebhookTest, WebhookWithSecret } from '../modules/webhooks/model.ts'
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

const path = '/v1/admin/webhooks'
const shown = ['id', 'url', 'events', 'description', 'created_at', 'failing_since'] as const

export const webhook = withActions('webhook', {
  create,
  list: listing<Static<typeof Webhook>>(path, ...shown, 'disabled_at'),
  test,
  delete: remove,
})

const missing = (id: string) => explained({ not_found: `there is no webhook ${id}` })

function create(args: string[], terminal: Terminal) {
  const { url, description, ...values } = readOptions(args, {
    url: { type: 'string' },
    events: { type: 'string', multiple: true },
    description: { type: 'string' },
  })
  const words = values.events?.flatMap((list) => list.split(',')) ?? []
  const events = words.map((word) => readWord('event', eventTypes, word))
  if (url === undefined || events.length === 0) {
    throw wrongUsage(`webhook create needs --url and --events: ${eventTypes.join(', ')}`)
  }
  const wanted = { url, events, ...(description !== undefined && { description }) }
  return withService(terminal, async (call) => {
    const made = await call<Static<typeof WebhookWithSecret>>('POST', path, wanted)
    terminal.out([made.id, made.url, made.events.join(',')].join('\t'))
    terminal.out(`secret: ${made.secret}`)
  })
}

function test(args: string[], terminal: Terminal) {
  const id = readId('test', args)
  return withService(terminal, async (call) => {
    const { status, response_status, response } = await call<Static<typeof WebhookTest>>(
      'POST',
      `${path}/${id}/test`,
    ).catch(missing(id))
    const answer = response_status === null ? response : `it responded with ${response_status}`
    if (status === 'failed') throw new StartError(`${id} was not reached: ${answer}`)
    terminal.out(`${id} was reached: ${answer}`)
  })
}

function remove(args: string[], terminal: Terminal) {
  const id = readId('delete', args)
  return withService(terminal, async (call) => {
    await call('DELETE', `${path}/${id}`).catch(missing(id))
    terminal.out(`${id} is removed`)
  })
}

const readId = (action: string, args: string[]) =>
  readOperand(args, `webhook ${action} needs the id of a webhook`, {}).operand
