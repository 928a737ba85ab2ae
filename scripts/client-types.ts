import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fieldWords } from '../src/api/field-words.ts'
import type { Json } from '../src/api/openapi-schemas.ts'
import { readConfig } from '../src/config.ts'
import { createLog } from '../src/lib/log.ts'
import { customTypePattern } from '../src/lib/vocabulary.ts'
import { openService } from '../src/serve.ts'

type Content = { content?: Record<string, { schema: Json }>; required?: boolean }
type Parameter = { in: string; name: string; schema: Json }
type Operation = {
  summary: string
  parameters?: Parameter[]
  requestBody?: Content
  responses: Record<string, Content>
}
type Documents = { openapi: Json; asyncapi: Json }

const banner = '// Made by scripts/client-types.ts from the descriptions of the service.\n'
// biome-ignore lint/suspicious/noTemplateCurlyInString: a type as it stands in the client
const customType = '`custom.${string}`'
// The generator adds the other properties of the object.
const channelsOfOthers =
  /\[k: string\]:[\s|]*(NotificationChannels\w*)((?:\s*\| null)?)\s*\| \{[^}]*\}/g
const wordsOfNames = new Set(Object.values(fieldWords))
const project = fileURLToPath(new URL('..', import.meta.url))

/** Generates the client's types from the service's OpenAPI and AsyncAPI documents: `bun scripts/client-types.ts
 *  [FILE]`. */
if (import.meta.main) {
  const file = process.argv[2] ?? join(project, 'client/src/schema.ts')
  writeFileSync(file, await generateTypes())
}

export async function generateTypes(): Promise<string> {
  return generate(contractOf(await describe()))
}

async function describe(): Promise<Documents> {
  const dataDir = mkdtempSync(join(tmpdir(), 'hostline-types-'))
  const log = createLog({ level: 'error', format: 'json', now: Date.now, write: console.error })
  const config = { ...readConfig({}, false), dataDir }
  const service = await openService(config, log, (error) => {
    throw error
  })
  const read = async (name: string) => {
    const answer = await service.app.handle(new Request(`http://localhost/v1/${name}.json`))
    return (await answer.json()) as Json
  }
  const documents = { openapi: await read('openapi'), asyncapi: await read('asyncapi') }
  await service.close()
  rmSync(dataDir, { recursive: true })
  return documents
}

/** The client's part of both documents: operations with JSON bodies, frames, reasons. */
function contractOf({ openapi, asyncapi }: Documents): Json {
  const { schemas } = openapi['components'] as { schemas: Json }
  const channel = asyncapi['components'] as { schemas: Json; messages: Json }
  return {
    ...channel.schemas,
    ...schemas,
    Operations: operationsOf(openapi['paths'] as Record<string, Record<string, Operation>>),
    ServerFrames: framesOf(channel.messages, 'server_'),
    ClientFrames: framesOf(channel.messages, 'client_'),
    WebhookEvent: eventsOf(openapi),
    ErrorReason: { type: 'string', enum: reasonsOf(openapi) },
  }
}

/** Operations by method and path with their input and response; null for an empty response. */
function operationsOf(paths: Record<string, Record<string, Operation>>): Json {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [
      `${method.toUpperCase()} ${path}`,
      formOf(operation),
    ]),
  )
  return wholeObject(Object.fromEntries(operations))
}

function formOf({ summary, parameters = [], requestBody, responses }: Operation): Json {
  const inside = (place: string) => parameters.filter((parameter) => parameter.in === place)
  const byName = (found: Parameter[]) =>
    Object.fromEntries(found.map(({ name, schema }) => [name, schema]))
  const [path, query] = [inside('path'), inside('query')]
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const [body, answer] = [requestBody, success].map((it) => it?.content?.['application/json'])
  const properties = {
    ...(path.length > 0 && { params: wholeObject(byName(path)) }),
    ...(query.length > 0 && { query: { type: 'object', properties: byName(query) } }),
    ...(body && { body: body.schema }),
    answer: answer?.schema ?? { type: 'null' },
  }
  const optional = ['query', requestBody?.required === false && 'body']
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return { type: 'object', description: summary, properties, required }
}

/** An object with all properties required. */
function wholeObject(properties: Json): Json {
  return { type: 'object', properties, required: Object.keys(properties) }
}

function framesOf(messages: Json, prefix: string): Json {
  const own = Object.entries(messages).filter(([name]) => name.startsWith(prefix))
  const properties = Object.fromEntries(
    own.map(([name, message]) => {
      const { payload } = message as { payload: Json }
      return [name.slice(prefix.length), payload['schema']]
    }),
  )
  return wholeObject(properties)
}

/** The union of the bodies of webhook requests. */
function eventsOf(openapi: Json): Json {
  const webhooks = openapi['webhooks'] as Record<string, { post: { requestBody: Content } }>
  const bodies = Object.values(webhooks).map(({ post }) => post.requestBody.content)
  return { anyOf: bodies.map((content) => content?.['application/json']?.schema) }
}

function reasonsOf(openapi: Json): string[] {
  const { responses } = openapi['components'] as { responses: Record<string, Json> }
  const found = Object.values(responses).flatMap(({ headers }) => {
    const header = (headers as Json)['X-Error-Reason'] as { schema: { enum: string[] } } | undefined
    return header?.schema.enum ?? []
  })
  return [...new Set(found)].sort()
}

/** @returns an interface for each schema
 *  @throws when the generator of test/consumers is not installed, or refuses a schema */
async function generate(schemas: Json): Promise<string> {
  const definitions = JSON.stringify(schemas, simplified).replaceAll(
    '#/components/schemas/',
    '#/definitions/',
  )
  const tool = join(project, 'test/consumers/node_modules/.bin/json2ts')
  const options = [
    '--no-additionalProperties',
    '--unreachableDefinitions',
    '--bannerComment',
    banner,
  ]
  const child = Bun.spawn([process.execPath, tool, ...options], {
    stdin: new Blob([`{"title": "Contract", "definitions": ${definitions}}`]),
    stdout: 'pipe',
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error('json2ts failed')
  return formatted(withoutOrigins(text))
}

/** The generator copies a type that is referred to with an annotation, and makes tuples, which reject the result of `map`,
 *  of arrays with bounds. */
function simplified(keyword: string, value: unknown) {
  // The name of the field says as much.
  if (keyword === 'description' && wordsOfNames.has(String(value))) return undefined
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const { minItems, maxItems, ...rest } = value as Json
  // The types of notifications of the platform.
  if (rest['pattern'] === customTypePattern) return { tsType: customType }
  return '$ref' in rest ? { $ref: rest['$ref'] } : rest
}

/** Removes the generator's comments about the origin of each interface. */
function withoutOrigins(text: string) {
  return text
    .replace(/export interface Contract \{[^}]*\}\n/, '')
    .replaceAll(/ \* (This interface was referenced by|via the `definition`) .*\n/g, '')
    .replaceAll(/( \*\n)+(?= \*\/)/g, '')
    .replaceAll(/\/\*\*\n \*\/\n/g, '')
    .replaceAll(channelsOfOthers, `[type: ${customType}]: $1$2`)
}

async function formatted(text: string) {
  const tool = join(project, 'node_modules/.bin/biome')
  const command = [process.execPath, tool, 'format', '--stdin-file-path=client/src/schema.ts']
  const child = Bun.spawn(command, { cwd: project, stdin: new Blob([text]), stdout: 'pipe' })
  return child.stdout.text()
}
