import accountsAndChat from '../../drizzle/0000_accounts_and_chat.sql' with { type: 'text' }
import peopleAndMail from '../../drizzle/0001_people_and_mail.sql' with { type: 'text' }
import followsCallsAndBroadcasts from '../../drizzle/0002_follows_calls_and_broadcasts.sql' with {
  type: 'text',
}
import support from '../../drizzle/0003_support.sql' with { type: 'text' }
import notifications from '../../drizzle/0004_notifications.sql' with { type: 'text' }
import timelines from '../../drizzle/0005_timelines.sql' with { type: 'text' }

/** The SQL of every migration in the order of drizzle/meta/_journal.json; imported as text, so that the executable
 *  carries it. Append only: the position is the version that `PRAGMA user_version` stores. */
export const migrations: readonly string[] = [
  accountsAndChat,
  peopleAndMail,
  followsCallsAndBroadcasts,
  support,
  notifications,
  timelines,
]
