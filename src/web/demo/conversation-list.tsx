import { MessageCircle, MessageCirclePlus } from 'lucide-preact'
import type { ConversationListItem } from '../../../client/src/client.ts'
import { Avatar } from '../kit/avatar.tsx'
import { Button, useAction } from '../kit/button.tsx'
import { count } from '../kit/format.ts'
import { fill, texts } from '../kit/texts.tsx'
import { Time } from '../kit/time.tsx'
import { List } from './list.tsx'
import { go, linkTo } from './place.ts'
import { otherSide, sessions, useMe } from './session.ts'

export function ConversationList() {
  const { inbox } = useMe()
  const text = texts.demo.chat
  return (
    <div class="scroll">
      <NewConversation />
      <List
        label={text.conversations}
        list={inbox}
        icon={MessageCircle}
        words={text}
        render={(item) => <Row item={item} />}
      />
    </div>
  )
}

function Row({ item }: { item: ConversationListItem }) {
  const { side } = useMe()
  const { id, participant, last_message, unread_count, updated_at } = item
  return (
    <a href={linkTo(side, 'chat', id)} class={unread_count > 0 ? 'row-link unread' : 'row-link'}>
      <Avatar name={participant.display_name} />
      <span class="entry-lines row-text">
        <span class="row between">
          <span class="row-title truncate">{participant.display_name}</span>
          <span class="small soft">
            <Time at={updated_at} />
          </span>
        </span>
        <span class="row between">
          <span class="small soft truncate">{previewOf(last_message)}</span>
          <UnreadBadge unread={unread_count} />
        </span>
      </span>
    </a>
  )
}

function previewOf(last: ConversationListItem['last_message']): string {
  const { chat } = texts.demo
  if (!last) return chat.noMessages
  if (last.body !== '') return last.body
  return last.type === 'file' ? chat.file : texts.kit.removedMessage
}

/** Offers the person of the other panel; other people are found by their id. */
function NewConversation() {
  const { side, inbox, user } = useMe()
  const text = texts.demo.chat
  const other = sessions[otherSide(side)].user.value
  const begin = useAction(async (userId: string) => go(side, 'chat', await inbox.open(userId)))
  return (
    <div class="stack tight begin">
      {other && other.id !== user.id ? (
        <Button
          tone="primary"
          icon={MessageCirclePlus}
          isBusy={begin.isBusy}
          onClick={() => begin.run(other.id)}
        >
          <span class="truncate">{fill(text.writeTo, { name: other.display_name })}</span>
        </Button>
      ) : (
        <p class="small soft">{text.nobodyElse}</p>
      )}
      <details class="small">
        <summary>{text.somebodyElse}</summary>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault()
            const data = new FormData(event.currentTarget)
            void begin.run(String(data.get('user_id')).trim())
          }}
        >
          <input name="user_id" aria-label={text.userId} placeholder={text.userId} required />
          <Button submits isBusy={begin.isBusy}>
            {text.write}
          </Button>
        </form>
        <p class="soft">
          {text.ownId} <code>{user.id}</code>
        </p>
      </details>
    </div>
  )
}

export function UnreadBadge({ unread }: { unread: number }) {
  if (unread === 0) return null
  return (
    <span class="badge accent number">
      {count(unread)}
      <span class="visually-hidden"> {texts.demo.unread}</span>
    </span>
  )
}
