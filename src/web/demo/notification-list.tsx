import { Bell, CheckCheck } from 'lucide-preact'
import type { Notification } from '../../../client/src/client.ts'
import { useAction } from '../ui/action.ts'
import { Empty } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { texts } from './language.tsx'
import { ListEnd } from './list-end.tsx'
import { useMe } from './me.ts'
import { type Notifications, openNotifications } from './notifications.ts'
import { go } from './place.ts'
import { PushOptIn } from './push-opt-in.tsx'
import { useStore } from './store.ts'

/** Notifications, and the opt-in for push. */
export function NotificationList() {
  const { client } = useMe()
  const text = texts.value.notifications
  const notifications = useStore(() => openNotifications(client))
  const items = notifications.items.value
  const markAll = useAction(notifications.markAllRead)
  return (
    <div class="scroll">
      <PushOptIn />
      {items.some(({ read }) => !read) && (
        <div class="begin">
          <button
            type="button"
            class="button"
            disabled={markAll.isBusy}
            onClick={() => markAll.run()}
          >
            <CheckCheck />
            {text.markAllRead}
          </button>
        </div>
      )}
      {notifications.isLoaded.value && items.length === 0 && (
        <Empty icon={Bell} title={text.none}>
          <p>{text.noneText}</p>
        </Empty>
      )}
      <ul class="rows" aria-label={text.label}>
        {items.map((item) => (
          <Row key={item.id} item={item} notifications={notifications} />
        ))}
      </ul>
      <ListEnd list={notifications} />
    </div>
  )
}

type RowProps = { item: Notification; notifications: Notifications }

/** A click marks the notification as read and opens its subject. */
function Row({ item, notifications }: RowProps) {
  const { side } = useMe()
  const reading = useAction(notifications.markRead)
  function press() {
    if (!item.read) void reading.run(item)
    if (item.type === 'support_reply' && item.data.ticket_id)
      go(side, 'tickets', item.data.ticket_id)
  }
  return (
    <li>
      <button type="button" class={item.read ? 'row-link' : 'row-link unread'} onClick={press}>
        <span class={item.read ? 'dot seen' : 'dot accent'} />
        <span class="row-text">
          <span class="row between">
            <span class="row-title">{item.title}</span>
            <span class="small soft">
              <Time at={item.created_at} />
            </span>
          </span>
          <span class="small soft prose">{item.body}</span>
          {!item.read && <span class="visually-hidden">{texts.value.unread}</span>}
        </span>
      </button>
    </li>
  )
}
