import { CodeBlock } from './code-block.tsx'
import type { Documents } from './documents.ts'
import { Inline } from './markdown.tsx'
import { addressOf } from './reading.ts'
import { FieldRow } from './schema-tree.tsx'

type TextProps = { documents: Documents }

export function Connecting({ documents: { channel } }: TextProps) {
  const { address, bindings } = channel.channels.chat
  const { host, protocol } = channel.servers.main
  return (
    <>
      <p class="endpoint">
        <span class="method get">{protocol.toUpperCase()}</span>
        <code>{`${protocol}://${host}${address}`}</code>
      </p>
      <h4>Query</h4>
      <ul class="fields">
        {Object.entries(bindings.ws.query.properties ?? {}).map(([name, schema]) => (
          <FieldRow
            key={name}
            name={name}
            schema={schema}
            schemas={channel.components.schemas}
            isRequired={false}
          />
        ))}
      </ul>
      <p class="text">
        Who may connect, and how that is refused:{' '}
        <a href={addressOf('openChatSocket')}>the upgrade request</a>.{' '}
        <Inline text={'A frame that is refused gets an `error` frame; the socket stays open.'} />
      </p>
    </>
  )
}

export function SocketExample({ documents: { channel } }: TextProps) {
  const { host, protocol } = channel.servers.main
  const code = `const socket = new WebSocket(
  '${protocol}://${host}${channel.channels.chat.address}?events=ack,read',
  ['hostline.v1', \`bearer.\${accessToken}\`],
)
socket.onmessage = ({ data }) => {
  const frame = JSON.parse(data)
  console.log(frame.type, frame)
}`
  return <CodeBlock label="A socket in the browser" text={code} />
}
