import { expect, test } from 'bun:test'
import { Connection, type ReplayPart } from '../src/realtime/connection.ts'
import { createHub } from '../src/realtime/hub.ts'

test('frames that are held during a replay keep their place among the messages', async () => {
  const sent: string[] = []
  const principal = {
    userId: 'u',
    role: 'user',
    mayAdminister: false,
    sessionId: 's',
    expiresAt: 0,
  }
  const connection = new Connection(principal as never, {
    locale: 'en',
    withheld: new Set(),
    since: '0',
    buckets: [],
    onSent: () => {},
    onUnsent: () => {},
  })
  const socket = {
    send: (text: string) => sent.push(JSON.parse(text).type),
    getBufferedAmount: () => 0,
  }
  connection.attach(socket as never)
  const hub = createHub()
  hub.add(connection)
  const message = (id: string) => ({ id, frame: { type: id } })
  function* parts(): Generator<ReplayPart> {
    yield [message('1')]
    // Committed while the first part is sent; the next read finds both messages.
    hub.send(['u'], { type: 'live' }, { id: '2' })
    hub.send(['u'], { type: 'read_receipt' })
    hub.send(['u'], { type: 'live' }, { id: '3' })
    hub.send(['u'], { type: 'typing' })
    yield [message('2'), message('3')]
  }
  await connection.replay(parts(), async (work) => work())
  expect(sent).toEqual(['1', '2', 'read_receipt', '3', 'typing'])
})
