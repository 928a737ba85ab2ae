import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Person, startService, type TestService } from './support/service.ts'

let service: TestService
let root: Person
let ada: Person

beforeAll(async () => {
  service = await startService()
  root = await service.registerAs('admin', 'root')
  ada = await service.register('ada')
  for (const name of ['zoe', 'li', 'host']) await service.register(name)
  const rename = (email: string, name: string) =>
    service.sqlite.run('UPDATE users SET display_name = ? WHERE email = ?', [name, email])
  rename('ada@example.com', 'Ada Gräfin Lovelace')
  rename('zoe@example.com', '100% Zoë_')
  rename('li@example.com', '李明')
  service.sqlite.run("UPDATE users SET external_id = 'crm-7' WHERE email = 'zoe@example.com'")
  service.sqlite.run("UPDATE users SET role = 'host' WHERE email = 'host@example.com'")
})
afterAll(() => service[Symbol.asyncDispose]())

const find = (query: string) =>
  service.call('GET', `/v1/admin/users?${query}`, { token: root.token })
const namesOf = ({ body }: Awaited<ReturnType<typeof find>>) =>
  body.data.map(({ email }: { email: string }) => email.split('@')[0])

test.each([
  ['LOVE', ['ada']],
  ['gräfin love', ['ada']],
  ['GRAFIN', ['ada']],
  ['zoe', ['zoe']],
  ['zöe_', ['zoe']],
  ['0% Z', ['zoe']],
  ['da@ex', ['ada']],
  ['example.com', ['root', 'ada', 'zoe', 'li', 'host']],
  ['l', ['li']],
  ['gr', ['ada']],
  ['李明', ['li']],
  ['crm-7', ['zoe']],
  ['%', []],
  ['"', []],
  ["' OR 1=1 --", []],
  ['r:a', []],
  ['NOT ada', []],
])('%s is found in %j', async (q, expected) => {
  expect(namesOf(await find(`q=${encodeURIComponent(q)}`))).toEqual(expected)
})

test('an id finds its user, in either form', async () => {
  expect(namesOf(await find(`q=${ada.id}`))).toEqual(['ada'])
  expect(namesOf(await find(`q=${ada.id.toLowerCase()}`))).toEqual(['ada'])
})

test.each([
  ['role=host', ['host']],
  ['role=admin&q=root', ['root']],
  ['role=admin&q=ada', []],
  ['role=admin&q=crm-7', []],
  ['email_verified=true', ['root']],
  ['email_verified=false&role=user', ['ada', 'zoe', 'li']],
  ['disabled=true', []],
  ['disabled=false&q=lovelace', ['ada']],
])('%s filters', async (query, expected) => {
  const answer = await find(query)
  expect(namesOf(answer)).toEqual(expected)
  expect(answer.body.pagination.total).toBe(expected.length)
})

test('an unknown filter is refused by name', async () => {
  const { status, body } = await find('role=king&disabled=maybe&q=a%00b')
  expect([status, Object.keys(body.error.details)]).toEqual([400, ['q', 'role', 'disabled']])
})

test('pages and cursors cover the results, oldest account first', async () => {
  const everybody = ['root', 'ada', 'zoe', 'li', 'host']
  const second = await find('q=example&page=2&per_page=2')
  expect([namesOf(second), second.body.pagination.total]).toEqual([everybody.slice(2, 4), 5])
  const seen: string[] = []
  let query = 'q=example&limit=2'
  for (let cursor = ''; cursor !== null; query = `q=example&limit=2&cursor=${cursor}`) {
    const answer = await find(query)
    seen.push(...namesOf(answer))
    cursor = answer.body.pagination.cursor
  }
  expect(seen).toEqual(everybody)
})

test('the index follows a new name, a new role, and a removed user', async () => {
  const eve = await service.register('eve')
  const path = `/v1/admin/users/${eve.id}`
  await service.call('PATCH', '/v1/users/me', { token: eve.token, body: { display_name: 'Nova' } })
  expect(namesOf(await find('q=nova'))).toEqual(['eve'])
  await service.call('PATCH', path, { token: root.token, body: { disabled: true, role: 'guest' } })
  expect(namesOf(await find('disabled=true&role=guest'))).toEqual(['eve'])
  await service.call('DELETE', path, { token: root.token })
  for (const query of ['q=nova', 'disabled=true', 'q=Deleted', `q=${eve.id}`]) {
    expect(namesOf(await find(query))).toEqual([])
  }
})
