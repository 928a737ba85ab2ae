import type { EventType } from './vocabulary.ts'

/** Something that has happened, by the ids of what it happened to: whoever passes it on reads the rest by then. */
export type DomainEvent = {
  type: EventType
  /** Such as `message_id`. */
  ids: Readonly<Record<string, string>>
  /** The address of a file that the thing shows now. */
  fileUrl?: string | null
  /** Whose upload that file must be, unless it is the person of the event. */
  fileOwnerId?: string
}

export type Events = ReturnType<typeof createEvents>

/** What modules tell those that they do not know. Everything runs inside the `write` that makes an event true: what a listener
 *  writes is part of it, and when one throws nothing has happened. */
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
