import { CodeBlock } from './code-block.tsx'
import { Connecting, SocketExample } from './connecting.tsx'
import type { TextEntry, Written } from './contents.ts'
import type { ApiDocument, Documents, RateLimit } from './documents.ts'
import { Markdown } from './markdown.tsx'
import { addressOf } from './reading.ts'

type TextProps = { documents: Documents }

/** Text that applies to all operations. */
export const written: Written = {
  introduction: [
    text('basics', 'Basics', Basics, FirstRequest),
    text('authentication', 'Authentication', Authentication, LoginExample),
    text('errors', 'Errors', Errors, ErrorExample),
    text('pagination', 'Pagination', Pagination, PageExample),
    text('rate-limits', 'Rate limits', RateLimits),
    text('repeating', 'Repeating safely', Repeating),
  ],
  connecting: text('connecting', 'Connecting', Connecting, SocketExample),
}

type Text = TextEntry['text']

function text(id: string, title: string, body: Text, examples?: Text): TextEntry {
  return { kind: 'text', id, title, mark: '', text: body, ...(examples && { examples }) }
}

const baseOf = ({ api }: Documents) => api.servers[0]?.url ?? location.origin

function Basics({ documents }: TextProps) {
  return (
    <>
      <p class="text">
        All addresses are below <code>{baseOf(documents)}</code>. Requests and answers are JSON in
        UTF-8, with names in <code>snake_case</code>. Bodies have up to 64 KiB; only{' '}
        <a href={addressOf('uploadFile')}>uploads</a> may be larger.
      </p>
      <Markdown
        text={
          'Ids are ULIDs: 26 characters that sort by the time at which they were made. Times are ISO 8601 in UTC with milliseconds and `Z`. Texts are Unicode, and their lengths count code points.\n\nAnswers may get further fields: ignore what you do not know. So does the service with the bodies that it gets. `null` in an optional field of a body is the same as leaving it out.'
        }
      />
      <p class="text">
        For programs there are the <a href="/v1/openapi.json">OpenAPI</a> and the{' '}
        <a href="/v1/asyncapi.json">AsyncAPI</a> document, of which this page is made, and a typed
        client: <a href="/client.js">/client.js</a> with <a href="/client.d.ts">its types</a>.
      </p>
    </>
  )
}

function FirstRequest({ documents }: TextProps) {
  const base = baseOf(documents)
  const code = `import { createClient } from '${base}/client.js'

const client = createClient({ baseUrl: '${base}' })
await client.login({
  email: 'ada@example.com',
  password: 'correct horse',
})
const me = await client.request('GET /v1/users/me')`
  return <CodeBlock label="A first request with the client" text={code} />
}

function Authentication() {
  return (
    <>
      <p class="text">
        People have an access token, which <a href={addressOf('login')}>logging in</a> and{' '}
        <a href={addressOf('register')}>registering</a> give. It goes into the header{' '}
        <code>Authorization: Bearer …</code> and is good for 15 minutes. With the refresh token{' '}
        <a href={addressOf('refreshTokens')}>the next pair is made</a>, once: each refresh token
        works one time. The client does that by itself.
      </p>
      <Markdown
        text={
          'Other servers of the platform have a service key, `sk_…`, in the same header. Admins make it, or the command line does, with the scopes that it needs. Service keys work for the feed alone, access tokens everywhere else.\n\nEach operation names the role or the scope that it needs. Without a valid token the answer is 401 `unauthorized`, without the role or scope 403 `forbidden`.'
        }
      />
    </>
  )
}

function LoginExample({ documents }: TextProps) {
  const code = `curl '${baseOf(documents)}/v1/users/me' \\
  -H 'authorization: Bearer ACCESS_TOKEN'`
  return <CodeBlock label="A request with an access token" text={code} />
}

function Errors({ documents: { api } }: TextProps) {
  return (
    <>
      <Markdown
        text={
          'Every error has the same body. `code` is for programs, `message` for people, in the language of `Accept-Language` (English, German, Spanish, French, Portuguese). With `validation_error`, `details` names each wrong field.\n\nWhere one code has several causes, the header `X-Error-Reason` tells them apart. New reasons may come: fall back to the code. With `X-Request-ID`, which every answer carries, the operator finds the request in the log.'
        }
      />
      <h4>Codes</h4>
      <Names names={codesOf(api)} />
      <h4>Reasons</h4>
      <Names names={reasonsOf(api)} />
    </>
  )
}

function Names({ names }: { names: string[] }) {
  return (
    <p class="rules">
      {names.map((name) => (
        <code key={name} class="value">
          {name}
        </code>
      ))}
    </p>
  )
}

function codesOf({ components }: ApiDocument): string[] {
  const code = components.schemas['Error']?.properties?.['error']?.properties?.['code']
  return (code?.enum ?? []).map(String)
}

function reasonsOf({ components }: ApiDocument): string[] {
  const reasons = Object.values(components.responses).flatMap(
    ({ headers }) => headers?.['X-Error-Reason']?.schema?.enum ?? [],
  )
  return [...new Set(reasons.map(String))].toSorted()
}

function ErrorExample({ documents: { api } }: TextProps) {
  const examples = api.components.responses['validation_error']?.content?.['application/json']
  const value = examples?.examples?.['validation_error']?.value
  return <CodeBlock label="400 validation_error" text={JSON.stringify(value, null, 2)} isJson />
}

function Pagination() {
  return (
    <Markdown
      text={
        'By page: `page` starts at 1; `per_page` is at most 100. `pagination` counts all entries and pages. Past the end there is no data.\n\nBy cursor: `limit` starts, and `pagination.cursor` of each answer goes into `cursor` of the next request until it is `null`. This form stays stable while new entries arrive, and the last page costs no more than the first. Chat, tickets and notifications have it; each list names what it takes.'
      }
    />
  )
}

function PageExample({ documents: { api } }: TextProps) {
  const example = api.paths['/v1/chat/conversations']?.['get']?.responses['200']
  const value = example?.content?.['application/json']?.example as { pagination?: unknown }
  return (
    <CodeBlock
      label="The page that was answered"
      text={JSON.stringify({ pagination: value?.pagination }, null, 2)}
      isJson
    />
  )
}

function RateLimits({ documents: { api } }: TextProps) {
  return (
    <>
      <Markdown
        text={
          'Each request counts towards one limit, in a sliding window; refused ones do not count. The answer says where that limit stands: `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (Unix seconds). Past the limit the answer is 429 `rate_limited` with `Retry-After` in seconds. What the operator has switched off has no such headers.'
        }
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached with the keyboard */}
      <section class="table-frame" aria-label="Rate limits" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Limit</th>
              <th>Requests</th>
              <th>Window</th>
              <th>Of each</th>
            </tr>
          </thead>
          <tbody>
            {limitsOf(api).map(({ name, requests, window_seconds, per }) => (
              <tr key={name}>
                <td>
                  <code>{name}</code>
                </td>
                <td class="number">{requests.toLocaleString('en')}</td>
                <td class="number">{windowText(window_seconds)}</td>
                <td>{per.replaceAll('_', ' ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  )
}

function limitsOf({ paths }: ApiDocument): RateLimit[] {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const limits = operations.flatMap((operation) => operation['x-rate-limit'] ?? [])
  return [...new Map(limits.map((limit) => [limit.name, limit])).values()]
}

const windowText = (seconds: number) =>
  seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`

function Repeating() {
  return (
    <Markdown
      text={
        'A lost answer does not say whether the request arrived. Where an operation takes `client_id` in its body or `X-Idempotency-Key` in its header, give each new thing a key of its own and send it again with the same one: it is made once, and the first answer comes again with `Idempotent-Replayed: true`. The same key with other content is 409 `conflict`, reason `idempotency_mismatch`.'
      }
    />
  )
}
