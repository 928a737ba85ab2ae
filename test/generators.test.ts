import { afterAll, expect } from 'bun:test'
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createConsumer, expectError } from './support/consumers.ts'
import { testAtLength } from './support/faults.ts'
import { startService } from './support/service.ts'

// Clients generated from the description by three generators, type-checked strictly and run.

const service = await startService({ listen: true })
const consumer = createConsumer({
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      target: 'ES2022',
      module: 'ESNext',
      moduleResolution: 'Bundler',
      lib: ['ES2022', 'DOM', 'DOM.Iterable'],
      types: [],
      skipLibCheck: false,
    },
  }),
  'orval.config.mjs': `export default {
    hostline: { input: './api.json', output: { target: './orval.ts', client: 'fetch', baseUrl: 'http://localhost:3000' } },
  }`,
})
afterAll(async () => {
  consumer[Symbol.dispose]()
  await service[Symbol.asyncDispose]()
})

const commands = [
  ['openapi-typescript', 'api.json', '-o', 'types.ts'],
  ['openapi-ts', '-i', 'api.json', '-o', 'hey', '-c', '@hey-api/client-fetch'],
  ['orval', '--config', 'orval.config.mjs'],
] as const
const made = ['types.ts', 'hey', 'orval.ts']
const kept = join(import.meta.dir, '../node_modules/.cache/hostline/generated')

// The generators take eight CPU seconds, so they run only when the description or one of them has changed.
async function bringGenerated() {
  const description = await (await service.request('/v1/openapi.json')).text()
  consumer.write({ 'api.json': description })
  const lockfile = readFileSync(join(import.meta.dir, 'consumers/bun.lock'))
  const own = readFileSync(import.meta.path)
  const hasher = new Bun.CryptoHasher('sha256').update(description).update(lockfile).update(own)
  const folder = join(kept, hasher.digest('hex').slice(0, 16))
  const done = join(folder, 'done')
  if (!existsSync(done)) {
    await generate()
    rmSync(kept, { recursive: true, force: true })
    for (const name of made) cpSync(consumer.path(name), join(folder, name), { recursive: true })
    await Bun.write(done, '')
  }
  for (const name of made) cpSync(join(folder, name), consumer.path(name), { recursive: true })
}

async function generate() {
  for (const [name, ...options] of commands) {
    const { exitCode, output } = await consumer.tool(name, ...options)
    expect([exitCode, output]).toEqual([0, output])
  }
}

const imports = `
import type { components } from './types'
import * as hey from './hey'
import * as orval from './orval'
type Schemas = components['schemas']
`

const mistakes = [
  "export const a: Schemas['NewTicket'] = { subject: 's', body: 'b', titel: 't' }",
  "export const b: hey.NewTicket = { subject: 's', body: 'b', titel: 't' }",
  "export const c: orval.NewTicket = { subject: 's', body: 'b', titel: 't' }",
  "hey.serviceSendNotifications({ body: { user_id: 'a', type: 'broadcast', titel: 't' } })",
  "hey.serviceSendNotifications({ body: { user_id: 'a', type: 'custom.moved', title: 7 } })",
  "orval.sendMessage('id', { body: 'b', titel: 't' })",
]

testAtLength(
  'generated code compiles and types the data of a notification, and a misspelt field fails',
  async () => {
    await bringGenerated()
    consumer.write({
      'fine.ts': `${imports}
      type Notification = Schemas['Notification'] | hey.Notification | orval.Notification
      export const amountOf = (notification: Notification): string | undefined =>
        notification.type === 'payment_captured' ? notification.data.amount : undefined
      const data = { amount: '49.90', currency: 'EUR' }
      export const one: Schemas['NewNotification'] = { user_id: 'a', type: 'payment_captured', data }
      export const many: hey.NewNotification = { user_ids: ['a'], type: 'payment_captured', data }
      type Message = Schemas['Message'] | hey.Message | orval.Message
      export const urlOf = (message: Message): string | null =>
        message.type === 'file' ? message.file_url satisfies string : message.file_url
      export const next = (list: Schemas['ConversationCursorPage'] | hey.ConversationCursorPage | orval.ConversationCursorPage) =>
        list.pagination.cursor satisfies string | null
      export type Code = Schemas['ErrorCode'] | hey.ErrorCode | orval.ErrorCode
      export const people: (Schemas['Person'] | hey.Person | orval.Person)[] = []
      export const third: orval.NewNotification = { user_id: 'a', type: 'payment_captured', data }
    `,
      'wrong.ts': imports + mistakes.map(expectError).join(''),
    })
    expect(await consumer.check()).toEqual({ exitCode: 0, output: '' })
  },
)

const conversation = `
import * as api from './hey'
import { createClient } from './hey/client'

const baseUrl = process.argv[2]
async function register(name: string) {
  const body = { email: name + '@example.org', password: 'seven green bicycles', display_name: name }
  const { data } = await api.register({ body, baseUrl, throwOnError: true })
  const client = createClient({ baseUrl, auth: data.access_token, throwOnError: true })
  return { id: data.user.id, client }
}
const [ada, ben] = [await register('ada'), await register('ben')]
const { data: made } = await api.createConversation({ client: ada.client, body: { user_id: ben.id } })
const path = { id: made!.id }
await api.sendMessage({ client: ada.client, path, body: { body: 'See you at ten?' } })
const { data: listed } = await api.listMessages({ client: ben.client, path })
const count = async () => (await api.getUnreadMessageCount({ client: ben.client })).data!.count
const before = await count()
await api.markConversationRead({ client: ben.client, path })
console.log(JSON.stringify([listed!.data.map(({ body }) => body), before, await count()]))
`

testAtLength('two people talk through a generated client, under plain Node', async () => {
  await bringGenerated()
  consumer.write({ 'conversation.ts': conversation })
  const entrypoints = [consumer.path('conversation.ts')]
  await Bun.build({ entrypoints, outdir: consumer.path('built'), target: 'node' })
  const { exitCode, output } = await consumer.node('built/conversation.js', service.base)
  expect([exitCode, output]).toEqual([0, `${JSON.stringify([['See you at ten?'], 1, 0])}\n`])
})
