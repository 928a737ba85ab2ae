import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { openForServer } from '../src/db/open.ts'
import { createWriter } from '../src/db/writer.ts'
import { createOutbox } from '../src/jobs/outbox.ts'
import { createIds } from '../src/lib/ids.ts'
import type { NotifySupportReply } from '../src/modules/support/desk-service.ts'
import {
  OwnTicketUpdatedFrame,
  TicketCreatedFrame,
  TicketUpdatedFrame,
} from '../src/modules/support/frames.ts'
import { openSupport } from '../src/modules/support/support.ts'
import { createHub } from '../src/realtime/hub.ts'
import { createTestClock } from './support/clock.ts'
import { day, desk, openDesk } from './support/desk.ts'
import { temporaryDirectory } from './support/directory.ts'

/** A desk that listens, with sockets of Ada and Root that asked for what happens to tickets. */
async function openSockets() {
  const d = await openDesk({ listen: true })
  const [ada, root] = await Promise.all(
    [d.ada, d.root].map((person) => d.service.connect(person, '&events=support')),
  )
  if (!ada || !root) throw new Error('no sockets')
  return { d, ada, root, [Symbol.asyncDispose]: () => d[Symbol.asyncDispose]() }
}

describe('who asks for it', () => {
  test('is told of new tickets as an admin, as the desk lists them', async () => {
    await using sockets = await openSockets()
    const { d, ada, root } = sockets
    await d.open()
    const frame = await root.next('ticket_created')
    expect(frame).toEqual({ type: 'ticket_created', ticket: (await d.list()).data[0] })
    expect(Value.Check(TicketCreatedFrame, frame)).toBe(true)
    await ada.settled()
    expect(ada.frames).toEqual([])
  })

  test('is told what becomes of a ticket: its owner as their list shows it, admins as the desk does', async () => {
    await using sockets = await openSockets()
    const { d, ada, root } = sockets
    const { id } = await d.open()
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

  test('is told of what closes by itself', async () => {
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

  test('is told of a note as an admin alone, and not what it says', async () => {
    await using sockets = await openSockets()
    const { d, ada, root } = sockets
    const { id } = await d.open()
    const body = { body: 'secret' }
    await d.service.call('POST', `${desk}/${id}/notes`, { token: d.root.token, body })
    const frame = await root.next('ticket_updated')
    expect(frame).toEqual({ type: 'ticket_updated', ticket: (await d.list()).data[0] })
    await ada.settled()
    expect(ada.frames).toEqual([])
  })
})

test('nothing is told of what was refused, changed nothing or was sent before', async () => {
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
  expect(ada.frames.map(({ type }) => type)).toEqual(['ticket_updated', 'ticket_updated'])
  expect(root.frames.map(({ type }) => type)).toEqual([
    'ticket_created',
    'ticket_updated',
    'ticket_updated',
  ])
})

test('nobody is told who did not ask, nor of the tickets of others', async () => {
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

describe('whoever notifies owners', () => {
  /** The chapter over a database of its own with one ticket; `notify` is called for each answer. */
  async function openChapter(notify: NotifySupportReply) {
    const directory = temporaryDirectory()
    const connection = openForServer(directory.path)
    const { orm, sqlite } = connection
    const nothing = () => {}
    const log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
    const options = { sqlite, sync: async () => {}, onCommit: nothing, onFatal: nothing, log }
    const { write } = createWriter(options)
    const clock = createTestClock()
    const newId = createIds(clock)
    const hub = createHub()
    const outbox = createOutbox(orm, newId, clock)
    const mailer = { send: async () => {}, close: nothing }
    const terms = { reopenDays: 14, autocloseDays: 7, inbox: undefined, publicUrl: 'http://x' }
    const given = { orm, write, outbox, newId, clock, log, hub, mailer, ...terms }
    const support = openSupport({ ...given, notifySupportReply: notify })
    for (const [id, role] of [
      ['ada', 'user'],
      ['root', 'admin'],
    ] as const) {
      sqlite.run(
        "INSERT INTO users (id, email, display_name, locale, role, email_verified, password_hash, created_at) VALUES (?, ?, ?, 'en', ?, 0, '', 0)",
        [id, id, id, role],
      )
    }
    const request = {
      subject: 'Refund',
      body: 'Where?',
      category: 'other',
      priority: 'low',
    } as const
    const { value } = await support.tickets.open('ada', { ...request, clientId: null })
    return {
      support,
      sqlite,
      ticketId: value.ticket.id,
      [Symbol.dispose]() {
        support.stopClosing()
        connection.close()
        directory[Symbol.dispose]()
      },
    }
  }
  const answer = { body: 'On its way.', clientId: 'k' }

  test('hears of each answer once, inside its write, and sends after it', async () => {
    const calls: unknown[] = []
    using chapter = await openChapter((reply) => {
      calls.push(reply, chapter.sqlite.inTransaction)
      return () => calls.push(chapter.sqlite.inTransaction)
    })
    const { support, ticketId } = chapter
    const { value } = await support.desk.reply('root', ticketId, answer)
    await support.desk.reply('root', ticketId, answer)
    const { id: messageId } = value
    const { body } = answer
    const reply = { userId: 'ada', ticketId, messageId, subject: 'Refund', body }
    expect(calls).toEqual([reply, true, false])
  })

  test('and cannot note it takes the answer back', async () => {
    using chapter = await openChapter(() => {
      throw new Error('no')
    })
    const { support, ticketId } = chapter
    await expect(support.desk.reply('root', ticketId, answer)).rejects.toThrow('no')
    expect(support.desk.get(ticketId).item).toMatchObject({ messageCount: 1, assigneeId: null })
  })

  test('hears of no answer to a person who is gone', async () => {
    using chapter = await openChapter(() => {
      throw new Error('no')
    })
    const { support, sqlite, ticketId } = chapter
    sqlite.run("UPDATE users SET deleted_at = 1 WHERE id = 'ada'")
    expect((await support.desk.reply('root', ticketId, answer)).replayed).toBe(false)
  })
})
