import type { Texts } from './i18n.ts'
import type { EventType, NotificationType } from './vocabulary.ts'

/** An event with the ids of its subjects; listeners load further data when they need it. */
export type DomainEvent = {
  type: EventType
  /** For example `message_id`. */
  ids: Readonly<Record<string, string>>
  /** The URL of a file that the subject now shows. */
  fileUrl?: string | null
  fileUrls?: readonly string[] | undefined
  /** The user who must have uploaded that file; default: the event's user. */
  fileOwnerId?: string
}

export type Events = ReturnType<typeof createEvents>

/** Events between modules that do not import each other. Listeners run inside the `write` that causes the event: their
 *  writes are part of it, and an error in one rolls everything back. */
export function createEvents() {
  const listeners: ((event: DomainEvent) => void)[] = []
  return {
    publish(event: DomainEvent): void {
      for (const listener of listeners) listener(event)
    },
    subscribe(listener: (event: DomainEvent) => void): void {
      listeners.push(listener)
    },
  }
}

/** An absent title or body is the text of the type, in the user's language. */
export type NotificationEvent = {
  type: NotificationType
  text?: keyof Texts['events'] | undefined
  title?: string | undefined
  body?: string | undefined
  data: Record<string, string>
  values?: Record<string, string>
  /** A repeated event with the same key returns the first notification. */
  dedupeKey?: string | undefined
  /** Set for copies of an announcement, which publish no event each. */
  isCopy?: boolean
}

/** Notifies a user. Called inside a `write`. */
export type Notify = (userId: string, event: NotificationEvent) => void
