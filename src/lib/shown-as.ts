import type { TProperties, TSchema } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'

/** The keyword of the form that `shownAs` gives to a schema. */
export const shownAsKeyword = 'x-shown-as'

/** A schema that descriptions show in another form: for generated clients, to which it says more than what is checked. */
export function shownAs<T extends TSchema>(schema: T, form: object): T {
  return { ...schema, [shownAsKeyword]: form }
}

/** A schema that is described elsewhere, by its title. */
export const named = (title: string) =>
  Type.Unsafe<object>({ $ref: `#/components/schemas/${title}` })

/** Such as CallIncoming for call_incoming. */
export const pascalCase = (words: string) =>
  words
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

/** A union whose branches differ by the value of `type`; each needs a title.
 *  @param branches by that value */
export function unionByType(title: string, branches: Record<string, TSchema>) {
  const refs = Object.entries(branches).map(([type, { title: name }]) => [
    type,
    `#/components/schemas/${name}`,
  ])
  const discriminator = { propertyName: 'type', mapping: Object.fromEntries(refs) }
  return { title, oneOf: Object.values(branches), discriminator }
}

/** An object that has exactly one of some fields, and some others.
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
