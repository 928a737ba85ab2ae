import { version } from '../../package.json' with { type: 'json' }
import type { Core } from '../core.ts'
import { isoTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { textProblem } from '../lib/text.ts'
import { eventTypes } from '../lib/vocabulary.ts'
import { isSuccess } from '../modules/webhooks/deliveries.ts'
import { webhookDescriptionRule } from '../modules/webhooks/model.ts'
import { resolveHost } from '../modules/webhooks/post.ts'
import { createSender } from '../modules/webhooks/sender.ts'
import { createWebhookService, type WebhookService } from '../modules/webhooks/service.ts'
import { createWebhookStore } from '../modules/webhooks/store.ts'
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

/** `hostline webhook …`: the endpoints that are told what happens. */
export async function webhook([action, ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'create') return create(args, terminal)
  if (action === 'list') return list(args, terminal)
  if (action === 'test' || action === 'delete') return act(action, args, terminal)
  throw wrongUsage('webhook create, list, test or delete')
}

const serviceOf = (core: Core) =>
  createWebhookService(core, {
    store: createWebhookStore(core.orm),
    send: createSender(core, { resolve: resolveHost, version }),
    onChanged: () => {},
  })

function create(args: string[], terminal: Terminal) {
  const { url, ...values } = readOptions(args, {
    url: { type: 'string' },
    events: { type: 'string', multiple: true },
    description: { type: 'string' },
  })
  const words = values.events?.flatMap((list) => list.split(',')) ?? []
  const events = words.map((word) => readWord('event', eventTypes, word))
  if (url === undefined || events.length === 0) {
    throw wrongUsage(`webhook create needs --url and --events: ${eventTypes.join(', ')}`)
  }
  const description = values.description?.trim() ?? ''
  if (textProblem(description, webhookDescriptionRule)) {
    throw wrongUsage('--description takes up to 200 characters')
  }
  const wanted = { url, events, description }
  return withCore(terminal, async (core) => {
    const made = await serviceOf(core)
      .create(wanted, commandLine)
      .catch(
        explained({
          validation_error:
            'the url must be an https address in the public internet, without a fragment (WEBHOOK_PRIVATE=true allows others)',
          too_many_webhooks: 'there are as many webhooks as there may be',
        }),
      )
    terminal.out([made.id, made.url, made.events.join(',')].join('\t'))
    terminal.out(`secret: ${made.secret}`)
  })
}

function list(args: string[], terminal: Terminal) {
  const options = readListOptions(args)
  const time = (at: number | null) => (at === null ? null : isoTime(at))
  return withCore(terminal, (core) => {
    const rows = serviceOf(core)
      .listAll()
      .map(({ id, url, events, description, ...row }) => ({
        id,
        url,
        events: events.join(','),
        description,
        created_at: isoTime(row.createdAt),
        failing_since: time(row.failingSince),
        disabled_at: time(row.disabledAt),
      }))
    const names = [
      'id',
      'url',
      'events',
      'description',
      'created_at',
      'failing_since',
      'disabled_at',
    ] as const
    printList(terminal, names, rows, options)
  })
}

function act(action: 'test' | 'delete', [id, ...rest]: string[], terminal: Terminal) {
  if (id === undefined) throw wrongUsage(`webhook ${action} needs the id of a webhook`)
  refuseArguments(rest)
  const work = action === 'test' ? test : remove
  return withCore(terminal, async (core) => {
    const said = await work(serviceOf(core), id).catch(
      explained({ not_found: `there is no webhook ${id}` }),
    )
    terminal.out(said)
  })
}

async function remove(webhooks: WebhookService, id: string) {
  await webhooks.delete(id, commandLine)
  return `${id} is removed`
}

async function test(webhooks: WebhookService, id: string) {
  const outcome = await webhooks.test(id, commandLine)
  const answer = outcome.status === null ? outcome.text : `it answered ${outcome.status}`
  if (!isSuccess(outcome)) throw new StartError(`${id} was not reached: ${answer}`)
  return `${id} was reached: ${answer}`
}
