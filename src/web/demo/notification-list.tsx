import { Bell, CheckCheck } from 'lucide-preact'
import type { Notification } from '../../../client/src/client.ts'
import { ActionButton, useAction } from '../kit/button.tsx'
import { texts } from '../kit/texts.tsx'
import { Time } from '../kit/time.tsx'
import { List } from './list.tsx'
import { go } from './place.ts'
import { PushOptIn } from './push-opt-in.tsx'
import { useMe } from './session.ts'

/** Notifications, and the opt-in for push. */
export function NotificationList() {
  const { notifications } = useMe()
  const text = texts.demo.notifications
  return (
    <div class="scroll">
      <PushOptIn />
      {notifications.items.some(({ read }) => !read) && (
        <div class="stack tight begin">
          <ActionButton
            icon={CheckCheck}
            texts={{ button: text.markAllRead }}
            work={notifications.markAllRead}
          />
        </div>
      )}
      <List
        label={texts.demo.tabs.notifications}
        list={notifications}
        icon={Bell}
        words={text}
        render={(item) => <Row item={item} markRead={notifications.markRead} />}
      />
    </div>
  )
}

type RowProps = { item: Notification; markRead: (id: string) => Promise<unknown> }

/** A click marks the notification as read and opens its subject. */
function Row({ item, markRead }: RowProps) {
  const { side } = useMe()
  const reading = useAction(markRead)
  function press() {
    if (!item.read) void reading.run(item.id)
    if (item.type === 'support_reply' && item.data.ticket_id)
      go(side, 'tickets', item.data.ticket_id)
  }
  return (
    <button type="button" class={item.read ? 'row-link' : 'row-link unread'} onClick={press}>
      <span class={item.read ? 'dot seen' : 'dot accent'} />
      <span class="entry-lines row-text">
        <span class="row between">
          <span class="row-title">{item.title}</span>
          <span class="small soft">
            <Time at={item.created_at} />
          </span>
        </span>
        <span class="small soft prose">{item.body}</span>
        {!item.read && <span class="visually-hidden">{texts.demo.unread}</span>}
      </span>
    </button>
  )
}
