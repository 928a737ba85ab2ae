import type { Schema, Schemas } from './documents.ts'

/** A schema with its reference followed and null removed. */
export type Resolved = {
  schema: Schema
  /** The name of the shared schema. */
  name: string | undefined
  isNullable: boolean
}

/** Follows references, and takes null out of a union. */
export function resolve(given: Schema, schemas: Schemas): Resolved {
  if (given.$ref !== undefined) {
    const name = given.$ref.slice(given.$ref.lastIndexOf('/') + 1)
    const { $ref: _ref, ...own } = given
    const { schema, isNullable } = resolve(schemas[name] ?? {}, schemas)
    return { schema: { ...schema, ...own }, name, isNullable }
  }
  const branches = given.anyOf
  if (branches?.every(({ const: constant }) => constant !== undefined)) {
    const { anyOf: _anyOf, ...own } = given
    const values = branches.map((branch) => branch.const)
    return {
      schema: { type: 'string', ...own, enum: values },
      name: given.title,
      isNullable: false,
    }
  }
  const others = branches?.filter(({ type }) => type !== 'null') ?? []
  if (!branches || others.length === branches.length)
    return { schema: given, name: given.title, isNullable: false }
  const [only] = others
  if (!only || others.length > 1)
    return { schema: { ...given, anyOf: others }, name: given.title, isNullable: true }
  const { anyOf: _anyOf, ...own } = given
  const inner = resolve(only, schemas)
  return { schema: { ...inner.schema, ...own }, name: inner.name, isNullable: true }
}

/** A piece of the words for a type; names are those of shared schemas. */
export type TypePart = { text: string; isName: boolean }

/** The type in words: `array of Message or null`. */
export function typeParts(given: Schema, schemas: Schemas): TypePart[] {
  const { schema, name, isNullable } = resolve(given, schemas)
  const parts = plainType(schema, name, schemas)
  return isNullable ? [...parts, word(' or null')] : parts
}

const word = (text: string): TypePart => ({ text, isName: false })

function plainType(schema: Schema, name: string | undefined, schemas: Schemas): TypePart[] {
  if (schema.type === 'array') return [word('array of '), ...typeParts(schema.items ?? {}, schemas)]
  if (name !== undefined) return [{ text: name, isName: true }]
  if (schema.format !== undefined) return [word(`${schema.type}, ${schema.format}`)]
  if (schema.type !== undefined) return [word(schema.type)]
  if (schema.allOf) return [word('object')]
  const branches = schema.anyOf?.map((branch) => typeParts(branch, schemas)) ?? []
  if (branches.length === 0) return [word('anything')]
  return branches.flatMap((parts, index) => (index === 0 ? parts : [word(' or '), ...parts]))
}

/** The constraints in words. */
export function boundsOf(schema: Schema): string[] {
  return [
    range(schema.minLength, schema.maxLength, 'characters'),
    range(schema.minItems, schema.maxItems, 'items'),
    range(schema.minimum, schema.maximum, ''),
    schema.pattern && `matches ${schema.pattern}`,
  ].flatMap((bound) => bound || [])
}

function range(from: number | undefined, to: number | undefined, unit: string) {
  const text = rangeText(from, to)
  return text && `${text} ${unit}`.trim()
}

const number = (value: number) => value.toLocaleString('en')

function rangeText(from: number | undefined, to: number | undefined): string | undefined {
  // The largest safe integer is a default, not a limit.
  const end = to === Number.MAX_SAFE_INTEGER ? undefined : to
  if (from === undefined) return end === undefined ? undefined : `at most ${number(end)}`
  if (end === undefined) return `at least ${number(from)}`
  return from === end ? number(from) : `${number(from)} to ${number(end)}`
}

/** The allowed values, if they can be listed. */
export const valuesOf = (schema: Schema): unknown[] =>
  'const' in schema ? [schema.const] : (schema.enum ?? [])

/** The content to unfold: the fields of an object, of an array's items, or the variants of a union.
 *  @returns undefined when there is nothing */
export function insideOf(given: Schema, schemas: Schemas): Schema | undefined {
  const { schema } = resolve(given, schemas)
  if (schema.type === 'array') return insideOf(schema.items ?? {}, schemas)
  if (Object.keys(schema.properties ?? {}).length > 0 || schema.allOf) return schema
  if (typeof schema.additionalProperties === 'object') {
    return insideOf(schema.additionalProperties, schemas)
  }
  const forms = schema.anyOf
  return forms?.some((form) => insideOf(form, schemas)) ? schema : undefined
}

/** The name of a variant: its title, its constant, or the shared schema that only it has. */
export function formName(given: Schema, index: number, schemas: Schemas): string {
  const { schema, name } = resolve(given, schemas)
  if (name !== undefined) return name
  const fields = Object.values(schema.properties ?? {})
  const named = fields.flatMap((field) => resolve(field, schemas).name ?? [])
  const constant = fields.find((field) => typeof field.const === 'string')?.const
  return named.at(-1) ?? (typeof constant === 'string' ? constant : `Form ${index + 1}`)
}
