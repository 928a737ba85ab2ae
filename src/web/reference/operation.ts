import type { ApiDocument, Operation, Parameter, Schemas } from './documents.ts'
import { type FieldLists, named } from './fields.ts'
import { codeBlock, type Entry, type Html, html, inline, jsonBlock, paragraphs } from './html.ts'
import { clientCallOf, curlOf, type SampleRequest } from './samples.ts'
import { resolve, valuesOf } from './schema.ts'

type Parts = { api: ApiDocument; lists: FieldLists; reasonIds: ReadonlySet<string> }
export type Route = { method: string; path: string; operation: Operation }

/** The section of an operation: its fields, and beside them a sample, a form to try it, and an answer. */
export function operationEntry({ method, path, operation }: Route, parts: Parts): Entry {
  const { operationId: id, summary } = operation
  const title = summary.replace(/\.$/, '')
  const sample = sampleOf(method, path, operation)
  const base = parts.api.servers[0]?.url ?? ''
  return {
    id,
    title,
    mark: method,
    text: html`
<p class="endpoint"><span class="method ${method.toLowerCase()}">${method}</span> <code>${breakable(path)}</code></p>
${aboutOf(operation)}
${(['path', 'query', 'header'] as const).map((place) => parametersOf(operation, place, parts))}
${bodyOf(operation, parts)}
${answersOf(operation, parts)}`,
    examples: html`
${codeBlock(`Request: ${title}`, html`<pre data-sample="curl">${curlOf(sample, base)}</pre><pre data-sample="client">${clientCallOf(sample)}</pre>`)}
${'101' in operation.responses ? undefined : formOf(operation, sample, parts.api.components.schemas)}
${exampleAnswer(operation)}`,
  }
}

/** Allows line breaks between the segments of a path. */
const breakable = (path: string) =>
  path.split(/(?<=.)(?=\/)/).map((part, index) => html`${index > 0 && html`<wbr>`}${part}`)

/** The description. Its last paragraphs are those of the access and the limit, which the extension fields announce. */
function aboutOf(operation: Operation): Html {
  const all = (operation.description ?? '').split(/\n{2,}/).filter(Boolean)
  const isOpen = !operation['x-roles'] && operation['x-scope'] === undefined
  const isUncounted = operation['x-rate-limit'] === undefined
  const policies = [!isOpen, operation['x-confirmation'] !== undefined, !isUncounted]
  const count = policies.filter(Boolean).length
  const facts = [
    ...(isOpen ? ['Needs no access token.'] : []),
    ...all.slice(all.length - count),
    ...(isUncounted ? ['Not rate limited.'] : []),
  ]
  return html`${paragraphs(all.slice(0, all.length - count).join('\n\n'))}<ul class="facts small soft">${facts.map((fact) => html`<li>${inline(fact)}</li>`)}</ul>`
}

const placeTitles = { path: 'Path', query: 'Query', header: 'Headers' }

function parametersOf(
  operation: Operation,
  place: Parameter['in'],
  { lists }: Pick<Parts, 'lists'>,
): Html | false {
  const parameters = parametersIn(operation, place)
  const rows = parameters.map(({ name, schema: field, required = false, description }) =>
    lists.fieldRow({ name, field, isRequired: required, description }, 'reader'),
  )
  return rows.length > 0 && html`<h4>${placeTitles[place]}</h4><ul class="fields">${rows}</ul>`
}

const parametersIn = ({ parameters = [] }: Operation, place: Parameter['in']) =>
  parameters.filter((one) => one.in === place)

function bodyOf({ requestBody }: Operation, { lists }: Parts): Html | undefined {
  if (!requestBody) return undefined
  const types = Object.entries(requestBody.content).map(([type, { schema }]) => {
    const name = html`<p class="small soft"><code>${type}</code>${!schema && ': the bytes themselves'}</p>`
    return html`${type !== 'application/json' && name}${schema && lists.fieldsOf(schema, 'reader')}`
  })
  return html`<h4>Body${!requestBody.required && html` <span class="soft small">optional</span>`}</h4>${types}`
}

function answersOf(operation: Operation, parts: Parts): Html {
  const statuses = Object.keys(operation.responses)
  const isError = (status: string) => /^[45]/.test(status)
  const errors = statuses.filter(isError)
  return html`${statuses
    .filter((status) => !isError(status))
    .map((status) =>
      success(status, operation, parts),
    )}<h4>Errors</h4><ul class="errors">${errors.map((status) => errorRow(status, operation, parts))}</ul>`
}

function success(status: string, operation: Operation, { api, lists }: Parts): Html {
  const { description = '', content, headers = {} } = operation.responses[status] ?? {}
  const schema = content?.['application/json']?.schema
  // The introduction explains the headers of all answers.
  const own = Object.entries(headers).filter(([name]) => !/^X-(Request-ID|RateLimit-)/.test(name))
  const names = own.map(([name, given]): [string, string] => {
    const header = given.$ref ? api.components.headers[lastSegment(given.$ref)] : given
    return [name, header?.description ?? '']
  })
  return html`<h4>Answer <span class="badge good number">${status}</span> <span class="soft small">${description}</span></h4>
${schema ? lists.fieldsOf(schema, 'service') : html`<p class="small soft">Without JSON.</p>`}
${names.length > 0 && html`<details class="unfold"><summary>Headers of the answer</summary>${named(names)}</details>`}`
}

const lastSegment = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1)

/** The codes and reasons of a status, which lead to the table of reasons. */
function errorRow(status: string, operation: Operation, { api, reasonIds }: Parts): Html {
  const { $ref = '' } = operation.responses[status] ?? {}
  const shared = api.components.responses[lastSegment($ref)]?.content?.['application/json']
  const codes = (operation['x-errors'] ?? []).flatMap((kind) => {
    const example = shared?.examples?.[kind]?.value
    return example ? [example.error.code] : []
  })
  const names = [...new Set(codes), ...(operation['x-error-reasons']?.[status] ?? [])]
  return html`<li>${status}${names.map((name) => {
    const id = reasonId(status, name)
    return reasonIds.has(id) ? html` <a href="#${id}">${name}</a>` : html` <code>${name}</code>`
  })}</li>`
}

/** The id of a row of the table of reasons. */
export const reasonId = (status: string, name: string) => `reason-${status}-${name}`

function exampleAnswer({ responses }: Operation): Html | undefined {
  const found = Object.entries(responses).find(([status]) => status.startsWith('2'))
  const value = found?.[1].content?.['application/json']?.example
  return value === undefined ? undefined : jsonBlock(`Answer ${found?.[0]}`, value)
}

/** The request of the examples. */
function sampleOf(method: string, path: string, operation: Operation): SampleRequest {
  const body = operation.requestBody?.content['application/json']?.example
  const query = parametersIn(operation, 'query')
  const required = query.filter((one) => one.required)
  const shown = required.length > 0 ? required : query.filter(({ example }) => example).slice(0, 1)
  const examplesOf = (parameters: Parameter[]) =>
    Object.fromEntries(parameters.map((one) => [one.name, String(exampleOf(one))]))
  const contents = Object.entries(operation.responses)
    .filter(([status]) => /^2/.test(status))
    .map(([status, { content }]) => status === '204' || content?.['application/json'])
  return {
    id: operation.operationId,
    method,
    path,
    token: tokenOf(operation),
    params: {},
    query: examplesOf(shown),
    headers: examplesOf(parametersIn(operation, 'header').filter((one) => one.required)),
    body: body === undefined ? undefined : JSON.stringify(body, null, 2),
    takesFile: operation.requestBody?.content['multipart/form-data'] !== undefined,
    isJson: contents.every(Boolean),
  }
}

function tokenOf({ security = [] }: Operation): SampleRequest['token'] {
  if (security.length === 0) return 'none'
  return security.some((one) => 'serviceKey' in one) ? 'service' : 'access'
}

const exampleOf = ({ example, schema }: Parameter): unknown =>
  example ?? schema.examples?.[0] ?? schema.default ?? schema.enum?.[0] ?? ''

/** The form that the script sends; without scripts it is not shown. */
function formOf(operation: Operation, { body, ...request }: SampleRequest, schemas: Schemas): Html {
  const fields = (operation.parameters ?? []).map((parameter) => {
    const { name, in: place, required = false, schema } = parameter
    const example = exampleOf(parameter)
    const known = resolve(schema, schemas).schema
    const values = known.type === 'boolean' ? [true, false] : valuesOf(known)
    const input =
      values.length > 0
        ? html`<select name="${place} ${name}"><option></option>${values.map((value) => html`<option>${String(value)}</option>`)}</select>`
        : html`<input name="${place} ${name}" ${required && html`required `}placeholder="${String(example)}" autocomplete="off" spellcheck="false">`
    return html`<label class="field"><span class="label">${name}${!required && ' (optional)'}</span>${input}</label>`
  })
  const rows = Math.min(16, (body ?? '').split('\n').length + 1)
  const isOptional = operation.requestBody?.required !== true
  return html`<details class="try"><summary class="button">Try it</summary>
<form data-request="${JSON.stringify(request)}" aria-label="Try: ${operation.operationId}">
<p class="row between small"><span class="soft" data-caller>Without a token</span> <button type="button" class="button" data-login>Log in</button></p>
${fields}
${body !== undefined && html`<label class="field"><span class="label">Body${isOptional && ' (optional)'}</span><textarea name="body" class="mono" rows="${rows}" spellcheck="false">${body}</textarea></label>`}
${request.takesFile && html`<label class="field"><span class="label">File</span><input type="file" name="file" required></label>`}
${request.method !== 'GET' && html`<p class="small soft">This sends a real request and changes data.</p>`}
<button class="button primary">Send ${request.method}</button>
</form><div role="status"></div></details>`
}
