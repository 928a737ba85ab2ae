export type Json = { [key: string]: unknown }

/** Collects the schemas that a description shares. */
export function createSchemas() {
  const schemas: Json = {}

  /** The JSON form of a schema. One with a title becomes a component of that name wherever it appears. */
  function lift(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(lift)
    if (typeof value !== 'object' || value === null) return value
    const literals = literalsOf(value as Json)
    if (literals) return literals
    const lifted = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, lift(part)]))
    const { title } = lifted
    if (typeof title !== 'string') return lifted
    schemas[title] = lifted
    return { $ref: `#/components/schemas/${title}` }
  }

  return { lift, schemas }
}

/** `enum` for a union of text literals, which says the same in one line. */
function literalsOf({ anyOf, ...rest }: Json): Json | undefined {
  if (!Array.isArray(anyOf)) return undefined
  const values = anyOf.map((option: Json) => option['const'])
  if (!values.every((value) => typeof value === 'string')) return undefined
  return { ...rest, type: 'string', enum: values }
}
