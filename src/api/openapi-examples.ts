import { isObject } from './fields.ts'
import type { Json } from './openapi-schemas.ts'

/** Composed of the examples of its parts unless the schema has its own. A union uses its first branch that is not null.
 *  @throws Error for a text without an example */
export function createExamples(components: Json) {
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
