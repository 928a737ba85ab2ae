import type { OperationEntry } from './contents.ts'
import type { Parameter } from './documents.ts'

/** The example of a request as a curl command.
 *  @param base scheme and host of the service */
export function curlOf(entry: OperationEntry, base: string): string {
  const { method, path, operation } = entry
  const body = exampleBody(entry)
  const lines = [
    method !== 'GET' && `curl -X ${method}`,
    `${method === 'GET' ? 'curl ' : ''}'${base}${filled(path)}${queryOf(entry)}'`,
    authorizationOf(entry),
    ...requiredHeaders(entry).map((one) => `-H '${one.name}: ${exampleOf(one)}'`),
    body !== undefined && "-H 'content-type: application/json'",
    body !== undefined && `-d '${shellText(body)}'`,
    operation.requestBody?.content['multipart/form-data'] && "-F 'file=@plan.pdf'",
  ]
  return lines.filter(Boolean).join(' \\\n  ')
}

export function clientCallOf(entry: OperationEntry): string {
  const { method, path, operation } = entry
  const special = specialCalls[operation.operationId]
  if (special) return special
  const params = parametersIn(entry, 'path').map((one) => [one.name, placeholder(one.name)])
  const query = exampleQuery(entry).map((one) => [one.name, exampleOf(one)])
  const body = exampleBody(entry)
  const options = {
    ...(params.length > 0 && { params: Object.fromEntries(params) }),
    ...(query.length > 0 && { query: Object.fromEntries(query) }),
    ...(body !== undefined && { body }),
  }
  const rest = Object.keys(options).length > 0 ? `, ${literal(options)}` : ''
  const call = `await client.request('${method} ${path}'${rest})`
  return isService(entry) ? `${serviceClient}\n${call}` : call
}

const isService = ({ operation }: OperationEntry) =>
  operation.security?.some((one) => 'serviceKey' in one) ?? false
const serviceClient = "const client = createClient({ baseUrl, serviceKey: 'sk_…' })"

/** Operations for which the client has a function of its own. */
const specialCalls: Record<string, string> = {
  login: "await client.login({\n  email: 'ada@example.com',\n  password: 'correct horse',\n})",
  register:
    "await client.register({\n  email: 'ada@example.com',\n  password: 'correct horse',\n})",
  logout: 'await client.logout()',
  openChatSocket:
    "client.on('new_message', ({ message }) => show(message))\nawait client.connect()",
  // These responses are not JSON, so the client cannot read them.
  getMetrics: "await fetch('/metrics')",
  downloadFile: 'await fetch(file.file_url)',
  uploadFile: 'const file = await client.files.upload(input.files[0])',
}

/** JSON in single quotes on lines of its own. */
function shellText(body: unknown): string {
  return JSON.stringify(body, null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ')
}

export const parametersIn = ({ operation }: OperationEntry, where: Parameter['in']) =>
  operation.parameters?.filter((one) => one.in === where) ?? []

/** The example body; undefined when there is none. */
export function exampleBody({ operation }: OperationEntry): unknown {
  return operation.requestBody?.content['application/json']?.example
}

export function exampleOf({ example, schema }: Parameter): unknown {
  return example ?? schema.examples?.[0] ?? schema.default ?? schema.enum?.[0] ?? ''
}

const filled = (path: string) => path.replace(/{(\w+)}/g, (_, name) => placeholder(name))
const placeholder = (name: string) => name.toUpperCase()

/** The required parameters, or else one filter as an example. */
function exampleQuery(entry: OperationEntry): Parameter[] {
  const query = parametersIn(entry, 'query')
  const required = query.filter((one) => one.required)
  return required.length > 0
    ? required
    : query.filter(({ example }) => example !== undefined).slice(0, 1)
}

function queryOf(entry: OperationEntry): string {
  const pairs = exampleQuery(entry).map((one) => [one.name, String(exampleOf(one))])
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ''
}

const requiredHeaders = (entry: OperationEntry) =>
  parametersIn(entry, 'header').filter(({ required }) => required)

function authorizationOf(entry: OperationEntry): string | false {
  if (!entry.operation.security?.length) return false
  return `-H 'authorization: Bearer ${isService(entry) ? 'sk_…' : 'ACCESS_TOKEN'}'`
}

/** A value as a JavaScript literal. */
function literal(value: unknown, indent = ''): string {
  const deeper = `${indent}  `
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) {
    return listed(
      '[',
      value.map((one) => literal(one, deeper)),
      ']',
      indent,
    )
  }
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value).map(([name, one]) => `${key(name)}: ${literal(one, deeper)}`)
  return listed('{', fields, '}', indent)
}

const quoted = (text: string) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
const key = (name: string) => (/^[a-z_$][\w$]*$/i.test(name) ? name : quoted(name))

function listed(open: string, parts: string[], close: string, indent: string): string {
  const line = `${open} ${parts.join(', ')} ${close}`
  if (parts.length === 0) return open + close
  if (line.length + indent.length <= 56 && !line.includes('\n')) return line
  return `${open}\n${parts.map((part) => `${indent}  ${part},\n`).join('')}${indent}${close}`
}
