/** A request as the form or the examples of an operation say it. */
export type SampleRequest = {
  id: string
  method: string
  path: string
  /** The token that it needs. */
  token: 'none' | 'access' | 'service'
  params: Record<string, string>
  query: Record<string, string>
  headers: Record<string, string>
  /** JSON as it was typed. */
  body?: string | undefined
  takesFile: boolean
  /** Whether the response is JSON, or nothing. */
  isJson: boolean
}

/** The request as a curl command.
 *  @param base scheme and host of the service
 *  @param token of the reader, if known */
export function curlOf(request: SampleRequest, base: string, token?: string): string {
  const { method, headers, body, takesFile } = request
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${shellText(base + addressOf(request, placeholder))}`,
    request.token !== 'none' && header('authorization', `Bearer ${tokenIn(request.token, token)}`),
    ...Object.entries(headers).map(([name, value]) => header(name, value)),
    body !== undefined && header('content-type', 'application/json'),
    body !== undefined && `-d ${shellText(body).replaceAll('\n', '\n  ')}`,
    takesFile && "-F 'file=@plan.pdf'",
  ]
  return lines.filter(Boolean).join(' \\\n  ')
}

/** The request as a call of the client. */
export function clientCallOf(request: SampleRequest): string {
  const { id, body, takesFile } = request
  const given = body === undefined ? undefined : jsonOrText(body)
  if (id === 'openChatSocket') return 'await client.connect()'
  if (clientMethods.has(id))
    return `await client.${id}(${given && id !== 'logout' ? literal(given) : ''})`
  if (takesFile) return 'const file = await client.files.upload(input.files[0])'
  if (!request.isJson) return `await fetch('${addressOf(request, placeholder)}')`
  const options = literal(optionsOf(request, given))
  const call = `await client.request('${request.method} ${request.path}'${options === '{}' ? '' : `, ${options}`})`
  return request.token === 'service' ? `${serviceClient}\n${call}` : call
}

function optionsOf({ path, params, query, headers }: SampleRequest, body: unknown) {
  const names = [...path.matchAll(/{(\w+)}/g)].map(([, name = '']) => name)
  const given = {
    params: Object.fromEntries(names.map((name) => [name, params[name] || placeholder(name)])),
    query,
    headers,
  }
  const filled = Object.entries(given).filter(([, values]) => Object.keys(values).length > 0)
  return { ...Object.fromEntries(filled), ...(body !== undefined && { body }) }
}

/** Operations that change the session of the client, by methods of the same name. */
const clientMethods = new Set(['login', 'register', 'logout'])
const serviceClient = "const client = createClient({ baseUrl, serviceKey: 'sk_…' })"

/** Path and query.
 *  @param missing fills a parameter of the path without a value */
export function addressOf(
  { path, params, query }: Pick<SampleRequest, 'path' | 'params' | 'query'>,
  missing: (name: string) => string,
): string {
  const filled = path.replace(/{(\w+)}/g, (_, name) =>
    params[name] ? encodeURIComponent(params[name]) : missing(name),
  )
  const pairs = new URLSearchParams(query).toString()
  return pairs === '' ? filled : `${filled}?${pairs}`
}

const placeholder = (name: string) => name.toUpperCase()

/** The token of the reader if it is of the needed kind, or else a placeholder. */
export function tokenIn(kind: SampleRequest['token'], given: string | undefined): string {
  if (given !== undefined && given.startsWith('sk_') === (kind === 'service')) return given
  return kind === 'service' ? 'sk_…' : 'ACCESS_TOKEN'
}

const header = (name: string, value: string) => `-H ${shellText(`${name}: ${value}`)}`
const shellText = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** The value of JSON; any other text as it is. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { raw: text }
  }
}

/** A value as a JavaScript literal. */
function literal(value: unknown, indent = ''): string {
  const deeper = `${indent}  `
  if (typeof value === 'string') return quoted(value)
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) {
    const parts = value.map((one) => literal(one, deeper))
    return listed('[]', parts, indent)
  }
  const fields = Object.entries(value).map(([name, one]) => `${key(name)}: ${literal(one, deeper)}`)
  return listed('{}', fields, indent)
}

const quoted = (text: string) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
const key = (name: string) => (/^[a-z_$][\w$]*$/i.test(name) ? name : quoted(name))

function listed(signs: '[]' | '{}', parts: string[], indent: string): string {
  const [open = '', close = ''] = signs
  const line = `${open} ${parts.join(', ')} ${close}`
  if (parts.length === 0) return signs
  if (line.length + indent.length <= 56 && !line.includes('\n')) return line
  return `${open}\n${parts.map((part) => `${indent}  ${part},\n`).join('')}${indent}${close}`
}
