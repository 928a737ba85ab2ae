import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { createUnreadAnswers } from '../src/http/unread-answers.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const mebibyte = 1_048_576

test('the runtime knows the connection of a request until its answer was sent or it is gone', async () => {
  const requests: Request[] = []
  await using server = Bun.serve({
    port: 0,
    fetch(request) {
      requests.push(request)
      return new Response('x'.repeat(20 * mebibyte))
    },
  })
  const isUnsent = () => requests[0] !== undefined && server.requestIP(requests[0]) !== null
  const socket = connect(server.port ?? 0, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await new Promise((resolve) => socket.once('data', resolve))
  socket.pause()
  expect(isUnsent()).toBe(true)
  socket.destroy()
  await waitFor(() => !isUnsent(), 'the end of the connection')
  requests.length = 0
  await (await fetch(server.url)).text()
  await waitFor(() => !isUnsent(), 'the end of the answer')
})

test('unread answers are refused past their bound, streams among them, and given again when they were read', async () => {
  const open = new Set<Request>()
  const connections = { requestIP: (request: Request) => open.has(request) || null, timeout() {} }
  const bound = createUnreadAnswers(() => connections)
  const bodies = {
    text: () => 'x'.repeat(mebibyte),
    stream: () => new ReadableStream(),
    small: () => 'x',
  }
  const ask = async (kind: keyof typeof bodies, method = 'GET') => {
    const request = new Request('http://localhost/', { method })
    open.add(request)
    const answer = await bound(async () => new Response(bodies[kind]()))(request)
    if (answer.status === 503) open.delete(request)
    return answer
  }
  let answered = 0
  let answer = await ask('text')
  for (; answer.status === 200 && answered < 100; answered++) answer = await ask('text')
  expect([answered, answer.status, answer.headers.get('retry-after')]).toEqual([24, 503, '5'])
  expect((await ask('stream')).status).toBe(503)
  expect((await ask('small')).status).toBe(200)
  // What was done is answered.
  expect((await ask('text', 'POST')).status).toBe(200)
  open.clear()
  await waitFor(async () => (await ask('text')).status === 200, 'room')
})

test.each([
  ['characters of four bytes', '\u{1F600}'.repeat(5_000)],
  ['characters that JSON writes with six bytes', `${'\u0001'.repeat(4_999)}x`],
])('a list whose texts are %s has no answer over 1 MiB, and lacks nothing', async (_, text) => {
  await using service = await startService()
  const { a, conversationId } = await service.pair()
  for (let n = 0; n < 100; n++) await service.say(a, conversationId, text)
  const headers = { authorization: `Bearer ${a.token}` }
  const list = async (query: string) => {
    const path = `/v1/chat/conversations/${conversationId}/messages?${query}`
    const body = await (await service.request(path, { headers })).text()
    expect(Buffer.byteLength(body)).toBeLessThan(mebibyte)
    return JSON.parse(body)
  }
  // A page by number says how large it may be.
  const { error } = await list('per_page=100')
  expect(error.code).toBe('validation_error')
  const size = Number(/at most (\d+)/.exec(error.details.per_page)?.[1])
  const ids = new Set<string>()
  for (let page = 1; page <= Math.ceil(100 / size); page++) {
    const { data, pagination } = await list(`per_page=${size}&page=${page}`)
    expect(pagination).toMatchObject({ per_page: size, total: 100 })
    for (const { id } of data) ids.add(id)
  }
  // A part by cursor is shorter.
  let query = 'limit=100'
  const seen: string[] = []
  for (;;) {
    const { data, pagination } = await list(query)
    seen.push(...data.map(({ id }: { id: string }) => id))
    if (!pagination.has_more) break
    query = `limit=100&cursor=${pagination.cursor}`
  }
  expect([ids.size, seen.length, new Set(seen).size]).toEqual([100, 100, 100])
  const inbox = await service.request('/v1/chat/messages?limit=100', { headers })
  expect(Buffer.byteLength(await inbox.text())).toBeLessThan(mebibyte)
})

test('the usual page of messages shows fifty of the longest texts', async () => {
  await using service = await startService()
  const { a, conversationId } = await service.pair()
  for (let n = 0; n < 50; n++) await service.say(a, conversationId, '\u{1F600}'.repeat(5_000))
  const path = `/v1/chat/conversations/${conversationId}/messages`
  const { status, body } = await service.call('GET', path, { token: a.token })
  expect([status, body.data.length]).toEqual([200, 50])
})
