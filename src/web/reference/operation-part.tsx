import { Gauge, KeyRound } from 'lucide-preact'
import { useState } from 'preact/hooks'
import type { OperationEntry } from './contents.ts'
import type { ApiDocument, Parameter, Schemas } from './documents.ts'
import { Inline, Markdown } from './markdown.tsx'
import { Part } from './part.tsx'
import { parametersIn } from './request-code.ts'
import { RequestExample, ResponseExample } from './request-example.tsx'
import { ResponseList } from './response-list.tsx'
import { type Responses, responsesOf } from './responses.ts'
import { FieldRow, SchemaTree } from './schema-tree.tsx'
import { TryForm } from './try-form.tsx'

type OperationProps = { entry: OperationEntry; api: ApiDocument }

export function OperationPart({ entry, api }: OperationProps) {
  return (
    <Part
      id={entry.id}
      title={entry.title}
      head={<Head entry={entry} />}
      text={() => (
        <Details
          entry={entry}
          schemas={api.components.schemas}
          responses={responsesOf(entry.operation, api)}
        />
      )}
      examples={() => <Examples entry={entry} api={api} />}
    />
  )
}

function Head({ entry: { method, path } }: { entry: OperationEntry }) {
  return (
    <p class="endpoint">
      <span class={`method ${method.toLowerCase()}`}>{method}</span>
      <code>
        <PathText path={path} />
      </code>
    </p>
  )
}

/** Allows line breaks between path segments. */
function PathText({ path }: { path: string }) {
  return path
    .split(/(?<=.)(?=\/)/)
    .flatMap((part, index) => [index > 0 && <wbr key={part} />, part])
}

/** The description without its sentences about roles and limits, which have a place of their own below. */
function Description({ operation }: Pick<OperationEntry, 'operation'>) {
  const paragraphs = (operation.description ?? '').split(/\n{2,}/).filter(Boolean)
  const access = paragraphs.find((one) => /^Needs (an? |the role )/.test(one)) ?? needed(operation)
  const limit = paragraphs.find((one) => one.startsWith('Counts towards'))
  const rest = paragraphs.filter((one) => one !== access && one !== limit)
  return (
    <>
      {rest.length > 0 && <Markdown text={rest.join('\n\n')} />}
      <ul class="facts small soft">
        <li>
          <KeyRound />
          <span>
            <Inline text={access} />
          </span>
        </li>
        <li>
          <Gauge />
          <span>
            <Inline text={limit ?? 'Not rate limited.'} />
          </span>
        </li>
      </ul>
    </>
  )
}

function needed({ 'x-roles': roles, 'x-scope': scope }: OperationEntry['operation']): string {
  if (scope !== undefined) return `Needs a service key with the scope \`${scope}\`.`
  return roles ? `Needs one of the roles ${roles.join(', ')}.` : 'Needs no access token.'
}

type DetailsProps = { entry: OperationEntry; schemas: Schemas; responses: Responses }

function Details({ entry, schemas, responses }: DetailsProps) {
  const { requestBody } = entry.operation
  return (
    <>
      <Description operation={entry.operation} />
      <Parameters title="Path" parameters={parametersIn(entry, 'path')} schemas={schemas} />
      <Parameters title="Query" parameters={parametersIn(entry, 'query')} schemas={schemas} />
      <Parameters title="Headers" parameters={parametersIn(entry, 'header')} schemas={schemas} />
      {requestBody && (
        <>
          <h4>Body{!requestBody.required && <span class="soft small">optional</span>}</h4>
          {Object.entries(requestBody.content).map(([type, { schema }]) => (
            <div key={type} class="stack tight">
              {type !== 'application/json' && (
                <p class="small soft">
                  <code>{type}</code>
                  {schema ? '' : ': the bytes themselves'}
                </p>
              )}
              {schema && <SchemaTree schema={schema} schemas={schemas} />}
            </div>
          ))}
        </>
      )}
      <ResponseList responses={responses} schemas={schemas} />
    </>
  )
}

type ParametersProps = { title: string; parameters: Parameter[]; schemas: Schemas }

export function Parameters({ title, parameters, schemas }: ParametersProps) {
  if (parameters.length === 0) return null
  return (
    <>
      <h4>{title}</h4>
      <ul class="fields">
        {parameters.map(({ name, schema, required = false, description }) => (
          <FieldRow
            key={name}
            name={name}
            schema={schema}
            schemas={schemas}
            isRequired={required}
            description={description}
          />
        ))}
      </ul>
    </>
  )
}

function Examples({ entry, api }: OperationProps) {
  const [isTrying, setTrying] = useState(false)
  const base = api.servers[0]?.url ?? location.origin
  // A WebSocket upgrade cannot be tried as a request.
  const canTry = !('101' in entry.operation.responses)
  return (
    <>
      <RequestExample entry={entry} base={base} />
      {canTry && (
        <button
          type="button"
          class="button"
          aria-expanded={isTrying}
          onClick={() => setTrying(!isTrying)}
        >
          {isTrying ? 'Close the form' : 'Try it'}
        </button>
      )}
      {isTrying ? (
        <TryForm entry={entry} />
      ) : (
        <ResponseExample responses={responsesOf(entry.operation, api)} />
      )}
    </>
  )
}
