import { SendHorizontal } from 'lucide-preact'
import { useState } from 'preact/hooks'
import { IconButton } from '../kit/button.tsx'
import { texts } from '../kit/texts.tsx'
import { AttachButton, Attached } from '../kit/uploads.tsx'
import { useDraft } from './drafts.ts'
import { useMe } from './session.ts'
import type { Thread } from './thread-view.tsx'

export function Composer({ conversationId, thread }: { conversationId: string; thread: Thread }) {
  const { client } = useMe()
  const text = texts.demo.chat
  const draft = useDraft(`chat ${conversationId}`)
  const body = draft.value['body'] ?? ''
  const [file, setFile] = useState<File>()
  const isReady = body.trim() !== '' || file !== undefined

  function submit(event: Event) {
    event.preventDefault()
    if (!isReady) return
    // With a file the text may be empty.
    const sending = file ? thread.sendFile(file, { body }) : thread.send({ body })
    sending.catch(() => {}) // the outbox shows what was refused
    draft.value = {}
    setFile(undefined)
  }

  return (
    <form class="composer stack tight" onSubmit={submit}>
      <Attached
        files={file ? [{ id: '', file_name: file.name, file_size: file.size }] : []}
        removeFile={() => setFile(undefined)}
      />
      <div class="row">
        <AttachButton label={texts.demo.attach} take={([chosen]) => setFile(chosen)} isSingle />
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
          onPaste={({ clipboardData }) => {
            if (clipboardData?.files[0]) setFile(clipboardData.files[0])
          }}
        />
        <IconButton
          submits
          tone="primary"
          icon={SendHorizontal}
          label={text.send}
          isBusy={!isReady}
        />
      </div>
    </form>
  )
}
