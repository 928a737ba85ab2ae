import { type TSchema, Type } from '@sinclair/typebox'
import { createGuard, fieldProblems } from '../api/fields.ts'
import { type FieldProblem, problem, throwProblems } from '../lib/errors.ts'

/** @returns a function that throws validation_error for the query of a URL, naming each invalid parameter and each
 *  repeated one, known or not */
export function createQueryGuard(parameters: Record<string, TSchema>) {
  // Built on first use, to keep the start short.
  let schema: TSchema | undefined
  let guard = (_: unknown) => {}

  return (url: string): void => {
    const start = url.indexOf('?')
    if (start < 0) return
    const values = new Map<string, unknown>()
    const repeated = new Map<string, FieldProblem>()
    for (const [name, text] of new URLSearchParams(url.slice(start))) {
      if (values.has(name)) repeated.set(name, problem('repeated'))
      values.set(name, parameterValue(text, parameters[name]))
    }
    if (!schema) {
      schema = Type.Partial(Type.Object(parameters))
      guard = createGuard(schema)
    }
    const query = Object.fromEntries(values)
    if (repeated.size === 0) guard(query)
    else throwProblems({ ...fieldProblems(schema, query), ...Object.fromEntries(repeated) })
  }
}

/** Converts a text to the type of its schema. Leaves a text that cannot be converted, which then fails validation. */
function parameterValue(text: string, schema: TSchema | undefined): unknown {
  if (schema?.['type'] === 'integer') return /^-?\d+$/.test(text) ? bounded(Number(text)) : text
  if (schema?.['type'] === 'boolean') return text === 'true' || (text === 'false' ? false : text)
  return text
}

/** Within what a product of two such numbers may be in the database. */
const bounded = (number: number) => Math.max(-1e15, Math.min(1e15, number))
