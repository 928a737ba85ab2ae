import type { Schema, Schemas } from './documents.ts'
import { type Html, html, inline, paragraphs } from './html.ts'
import { boundsOf, formName, insideOf, resolve, typeParts, valuesOf } from './schema.ts'

/** The author of the described value: requests have required fields, responses have fields that may be absent. */
type Author = 'reader' | 'service'

/** Lists the fields of schemas. Shared schemas inside are links to the section of their own. */
export function createFieldLists(schemas: Schemas) {
  const linked = new Set<string>()

  /** The fields of a schema, or its type when it has none. */
  function fieldsOf(given: Schema, author: Author): Html {
    const { schema } = resolve(given, schemas)
    if (schema.allOf) return html`${schema.allOf.map((part) => fieldsOf(part, author))}`
    if (schema.anyOf) return html`${schema.anyOf.map((form, index) => unfolded(form, index))}`
    const properties = Object.entries(schema.properties ?? {})
    const inside = insideOf(schema, schemas)
    if (properties.length === 0) {
      return html`<p class="small soft">${typeOf(given)}</p>${inside && fieldsOf(inside, author)}`
    }
    const isRequired = (name: string) => schema.required?.includes(name) ?? false
    const rows = properties.map(([name, field]) => ({ name, field, isRequired: isRequired(name) }))
    return html`<ul class="fields">${rows.map((row) => fieldRow(row, author))}</ul>`

    function unfolded(form: Schema, index: number) {
      const label = `${index === 0 ? 'Either' : 'Or'}: ${formName(form, index, schemas)}`
      return html`<details class="unfold"><summary>${label}</summary>${fieldsOf(form, author)}</details>`
    }
  }

  type Row = { name: string; field: Schema; isRequired: boolean; description?: string | undefined }

  function fieldRow({ name, field, isRequired, description }: Row, author: Author): Html {
    const { schema } = resolve(field, schemas)
    const inside = insideOf(field, schemas)
    const text = description ?? schema.description
    return html`<li><p class="field-head"><code class="field-name">${name}</code> <span class="soft small">${typeOf(field)}</span> ${presence(isRequired, author)}</p>${text !== undefined && paragraphs(text)}${rulesOf(schema)}${inside && !nameIn(field) && html`<details class="unfold"><summary>Fields of ${name}</summary>${fieldsOf(inside, author)}</details>`}</li>`
  }

  function typeOf(given: Schema): Html {
    return html`${typeParts(given, schemas).map(({ text, isName }) => {
      if (!isName || !hasFields(text)) return text
      linked.add(text)
      return html`<a href="#object-${text}">${text}</a>`
    })}`
  }

  const hasFields = (name: string) => insideOf(schemas[name] ?? {}, schemas) !== undefined

  /** The shared schema that a field links to. */
  const nameIn = (field: Schema) =>
    typeParts(field, schemas).some(({ text, isName }) => isName && hasFields(text))

  function rulesOf(schema: Schema): Html | undefined {
    const item = schema.items ? resolve(schema.items, schemas).schema : {}
    const values = [...valuesOf(schema), ...valuesOf(item)].map(
      (value) => html`<code class="value">${String(value)}</code> `,
    )
    const rules = [
      ...boundsOf(schema),
      ...boundsOf(item).map((one) => `each ${one}`),
      ...(values.length > 0 ? [html`${values.length > 1 ? 'one of' : 'always'} ${values}`] : []),
      ...('default' in schema
        ? [html`default <code class="value">${String(schema.default)}</code>`]
        : []),
    ]
    if (rules.length === 0) return undefined
    return html`<p class="rules small soft">${rules.map((rule) => html`<span>${rule}</span> `)}</p>`
  }

  return {
    fieldsOf,
    fieldRow,
    /** The shared schemas that the lists have linked so far, and those that they link in turn. */
    objects(): { name: string; description: string | undefined; fields: Html }[] {
      const found = new Map<string, Html>()
      for (const name of linked) found.set(name, fieldsOf(schemas[name] ?? {}, 'service'))
      return [...found]
        .toSorted(([one], [other]) => one.localeCompare(other))
        .map(([name, fields]) => ({ name, description: schemas[name]?.description, fields }))
    },
  }
}

export type FieldLists = ReturnType<typeof createFieldLists>

function presence(isRequired: boolean, author: Author): Html | false {
  if (author === 'service')
    return !isRequired && html`<span class="soft small">may be absent</span>`
  return isRequired && html`<span class="required">required</span>`
}

/** A list of names with their descriptions. */
export const named = (entries: [name: string, description: string][]): Html =>
  html`<ul class="fields">${entries.map(([name, text]) => html`<li><code class="field-name">${name}</code><p class="small soft">${inline(text)}</p></li>`)}</ul>`
