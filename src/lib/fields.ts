import {
  Kind,
  type Static,
  type TObject,
  type TSchema,
  type TUnsafe,
  Type,
  TypeRegistry,
} from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import type { ValueError } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { parseTime } from './clock.ts'
import {
  AppError,
  type FieldProblem,
  type FieldProblemKey,
  type FieldProblems,
  problem,
} from './errors.ts'
import { parseExternalId, parseId } from './ids.ts'
import { samples } from './samples.ts'
import { isHttpUrl, isMediaType, normalizeEmail, type TextRule, textProblem } from './text.ts'

/** Field types of the contract that plain JSON Schema cannot say. Each is a TypeBox kind: Elysia validates with it,
 *  the API description shows its JSON Schema part, and `fieldProblems` asks it what to tell the client. */
type Judge = (schema: TSchema, value: unknown) => FieldProblem | undefined
const judges = new Map<string, Judge>()

// Symbol keys travel with a copied schema and stay out of its JSON.
const ruleKey = Symbol('rule')
const refinementKey = Symbol('refinement')
const checkKey = Symbol('check')
type WithCheck = { [checkKey]: (value: string) => FieldProblem | undefined }
type WithRule = { [ruleKey]: TextRule }
type WithRefinement = { [refinementKey]?: Refinement }

function kind(name: string, judge: Judge) {
  judges.set(name, judge)
  TypeRegistry.Set<TSchema>(name, (schema, value) => judge(schema, value) === undefined)
}

function stringKind(
  name: string,
  judge: (schema: TSchema, value: string) => FieldProblem | undefined,
) {
  kind(name, (schema, value) =>
    typeof value === 'string' ? judge(schema, value) : problem('not_a_string'),
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

/** Text under `rule`, whose lengths count code points. */
export function Text(rule: TextRule, annotations: Annotations = {}) {
  return stringOf('Text', {
    ...annotations,
    ...(rule.min !== undefined && { minLength: rule.min }),
    maxLength: rule.max,
    [ruleKey]: rule,
  })
}

/** Text with a rule of its own, which says what is wrong. */
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
/** A person as the feed names them: by id, or as `ext:` and an external id. */
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
    description: 'Idempotency key: sending again with the same one gives the first answer.',
    examples: ['d7c0-42'],
  },
)

/** ISO 8601 UTC with milliseconds. */
export const Timestamp = Type.String({ format: 'date-time', examples: [samples.time] })

/** Text of an answer, with what it looks like. */
export const Sample = (example: string, annotations: Annotations & { format?: string } = {}) =>
  Type.String({ ...annotations, examples: [example] })

export const Nullable = <T extends TSchema>(schema: T, annotations: Annotations = {}) =>
  Type.Union([schema, Type.Null()], annotations)
/** What is null in most answers. */
export const Rarely = <T extends TSchema>(schema: T) => Nullable(schema, { examples: [null] })

/** Somebody as others see them. */
export const NamedPerson = ({ id, name }: { id: string; name: string }) =>
  Type.Object({ id: Sample(id), display_name: Sample(name) })

export const UnreadCount = Type.Object(
  { count: Type.Integer({ examples: [3] }) },
  { title: 'UnreadCount' },
)

/** One of a closed set of words. */
export const OneOf = <const T extends readonly string[]>(
  values: T,
  annotations: Annotations = {},
) =>
  Type.Union(
    values.map((value) => Type.Literal(value as T[number])),
    annotations,
  )

/** A field that may be left out; null counts as left out, since many clients write absent fields so. */
export const Maybe = <T extends TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

/** Whether values fit a schema. It is compiled when first asked: all of them together would take a third of a start. */
function createCheck(schema: TSchema): (value: unknown) => boolean {
  let compiled: TypeCheck<TSchema> | undefined
  return (value) => {
    compiled ??= TypeCompiler.Compile(schema)
    return compiled.Check(value)
  }
}

/** @returns a function that throws validation_error, naming each failing field, for a value that does not fit */
export function createGuard(schema: TSchema): (value: unknown) => void {
  const check = createCheck(schema)
  return (value) => {
    if (check(value)) return
    throw new AppError('validation_error', { details: fieldProblems(schema, value) })
  }
}

type Refinement = {
  check: (value: unknown) => boolean
  problems: (value: never) => FieldProblems
}

kind('Refined', (schema, value) => {
  const refined = refinementOf(schema)
  const fits = refined?.check(value) && Object.keys(refined.problems(value as never)).length === 0
  return fits ? undefined : problem('invalid')
})

/** An object whose fields also have to fit each other; `problems` names the ones that do not. It is also asked about
 *  objects with wrong single fields, so it must not trust one to be there. */
export function Refined<T extends TObject>(
  object: T,
  problems: (value: Partial<Static<T>>) => FieldProblems,
) {
  return Type.Unsafe<Static<T>>({
    ...object,
    [Kind]: 'Refined',
    [refinementKey]: { check: createCheck(object), problems } satisfies Refinement,
  })
}

/** As many as the longest list holds. A body full of faults must not make an answer many times its size. */
const maxProblems = 1_000

/** What to tell the client about a value that `schema` refuses: one problem for everything in it that is wrong, under
 *  its path, such as `data.amount` or `user_ids.3`. Where no single field is to blame the field is `body`. */
export function fieldProblems(schema: TSchema, value: unknown): FieldProblems {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { body: problem('not_an_object') }
  }
  const refined = refinementOf(schema)
  const errors = leafErrors(refined ? { ...schema, [Kind]: 'Object' } : schema, value)
  const found: FieldProblems = {}
  for (const error of errors.take(maxProblems)) found[fieldOf(error)] ??= problemOf(error)
  return refined ? { ...refined.problems(value as never), ...found } : found
}

function refinementOf(schema: TSchema) {
  return (schema as TSchema & WithRefinement)[refinementKey]
}

/** The errors in a value. Of what may be null its own error only says that it is neither: those within take its place. */
function* leafErrors(schema: TSchema, value: unknown, path = ''): Generator<ValueError> {
  for (const error of Value.Errors(schema, value)) {
    const place = path + error.path
    const inner = withoutNull(error.schema)
    if (inner === error.schema) yield { ...error, path: place }
    else yield* leafErrors(inner, error.value, place)
  }
}

/** The field that a JSON pointer (RFC 6901) leads to. */
function fieldOf({ path }: ValueError): string {
  const names = path.split('/').slice(1)
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')).join('.') || 'body'
}

function problemOf({ schema, value }: ValueError): FieldProblem {
  const choices = choicesOf(schema)
  if (value === undefined) return problem('required')
  if (choices.length > 0) return problem('one_of', choices.join(', '))
  const judge = judges.get(schema[Kind])
  const judged = judge?.(schema, value)
  if (judged) return judged
  if (Number.isInteger(value) && Number(value) < schema['minimum']) {
    return problem('too_small', schema['minimum'])
  }
  if (Number.isInteger(value) && Number(value) > schema['maximum']) {
    return problem('too_big', schema['maximum'])
  }
  // An object or a list of which a part is wrong is one all the same.
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

/** The value of a JSON text of this shape; undefined for every other text. */
export function parseJson<T extends TSchema>(schema: T, text: string): Static<T> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Value.Check(schema, value) ? value : undefined
  } catch {
    return undefined
  }
}
