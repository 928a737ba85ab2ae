import { type ComponentChildren, createContext } from 'preact'
import { useContext, useState } from 'preact/hooks'
import type { Schema, Schemas } from './documents.ts'
import { Markdown } from './markdown.tsx'
import { boundsOf, formName, insideOf, resolve, typeText, valuesOf } from './schema.ts'

/** The author of the described value. Requests have required fields; responses have fields that may be absent. */
export const Author = createContext<'reader' | 'service'>('reader')

type TreeProps = { schema: Schema; schemas: Schemas }

/** A schema with fields that unfold. Folded content is not rendered, so a schema may be recursive. */
export function SchemaTree({ schema: given, schemas }: TreeProps) {
  const { schema } = resolve(given, schemas)
  if (schema.allOf) {
    return schema.allOf.map((part, index) => (
      <SchemaTree key={index} schema={part} schemas={schemas} />
    ))
  }
  const forms = schema.anyOf
  if (forms) return <Forms forms={forms} schemas={schemas} />
  if (!schema.properties) return <SimpleValue schema={given} schemas={schemas} />
  return (
    <ul class="fields">
      {Object.entries(schema.properties).map(([name, field]) => (
        <FieldRow
          key={name}
          name={name}
          schema={field}
          schemas={schemas}
          isRequired={schema.required?.includes(name) ?? false}
        />
      ))}
    </ul>
  )
}

function Forms({ forms, schemas }: { forms: Schema[]; schemas: Schemas }) {
  return (
    <div class="forms">
      <p class="small soft">One of:</p>
      {forms.map((form, index) => (
        <Unfold key={index} label={formName(form, index, schemas)} isOpen={index === 0}>
          {() => <SchemaTree schema={form} schemas={schemas} />}
        </Unfold>
      ))}
    </div>
  )
}

function SimpleValue({ schema, schemas }: TreeProps) {
  const inside = insideOf(schema, schemas)
  return (
    <div class="stack tight">
      <p class="small soft">{typeText(schema, schemas)}</p>
      {inside && <SchemaTree schema={inside} schemas={schemas} />}
    </div>
  )
}

type RowProps = TreeProps & { name: string; isRequired: boolean; description?: string | undefined }

/** A field or parameter: name, type, constraints and description. */
export function FieldRow({ name, schema: given, schemas, isRequired, description }: RowProps) {
  const { schema } = resolve(given, schemas)
  const inside = insideOf(given, schemas)
  const text = description ?? schema.description
  return (
    <li>
      <p class="field-head">
        <code class="field-name">{name}</code>
        <span class="soft small">{typeText(given, schemas)}</span>
        <Presence isRequired={isRequired} />
      </p>
      {text !== undefined && <Markdown text={text} />}
      <Rules schema={schema} schemas={schemas} />
      {inside && (
        <Unfold label={`Fields of ${name}`}>
          {() => <SchemaTree schema={inside} schemas={schemas} />}
        </Unfold>
      )}
    </li>
  )
}

function Presence({ isRequired }: { isRequired: boolean }) {
  const author = useContext(Author)
  if (author === 'service') return isRequired ? null : <span class="soft small">may be absent</span>
  return isRequired ? <span class="required">required</span> : null
}

function Rules({ schema, schemas }: TreeProps) {
  const item = schema.items && resolve(schema.items, schemas).schema
  const values = valuesOf(schema).concat(item ? valuesOf(item) : [])
  const bounds = [...boundsOf(schema), ...(item ? boundsOf(item) : []).map((one) => `each ${one}`)]
  const hasDefault = schema.default !== undefined
  if (values.length === 0 && bounds.length === 0 && !hasDefault) return null
  return (
    <p class="rules small soft">
      {bounds.length > 0 && <span>{bounds.join(', ')}</span>}
      {values.length > 0 && (
        <span>
          {values.length > 1 ? 'one of ' : 'always '}
          {values.map((value) => (
            <code key={String(value)} class="value">
              {String(value)}
            </code>
          ))}
        </span>
      )}
      {hasDefault && (
        <span>
          default <code class="value">{String(schema.default)}</code>
        </span>
      )}
    </p>
  )
}

type UnfoldProps = { label: string; isOpen?: boolean; children: () => ComponentChildren }

/** Renders its children once it is opened. */
export function Unfold({ label, isOpen = false, children }: UnfoldProps) {
  const [isShown, setShown] = useState(isOpen)
  return (
    <details
      class="unfold"
      open={isOpen}
      onToggle={(event) => event.currentTarget.open && setShown(true)}
    >
      <summary>{label}</summary>
      {isShown && children()}
    </details>
  )
}
