import { notificationTypes } from '../../src/lib/vocabulary.ts'
import { atScale, type Dataset, differs, type Fill, idOf } from './dataset.ts'
import { textOf } from './vocabulary.ts'

/** At scale 1; two hundred for each user at every scale. */
const notifications = 2_000_000
/** The limit for a single user. */
const ofBusy = 1_000
const texts = 500

export const notificationsFill: Fill = {
  name: 'notifications',
  fill: fillNotifications,
  rules: (landmarks) => ({
    'as many notifications as planned': differs(
      'notifications',
      atScale(notifications, landmarks.scale),
    ),
    'the busy one has as many as anybody may have': differs(
      `notifications WHERE user_id = '${idOf(landmarks, 'busy')}'`,
      ofBusy,
    ),
    'no user has more': `SELECT count(*) FROM (SELECT 1 FROM notifications GROUP BY user_id HAVING count(*) > ${ofBusy})`,
    'the counts are those of the notifications': `SELECT count(*) FROM (
      SELECT user_id, count(*), count(*) FILTER (WHERE read_at IS NULL) FROM notifications GROUP BY user_id
      EXCEPT SELECT user_id, total_count, unread_count FROM notification_counts)`,
    'nothing else is counted':
      'SELECT (SELECT sum(total_count) FROM notification_counts) <> (SELECT count(*) FROM notifications)',
  }),
}

/** Two of three are read. Inserts go straight into the table, with its triggers: the service creates unread
 *  notifications only, and reading them one by one would double the work. */
function fillNotifications({ sqlite, landmarks, newId, clock, pick, repeat }: Dataset) {
  const insert = sqlite.prepare(
    'INSERT INTO notifications (user_id, id, type, title, body, data, in_app, read_at, created_at) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)',
  )
  const { people, scale } = landmarks
  const busy = idOf(landmarks, 'busy')
  const others = people.filter((id) => id !== busy)
  const count = atScale(notifications, scale)
  const busyEvery = Math.floor(count / ofBusy)
  const bodies = Array.from({ length: texts }, () => textOf(6 + pick(12), pick))
  repeat(count, (n) => {
    const isBusy = n % busyEvery === 0 && n / busyEvery < ofBusy
    const userId = isBusy ? busy : (others[pick(others.length)] ?? '')
    const type = notificationTypes[pick(notificationTypes.length)] ?? ''
    const body = bodies[pick(texts)] ?? ''
    const data = `{"call_session_id":"session-${n}"}`
    const readAt = pick(3) > 0 ? clock.now() : null
    insert.run(userId, newId(), type, 'News for you', body, data, readAt, clock.now())
  })
}
