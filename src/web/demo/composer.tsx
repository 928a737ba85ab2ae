import { SendHorizontal } from 'lucide-preact'
import type { NewMessage } from '../../../client/src/client.ts'
import { AttachButton, UploadList, useUploads } from './attachments.tsx'
import { useDraft } from './drafts.ts'
import { texts } from './language.tsx'
import { useMe } from './me.ts'

type ComposerProps = { conversationId: string; send: (message: NewMessage) => void }

export function Composer({ conversationId, send }: ComposerProps) {
  const { client } = useMe()
  const text = texts.value.chat
  const draft = useDraft(`chat ${conversationId}`)
  const body = draft.value['body'] ?? ''
  const uploads = useUploads(1)
  const [file] = uploads.files
  const isReady = !uploads.isUploading && (body.trim() !== '' || file !== undefined)

  function submit(event: Event) {
    event.preventDefault()
    if (!isReady) return
    // The response to an upload has the fields of a file message. With a file the text may be empty.
    send(file ? { type: 'file', body, ...file } : { body })
    draft.value = {}
    uploads.clear()
  }

  return (
    <form class="composer" onSubmit={submit}>
      <UploadList uploads={uploads} />
      <div class="row">
        <AttachButton uploads={uploads} />
        <textarea
          rows={1}
          dir="auto"
          aria-label={text.message}
          placeholder={text.message}
          maxLength={5_000}
          enterkeyhint="send"
          value={body}
          onInput={({ currentTarget }) => {
            draft.value = { body: currentTarget.value }
            // Called on every key: the client throttles it.
            client.typing(conversationId)
          }}
          onKeyDown={(event) => {
            // While an input method is composing, Enter accepts a character.
            if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event)
          }}
          onPaste={({ clipboardData }) => uploads.add(clipboardData?.files ?? [])}
        />
        <button
          type="submit"
          class="button primary icon"
          aria-label={text.send}
          title={text.send}
          aria-disabled={!isReady}
        >
          <SendHorizontal />
        </button>
      </div>
    </form>
  )
}
