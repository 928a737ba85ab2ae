import { fieldWords } from './field-words.ts'
import { isObject } from './fields.ts'

export type Json = { [key: string]: unknown }

const prefix = '#/components/schemas/'

export function createSchemas() {
  const schemas: Record<string, Json> = {}

  /** A schema with a title becomes a component of that name, wherever it appears.
   *  @throws Error for two different schemas with one title */
  function lift(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(lift)
    if (typeof value !== 'object' || value === null) return value
    const plain = value as Json
    const rest = literalsOf(plain) ?? mapOf(plain) ?? plain
    const lifted = Object.fromEntries(
      // Examples are data and hold no schemas.
      Object.entries(rest).map(([key, part]) => [key, key === 'examples' ? part : lift(part)]),
    )
    describeFields(lifted)
    const { title } = lifted
    if (typeof title !== 'string') return lifted
    // Words of a closed set are described where they are used.
    schemas[title] ??= lifted['enum'] === undefined ? lifted : formOf(lifted)
    const known = schemas[title]
    if (!Bun.deepEquals(formOf(known), formOf(lifted)))
      throw new Error(`two schemas named ${title}`)
    return { $ref: prefix + title, ...differences(lifted, known) }
  }

  function describeFields({ properties }: Json) {
    if (properties === undefined) return
    const fields = properties as Record<string, Json>
    for (const [name, field] of Object.entries(fields)) {
      const words = fieldWords[name]
      if (words !== undefined && !hasWords(field)) fields[name] = { ...field, description: words }
    }
  }

  function hasWords({ $ref, anyOf, ...schema }: Json): boolean {
    if ('const' in schema || 'description' in schema) return true
    if (Array.isArray(anyOf)) return anyOf.some(hasWords)
    const component = typeof $ref === 'string' ? schemas[$ref.slice(prefix.length)] : undefined
    return component?.['description'] !== undefined
  }

  return { lift, schemas, exampleOf: createExamples(schemas) }
}

/** Keywords that a use of a component may have of its own, beside its reference. */
const annotations = ['examples', 'description', 'default']

const formOf = (schema: Json) =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => !annotations.includes(keyword)))

function differences(schema: Json, known: Json) {
  const own = annotations.filter((keyword) => !Bun.deepEquals(schema[keyword], known[keyword]))
  return Object.fromEntries(own.map((keyword) => [keyword, schema[keyword]]))
}

/** Replaces the `patternProperties` of a map of texts by `additionalProperties`, which code generators support. */
function mapOf({ patternProperties, ...rest }: Json): Json | undefined {
  if (patternProperties === undefined) return undefined
  return { ...rest, additionalProperties: Object.values(patternProperties as Json)[0] }
}

function literalsOf({ anyOf, ...rest }: Json): Json | undefined {
  if (!Array.isArray(anyOf)) return undefined
  const values = anyOf.map((option: Json) => option['const'])
  return values.every((value) => typeof value === 'string')
    ? { ...rest, type: 'string', enum: values }
    : undefined
}

/** Composed of the examples of its parts unless the schema has its own. A union uses its first branch that is not null.
 *  @throws Error for a text without an example */
function createExamples(components: Json) {
  function exampleOf(schema: Json, name: string): unknown {
    const { $ref, examples, allOf, anyOf } = schema
    if (Array.isArray(examples)) return examples[0]
    if (typeof $ref === 'string') return exampleOf(referred($ref), name)
    const branch = (anyOf as Json[] | undefined)?.find(({ type }) => type !== 'null')
    if (branch) return exampleOf(branch, name)
    if (Array.isArray(allOf)) return allOf.map((part: Json) => exampleOf(part, name)).reduce(merged)
    if (schema['type'] === 'object') return objectExample(schema)
    if (schema['type'] === 'array') return [exampleOf(schema['items'] as Json, name)]
    return simpleExample(schema, name)
  }

  function objectExample({ properties = {} }: Json) {
    const entries = Object.entries(properties as Record<string, Json>).filter(isShown)
    return Object.fromEntries(entries.map(([name, part]) => [name, exampleOf(part, name)]))
  }

  function referred($ref: string): Json {
    const schema = components[$ref.slice($ref.lastIndexOf('/') + 1)]
    if (schema === undefined) throw new Error(`${$ref} leads nowhere`)
    return schema as Json // every component is a schema
  }

  return exampleOf
}

const isShown = ([, { examples }]: [string, Json]) =>
  !Array.isArray(examples) || examples.length > 0

export function merged(example: unknown, other: unknown): unknown {
  if (!isObject(example) || !isObject(other)) return other
  const fields = Object.entries(other).map(([name, value]) => [name, merged(example[name], value)])
  return { ...example, ...Object.fromEntries(fields) }
}

function simpleExample(schema: Json, name: string): unknown {
  if ('const' in schema) return schema['const']
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  const example = simple[String(schema['type'])]
  if (example === undefined) throw new Error(`${name} has no example`)
  return example
}

const simple: Record<string, unknown> = { boolean: false, integer: 1, number: 1 }

/** Without unknown fields, which the server ignores, so that compilers of generated clients find misspelt ones. */
export const closed = (schema: object): Json =>
  JSON.parse(
    JSON.stringify(schema, (keyword, value) =>
      keyword === 'additionalProperties' && value === true ? undefined : value,
    ),
  )
