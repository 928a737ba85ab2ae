import type { EventType } from './vocabulary.ts'

/** An event with the ids of its subjects; listeners load further data when they need it. */
export type DomainEvent = {
  type: EventType
  /** For example `message_id`. */
  ids: Readonly<Record<string, string>>
  /** The URL of a file that the subject now shows. */
  fileUrl?: string | null
  /** The URLs of all its files, if there are several. */
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
