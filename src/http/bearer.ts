const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/
const serviceKeyPattern = /^sk_[\w-]{43}$/
const maxTokenLength = 4_096

const socketProtocol = 'hostline.v1'
const bearerProtocol = 'bearer.'

/** The token of an `Authorization: Bearer` header; undefined when it is missing or not in the form of an access token. */
export function bearerToken(headers: Headers): string | undefined {
  return plausible(bearer(headers))
}

/** The service key of an `Authorization: Bearer` header; undefined when it is missing or not in the form of a key. */
export function bearerServiceKey(headers: Headers): string | undefined {
  const key = bearer(headers)
  return key !== undefined && serviceKeyPattern.test(key) ? key : undefined
}

function bearer(headers: Headers): string | undefined {
  const [scheme = '', token, ...rest] = headers.get('authorization')?.split(' ') ?? []
  return scheme.toLowerCase() === 'bearer' && rest.length === 0 ? token : undefined
}

/** The token of a socket's upgrade request, from the query, the header or a subprotocol: browsers cannot set headers
 *  there. Undefined when there is none or more than one. */
export function socketToken(request: Request): string | undefined {
  const query = new URL(request.url).searchParams.getAll('token')
  const protocols = offeredProtocols(request.headers)
    .filter((protocol) => protocol.startsWith(bearerProtocol))
    .map((protocol) => protocol.slice(bearerProtocol.length))
  const header = request.headers.has('authorization') ? [bearerToken(request.headers)] : []
  const [token, ...more] = [...query, ...protocols, ...header]
  return more.length === 0 ? plausible(token) : undefined
}

/** The subprotocol to select. Browsers drop the connection when the server selects none of the offered ones. */
export function selectedProtocol(headers: Headers): string | undefined {
  const offered = offeredProtocols(headers)
  if (offered.includes(socketProtocol)) return socketProtocol
  return offered.find((protocol) => protocol.startsWith(bearerProtocol))
}

function offeredProtocols(headers: Headers) {
  const header = headers.get('sec-websocket-protocol')
  return header === null ? [] : header.split(',').map((protocol) => protocol.trim())
}

function plausible(token: string | undefined) {
  return token !== undefined && token.length <= maxTokenLength && tokenPattern.test(token)
    ? token
    : undefined
}
