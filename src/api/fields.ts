import {
  Kind,
  type ObjectOptions,
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  type TUnsafe,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import type { ValueError } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { parseTime } from '../lib/clock.ts'
import {
  AppError,
  type FieldProblem,
  type FieldProblemKey,
  type FieldProblems,
  problem,
} from '../lib/errors.ts'
import { parseExternalId, parseId } from '../lib/ids.ts'
import { isHttpUrl, isMediaType, normalizeEmail, type TextRule, textProblem } from '../lib/text.ts'
import { samples } from './samples.ts'

/** Field types beyond plain JSON Schema, each a TypeBox kind with its own check. The API description shows their JSON
 *  Schema part. */
type Check = (schema: TSchema, value: unknown) => FieldProblem | undefined
const checks = new Map<string, Check>()

// Symbol keys are copied with a schema but left out of its JSON.
const ruleKey = Symbol('rule')
const refinementKey = Symbol('refinement')
const checkKey = Symbol('check')
type WithCheck = { [checkKey]: (value: string) => FieldProblem | undefined }
type WithRule = { [ruleKey]: TextRule }
type WithRefinement = { [refinementKey]?: Refinement }

function kind(name: string, check: Check) {
  checks.set(name, check)
  TypeRegistry.Set<TSchema>(name, (schema, value) => check(schema, value) === undefined)
}

function stringKind(
  name: string,
  check: (schema: TSchema, value: string) => FieldProblem | undefined,
) {
  kind(name, (schema, value) =>
    typeof value === 'string' ? check(schema, value) : problem('not_a_string'),
  )
}

stringKind('Text', (schema, value) => textProblem(value, (schema as TSchema & WithRule)[ruleKey]))
stringKind('Email', (_, value) => (normalizeEmail(value) ? undefined : problem('email')))
stringKind('Id', (_, value) => (parseId(value) ? undefined : problem('id')))
stringKind('PersonId', (_, value) =>
  (parseExternalId(value) ?? parseId(value)) ? undefined : problem('id'),
)
stringKind('HttpUrl', (schema, value) => {
  if (value.length > schema['maxLength']) return problem('too_long', schema['maxLength'])
  return isHttpUrl(value) ? undefined : problem('http_url')
})
stringKind('MediaType', (schema, value) => {
  if (value.length > schema['maxLength']) return problem('too_long', schema['maxLength'])
  return isMediaType(value) ? undefined : problem('media_type')
})

stringKind('CheckedText', (schema, value) => (schema as TSchema & WithCheck)[checkKey](value))

function stringOf(name: string, options: Record<string, unknown>): TUnsafe<string> {
  return Type.Unsafe<string>({ ...options, type: 'string', [Kind]: name })
}

type Annotations = { description?: string; examples?: unknown[] }

/** Text that follows `rule`; lengths count code points. */
export function Text(rule: TextRule, annotations: Annotations = {}) {
  return stringOf('Text', {
    ...annotations,
    ...(rule.min !== undefined && { minLength: rule.min }),
    maxLength: rule.max,
    [ruleKey]: rule,
  })
}

/** Text with its own check, which returns the problem. */
export function CheckedText(
  check: (value: string) => FieldProblem | undefined,
  annotations: Annotations = {},
) {
  return stringOf('CheckedText', { ...annotations, [checkKey]: check })
}

/** ISO 8601 with a time zone, as `parseTime` reads it. */
export const Time = (annotations: Annotations = {}) =>
  CheckedText((text) => (parseTime(text) === undefined ? problem('time') : undefined), {
    examples: [samples.later],
    ...annotations,
  })

export const Email = () =>
  stringOf('Email', { format: 'email', maxLength: 254, examples: [samples.guest.email] })
/** A ULID, or the UUID of the same 128 bits. */
export const Id = (annotations: Annotations = {}) => stringOf('Id', annotations)
/** A person in the service feed: an id, or `ext:` and an external id. */
export const PersonId = (example: string = samples.guest.id) =>
  stringOf('PersonId', {
    description: 'An id, or `ext:` and an external id.',
    examples: [example],
  })
export const HttpUrl = (maxLength: number, annotations: Annotations = {}) =>
  stringOf('HttpUrl', { ...annotations, format: 'uri', maxLength })
export const MediaType = (maxLength: number) =>
  stringOf('MediaType', { maxLength, examples: [samples.file.type] })

export const ClientId = Text(
  { min: 1, max: 64 },
  {
    description: 'Idempotency key: a repeated request with the same key returns the first result.',
    examples: ['d7c0-42'],
  },
)

/** ISO 8601 UTC with milliseconds. */
export const Timestamp = Type.String({ format: 'date-time', examples: [samples.time] })

/** Text in a response, with an example. */
export const Sample = (example: string, annotations: Annotations & { format?: string } = {}) =>
  Type.String({ ...annotations, examples: [example] })

export const Nullable = <T extends TSchema>(schema: T, annotations: Annotations = {}) =>
  Type.Union([schema, Type.Null()], annotations)
export const Rarely = <T extends TSchema>(schema: T) => Nullable(schema, { examples: [null] })

/** A reference to a schema that is described elsewhere, by its title. */
export const named = (title: string) =>
  Type.Unsafe<object>({ $ref: `#/components/schemas/${title}` })

export const NamedPerson = ({ id, name }: { id: string; name: string }) =>
  Type.Object({ id: Sample(id), display_name: Sample(name) })

export const UnreadCount = Type.Object(
  { count: Type.Integer({ examples: [3] }) },
  { title: 'UnreadCount' },
)

/** Options of an object that ignores unknown fields. By default Elysia refuses them. */
export const open = { additionalProperties: true } as const

/** A request body. Unknown fields are ignored. */
export const Body = <T extends TProperties>(
  title: string,
  properties: T,
  options: ObjectOptions = {},
) => Type.Object(properties, { title, ...open, ...options })

/** The body of a PATCH. It must contain at least one field; a null field counts as absent.
 *  @param nullable fields that may be changed to null, which therefore count */
export function Change<T extends TObject>(object: T, nullable: readonly string[] = []) {
  const names = Object.keys(object.properties)
  return Refined(object, (value: Record<string, unknown>) => {
    const isNamed = (name: string) =>
      value[name] !== undefined && (value[name] !== null || nullable.includes(name))
    return names.some(isNamed) ? {} : { body: problem('nothing_to_change') }
  })
}

/** One of a closed set of words. */
export const OneOf = <const T extends readonly string[]>(
  values: T,
  annotations: Annotations = {},
) =>
  Type.Union(
    values.map((value) => Type.Literal(value as T[number])),
    annotations,
  )

/** An optional field. Null counts as absent, because many clients write absent fields that way. */
export const Maybe = <T extends TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

/** Checks values against a schema. It is compiled on first use: compiling all schemas would take a third of the startup
 *  time. */
function createCheck(schema: TSchema): (value: unknown) => boolean {
  let compiled: TypeCheck<TSchema> | undefined
  return (value) => {
    compiled ??= TypeCompiler.Compile(schema)
    return compiled.Check(value)
  }
}

/** @returns a function that throws validation_error, naming each invalid field */
export function createGuard(schema: TSchema): (value: unknown) => void {
  const check = createCheck(schema)
  return (value) => {
    if (check(value)) return
    throw new AppError('validation_error', { details: fieldProblems(schema, value) })
  }
}

type Refinement = {
  check: (value: unknown) => boolean
  problems: (value: unknown) => FieldProblems
}

kind('Refined', (schema, value) => {
  const refined = refinementOf(schema)
  const isValid = refined?.check(value) && Object.keys(refined.problems(value)).length === 0
  return isValid ? undefined : problem('invalid')
})

/** An object with rules across fields. `problems` returns the invalid fields; it also runs when single fields are missing
 *  or invalid. */
export function Refined<T extends TObject>(
  object: T,
  problems: (value: Partial<Static<T>>) => FieldProblems,
) {
  return Type.Unsafe<Static<T>>({
    ...object,
    [Kind]: 'Refined',
    [refinementKey]: {
      check: createCheck(object),
      // Called only for objects; `problems` must expect missing and invalid fields.
      problems: (value) => problems(value as Partial<Static<T>>),
    } satisfies Refinement,
  })
}

/** Limits the response to a body full of mistakes; the longest list in a body has as many entries. */
const maxProblems = 1_000

/** The problems of an invalid value, each under its path, such as `data.amount` or `user_ids.3`. A problem of the whole
 *  value has the key `body`. */
export function fieldProblems(schema: TSchema, value: unknown): FieldProblems {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { body: problem('not_an_object') }
  }
  const refined = refinementOf(schema)
  const errors = leafErrors(refined ? { ...schema, [Kind]: 'Object' } : schema, value)
  const found: FieldProblems = {}
  for (const error of errors.take(maxProblems)) found[fieldOf(error)] ??= problemOf(error)
  return refined ? { ...refined.problems(value), ...found } : found
}

function refinementOf(schema: TSchema) {
  return (schema as TSchema & WithRefinement)[refinementKey]
}

/** Yields the errors in a value. TypeBox only reports "neither matches" for a nullable field, so this yields the errors
 *  of its non-null branch instead. */
function* leafErrors(schema: TSchema, value: unknown, path = ''): Generator<ValueError> {
  for (const error of Value.Errors(schema, value)) {
    const fullPath = path + error.path
    const inner = withoutNull(error.schema)
    if (inner === error.schema) yield { ...error, path: fullPath }
    else yield* leafErrors(inner, error.value, fullPath)
  }
}

/** The field name for a JSON pointer (RFC 6901). */
function fieldOf({ path }: ValueError): string {
  const names = path.split('/').slice(1)
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')).join('.') || 'body'
}

function problemOf({ schema, value }: ValueError): FieldProblem {
  const choices = choicesOf(schema)
  if (value === undefined) return problem('required')
  if (choices.length > 0) return problem('one_of', choices.join(', '))
  const found = checks.get(schema[Kind])?.(schema, value)
  if (found) return found
  if (Number.isInteger(value) && Number(value) < schema['minimum']) {
    return problem('too_small', schema['minimum'])
  }
  if (Number.isInteger(value) && Number(value) > schema['maximum']) {
    return problem('too_big', schema['maximum'])
  }
  // An object with a wrong field still has the right type.
  const isContainer =
    typeof value === 'object' && Array.isArray(value) === (schema['type'] === 'array')
  return problem((!isContainer && wrongType[schema['type']]) || 'invalid')
}

const wrongType: Record<string, FieldProblemKey> = {
  string: 'not_a_string',
  integer: 'not_an_integer',
  boolean: 'not_a_boolean',
  array: 'not_a_list',
  object: 'not_an_object',
}

function withoutNull(schema: TSchema): TSchema {
  const options: TSchema[] = schema['anyOf'] ?? []
  const others = options.filter((option) => option['type'] !== 'null')
  return others.length === 1 && others[0] ? others[0] : schema
}

function choicesOf(schema: TSchema): string[] {
  const options: TSchema[] | undefined = schema['anyOf']
  if (options) return options.flatMap(choicesOf)
  return typeof schema['const'] === 'string' ? [schema['const']] : []
}

/** Parses JSON of this shape; undefined for any other text. */
export function parseJson<T extends TSchema>(schema: T, text: string): Static<T> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Value.Check(schema, value) ? value : undefined
  } catch {
    return undefined
  }
}
