import { describe, expect } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import { bucket } from '../src/config-values.ts'
import { temporaryDirectory } from './support/directory.ts'
import { executable } from './support/executable.ts'
import { testAtLength } from './support/faults.ts'
import { startNode } from './support/nodes.ts'
import { allMessages, call as callServer, meet } from './support/process.ts'
import { startRadosgw } from './support/radosgw.ts'
import { shared } from './support/shared.ts'
import { tools } from './support/tools.ts'

// The operations that replication needs, against a real object store.

type Call = { body?: string; headers?: Record<string, string>; aws?: { datetime: string } }

const server = shared(startRadosgw)

/** Sends a signed request for a key, or for the bucket with a query. */
async function call(method: string, target: string, call: Call = {}) {
  const { endpoint, name, ...credentials } = bucket((await server()).url)
  const client = new AwsClient({ ...credentials, service: 's3', retries: 0 })
  const answer = await client.fetch(`${endpoint}/${name}${target}`, { method, ...call })
  return { status: answer.status, headers: answer.headers, body: await answer.text() }
}

const create = (target: string, body = '') =>
  call('PUT', target, { body, headers: { 'if-none-match': '*' } })

/** The keys and common prefixes of a list. */
async function list(options: Record<string, string>) {
  const { body } = await call('GET', `?${new URLSearchParams({ 'list-type': '2', ...options })}`)
  const found = body.matchAll(/<(?:Contents><Key|CommonPrefixes><Prefix)>(.*?)</g)
  const [, next] = /<NextContinuationToken>(.*?)</.exec(body) ?? []
  return { keys: Array.from(found, ([, key]) => key), next }
}

describe.skipIf(!tools.radosgw)('radosgw', () => {
  testAtLength('creates an object once and refuses it from then on', async () => {
    expect((await create('/once', 'first')).status).toBe(200)
    const refused = await create('/once', 'second')
    expect([refused.status, refused.body]).toEqual([
      412,
      expect.stringContaining('<Code>PreconditionFailed</Code>'),
    ])
    expect((await call('GET', '/once')).body).toBe('first')
  })

  testAtLength('lets exactly one of 20 parallel requests create an object', async () => {
    const bodies = Array.from({ length: 20 }, (_, n) => `of ${n}`)
    const answers = await Promise.all(bodies.map((body) => create('/race', body)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, ...Array(19).fill(412)])
    expect((await call('GET', '/race')).body).toBe(`of ${statuses.indexOf(200)}`)
  })

  testAtLength('lists keys after a key, by folder and page by page', async () => {
    for (const key of ['a/3', 'a/1', 'b/1', 'a/2', 'c/1']) await create(`/lists/${key}`)
    const prefix = 'lists/'
    const after = await list({ prefix: 'lists/a/', 'start-after': 'lists/a/1' })
    expect(after.keys).toEqual(['lists/a/2', 'lists/a/3'])
    const folders = await list({ prefix, delimiter: '/', 'start-after': 'lists/a/9' })
    expect(folders.keys).toEqual(['lists/b/', 'lists/c/'])
    const { keys, next = '' } = await list({ prefix, 'max-keys': '3' })
    const rest = await list({ prefix, 'max-keys': '3', 'continuation-token': next })
    expect([...keys, '…', ...rest.keys].join(' ').replaceAll(prefix, '')).toBe(
      'a/1 a/2 a/3 … b/1 c/1',
    )
  })

  testAtLength('shows stored and deleted objects in lists at once', async () => {
    for (const key of ['now/1', 'now/2', 'now/3']) {
      await create(`/${key}`)
      expect((await list({ prefix: 'now/' })).keys).toContain(key)
    }
    expect((await call('DELETE', '/now/2')).status).toBe(204)
    expect((await list({ prefix: 'now/' })).keys).toEqual(['now/1', 'now/3'])
    expect((await call('GET', '/now/2')).status).toBe(404)
    expect((await create('/now/2')).status).toBe(200)
  })

  testAtLength('reads a range', async () => {
    await create('/range', '0123456789')
    const { status, headers, body } = await call('GET', '/range', {
      headers: { range: 'bytes=2-4' },
    })
    expect([status, headers.get('content-range'), body]).toEqual([206, 'bytes 2-4/10', '234'])
  })

  testAtLength('refuses a clock that is 20 minutes off, and sends its own', async () => {
    const late = new Date(Date.now() + 20 * 60_000).toISOString()
    const datetime = late.replace(/[:-]|\.\d+/g, '')
    const { status, headers, body } = await call('GET', '/once', { aws: { datetime } })
    expect([status, body]).toEqual([403, expect.stringContaining('>RequestTimeTooSkewed<')])
    expect(Date.parse(headers.get('date') ?? '')).toBeCloseTo(Date.now(), -4)
  })

  testAtLength('supports a pair through the loss of its leader', async () => {
    using folder = temporaryDirectory()
    const { url } = await server()
    const environment = { REPLICA_ACK: 'bucket', REPLICA_PAIR: 'true', REPLICA_LEASE: '2' }
    const [dataDir, other] = [join(folder.path, 'a'), join(folder.path, 'b')]
    cpSync((await executable()).emptyData, dataDir, { recursive: true })
    const a = await startNode({ dataDir, bucket: url, environment })
    await a.ready()
    await using b = await startNode({ dataDir: other, bucket: url, environment, args: ['standby'] })
    await b.says('follows the log')
    const { a: ada, conversationId } = await meet(a.base)
    const path = `/v1/chat/conversations/${conversationId}/messages`
    const message = { token: ada.token, body: { body: 'kept' } }
    expect((await callServer(a.base, 'POST', path, message)).status).toBe(201)
    await a.end('SIGKILL')
    await b.ready()
    expect(await allMessages(b.base, conversationId, ada.token)).toMatchObject([{ body: 'kept' }])
  })
})
