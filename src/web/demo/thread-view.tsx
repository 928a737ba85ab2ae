import { ArrowLeft } from 'lucide-preact'
import { useStore } from '../../../client/src/preact.ts'
import { openThread, type Used } from '../../../client/src/state.ts'
import { Avatar } from '../kit/avatar.tsx'
import { Failure, Loading } from '../kit/states.tsx'
import { fill, texts } from '../kit/texts.tsx'
import { Composer } from './composer.tsx'
import { MessageList } from './message-list.tsx'
import { linkTo } from './place.ts'
import { BlockButton, BlockedNotice, isBlocked, ReportButton } from './safety.tsx'
import { useMe } from './session.ts'

export type Thread = Used<typeof openThread>

export function ThreadView({ conversationId }: { conversationId: string }) {
  const { client } = useMe()
  const thread = useStore(() => openThread(client, conversationId), [client, conversationId])
  if (!thread) return null
  const { items, status, error, conversation, isTyping, reload } = thread
  const name = conversation?.participant.display_name ?? ''
  return (
    <div class="thread">
      <ThreadHead thread={thread} />
      {status === 'failed' && items.length === 0 ? (
        <div class="scroll">
          <Failure error={error} retry={reload} />
        </div>
      ) : (
        <MessageList thread={thread} conversationId={conversationId} />
      )}
      <p class="typing small soft" role="status">
        {isTyping && fill(texts.demo.chat.typing, { name })}
      </p>
      <Foot thread={thread} conversationId={conversationId} />
    </div>
  )
}

function ThreadHead({ thread: { conversation, status } }: { thread: Thread }) {
  const { side } = useMe()
  const back = texts.demo.back
  const other = conversation?.participant
  return (
    <header class="thread-head row">
      <a class="button ghost icon" href={linkTo(side, 'chat')} aria-label={back} title={back}>
        <ArrowLeft />
      </a>
      {other && (
        <>
          <Avatar name={other.display_name} />
          <h3 class="truncate">{other.display_name}</h3>
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
  const { blocks } = useMe()
  const { conversation } = thread
  if (conversation && isBlocked(blocks, conversation.participant))
    return <BlockedNotice person={conversation.participant} />
  if (conversation?.state === 'read_only')
    return <p class="notice">{texts.demo.refusals.read_only}</p>
  return <Composer conversationId={conversationId} thread={thread} />
}
