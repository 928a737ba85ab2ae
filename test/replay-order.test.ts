import { expect, test } from 'bun:test'
import { Connection, type ReplayPart } from '../src/realtime/connection.ts'
import { createHub } from '../src/realtime/hub.ts'

const principal = {
  userId: 'u',
  role: 'user',
  mayAdminister: false,
  sessionId: 's',
  expiresAt: 0,
}

/** A socket with a replay, the types of its frames, and the bytes that its peer has not read. */
function openReplay(given: { mayAdminister?: boolean; since?: undefined } = {}) {
  const hub = createHub()
  const noted: [bytes: number, hasRead: boolean][] = []
  const it = { hub, sent: [] as string[], unread: 0, noted, isOpen: true }
  const connection = new Connection({ ...principal, ...given } as never, {
    locale: 'en',
    withheld: new Set(),
    since: 'since' in given ? undefined : '0',
    buckets: [],
    onSent: () => {},
    onUnsent: (_, bytes, hasRead) => noted.push([bytes, hasRead]),
  })
  const socket = {
    send: (text: string) => it.sent.push(JSON.parse(text).type),
    getBufferedAmount: () => it.unread,
    terminate() {
      it.isOpen = false
    },
  }
  connection.attach(socket as never)
  hub.add(connection)
  const replay = (parts: Iterable<ReplayPart>) => connection.replay(parts, async (work) => work())
  return Object.assign(it, { connection, replay })
}

const message = (id: string) => ({ id, frame: { type: id } })

test('a socket that is gone gets no frames of the desk, and its user is offline', () => {
  const { hub, sent, connection } = openReplay({ mayAdminister: true, since: undefined })
  hub.sendToAdmins({ type: 'report_created' })
  hub.remove(connection)
  hub.sendToAdmins({ type: 'ticket_created' })
  expect([sent, hub.isOnline('u')]).toEqual([['report_created'], false])
})

test.each([
  [false, 10_000],
  [true, 19_000],
])('a peer that has read anything (%p) is dropped ten seconds later', (hasRead, dropAt) => {
  const it = openReplay()
  it.hub.noteUnsent(it.connection, 10, { now: 0, hasRead: false })
  it.hub.noteUnsent(it.connection, 10, { now: 9_000, hasRead })
  it.hub.dropStuck(dropAt - 1)
  expect(it.isOpen).toBe(true)
  it.hub.dropStuck(dropAt)
  expect(it.isOpen).toBe(false)
})

test('frames that are held during a replay keep their place among the messages', async () => {
  const { hub, sent, replay } = openReplay()
  function* parts(): Generator<ReplayPart> {
    yield [message('1')]
    // Committed while the first part is sent; the next read finds both messages.
    hub.send(['u'], { type: 'live' }, { id: '2' })
    hub.send(['u'], { type: 'read_receipt' })
    hub.send(['u'], { type: 'live' }, { id: '3' })
    hub.send(['u'], { type: 'typing' })
    yield [message('2'), message('3')]
  }
  await replay(parts())
  expect(sent).toEqual(['1', '2', 'read_receipt', '3', 'typing'])
})

test('a replay waits while its peer reads slowly, and continues when it has read', async () => {
  const it = openReplay()
  it.unread = 64 * 1_024 + 1
  const done = it.replay([[message('1'), message('2')], [message('3')]])
  await new Promise(setImmediate)
  expect(it.sent).toEqual(['1'])
  it.unread = 1_024
  it.connection.drained()
  await done
  expect(it.sent).toEqual(['1', '2', '3'])
  expect(it.noted).toEqual([[1_024, true]])
})

test('a replay ends with its socket, also while it waits', async () => {
  const it = openReplay()
  it.unread = 64 * 1_024 + 1
  let read = 0
  function* parts(): Generator<ReplayPart> {
    for (const id of ['1', '2', '3', '4']) {
      read++
      yield [message(id)]
    }
  }
  const done = it.replay(parts())
  await new Promise(setImmediate)
  it.connection.detach()
  await done
  expect([it.sent, read]).toEqual([['1'], 2])
})

test('a replay that holds back more than a thousand frames is dropped', () => {
  const it = openReplay()
  for (let n = 0; n < 1_000; n++) it.hub.send(['u'], { type: 'read_receipt' })
  expect(it.isOpen).toBe(true)
  it.hub.send(['u'], { type: 'read_receipt' })
  expect(it.isOpen).toBe(false)
})
