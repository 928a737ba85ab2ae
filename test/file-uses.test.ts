import { afterAll, describe, expect, test } from 'bun:test'
import type { FileStorage } from '../src/files/storage.ts'
import { createTestClock } from './support/clock.ts'
import { desk, own } from './support/desk.ts'
import { testAtLength } from './support/faults.ts'
import { fetchFile, filesIn, png, upload } from './support/files.ts'
import { type Person, startService } from './support/service.ts'
import { watchRuns } from './support/statements.ts'
import { aWhile, waitFor } from './support/wait.ts'

// Files are kept while something uses them.

const clock = createTestClock()
const service = await startService({ clock })
afterAll(() => service[Symbol.asyncDispose]())
const hour = 3_600_000
const isThere = async (fileUrl: string) => (await fetchFile(service, fileUrl)).status === 200
const bytesOf = (id: string) => filesIn(service).filter((name) => name.startsWith(id))

/** The row and the bytes are deleted. */
const isGone = ({ id, file_url }: { id: string; file_url: string }) =>
  waitFor(async () => !(await isThere(file_url)) && bytesOf(id).length === 0)

async function put(person: Person, name = 'a.png') {
  return (await upload(service, person, png, { name, type: 'image/png' })).body
}

type Uploaded = { file_url: string; file_name: string; file_size: number; file_type: string }
const fileMessage = ({ file_url, file_name, file_size, file_type }: Uploaded) => ({
  type: 'file',
  body: '',
  file_url,
  file_name,
  file_size,
  file_type,
})

const several = (...files: Uploaded[]) => ({
  type: 'file',
  body: 'three',
  attachments: files.map(({ file_url, file_name, file_size, file_type }) => ({
    file_url,
    file_name,
    file_size,
    file_type,
  })),
  client_id: 'several',
})

function send(person: Person, conversationId: string, body: object) {
  const path = `/v1/chat/conversations/${conversationId}/messages`
  return service.call('POST', path, { token: person.token, body })
}

function remove(person: Person, conversationId: string, messageId: string) {
  const path = `/v1/chat/conversations/${conversationId}/messages/${messageId}`
  return service.call('DELETE', path, { token: person.token })
}

async function report(person: Person, messageId: string): Promise<string> {
  const body = { message_id: messageId, reason: 'spam' }
  return (await service.call('POST', '/v1/reports', { token: person.token, body })).body.id
}

/** Advances the clock, runs due jobs and logs the people in again. */
async function pass(hours: number, people: Person[]) {
  clock.advance(hours * hour)
  for (const person of people) Object.assign(person, await service.login(person.email))
}

describe('a file', () => {
  test('that nothing uses stays for a day, one in a message as long as the message and 30 days for reports', async () => {
    const { a, b, conversationId } = await service.pair()
    const [unused, used] = [await put(a), await put(a)]
    const sent = await send(a, conversationId, fileMessage(used))
    expect(sent.body).toMatchObject(fileMessage(used))
    await pass(23, [a, b])
    expect(await isThere(unused.file_url)).toBe(true)
    await pass(2, [a, b])
    await isGone(unused)
    expect(await isThere(used.file_url)).toBe(true)
    const message = `/v1/chat/conversations/${conversationId}/messages/${sent.body.id}`
    expect((await service.call('DELETE', message, { token: a.token })).status).toBe(204)
    expect(await isThere(used.file_url)).toBe(false)
    await pass(30 * 24 - 1, [a])
    expect(bytesOf(used.id)).toHaveLength(1)
    await pass(2, [])
    await isGone(used)
  })

  test('that was removed, or never existed, cannot be sent', async () => {
    const { a, conversationId } = await service.pair()
    const file = await put(a)
    const sent = await send(a, conversationId, fileMessage(file))
    const message = `/v1/chat/conversations/${conversationId}/messages/${sent.body.id}`
    await service.call('DELETE', message, { token: a.token })
    const base = file.file_url.split('/v1/')[0]
    for (const file_url of [file.file_url, `${base}/v1/files/x`, `${base}/v1/files/`]) {
      const { status, body } = await send(a, conversationId, { ...fileMessage(file), file_url })
      expect([status, body.error.details]).toEqual([
        400,
        { file_url: 'must be the address of a file that you have uploaded' },
      ])
    }
    const elsewhere = 'https://elsewhere.example/v1/files/x'
    const other = await send(a, conversationId, { ...fileMessage(file), file_url: elsewhere })
    expect(other.status).toBe(201)
  })

  test('that its sender removes is gone for all readers', async () => {
    const { a, b, conversationId } = await service.pair()
    const file = await put(a)
    const sent = await send(a, conversationId, fileMessage(file))
    const encoded = `%${file.id.charCodeAt(0).toString(16)}${file.id.slice(1)}`
    const spelt = `${file.file_url.replace(file.id, encoded)}?x=1`
    for (const url of [file.file_url, spelt]) {
      const forwarded = await send(b, conversationId, { ...fileMessage(file), file_url: url })
      const body = { avatar_url: url }
      const shown = await service.call('PATCH', '/v1/users/me', { token: b.token, body })
      const problem = 'must be the address of a file that you have uploaded'
      expect([forwarded.status, forwarded.body.error.details]).toEqual([400, { file_url: problem }])
      expect([shown.status, shown.body.error.details]).toEqual([400, { avatar_url: problem }])
    }
    const own = await send(a, conversationId, { ...fileMessage(file), file_url: spelt })
    expect(own.status).toBe(201)
    await service.call('PUT', `/v1/users/blocks/${a.id}`, { token: b.token })
    expect((await remove(a, conversationId, sent.body.id)).status).toBe(204)
    expect(await isThere(file.file_url)).toBe(false)
  })

  test('is removed with the message that an admin removes, even if others show it', async () => {
    const { a, b, conversationId } = await service.pair()
    const root = await service.registerAs('admin')
    const file = await put(a)
    const body = { avatar_url: file.file_url, subject: 's', body: 'b', attachments: [file] }
    await service.call('PATCH', '/v1/users/me', { token: a.token, body })
    await service.call('POST', own, { token: a.token, body })
    const sent = await send(a, conversationId, fileMessage(file))
    const path = `/v1/admin/messages/${sent.body.id}`
    expect((await service.call('DELETE', path, { token: root.token })).status).toBe(204)
    expect(await isThere(file.file_url)).toBe(false)
    const list = await service.call('GET', '/v1/chat/conversations', { token: b.token })
    expect(list.body.data[0].participant.avatar_url).toContain('/v1/avatars/')
  })

  test('is removed by its owner only, and once; without any message its bytes are deleted, too', async () => {
    const { a, b, conversationId } = await service.pair()
    const [unused, sent] = [await put(a), await put(a)]
    const body = { avatar_url: unused.file_url }
    await service.call('PATCH', '/v1/users/me', { token: a.token, body })
    await send(a, conversationId, fileMessage(sent))
    const ask = async ({ token }: Person, id: string) =>
      (await service.call('DELETE', `/v1/files/${id}`, { token })).status
    expect([await ask(b, sent.id), await ask(a, 'x')]).toEqual([404, 404])
    expect([await ask(a, sent.id), await ask(a, sent.id)]).toEqual([204, 404])
    expect([await isThere(sent.file_url), bytesOf(sent.id).length]).toEqual([false, 1])
    const exported = await service.call('GET', '/v1/users/me/export', { token: a.token })
    const removed_at = new Date(clock.now()).toISOString()
    expect(exported.body.files).toContainEqual(expect.objectContaining({ id: sent.id, removed_at }))
    expect(await ask(a, unused.id)).toBe(204)
    await isGone(unused)
    const { body: profile } = await service.call('GET', '/v1/users/me', { token: a.token })
    expect(profile.avatar_url).toContain('/v1/avatars/')
  })

  test('removed by an admin loses its bytes, also in a report, and is audited', async () => {
    const { a, b, conversationId } = await service.pair()
    const root = await service.registerAs('admin')
    const file = await put(a)
    const sent = await send(a, conversationId, fileMessage(file))
    await report(b, sent.body.id)
    await remove(a, conversationId, sent.body.id)
    const ask = async ({ token }: Person) =>
      (await service.call('DELETE', `/v1/admin/files/${file.id}`, { token })).status
    expect([await ask(a), await ask(root), await ask(root)]).toEqual([403, 204, 404])
    await isGone(file)
    const query = `action=file_removed&target_id=${file.id}`
    const noted = await service.call('GET', `/v1/admin/audit-log?${query}`, { token: root.token })
    expect(noted.body.data).toMatchObject([{ actor: { id: root.id }, details: { owner_id: a.id } }])
  })

  test('of a removed message is shown to the desk only, while a report of it is open', async () => {
    const { a, b, conversationId } = await service.pair()
    const root = await service.registerAs('admin')
    const file = await put(a)
    const sent = await send(a, conversationId, fileMessage(file))
    await remove(a, conversationId, sent.body.id)
    const reportId = await report(b, sent.body.id)
    const path = `/v1/admin/reports/${reportId}`
    await service.call('PATCH', path, { token: root.token, body: { note: 'Asked them.' } })
    const held = service.sqlite.query('SELECT file_id FROM file_uses WHERE used_by LIKE ?')
    expect(held.values(`%${reportId}`)).toEqual([[file.id]])
    const shown = async () =>
      (await service.call('GET', path, { token: root.token })).body.messages[0].file_url as string
    const url = new URL(await shown())
    const seen = await service.request(url.pathname + url.search)
    expect([seen.status, seen.headers.get('cache-control')]).toEqual([200, 'private, no-store'])
    const forged = url.search.replace(/desk=\d+/, (text) => `${text}9`)
    for (const search of ['', forged, '?desk=', '?desk=9'])
      expect((await service.request(url.pathname + search)).status).toBe(404)
    await pass(31 * 24, [root])
    expect((await service.request(url.pathname + url.search)).status).toBe(404)
    const later = new URL(await shown())
    expect((await service.request(later.pathname + later.search)).status).toBe(200)
    await service.call('PATCH', path, { token: root.token, body: { status: 'resolved' } })
    await pass(1, [])
    await pass(1, [])
    await isGone(file)
  })

  test('used as a picture stays, and for a day after it was replaced', async () => {
    const [ada, bob] = [await service.register(), await service.register()]
    const [first, second, ofBob] = [await put(ada), await put(ada), await put(bob)]
    const show = async (avatar_url: string | null) => {
      Object.assign(ada, await service.login(ada.email))
      return service.call('PATCH', '/v1/users/me', { token: ada.token, body: { avatar_url } })
    }
    expect((await show(first.file_url)).body.avatar_url).toBe(first.file_url)
    await pass(48, [bob])
    expect(await isThere(first.file_url)).toBe(true)
    await isGone(second)
    await isGone(ofBob)
    const refused = await show(second.file_url)
    const details = { avatar_url: 'must be the address of a file that you have uploaded' }
    expect([refused.status, refused.body.error.details]).toEqual([400, details])
    const third = await put(ada)
    await show(third.file_url)
    await pass(23, [bob])
    expect(await isThere(first.file_url)).toBe(true)
    await pass(2, [bob])
    await isGone(first)
    expect(await isThere(third.file_url)).toBe(true)
    await show(null)
    await pass(25, [])
    await isGone(third)
  })

  test('is removed with its owner, whatever uses it, and is in their export until then', async () => {
    const { a, b, conversationId } = await service.pair()
    const [used, unused] = [await put(a), await put(a, 'b.png')]
    const sent = await send(a, conversationId, fileMessage(used))
    await report(b, sent.body.id)
    const exported = await service.call('GET', '/v1/users/me/export', { token: a.token })
    const shown = exported.body.files.map(({ created_at, ...file }: { created_at: string }) => file)
    expect(shown).toEqual(expect.arrayContaining([used, unused]))
    expect(shown).toHaveLength(2)
    const body = { password: 'correct horse' }
    await service.call('DELETE', '/v1/users/me', { token: a.token, body })
    await isGone(used)
    await isGone(unused)
    const rows = service.sqlite.query<{ n: number }, [string]>(
      'SELECT count(*) AS n FROM files WHERE owner_id = ?',
    )
    expect(rows.get(a.id)?.n).toBe(0)
  })
})

describe('attachments of a ticket', () => {
  test('are stored and shown with the service’s own fields, to the owner and to the desk', async () => {
    const [ada, root] = [await service.register(), await service.registerAs('admin')]
    const files = [await put(ada, '1.png'), await put(ada, '2.png')]
    const lies = files.map((file) => ({ ...file, file_name: 'x', file_size: 1, file_type: 'a/b' }))
    const form = { subject: 's', body: 'b', attachments: lies, client_id: 'one' }
    const opened = await service.call('POST', own, { token: ada.token, body: form })
    expect([opened.status, opened.body.messages[0].attachments]).toEqual([201, files])
    const path = `${own}/${opened.body.id}`
    const plain = await service.call('POST', `${path}/messages`, {
      token: ada.token,
      body: { body: 'c' },
    })
    expect(plain.body).not.toHaveProperty('attachments')
    const third = await put(ada, '3.png')
    const more = { body: 'd', attachments: [third] }
    const replied = await service.call('POST', `${path}/messages`, { token: ada.token, body: more })
    expect(replied.body.attachments).toEqual([third])
    const ofDesk = await put(root, '4.png')
    const answer = { body: 'e', attachments: [ofDesk] }
    const deskPath = `${desk}/${opened.body.id}`
    const answered = await service.call('POST', `${deskPath}/messages`, {
      token: root.token,
      body: answer,
    })
    expect(answered.body.attachments).toEqual([ofDesk])
    const shapes = [files, undefined, [third], [ofDesk]]
    for (const [as, at] of [
      [ada, path],
      [root, deskPath],
    ] as const) {
      const { body } = await service.call('GET', at, { token: as.token })
      expect(body.messages.map((it: { attachments?: object }) => it.attachments)).toEqual(shapes)
    }
    const exported = await service.call('GET', '/v1/users/me/export', { token: ada.token })
    expect(exported.body.tickets[0].messages[0].attachments).toEqual(files)
    await pass(48, [])
    for (const file of [...files, third, ofDesk]) expect(await isThere(file.file_url)).toBe(true)
  })

  test('of a note are shown to the desk only, and kept until it is deleted', async () => {
    const [ada, root] = [await service.register(), await service.registerAs('admin')]
    const form = { subject: 's', body: 'b' }
    const { id } = (await service.call('POST', own, { token: ada.token, body: form })).body
    const files = [await put(root, 'note.png'), await put(root, 'note 2.png')]
    const call = (method: string, body?: object, at = '') =>
      service.call(method, `${desk}/${id}/notes${at}`, { token: root.token, body })
    const foreign = await call('POST', { body: 'n', attachments: [await put(ada)] })
    expect([foreign.status, Object.keys(foreign.body.error.details)]).toEqual([
      400,
      ['attachments.0.file_url'],
    ])
    const noted = await call('POST', { body: 'n', attachments: files })
    expect([noted.status, noted.body.attachments]).toEqual([201, files])
    const edited = await call('PATCH', { body: 'changed' }, `/${noted.body.id}`)
    expect(edited.body.attachments).toEqual(files)
    await pass(48, [ada, root])
    for (const at of [`${own}/${id}`, `${own}/${id}/messages`, '/v1/users/me/export']) {
      const { body } = await service.call('GET', at, { token: ada.token })
      expect(JSON.stringify(body)).not.toContain('note.png')
    }
    // Removed by its owner, a file is no longer described.
    const [removed, kept] = files
    await service.call('DELETE', `/v1/files/${removed.id}`, { token: root.token })
    const { width, height, placeholder, ...undescribed } = removed
    const { notes } = (await service.call('GET', `${desk}/${id}`, { token: root.token })).body
    expect(notes[0].attachments).toEqual([undescribed, kept])
    expect([await isThere(removed.file_url), await isThere(kept.file_url)]).toEqual([false, true])
    expect((await call('DELETE', undefined, `/${noted.body.id}`)).status).toBe(204)
    await pass(23, [])
    expect(await isThere(kept.file_url)).toBe(true)
    await pass(2, [])
    await isGone(kept)
  })

  test('are part of the content that a repeated message is compared with', async () => {
    const ada = await service.register()
    const [one, two] = [await put(ada), await put(ada)]
    const ticket = { subject: 's', body: 'b', client_id: 'open', attachments: [one] }
    const open = (body: object) => service.call('POST', own, { token: ada.token, body })
    const { body } = await open(ticket)
    const reply = { body: 'c', client_id: 'reply', attachments: [one, two] }
    const say = (message: object) =>
      service.call('POST', `${own}/${body.id}/messages`, { token: ada.token, body: message })
    await say(reply)
    expect((await open(ticket)).headers.get('idempotent-replayed')).toBe('true')
    expect((await say(reply)).headers.get('idempotent-replayed')).toBe('true')
    for (const attachments of [[two], [], null]) {
      expect((await open({ ...ticket, attachments })).status).toBe(409)
      expect((await say({ ...reply, attachments })).status).toBe(409)
    }
  })

  test('are limited to five, uploaded by the sender', async () => {
    const [ada, bob] = [await service.register(), await service.register()]
    const [file, foreign] = [await put(ada), await put(bob)]
    const list = (urls: unknown[]) => urls.map((file_url) => ({ file_url }))
    const refused: [attachments: unknown, ...fields: string[]][] = [
      [list([file.file_url, foreign.file_url]), 'attachments.1.file_url'],
      [
        list(['https://elsewhere.example/a.png', `${file.file_url}x`]),
        'attachments.0.file_url',
        'attachments.1.file_url',
      ],
      [list([file.file_url.replace(file.id, 'x')]), 'attachments.0.file_url'],
      [list(Array(6).fill(file.file_url)), 'attachments'],
      [list([5]), 'attachments.0.file_url'],
      [[{}], 'attachments.0.file_url'],
      [['x'], 'attachments.0'],
      ['x', 'attachments'],
    ]
    for (const [attachments, ...fields] of refused) {
      const body = { subject: 's', body: 'b', attachments }
      const answer = await service.call('POST', own, { token: ada.token, body })
      expect([answer.status, Object.keys(answer.body.error.details)]).toEqual([400, fields])
    }
    const { body } = await service.call('GET', own, { token: ada.token })
    expect(body.data).toEqual([])
  })
})

describe('several files of a message', () => {
  test('are shown in order, the first also beside them, everywhere that messages are', async () => {
    const { a, b, conversationId } = await service.pair()
    const files = [await put(a, 'a.png'), await put(a, 'b.png'), await put(a, 'c.png')]
    const [first] = files.map(({ id, ...file }) => file)
    const sent = await send(a, conversationId, several(...files))
    const attachments = files.map(({ id, ...file }) => file)
    expect([sent.status, sent.body]).toEqual([
      201,
      expect.objectContaining({ ...first, type: 'file', attachments }),
    ])
    expect(attachments.map(({ width, height }) => [width, height])).toEqual(files.map(() => [1, 1]))
    const lists = [`/v1/chat/conversations/${conversationId}/messages`, '/v1/chat/messages']
    for (const path of lists) {
      expect((await service.call('GET', path, { token: b.token })).body.data).toEqual([sent.body])
    }
    const exported = await service.call('GET', '/v1/users/me/export', { token: b.token })
    expect(exported.body.messages).toEqual([sent.body])
    const one = await send(a, conversationId, { ...several(files[1]), client_id: 'one' })
    expect(one.body).toMatchObject({ file_url: files[1].file_url, file_name: 'b.png' })
    expect(one.body.attachments).toMatchObject([{ file_name: 'b.png' }])
  })

  test('are part of the content that a repeated message is compared with', async () => {
    const { a, conversationId } = await service.pair()
    const files = [await put(a), await put(a), await put(a)] as const
    const first = await send(a, conversationId, several(...files))
    const again = await send(a, conversationId, several(...files))
    expect([again.status, again.body]).toEqual([201, first.body])
    const other = await send(a, conversationId, several(files[0], files[2]))
    expect(other.status).toBe(409)
  })

  test('are kept by it, gone with it, and shown to the desk while a report is open', async () => {
    const { a, b, conversationId } = await service.pair()
    const root = await service.registerAs('admin')
    const files = [await put(a), await put(a)] as const
    const sent = await send(a, conversationId, several(...files))
    await pass(25, [a, b, root])
    for (const { file_url } of files) expect(await isThere(file_url)).toBe(true)
    const path = `/v1/admin/reports/${await report(b, sent.body.id)}`
    await remove(a, conversationId, sent.body.id)
    for (const { file_url } of files) expect(await isThere(file_url)).toBe(false)
    const list = await service.call('GET', '/v1/chat/messages', { token: b.token })
    expect([list.body.data[0].file_url, list.body.data[0].attachments]).toEqual([null, undefined])
    const [shown] = (await service.call('GET', path, { token: root.token })).body.messages
    expect(shown.attachments.map((file: Uploaded) => file.file_name)).toEqual(['a.png', 'a.png'])
    for (const { file_url } of [shown, ...shown.attachments]) {
      const { pathname, search } = new URL(file_url)
      expect((await service.request(pathname + search)).status).toBe(200)
    }
    // A later report finds what the message said.
    const { body: later } = await service.call('POST', '/v1/reports', {
      token: b.token,
      body: { message_id: sent.body.id, reason: 'fraud' },
    })
    expect(later.id).toBe(path.split('/').at(-1))
    const exported = await service.call('GET', '/v1/users/me/export', { token: a.token })
    expect(exported.body.messages[0].attachments).toHaveLength(2)
    await service.call('PATCH', path, { token: root.token, body: { status: 'resolved' } })
    await pass(31 * 24, [])
    for (const file of files) await isGone(file)
  })

  test('lose size and placeholder each with its file', async () => {
    const { a, conversationId } = await service.pair()
    const files = [await put(a), await put(a)] as const
    await send(a, conversationId, several(...files))
    await service.call('DELETE', `/v1/files/${files[0].id}`, { token: a.token })
    const list = await service.call('GET', '/v1/chat/messages', { token: a.token })
    const [message] = list.body.data
    expect([message.width, message.attachments.map((it: { width: number }) => it.width)]).toEqual([
      undefined,
      [undefined, 1],
    ])
  })

  test('are checked each: whose they are, how many, and their fields', async () => {
    const { a, b, conversationId } = await service.pair()
    const [mine, theirs] = [await put(a), await put(b)]
    const refused = async (body: object) => {
      const answer = await send(a, conversationId, body)
      return [answer.status, answer.body.error.details]
    }
    expect(await refused(several(mine, theirs))).toEqual([
      400,
      { 'attachments.1.file_url': 'must be the address of a file that you have uploaded' },
    ])
    const eleven = Array.from({ length: 11 }, () => mine)
    expect(await refused(several(...eleven))).toEqual([400, { attachments: expect.any(String) }])
    expect(await refused({ ...several(), attachments: [] })).toEqual([
      400,
      { attachments: expect.any(String) },
    ])
    expect(await refused({ ...several(), attachments: [{ file_name: '' }] })).toEqual([
      400,
      expect.objectContaining({ 'attachments.0.file_url': 'is required' }),
    ])
    expect(await refused({ type: 'file', body: '' })).toEqual([400, { file_url: 'is required' }])
    for (const type of [undefined, 'text']) {
      expect(await refused({ ...several(mine), type })).toEqual([
        400,
        { attachments: 'can stand only in a message of type file' },
      ])
    }
    expect(await refused({ ...several(mine), file_url: 'https://a.example/other' })).toEqual([
      400,
      { file_url: 'must be that of the first attachment' },
    ])
    const first = { file_url: mine.file_url, client_id: 'first too' }
    const same = await send(a, conversationId, { ...several(mine), ...first })
    expect(same.status).toBe(201)
    const ten = await send(a, conversationId, several(...eleven.slice(1)))
    expect([ten.status, ten.body.attachments.length]).toEqual([201, 10])
  })

  test('count towards the daily text with their names and addresses', async () => {
    const { a, conversationId } = await service.pair()
    const name = 'n'.repeat(255)
    const link = { file_url: `https://files.example.com/${'x'.repeat(2_000)}`, file_name: name }
    const files = Array.from({ length: 10 }, () => link)
    const before = service.sqlite.query('SELECT bytes FROM text_usage WHERE user_id = ?')
    for (let n = 0; n < 3; n++) {
      const sent = await send(a, conversationId, { type: 'file', body: '', attachments: files })
      expect(sent.status).toBe(201)
    }
    // The count is saved every 64 KiB.
    expect(before.get(a.id)).toEqual({ bytes: expect.any(Number) })
  })
})

testAtLength(
  'a message never refers to a file that the clean-up has taken, in either order',
  async () => {
    const { a, b, conversationId } = await service.pair()
    const outcomes = new Set<number>()
    const kept: string[] = []
    // Until each order has occurred.
    for (let round = 0; round < 40 || (outcomes.size < 2 && round < 1_000); round++) {
      const file = await put(a)
      service.sqlite.run('UPDATE files SET unused_since = ? WHERE id = ?', [
        clock.now() - 23 * hour,
        file.id,
      ])
      const cleanUp = aWhile(1).then(() => {
        for (const step of [0, 1]) clock.advance(hour + step)
      })
      const sent = aWhile(1).then(async () => {
        Object.assign(a, await service.login(a.email))
        return send(a, conversationId, fileMessage(file))
      })
      const [{ status }] = await Promise.all([sent, cleanUp])
      outcomes.add(status)
      if (status === 201) kept.push(file.file_url)
      else await isGone(file)
    }
    await pass(48, [a, b])
    expect([...outcomes].sort()).toEqual([201, 400])
    for (const fileUrl of kept) expect(await isThere(fileUrl)).toBe(true)
  },
)

test('bytes that cannot be deleted now are deleted later', async () => {
  const kept = new Map<string, Blob>()
  let isAway = true
  const storage: FileStorage = {
    async write(key, bytes) {
      kept.set(key, await new Response(bytes as never).blob())
    },
    read: async (key, start, end) => kept.get(key)?.slice(start, end),
    async delete(key) {
      if (isAway) throw new Error('the bucket is away')
      kept.delete(key)
    },
  }
  const time = createTestClock()
  await using own = await startService({ clock: time, fileStorage: storage })
  const ada = await own.register()
  const { body } = await upload(own, ada, 'x')
  time.advance(25 * hour)
  await waitFor(() => own.log().includes('the bucket is away'))
  expect((await own.request(new URL(body.file_url).pathname)).status).toBe(404)
  expect([...kept.keys()]).toEqual([body.id])
  isAway = false
  await waitFor(() => {
    time.advance(60_000)
    return kept.size === 0
  })
})

test.each(['its owner', 'an admin'])(
  'that %s removes leaves thousands of messages in short writes',
  async (who) => {
    const { a, conversationId } = await service.pair()
    const root = await service.registerAs('admin')
    const [file, other] = [await put(a), await put(a)]
    const sent = await send(a, conversationId, several(file, other))
    const copies = 500
    service.sqlite.run(
      `WITH RECURSIVE n(i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
     INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, file_url, file_name, file_size, file_type,
       created_at, picture, attachments)
     SELECT conversation_id, i, hex(randomblob(13)), sender_id, type, body, file_url, file_name,
       file_size, file_type, created_at, picture, attachments FROM messages, n WHERE id = ?1`,
      [sent.body.id, copies],
    )
    service.sqlite.run(
      `INSERT OR IGNORE INTO file_uses SELECT id, ? FROM messages WHERE conversation_id = ?`,
      [file.id, conversationId],
    )
    const counted = (sql: string) => service.sqlite.query(sql).values()[0]?.[0]
    const pictures = `SELECT count(*) FROM messages WHERE conversation_id = '${conversationId}' AND picture LIKE '[{%'`
    expect(counted(pictures)).toBe(copies)
    let [statements, most, isOver] = [0, 0, false]
    using _ = { [Symbol.dispose]: () => (isOver = true) }
    watchRuns(() => {
      if (isOver) return
      statements = service.sqlite.inTransaction ? statements + 1 : 0
      most = Math.max(most, statements)
    })
    const [path, { token }] = who === 'an admin' ? ['admin/files', root] : ['files', a]
    expect((await service.call('DELETE', `/v1/${path}/${file.id}`, { token })).status).toBe(204)
    expect(await isThere(file.file_url)).toBe(false)
    await waitFor(
      () => counted(`SELECT count(*) FROM file_uses WHERE file_id = '${file.id}'`) === 0,
    )
    expect(counted(pictures)).toBe(0)
    expect(most).toBeLessThan(copies / 2)
  },
)
