import { ArrowLeft } from 'lucide-preact'
import { useEffect } from 'preact/hooks'
import { useAction } from '../ui/action.ts'
import { Avatar } from '../ui/avatar.tsx'
import { Failure, Loading } from '../ui/states.tsx'
import { fill } from '../ui/texts.ts'
import { Composer } from './composer.tsx'
import type { Inbox } from './inbox.ts'
import { texts } from './language.tsx'
import { useMe } from './me.ts'
import { MessageList } from './message-list.tsx'
import { linkTo } from './place.ts'
import { BlockButton, BlockedNotice, ReportButton } from './safety.tsx'
import { useStore } from './store.ts'
import { openThread } from './thread.ts'

export function ThreadView({ conversationId }: { conversationId: string }) {
  const { client, user, outbox, blocks } = useMe()
  const thread = useStore(() => openThread(client, conversationId, user.id))
  const conversation = useConversation(conversationId)
  const other = conversation?.participant
  const loadEarlier = useAction(thread.loadEarlier)
  return (
    <div class="thread">
      <ThreadHead other={other} />
      {thread.isLoaded.value || thread.error.value === undefined ? (
        <MessageList
          thread={thread}
          conversationId={conversationId}
          readUpTo={conversation?.participant_read_up_to ?? undefined}
          loadEarlier={loadEarlier.run}
        />
      ) : (
        <div class="scroll">
          <Failure error={thread.error.value} retry={thread.load} />
        </div>
      )}
      <p class="typing small soft" role="status">
        {thread.isTyping.value &&
          fill(texts.value.chat.typing, { name: other?.display_name ?? '' })}
      </p>
      {other && blocks.ids.value.has(other.id) ? (
        <BlockedNotice person={other} />
      ) : (
        <Composer
          conversationId={conversationId}
          send={async (message) => {
            const stored = await outbox.send(conversationId, message)
            if (stored) thread.put([stored])
          }}
        />
      )}
    </div>
  )
}

/** Limits the search for a conversation that is not in the loaded pages. */
const mostSearched = 100

/** The conversation of the URL, which may not be in the loaded pages of the inbox. */
function useConversation(id: string) {
  const { inbox } = useMe()
  const found = inbox.conversations.value.find((item) => item.id === id)
  const isSearched = !found && inbox.isLoaded.value && mayBeFurtherDown(inbox)
  const known = inbox.conversations.value.length
  useEffect(() => {
    if (isSearched) void inbox.loadMore()
  }, [isSearched, known])
  return found
}

const mayBeFurtherDown = ({ hasMore, conversations }: Inbox) =>
  hasMore.value && conversations.value.length < mostSearched

type Person = { id: string; display_name: string }

function ThreadHead({ other }: { other: Person | undefined }) {
  const { side, inbox } = useMe()
  const back = texts.value.back
  const hasFailed = inbox.error.value !== undefined
  const isComing = !inbox.isLoaded.value || (mayBeFurtherDown(inbox) && !hasFailed)
  return (
    <header class="thread-head">
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
      {!other && isComing && <Loading rows={1} />}
      {!other && !isComing && !hasFailed && (
        <h3 class="truncate soft">{texts.value.chat.notFound}</h3>
      )}
    </header>
  )
}
