import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import {
  OwnTicketUpdatedFrame,
  TicketCreatedFrame,
  TicketUpdatedFrame,
  TicketViewedFrame,
} from '../src/modules/support/model.ts'
import { day, desk, openDesk } from './support/desk.ts'
import { waitFor } from './support/wait.ts'

/** A desk with sockets of Ada and Root that requested support events. */
async function openSockets() {
  const d = await openDesk({ listen: true })
  const [ada, root] = await Promise.all(
    [d.ada, d.root].map((person) => d.service.connect(person, '&events=support')),
  )
  if (!ada || !root) throw new Error('no sockets')
  return { d, ada, root, [Symbol.asyncDispose]: () => d[Symbol.asyncDispose]() }
}

describe('a socket with support events', () => {
  test('gets new tickets as an admin, in the form of the desk’s list', async () => {
    await using sockets = await openSockets()
    const { d, root } = sockets
    await d.open()
    const frame = await root.next('ticket_created')
    expect(frame).toEqual({ type: 'ticket_created', ticket: (await d.list()).data[0] })
    expect(Value.Check(TicketCreatedFrame, frame)).toBe(true)
  })

  test('gets own new tickets, which another device of the owner has opened', async () => {
    await using sockets = await openSockets()
    const { d, ada } = sockets
    await d.open()
    const { body } = await d.service.call('GET', '/v1/support/tickets', { token: d.ada.token })
    await ada.settled()
    expect(ada.frames).toEqual([{ type: 'ticket_updated', ticket: body.data[0] }])
  })

  test('gets the end of waiting of removed people as an admin, without their names', async () => {
    await using sockets = await openSockets()
    const { d, root } = sockets
    await d.open()
    await d.service.call('DELETE', `/v1/admin/users/${d.ada.id}`, { token: d.root.token })
    const { ticket } = await root.next('ticket_updated')
    expect(ticket).toEqual((await d.list()).data[0])
    expect(ticket.waiting_since).toBeNull()
  })

  test.each([
    ['DELETE', '', 200],
    ['POST', '/purge', 404],
  ])(
    '%s …%s: gets each ticket of the removed person as an admin, then %p',
    async (method, path, status) => {
      await using sockets = await openSockets()
      const { d, root } = sockets
      const ids: string[] = []
      for (let n = 0; n < 27; n++) {
        ids.unshift((await d.open()).id)
        await d.answer(ids[0] ?? '')
      }
      await root.settled()
      root.frames.length = 0
      await d.service.call(method, `/v1/admin/users/${d.ada.id}${path}`, { token: d.root.token })
      await waitFor(() => {
        d.clock.advance(500)
        return root.frames.length >= ids.length
      })
      const told = root.frames.map(({ ticket }) => [ticket.id, ticket.user.email])
      expect(told).toEqual(ids.map((id) => [id, undefined]))
      const [id] = ids
      const { token } = d.root
      expect((await d.service.call('GET', `${desk}/${id}`, { token })).status).toBe(status)
    },
  )

  test('gets changes of a ticket: its owner in the form of their list, admins in that of the desk', async () => {
    await using sockets = await openSockets()
    const { d, ada, root } = sockets
    const { id } = await d.open()
    await ada.next('ticket_updated')
    const acts = [
      () => d.answer(id),
      () => d.write(id, 'Thanks'),
      () => d.update(id, { status: 'resolved', priority: 'low', assignee_id: null }),
      () => d.close(id),
      () => d.write(id, 'Not quite'),
    ]
    for (const act of acts) {
      await act()
      const { body } = await d.service.call('GET', '/v1/support/tickets', { token: d.ada.token })
      const [own, all] = [await ada.next('ticket_updated'), await root.next('ticket_updated')]
      expect(own).toEqual({ type: 'ticket_updated', ticket: body.data[0] })
      expect(all).toEqual({ type: 'ticket_updated', ticket: (await d.list()).data[0] })
      expect([
        Value.Check(OwnTicketUpdatedFrame, own),
        Value.Check(TicketUpdatedFrame, all),
      ]).toEqual([true, true])
    }
  })

  test('gets tickets that the desk opens, as their owner and as an admin', async () => {
    await using sockets = await openSockets()
    const { d, ada, root } = sockets
    const body = { user_id: d.ada.id, subject: 's', body: 'b' }
    await d.service.call('POST', desk, { token: d.root.token, body })
    const ofOwner = await d.service.call('GET', '/v1/support/tickets', { token: d.ada.token })
    expect(await ada.next('ticket_updated')).toEqual({
      type: 'ticket_updated',
      ticket: ofOwner.body.data[0],
    })
    const frame = await root.next('ticket_created')
    expect(frame).toEqual({ type: 'ticket_created', ticket: (await d.list()).data[0] })
    await root.settled()
    expect(root.frames).toEqual([])
  })

  test('gets automatically closed tickets', async () => {
    await using d = await openDesk({ listen: true })
    const { id } = await d.open()
    await d.update(id, { status: 'resolved' })
    d.clock.advance(7 * day - 1)
    const again = await Promise.all([d.ada, d.root].map(({ email }) => d.service.login(email)))
    const sockets = await Promise.all(
      again.map((person) => d.service.connect(person, '&events=support')),
    )
    d.clock.advance(600_000)
    for (const socket of sockets) {
      expect((await socket.next('ticket_updated')).ticket).toMatchObject({ id, status: 'closed' })
    }
  })

  test('gets notes as an admin only, without their text', async () => {
    await using sockets = await openSockets()
    const { d, ada, root } = sockets
    const { id } = await d.open()
    await ada.next('ticket_updated')
    const body = { body: 'secret' }
    await d.service.call('POST', `${desk}/${id}/notes`, { token: d.root.token, body })
    const frame = await root.next('ticket_updated')
    expect(frame).toEqual({ type: 'ticket_updated', ticket: (await d.list()).data[0] })
    await ada.settled()
    expect(ada.frames).toEqual([])
  })
})

test('an admin who has a ticket open is told to the other admins, and to nobody else', async () => {
  await using sockets = await openSockets()
  const { d, ada, root } = sockets
  const [grace, { id }] = [await d.hire('grace'), await d.open()]
  const [desk, tab, phone] = [
    await d.service.connect(grace, '&events=support'),
    await d.service.connect(grace, '&events=support'),
    await d.service.connect(d.root),
  ]
  desk.send({ type: 'viewing', ticket_id: id })
  const frame = await root.next('ticket_viewed')
  expect(frame).toEqual({ type: 'ticket_viewed', ticket_id: id, user_id: grace.id })
  expect(Value.Check(TicketViewedFrame, frame)).toBe(true)
  ada.send({ type: 'viewing', ticket_id: id })
  expect(await ada.next('error')).toMatchObject({ reason: 'role_required' })
  desk.send({ type: 'viewing', ticket_id: grace.id })
  expect(await desk.next('error')).toMatchObject({ error: { code: 'not_found' } })
  for (const other of [desk, tab, phone, ada, root]) {
    await other.settled()
    expect(other.frames.filter(({ type }) => type === 'ticket_viewed')).toEqual([])
  }
})

test('refused, unchanged and repeated requests cause no events', async () => {
  await using sockets = await openSockets()
  const { d, ada, root } = sockets
  const { id } = await d.open({ client_id: 'k' })
  await d.open({ client_id: 'k' })
  await d.update(id, { status: 'open' })
  await d.update(id, { assignee_id: d.ada.id })
  await d.answer(id, { client_id: 'a' })
  await d.answer(id, { client_id: 'a' })
  await d.close(id)
  await d.close(id)
  for (const socket of [ada, root]) await socket.settled()
  expect(ada.frames.map(({ type }) => type)).toEqual([
    'ticket_updated',
    'ticket_updated',
    'ticket_updated',
  ])
  expect(root.frames.map(({ type }) => type)).toEqual([
    'ticket_created',
    'ticket_updated',
    'ticket_updated',
  ])
})

test('sockets that did not ask get no events, and none about the tickets of others', async () => {
  await using d = await openDesk({ listen: true })
  const bob = await d.service.register('bob')
  const quiet = [await d.service.connect(d.ada), await d.service.connect(d.root)]
  const curious = await d.service.connect(bob, '&events=support')
  const { id } = await d.open()
  await d.answer(id)
  for (const socket of [...quiet, curious]) {
    await socket.settled()
    expect(socket.frames).toEqual([])
  }
})

describe('the owner of an answered ticket', () => {
  test('is notified of each answer once', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    const answered = await d.answer(id, { client_id: 'k' })
    await d.answer(id, { client_id: 'k' })
    const { body } = await d.service.call('GET', '/v1/notifications', { token: d.ada.token })
    const data = { ticket_id: id, message_id: answered.body.id }
    expect(body.data).toEqual([
      expect.objectContaining({ type: 'support_reply', body: 'On its way.', data }),
    ])
  })

  test('is notified of every reply there is', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    d.service.sqlite.run(
      "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.notifications BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    expect((await d.answer(id)).status).toBe(500)
    expect(await d.show(id)).toMatchObject({ message_count: 1, assignee: null, history: [] })
  })

  test('is not notified once they are removed', async () => {
    await using d = await openDesk()
    const { id } = await d.open()
    const body = { password: 'correct horse' }
    await d.service.call('DELETE', '/v1/users/me', { token: d.ada.token, body })
    expect((await d.answer(id)).status).toBe(201)
    expect(d.service.sqlite.query('SELECT * FROM notifications').all()).toEqual([])
  })
})
