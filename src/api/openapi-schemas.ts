export type Json = { [key: string]: unknown }

export function createSchemas() {
  const schemas: Json = {}

  /** The JSON form of a schema. A schema with a title becomes a component of that name, wherever it appears. */
  function lift(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(lift)
    if (typeof value !== 'object' || value === null) return value
    const plain = value as Json
    const rest = literalsOf(plain) ?? mapOf(plain) ?? plain
    const lifted = Object.fromEntries(
      // Examples are data and hold no schemas.
      Object.entries(rest).map(([key, part]) => [key, key === 'examples' ? part : lift(part)]),
    )
    const { title } = lifted
    if (typeof title !== 'string') return lifted
    schemas[title] = lifted
    return { $ref: `#/components/schemas/${title}` }
  }

  return { lift, schemas }
}

/** Replaces the `patternProperties` of a map of texts by `additionalProperties`, which code generators support. */
function mapOf({ patternProperties, ...rest }: Json): Json | undefined {
  if (patternProperties === undefined) return undefined
  return { ...rest, additionalProperties: Object.values(patternProperties as Json)[0] }
}

/** Replaces a union of text literals by `enum`. */
function literalsOf({ anyOf, ...rest }: Json): Json | undefined {
  if (!Array.isArray(anyOf)) return undefined
  const values = anyOf.map((option: Json) => option['const'])
  if (!values.every((value) => typeof value === 'string')) return undefined
  return { ...rest, type: 'string', enum: values }
}

/** The schema of a body without unknown fields, so that compilers of generated clients find misspelt ones. The server
 *  ignores unknown fields. */
export const closed = (schema: object): Json =>
  JSON.parse(
    JSON.stringify(schema, (keyword, value) =>
      keyword === 'additionalProperties' && value === true ? undefined : value,
    ),
  )
