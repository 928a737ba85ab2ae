import { CodeBlock } from './code-block.tsx'
import type { FrameEntry, WebhookEntry } from './contents.ts'
import type { Documents } from './documents.ts'
import { Inline } from './markdown.tsx'
import { Parameters } from './operation-part.tsx'
import { Part } from './part.tsx'
import { Author, SchemaTree } from './schema-tree.tsx'

/** A WebSocket frame. */
export function FramePart({ entry, documents }: { entry: FrameEntry; documents: Documents }) {
  const { id, title, from, frame } = entry
  const { schemas } = documents.channel.components
  return (
    <Part
      id={id}
      title={title}
      head={
        <>
          <p class="small soft">{from === 'client' ? 'From the client' : 'From the server'}</p>
          <p class="text">
            <Inline text={frame.summary ?? ''} />
          </p>
        </>
      }
      text={() => (
        <>
          <h4>Fields</h4>
          <Author value={from === 'client' ? 'reader' : 'service'}>
            <SchemaTree schema={frame.payload.schema} schemas={schemas} />
          </Author>
        </>
      )}
      examples={() =>
        frame.examples.map(({ payload }, index) => (
          <CodeBlock
            key={index}
            label={`Frame: ${title}`}
            text={JSON.stringify(payload, null, 2)}
            isJson
          />
        ))
      }
    />
  )
}

/** A webhook request that this service sends. */
export function WebhookPart({ entry, documents }: { entry: WebhookEntry; documents: Documents }) {
  const { id, title, operation } = entry
  const { schemas } = documents.api.components
  const body = operation.requestBody?.content['application/json']
  return (
    <Part
      id={id}
      title={title}
      head={
        <p class="endpoint">
          <span class="method post">POST</span>
          <code>your endpoint</code>
        </p>
      }
      text={() => (
        <Author value="service">
          <h4>Body</h4>
          {body?.schema && <SchemaTree schema={body.schema} schemas={schemas} />}
          <Parameters title="Headers" parameters={operation.parameters ?? []} schemas={schemas} />
          <h4>What to answer</h4>
          {Object.entries(operation.responses).map(([status, { description }]) => (
            <p key={status} class="text">
              <code>{status}</code> {description}
            </p>
          ))}
        </Author>
      )}
      examples={() => (
        <CodeBlock label={`Event: ${title}`} text={JSON.stringify(body?.example, null, 2)} isJson />
      )}
    />
  )
}
