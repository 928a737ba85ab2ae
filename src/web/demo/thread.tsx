import { ArrowLeft, SendHorizontal } from 'lucide-preact'
import { useState } from 'preact/hooks'
import { useStore } from '../../../client/src/preact.ts'
import { openThread, type Used } from '../../../client/src/state.ts'
import { Avatar } from '../kit/avatar.tsx'
import { IconButton } from '../kit/button.tsx'
import { isComposing } from '../kit/field.tsx'
import { useFocusWhenLost } from '../kit/form.tsx'
import { Loading } from '../kit/states.tsx'
import { fill, texts } from '../kit/texts.tsx'
import { AttachButton, Attached } from '../kit/uploads.tsx'
import { useDraft } from './drafts.ts'
import { MessageList } from './messages.tsx'
import { linkTo, type Tab } from './place.ts'
import { BlockButton, BlockedNotice, isBlocked, ReportButton } from './safety.tsx'
import { useMe } from './session.ts'

export type Thread = Used<typeof openThread>

export function ThreadView({ conversationId }: { conversationId: string }) {
  const { client, blocks } = useMe()
  const thread = useStore(() => openThread(client, conversationId), [client, conversationId])
  const conversation = thread?.conversation
  const hasBlocked = conversation !== undefined && isBlocked(blocks, conversation.participant)
  // The composer takes the place of the button that unblocks.
  const frame = useFocusWhenLost<HTMLDivElement>(hasBlocked, '.composer textarea')
  if (!thread) return null
  const { isTyping } = thread
  const name = conversation?.participant.display_name ?? ''
  return (
    <div class="thread" ref={frame}>
      <ThreadHead thread={thread} />
      <MessageList thread={thread} conversationId={conversationId} />
      <p class="typing small soft" role="status">
        {isTyping && fill(texts.demo.chat.typing, { name })}
      </p>
      {hasBlocked ? (
        <BlockedNotice person={conversation.participant} />
      ) : (
        <Foot thread={thread} conversationId={conversationId} />
      )}
    </div>
  )
}

export function BackLink({ tab }: { tab: Tab }) {
  const { side } = useMe()
  const { back } = texts.demo
  return (
    <a class="button ghost icon" href={linkTo(side, tab)} aria-label={back} title={back}>
      <ArrowLeft />
    </a>
  )
}

function ThreadHead({ thread: { conversation, status } }: { thread: Thread }) {
  const other = conversation?.participant
  return (
    <header class="thread-head row">
      <BackLink tab="chat" />
      {other && (
        <>
          <Avatar name={other.display_name} />
          <h3 class="truncate" dir="auto">
            {other.display_name}
          </h3>
          <BlockButton person={other} />
          <ReportButton person={other} />
        </>
      )}
      {!other && status === 'loading' && <Loading rows={1} />}
    </header>
  )
}

/** The composer, or why one may not write. A block by the other person shows only when a message is refused. */
function Foot({ thread, conversationId }: { thread: Thread; conversationId: string }) {
  if (thread.conversation?.state === 'read_only')
    return <p class="notice">{texts.demo.refusals.read_only}</p>
  return <Composer conversationId={conversationId} thread={thread} />
}

function Composer({ conversationId, thread }: { conversationId: string; thread: Thread }) {
  const { client } = useMe()
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
          aria-label={texts.fields.message}
          placeholder={texts.fields.message}
          maxLength={5_000}
          enterkeyhint="send"
          value={body}
          onInput={({ currentTarget }) => {
            draft.value = { body: currentTarget.value }
            // Called on every key: the client throttles it.
            client.typing(conversationId)
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.shiftKey && !isComposing(event)) submit(event)
          }}
          onPaste={({ clipboardData }) => {
            if (clipboardData?.files[0]) setFile(clipboardData.files[0])
          }}
        />
        <IconButton
          submits
          tone="primary"
          icon={SendHorizontal}
          label={texts.kit.send}
          isBusy={!isReady}
        />
      </div>
    </form>
  )
}
