import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

/** The value of a JSON text of this shape; undefined for every other text. */
export function readJson<Schema extends TSchema>(
  schema: Schema,
  text: string,
): Static<Schema> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Value.Check(schema, value) ? value : undefined
  } catch {
    return undefined
  }
}
