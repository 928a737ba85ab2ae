import type { TProperties, TSchema } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'

/** The keyword under which `shownAs` stores the form. */
export const shownAsKeyword = 'x-shown-as'

/** Shows a schema in another form in the API descriptions: generated clients benefit from more detail than validation
 *  needs. */
export function shownAs<T extends TSchema>(schema: T, form: object): T {
  return { ...schema, [shownAsKeyword]: form }
}

/** A reference to a schema that is described elsewhere, by its title. */
export const named = (title: string) =>
  Type.Unsafe<object>({ $ref: `#/components/schemas/${title}` })

/** For example CallIncoming for call_incoming. */
export const pascalCase = (words: string) =>
  words
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

/** A union whose branches differ in `type`; each branch needs a title.
 *  @param branches by their `type` */
export function unionByType(title: string, branches: Record<string, TSchema>) {
  const refs = Object.entries(branches).map(([type, { title: name }]) => [
    type,
    `#/components/schemas/${name}`,
  ])
  const discriminator = { propertyName: 'type', mapping: Object.fromEntries(refs) }
  return { title, oneOf: Object.values(branches), discriminator }
}

/** An object with exactly one of the fields in `choices`, besides other fields.
 *  @param choices each field with the title of its branch */
export function exactlyOneOf(
  title: string,
  choices: Record<string, { title: string; schema: TSchema }>,
  others: TProperties = {},
) {
  const branches = Object.entries(choices).map(([field, choice]) =>
    Type.Object({ [field]: choice.schema, ...others }, { title: choice.title }),
  )
  return { title, oneOf: branches }
}
