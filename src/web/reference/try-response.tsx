import { bytes as bytesText } from '../ui/format.ts'
import { CodeBlock } from './code-block.tsx'
import type { TryResponse } from './try-session.ts'

const shownHeaders = [
  'x-request-id',
  'x-error-reason',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'idempotent-replayed',
]

/** The raw response: status, time, selected headers and body. */
export function ResponseView({ response }: { response: TryResponse }) {
  const { status, statusText, milliseconds, headers } = response
  const given = shownHeaders.filter((name) => headers.has(name))
  return (
    <div class="stack tight answer">
      <p class="row small">
        <span class={`badge number ${status < 400 ? 'good' : 'danger'}`}>
          {status} {statusText}
        </span>
        <span class="soft number">{Math.round(milliseconds)} ms</span>
      </p>
      <dl class="headers small">
        {given.map((name) => (
          <div key={name} class="header-line">
            <dt class="soft">{name}</dt>
            <dd class="mono">{headers.get(name)}</dd>
          </div>
        ))}
      </dl>
      <Body response={response} />
    </div>
  )
}

function Body({ response: { bytes, type } }: { response: TryResponse }) {
  if (bytes.byteLength === 0) return <p class="small soft">No body.</p>
  if (!/json|^text\//.test(type)) {
    return (
      <p class="small soft">
        {bytesText(bytes.byteLength)} of {type}.
      </p>
    )
  }
  const text = new TextDecoder().decode(bytes)
  const isJson = type.includes('json')
  return <CodeBlock label="The answer" text={isJson ? indented(text) : text} isJson={isJson} />
}

// A proxy may label other content as JSON.
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
