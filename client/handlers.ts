import type { ServerFrame } from './contract.ts'

export type ChannelStatus = 'connecting' | 'open' | 'waiting' | 'closed'

/** What a channel tells, by name. */
export type ChannelEvents = { [F in ServerFrame as F['type']]: F } & {
  /** `code` is the close code (docs/protocol.md) when the service ended the connection. */
  status: { status: ChannelStatus; code?: number }
}

type Handler<T> = (event: T) => void

/** Handlers by the name of their event. */
export function createHandlers<Events>() {
  const byName = new Map<keyof Events, Set<Handler<never>>>()

  return {
    /** @returns what takes the handler away again */
    on<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): () => void {
      const handlers = byName.get(name) ?? new Set()
      byName.set(name, handlers.add(handler))
      return () => {
        handlers.delete(handler)
      }
    },

    emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
      for (const handler of [...(byName.get(name) ?? [])]) {
        try {
          handler(event as never) // `on` let nothing else in under this name
        } catch (error) {
          // The page's mistake, which must not stop the channel or the other handlers: reported as uncaught.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
