import type { ApiDocument, ChannelDocument, RateLimit, Reason } from './documents.ts'
import type { FieldLists } from './fields.ts'
import { codeBlock, type Entry, type Html, html, inline, jsonBlock, paragraphs } from './html.ts'

const section = (id: string, title: string, text: Html, examples?: Html): Entry => ({
  id,
  title,
  mark: '',
  text,
  ...(examples && { examples }),
})

/** Text that applies to all operations. */
export function introduction(api: ApiDocument, reasons: Reason[]): Entry[] {
  const base = api.servers[0]?.url ?? ''
  const error = api.components.responses['validation_error_400']?.content?.['application/json']
  const list = api.paths['/v1/chat/conversations']?.['get']?.responses['200']
  const { pagination: shown }: { pagination?: unknown } = Object(
    list?.content?.['application/json']?.example,
  )
  return [
    section(
      'basics',
      'Basics',
      basics(base),
      codeBlock('A first request with the client', firstRequest(base)),
    ),
    section(
      'authentication',
      'Authentication',
      authentication,
      codeBlock(
        'A request with an access token',
        html`<pre>curl '${base}/v1/users/me' \\\n  -H 'authorization: Bearer ACCESS_TOKEN'</pre>`,
      ),
    ),
    section(
      'errors',
      'Errors',
      errors,
      jsonBlock('400 validation_error', error?.examples?.['validation_error']?.value),
    ),
    section('reasons', 'Reasons', reasonList(reasons)),
    section(
      'pagination',
      'Pagination',
      pagination,
      jsonBlock('The page that was answered', { pagination: shown }),
    ),
    section('rate-limits', 'Rate limits', rateLimits(limitsOf(api))),
    section('repeating', 'Repeating safely', repeating),
  ]
}

const basics = (base: string) => html`
<p class="text">All addresses are below <code>${base}</code>. Requests and answers are JSON in UTF-8, with names in <code>snake_case</code>. Bodies have up to 64 KiB; only <a href="#uploadFile">uploads</a> may be larger.</p>
${paragraphs('Ids are ULIDs: 26 characters that sort by the time at which they were made. Times are ISO 8601 in UTC with milliseconds and `Z`. Texts are Unicode, and their lengths count code points.\n\nAnswers may get further fields: ignore what you do not know. So does the service with the bodies that it gets. `null` in an optional field of a body is the same as leaving it out.')}
<p class="text">For programs there are the <a href="/v1/openapi.json">OpenAPI</a> and the <a href="/v1/asyncapi.json">AsyncAPI</a> document, of which this page is made, and a typed client: <a href="/client.js">/client.js</a> with <a href="/client.d.ts">its types</a>.</p>`

const firstRequest = (base: string) => html`<pre>import { createClient } from '${base}/client.js'

const client = createClient({ baseUrl: '${base}' })
await client.login({
  email: 'ada@example.com',
  password: 'correct horse',
})
const me = await client.request('GET /v1/users/me')</pre>`

const authentication = html`
<p class="text">People have an access token, which <a href="#login">logging in</a> and <a href="#register">registering</a> give. It goes into the header <code>Authorization: Bearer …</code> and is good for 15 minutes. With the refresh token <a href="#refreshTokens">the next pair is made</a>, once: each refresh token works one time. The client does that by itself.</p>
${paragraphs('Other servers of the platform have a service key, `sk_…`, in the same header. Admins make it, or the command line does, with the scopes that it needs. Service keys work for the feed alone, access tokens everywhere else.\n\nEach operation names the role or the scope that it needs. Without a valid token the answer is 401 `unauthorized`, without the role or scope 403 `forbidden`.')}`

const errors = html`${paragraphs('Every error has the same body. `code` is for programs, `message` for people, in the language of `Accept-Language` (English, German, Spanish, French, Portuguese). With `validation_error`, `details` names each wrong field.')}
<p class="text">Where one code has several causes, the header <code>X-Error-Reason</code> distinguishes them: <a href="#reasons">all of them</a>. New reasons may come: fall back to the code. With <code>X-Request-ID</code>, which every answer carries, the operator finds the request in the log.</p>`

const reasonList = (reasons: Reason[]) =>
  html`<ul class="reasons">${reasons.map(
    ({ id, status, name, cells: [code = '', meaning = '', remedy = ''] }) =>
      html`<li id="${id}"><span class="number">${status}</span><p><code>${name}</code>${name !== code && html` <span class="small soft">${code}</span>`}</p><p class="text">${inline(meaning)}. <span class="soft">${inline(remedy)}.</span></p></li>`,
  )}</ul>`

const pagination = paragraphs(
  'By page: `page` starts at 1; `per_page` is at most 100. `pagination` counts all entries and pages. Past the end there is no data.\n\nBy cursor: `limit` starts, and `pagination.cursor` of each answer goes into `cursor` of the next request until it is `null`. This form stays stable while new entries arrive, and the last page costs no more than the first. Chat, tickets and notifications have it; each list names what it takes.',
)

const rateLimits = (
  limits: RateLimit[],
) => html`${paragraphs('Each request counts towards one limit, in a sliding window; refused ones do not count. The answer says where that limit stands: `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (Unix seconds). Past the limit the answer is 429 `rate_limited` with `Retry-After` in seconds. What the operator has switched off has no such headers.')}
<table class="limits"><thead><tr><th>Limit</th><th>Requests</th><th>Of each</th></tr></thead><tbody>${limits.map(
  ({ name, requests, window_seconds, per }) =>
    html`<tr><td><code>${name}</code></td><td class="number">${requests.toLocaleString('en')} in ${windowText(window_seconds)}</td><td>${per.replaceAll('_', ' ')}</td></tr>`,
)}</tbody></table>`

const windowText = (seconds: number) =>
  seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`

function limitsOf({ paths }: ApiDocument) {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const limits = operations.flatMap((operation) => operation['x-rate-limit'] ?? [])
  return [...new Map(limits.map((limit) => [limit.name, limit])).values()]
}

const repeating = paragraphs(
  'A lost answer does not say whether the request arrived. Where an operation takes `client_id` in its body or `X-Idempotency-Key` in its header, give each new thing a key of its own and send it again with the same one: it is made once, and the first answer comes again with `Idempotent-Replayed: true`. The same key with other content is 409 `conflict`, reason `idempotency_mismatch`.',
)

/** How to open the WebSocket channel. */
export function socketEntry({ channels, servers }: ChannelDocument, lists: FieldLists): Entry {
  const { address, bindings } = channels.chat
  const url = `${servers.main.protocol}://${servers.main.host}${address}`
  const code = html`<pre>const socket = new WebSocket(
  '${url}?events=ack,read',
  ['hostline.v1', \`bearer.\${accessToken}\`],
)
socket.onmessage = ({ data }) => {
  const frame = JSON.parse(data)
  console.log(frame.type, frame)
}</pre>`
  return section(
    'connecting',
    'Connecting',
    html`<p class="endpoint"><span class="method get">${servers.main.protocol.toUpperCase()}</span> <code>${url}</code></p>
<h4>Query</h4>${lists.fieldsOf(bindings.ws.query, 'service')}
<p class="text">Who may connect, and how that is refused: <a href="#openChatSocket">the upgrade request</a>. A frame that is refused gets an <a href="#server_error"><code>error</code></a> frame; the socket stays open.</p>`,
    codeBlock('A socket in the browser', code),
  )
}
