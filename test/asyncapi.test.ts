import { describe, expect, test } from 'bun:test'
import specification from '@asyncapi/specs/schemas/3.0.0.json' with { type: 'json' }
import Ajv, { type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { testAtLength } from './support/faults.ts'
import { startService, type TestService } from './support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document that is explored freely
type Json = any

async function described(service: TestService): Promise<Json> {
  return (await service.call('GET', '/v1/asyncapi.json')).body
}

/** Finds differences between a frame and the schema of its type. */
function createJudge(document: Json) {
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats(ajv)
  const compiled = new Map<string, ValidateFunction>()
  return (from: 'client' | 'server', frame: Json) => {
    const name = `${from}_${frame.type}`
    const { components } = document
    const { schema } = components.messages[name].payload
    const validate = compiled.get(name) ?? ajv.compile({ ...schema, components })
    compiled.set(name, validate)
    validate(frame)
    return validate.errors ?? null
  }
}

testAtLength('the description is valid to the AsyncAPI 3.0 schema', async () => {
  await using service = await startService()
  const document = await described(service)
  // The specification includes the meta schema of draft-07.
  const ajv = new Ajv({ strict: false, allErrors: true, meta: false, validateSchema: false })
  addFormats(ajv)
  ajv.addFormat('iri-reference', true)
  const isValid = ajv.validate(specification, document)
  expect([isValid, ajv.errors]).toEqual([true, null])
  expect(ajv.validate(specification, { ...document, info: {} })).toBe(false)
  expect(document.servers.main).toEqual({ host: 'localhost:0', protocol: 'ws' })
})

test('it has every frame, and each reference leads somewhere', async () => {
  await using service = await startService()
  const document = await described(service)
  expect(Object.keys(document.components.messages).sort()).toEqual([
    'client_auth',
    'client_message',
    'client_ping',
    'client_read',
    'client_typing',
    'client_viewing',
    'server_ack',
    'server_conversation_read',
    'server_conversation_updated',
    'server_error',
    'server_message_deleted',
    'server_new_message',
    'server_notification',
    'server_notifications_read',
    'server_pong',
    'server_read_receipt',
    'server_ready',
    'server_report_created',
    'server_resync',
    'server_ticket_created',
    'server_ticket_updated',
    'server_ticket_viewed',
    'server_typing',
  ])
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#([^"]+)"/g)]
  expect(references.length).toBeGreaterThan(10)
  for (const [, path = ''] of references) {
    const parts = path.split('/').slice(1)
    expect(parts.reduce((at, part) => at?.[part], document)).toBeDefined()
  }
})

test('each frame has an example that matches its schema', async () => {
  await using service = await startService()
  const document = await described(service)
  const judge = createJudge(document)
  for (const [name, { examples }] of Object.entries<Json>(document.components.messages)) {
    const from = name.startsWith('client') ? 'client' : 'server'
    expect([name, examples.map(({ payload }: Json) => judge(from, payload))]).toEqual([
      name,
      [null],
    ])
  }
})

describe('real frames', () => {
  test('match the AsyncAPI description', async () => {
    await using service = await startService({ listen: true })
    const judge = createJudge(await described(service))
    const { a, b, conversationId } = await service.pair()
    const [ada, phone, bob] = [
      await service.connect(a, '&events=ack'),
      await service.connect(b, '&events=read'),
      await service.connect(b),
    ]
    const about = { conversation_id: conversationId }
    const sent = [
      { type: 'typing', ...about },
      { type: 'message', ...about, body: 'hello', client_id: 'm1' },
      { type: 'auth', token: a.token },
      { type: 'ping' },
    ]
    for (const frame of sent) {
      expect(judge('client', frame)).toBeNull()
      ada.send(frame)
    }
    ada.send({ type: 'message', conversation_id: 'nowhere', body: 'x', client_id: 'm2' })
    const seen = [await bob.next('typing'), await bob.next('new_message')]
    const read = { type: 'read', ...about }
    expect(judge('client', read)).toBeNull()
    bob.send(read)
    seen.push(await phone.next('conversation_read'))
    const own = ['new_message', 'ack', 'pong', 'error', 'read_receipt']
    for (const type of own) seen.push(await ada.next(type))
    const keysOf = (name: string) => seen.flatMap((it) => (it.type === name ? it.client_id : []))
    expect(keysOf('new_message')).toEqual([undefined, 'm1'])
    for (const frame of seen)
      expect([frame.type, judge('server', frame)]).toEqual([frame.type, null])
  })

  test('match it for notifications and tickets, too', async () => {
    await using service = await startService({ listen: true })
    const judge = createJudge(await described(service))
    const [ada, root] = [await service.register('ada'), await service.registerAs('admin', 'root')]
    const { token: key } = await service.issueKey()
    const [owner, desk] = [
      await service.connect(ada, '&events=notification,support'),
      await service.connect(root, '&events=support'),
    ]
    const event = { user_id: ada.id, type: 'broadcast' }
    await service.call('POST', '/v1/service/notifications', { token: key, body: event })
    await service.call('PUT', '/v1/notifications/read-all', { token: ada.token })
    const request = { subject: 'Help', body: 'It is broken.' }
    const ticket = await service.call('POST', '/v1/support/tickets', { ...ada, body: request })
    await service.call('POST', `/v1/support/tickets/${ticket.body.id}/close`, ada)
    const seen = [await owner.next('notification'), await owner.next('notifications_read')]
    seen.push(await owner.next('ticket_updated'), await desk.next('ticket_created'))
    seen.push(await desk.next('ticket_updated'))
    for (const frame of seen)
      expect([frame.type, judge('server', frame)]).toEqual([frame.type, null])
  })

  test('a frame that differs from its description fails the check', async () => {
    await using service = await startService()
    const judge = createJudge(await described(service))
    expect(judge('server', { type: 'typing', conversation_id: 5 })).toHaveLength(2)
    expect(judge('client', { type: 'message', body: 'x' })).toHaveLength(1)
  })
})
