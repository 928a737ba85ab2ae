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
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { parseTime } from '../lib/clock.ts'
import {
  AppError,
  type FieldProblem,
  type FieldProblemKey,
  type FieldProblems,
  problem,
} from '../lib/errors.ts'
import { locales } from '../lib/i18n.ts'
import { parseExternalId, parseId } from '../lib/ids.ts'
import { lazy } from '../lib/lazy.ts'
import {
  isHttpUrl,
  isMediaType,
  normalizeEmail,
  parseJson,
  type TextRule,
  textProblem,
} from '../lib/text.ts'
import { samples } from './samples.ts'

type Check = (value: string) => FieldProblem | undefined
// Symbol keys are copied with a schema but left out of its JSON.
const refinementKey = Symbol('refinement')
const checkKey = Symbol('check')
type WithCheck = TSchema & { [checkKey]: Check }

const checkText = (schema: TSchema, value: unknown) =>
  typeof value === 'string' ? (schema as WithCheck)[checkKey](value) : problem('not_a_string')

TypeRegistry.Set<TSchema>('Text', (schema, value) => checkText(schema, value) === undefined)

type Annotations = {
  title?: string
  description?: string
  minLength?: number
  maxLength?: number
  format?: string
  examples?: unknown[]
}

/** `check` returns the problem; the API description shows the annotations. */
export function CheckedText(check: Check, annotations: Annotations = {}): TUnsafe<string> {
  return Type.Unsafe<string>({ ...annotations, type: 'string', [Kind]: 'Text', [checkKey]: check })
}

export function Text(rule: TextRule, annotations: Annotations = {}) {
  const { min, max } = rule
  const bounds = { ...(min !== undefined && { minLength: min }), maxLength: max }
  return CheckedText((text) => textProblem(text, rule), { ...annotations, ...bounds })
}

/** Text with something to read, stored without surrounding white space. */
export const TrimmedText = (max: number, description: string, example: string) =>
  Text({ min: 1, max, trimmed: true, notBlank: true }, { description, examples: [example] })

const formed =
  (isValid: (text: string) => boolean, key: FieldProblemKey, maxLength = Infinity): Check =>
  (text) => {
    if (text.length > maxLength) return problem('too_long', maxLength)
    return isValid(text) ? undefined : problem(key)
  }

const isTime = formed((text) => parseTime(text) !== undefined, 'time')
export const Time = (annotations: Annotations = {}) =>
  CheckedText(isTime, { examples: [samples.later], ...annotations })

const isEmail = formed((text) => normalizeEmail(text) !== undefined, 'email')
export const Email = (description = 'The e-mail address of the account.') =>
  CheckedText(isEmail, {
    description,
    format: 'email',
    maxLength: 254,
    examples: [samples.guest.email],
  })
const isId = formed((text) => parseId(text) !== undefined, 'id')
export const Id = (annotations: Annotations = {}) => CheckedText(isId, annotations)
const isPersonId = formed((text) => (parseExternalId(text) ?? parseId(text)) !== undefined, 'id')
export const PersonId = (example: string = samples.guest.id) =>
  CheckedText(isPersonId, {
    description: 'An id, or `ext:` and an external id.',
    examples: [example],
  })
export const maxUrlLength = 2_048
const isUrl = formed(isHttpUrl, 'http_url', maxUrlLength)
export const HttpUrl = (annotations: Annotations = {}) =>
  CheckedText(isUrl, { ...annotations, format: 'uri', maxLength: maxUrlLength })
const maxMediaTypeLength = 127
export const mediaTypeProblem = formed(isMediaType, 'media_type', maxMediaTypeLength)
export const MediaType = CheckedText(mediaTypeProblem, {
  maxLength: maxMediaTypeLength,
  examples: [samples.file.type],
  description: 'The media type.',
})

export const nameRule = {
  min: 1,
  max: 80,
  trimmed: true,
  notBlank: true,
  noControlCharacters: true,
}

export const ClientId = Text(
  { min: 1, max: 64 },
  {
    description: 'Idempotency key: a repeated request with the same key returns the first result.',
    examples: ['d7c0-42'],
  },
)

export const Timestamp = Type.String({ format: 'date-time', examples: [samples.time] })

export const described = <T extends TSchema>(schema: T, description: string): T => ({
  ...schema,
  description,
})

export const Count = (example: number, description?: string) =>
  Type.Integer({ ...(description !== undefined && { description }), examples: [example] })
export const Flag = (description: string, ...examples: boolean[]) =>
  Type.Boolean({ description, ...(examples.length > 0 && { examples }) })
export const Sample = (example: string, more: Annotations | string = {}) =>
  Type.String({ ...(typeof more === 'string' ? { description: more } : more), examples: [example] })

export const Nullable = <T extends TSchema>(schema: T, annotations: Annotations = {}) =>
  Type.Union([schema, Type.Null()], annotations)
export const Rarely = <T extends TSchema>(schema: T) => Nullable(schema, { examples: [null] })

/** A reference to a schema that is described elsewhere, by its title. */
export const named = (title: string) =>
  Type.Unsafe<object>({ $ref: `#/components/schemas/${title}` })

export const Schema = <T extends TProperties>(
  title: string,
  properties: T,
  options: ObjectOptions = {},
) => Type.Object(properties, { title, ...options })

const person = { id: Type.String(), display_name: Type.String() }
type SamplePerson = { id: string; name: string; avatarUrl: string }
export const NamedPerson = ({ id, name }: Omit<SamplePerson, 'avatarUrl'>) =>
  Schema('Person', person, { examples: [{ id, display_name: name }] })
export const PersonWithAvatar = ({ id, name, avatarUrl }: SamplePerson) =>
  Schema(
    'PersonWithAvatar',
    { ...person, avatar_url: Type.String({ format: 'uri' }) },
    { examples: [{ id, display_name: name, avatar_url: avatarUrl }] },
  )

export const pictureFields = {
  width: Type.Optional(
    Type.Integer({ description: 'Pixels of an image as it is displayed.', examples: [1_600] }),
  ),
  height: Type.Optional(Type.Integer({ examples: [1_200] })),
  placeholder: Type.Optional(
    Sample('1QcSHQRnh493V4dIh4eXh1h4kJUI', 'A ThumbHash of the image, in base64.'),
  ),
}
export type Picture = { width: number; height: number; placeholder?: string }

export const pictureView = (stored: string | null): Partial<Picture> =>
  stored === null ? {} : (JSON.parse(stored) as Picture)

export const OptionalExternalId = (example: string) =>
  Type.Optional(
    Sample(example, 'The id that the platform gives the person; absent if there is none.'),
  )

export const UnreadCount = Schema('UnreadCount', { count: Type.Integer({ examples: [3] }) })

export const open = { additionalProperties: true } as const

/** A request body. Unknown fields are ignored. */
export const Body: typeof Schema = (title, properties, options) =>
  Schema(title, properties, { ...open, ...options })

/** The body of a PATCH. It must contain at least one field; a null field counts as absent.
 *  @param nullable fields that may be changed to null, which therefore count
 *  @param problems rules across fields */
export function Change<T extends TObject>(
  object: T,
  nullable: readonly string[] = [],
  problems: (value: Record<string, unknown>) => FieldProblems = () => ({}),
) {
  const isChange = ([name, value]: [string, unknown]) =>
    Object.hasOwn(object.properties, name) && (value !== null || nullable.includes(name))
  return Refined(object, (value: Record<string, unknown>) =>
    Object.entries(value).some(isChange) ? problems(value) : { body: problem('nothing_to_change') },
  )
}

export const OneOf = <const T extends readonly string[]>(
  values: T,
  annotations: Annotations = {},
) =>
  Type.Union(
    values.map((value) => Type.Literal(value as T[number])),
    annotations,
  )

export const LocaleField = OneOf(locales, { title: 'Locale' })

export const BroadcastStatus = OneOf(['processing', 'completed'], {
  title: 'BroadcastStatus',
  examples: ['completed'],
})

/** An optional field. Null counts as absent, because many clients write absent fields that way. */
export const Maybe = <T extends TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

/** Checks values against a schema. It is compiled on first use: compiling all schemas would take a third of the startup
 *  time. */
function createCheck(schema: TSchema): (value: unknown) => boolean {
  const compiled = lazy(() => TypeCompiler.Compile(schema))
  return (value) => compiled().Check(value)
}

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

TypeRegistry.Set<TSchema>('Refined', (schema, value) => {
  const refined = refinementOf(schema)
  return refined?.check(value) === true && Object.keys(refined.problems(value)).length === 0
})

/** `problems` also runs when single fields are missing or invalid. */
export function Refined<T extends TObject>(
  object: T,
  problems: (value: Partial<Static<T>>) => FieldProblems,
) {
  return Type.Unsafe<Static<T>>({
    ...object,
    [Kind]: 'Refined',
    [refinementKey]: {
      check: createCheck(object),
      problems: (value) => problems(value as Partial<Static<T>>),
    } satisfies Refinement,
  })
}

/** Limits the response to a body full of mistakes; the longest list in a body has as many entries. */
const maxProblems = 1_000

/** By path, such as `data.amount` or `user_ids.3`; `body` for the whole value. */
export function fieldProblems(schema: TSchema, value: unknown): FieldProblems {
  if (!isObject(value)) return { body: problem('not_an_object') }
  const refined = refinementOf(schema)
  const errors = leafErrors(refined ? { ...schema, [Kind]: 'Object' } : schema, value)
  const found: FieldProblems = {}
  for (const error of errors.take(maxProblems)) found[fieldOf(error)] ??= problemOf(error)
  return refined ? { ...refined.problems(value), ...found } : found
}

function refinementOf(schema: TSchema) {
  return (schema as TSchema & { [refinementKey]?: Refinement })[refinementKey]
}

/** TypeBox only reports "neither matches" for a nullable field, so this yields the errors of its non-null branch. */
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

function problemOf({ schema, value, type }: ValueError): FieldProblem {
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    return problem('one_of', Object.keys(schema['properties']).join(', '))
  }
  const choices = choicesOf(schema)
  if (value === undefined) return problem('required')
  if (choices.length > 0) return problem('one_of', choices.join(', '))
  const found = schema[Kind] === 'Text' && checkText(schema, value)
  if (found) return found
  const { minimum, maximum } = schema
  if (Number.isInteger(value) && Number(value) < minimum) return problem('too_small', minimum)
  if (Number.isInteger(value) && Number(value) > maximum) return problem('too_big', maximum)
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
  return [schema['const'] ?? schema['pattern']].filter((choice) => typeof choice === 'string')
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function parseAs<T extends TSchema>(schema: T, text: string): Static<T> | undefined {
  const value = parseJson(text)
  return Value.Check(schema, value) ? value : undefined
}
