import type { Database } from 'bun:sqlite'
import type { Core } from '../../src/core.ts'
import { ticketCategories, ticketPriorities, ticketStatuses } from '../../src/lib/vocabulary.ts'
import { createDeskStore } from '../../src/modules/support/desk-store.ts'
import { createDeskViews } from '../../src/modules/support/model.ts'
import { createTicketStore } from '../../src/modules/support/store.ts'
import { createTicketChanges } from '../../src/modules/support/ticket-changes.ts'
import { createHub } from '../../src/realtime/hub.ts'
import { admins, atScale, type Dataset, differs, type Fill, idOf } from './dataset.ts'
import { textOf } from './vocabulary.ts'

/** One ticket in twenty is Ada's. */
const ofAda = 20
/** One ticket in forty brings a reply to an older one. */
const answers = 40
const indexedAtOnce = 2_000

/** The number of tickets with this word is the same at every scale. */
export const rareWord = { word: 'zyzzyva', tickets: 25 }

/** `count` tickets at scale 1. */
export const ticketsFill = (count: number): Fill => ({
  name: 'tickets',
  fill: (dataset) => fillTickets(dataset, atScale(count, dataset.landmarks.scale)),
  rules: ({ scale }) => ({
    'as many tickets as planned': differs('tickets', atScale(count, scale)),
    'n has no gaps': 'SELECT (SELECT max(n) FROM tickets) <> (SELECT count(*) FROM tickets)',
    'message_count is the number of messages':
      'SELECT count(*) FROM tickets t WHERE message_count <> (SELECT count(*) FROM ticket_messages WHERE ticket_id = t.id)',
    'the full-text index has every ticket':
      'SELECT (SELECT count(*) FROM ticket_search_docsize) <> (SELECT count(*) FROM tickets)',
    'the full-text index is whole': `SELECT integrity_check <> 'ok' FROM pragma_integrity_check('ticket_search')`,
  }),
})

/** Tickets of all kinds with one to three messages, and replies to older ones. Each statement that changes the
 *  full-text index adds a segment, so tickets are inserted in their final state and then counted: the trigger on
 *  that update indexes many of them with one statement. */
function fillTickets(dataset: Dataset, count: number) {
  const { sqlite, orm, landmarks, newId, clock, pick, repeat } = dataset
  const store = createTicketStore(orm)
  const nothing = () => {}
  const core = {
    newId,
    clock,
    hub: createHub(),
    afterCommit: nothing,
    outbox: { add: nothing },
    events: { publish: nothing },
    config: { support: { inbox: undefined } },
  } as unknown as Core // what changes of tickets use of it
  const parts = { store, desk: createDeskStore(orm), views: createDeskViews(() => '') }
  const changes = createTicketChanges(core, { ...parts, attach: () => [] })
  const insert = prepareInsert(sqlite)
  const index = sqlite.prepare(
    'UPDATE tickets SET message_count = (SELECT max(seq) FROM ticket_messages WHERE ticket_id = tickets.id) WHERE n > ?',
  )
  const desk = admins.map((admin) => idOf(landmarks, admin))
  const ada = idOf(landmarks, 'ada')
  const rareEvery = Math.max(1, Math.floor(count / rareWord.tickets))
  const owned = new Map<string, number>()
  const ids: string[] = []
  let indexed = 0

  repeat(count, (n) => {
    const isRare = n % rareEvery === 0 && n / rareEvery < rareWord.tickets
    const subject = textOf(3 + pick(6), pick) + (isRare ? ` ${rareWord.word}` : '')
    add(n % ofAda === 0 ? ada : oneOf(landmarks.people), subject)
    if (ids.length % indexedAtOnce > 0 && ids.length < count) return
    index.run(indexed)
    indexed = ids.length
    for (let answered = 0; answered < indexedAtOnce / answers; answered++) answer(oneOf(ids))
  })

  function oneOf<T>(values: readonly T[]): T {
    const value = values[pick(values.length)]
    if (value === undefined) throw new Error('cannot pick from an empty list')
    return value
  }

  function add(userId: string, subject: string) {
    const id = newId()
    const createdAt = clock.now()
    const userSeq = (owned.get(userId) ?? 0) + 1
    const status = oneOf(ticketStatuses)
    const isSettled = status === 'resolved' || status === 'closed'
    const messageCount = 1 + pick(3)
    const isWaiting = !isSettled && messageCount !== 2
    owned.set(userId, userSeq)
    ids.push(id)
    insert.run({
      $id: id,
      $userId: userId,
      $userSeq: userSeq,
      $subject: subject,
      $status: status,
      $priority: oneOf(ticketPriorities),
      $category: oneOf(ticketCategories),
      $assigneeId: oneOf([null, ...desk]),
      $waitingSince: isWaiting ? createdAt : null,
      $settledAt: isSettled ? createdAt : null,
      $createdAt: createdAt,
    })
    for (let seq = 1; seq <= messageCount; seq++) {
      const isAdmin = seq === 2
      const authorId = isAdmin ? oneOf(desk) : userId
      const body = textOf(30 + pick(71), pick)
      const message = { ticketId: id, seq, id: newId(), authorId, isAdmin, body, clientId: null }
      store.insertMessage({ ...message, createdAt, attachments: null })
    }
  }

  function answer(id: string) {
    const ticket = store.find(id)
    if (!ticket) throw new Error(`there is no ticket ${id}`)
    const body = textOf(30 + pick(71), pick)
    const draft = { authorId: oneOf(desk), isAdmin: true, body, fileUrls: [], clientId: null }
    changes.reply(ticket, draft, { status: oneOf(ticketStatuses) })
  }
}

function prepareInsert(sqlite: Database) {
  return sqlite.prepare<unknown, Record<string, string | number | null>>(`
    INSERT INTO tickets (id, user_id, user_seq, subject, status, priority, category, assignee_id, message_count,
      waiting_since, settled_at, created_at, updated_at, queue_key)
    VALUES ($id, $userId, $userSeq, $subject, $status, $priority, $category, $assigneeId, 0,
      $waitingSince, $settledAt, $createdAt, $createdAt, coalesce($waitingSince, 4503599627370496 - $createdAt))`)
}
