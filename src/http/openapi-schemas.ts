import { shownAsKeyword } from '../lib/shown-as.ts'

export type Json = { [key: string]: unknown }

/** Collects the schemas that a description shares. */
export function createSchemas() {
  const schemas: Json = {}

  /** The JSON form of a schema. One with a title becomes a component of that name wherever it appears. */
  function lift(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(lift)
    if (typeof value !== 'object' || value === null) return value
    const { [shownAsKeyword]: form, ...plain } = value as Json
    if (form !== undefined) return lift(form)
    const rest = literalsOf(plain) ?? mapOf(plain) ?? plain
    const lifted = Object.fromEntries(
      // What is in an example is no schema.
      Object.entries(rest).map(([key, part]) => [key, key === 'examples' ? part : lift(part)]),
    )
    const { title } = lifted
    if (typeof title !== 'string') return lifted
    schemas[title] = lifted
    return { $ref: `#/components/schemas/${title}` }
  }

  return { lift, schemas }
}

/** Without the keyword that a map of texts has in place of `additionalProperties`, which generators know. */
function mapOf({ patternProperties, ...rest }: Json): Json | undefined {
  if (patternProperties === undefined) return undefined
  return { ...rest, additionalProperties: Object.values(patternProperties as Json)[0] }
}

/** `enum` for a union of text literals, which says the same in one line. */
function literalsOf({ anyOf, ...rest }: Json): Json | undefined {
  if (!Array.isArray(anyOf)) return undefined
  const values = anyOf.map((option: Json) => option['const'])
  if (!values.every((value) => typeof value === 'string')) return undefined
  return { ...rest, type: 'string', enum: values }
}

/** A body as generated clients shall see it: a misspelt field is then a mistake that a compiler finds. The server ignores
 *  fields that it does not know. */
export const closed = (schema: object) =>
  withoutKeywords(schema, (keyword, value) => keyword === 'additionalProperties' && value === true)

/** The JSON form of a schema without some keywords, at any depth. */
export function withoutKeywords(
  schema: object,
  isUnwanted: (keyword: string, value: unknown) => boolean,
): Json {
  return JSON.parse(
    JSON.stringify(schema, (key, value) => (isUnwanted(key, value) ? undefined : value)),
  )
}
