type Handler<T> = (event: T) => void

/** Typed event handlers by event name. */
export function createEmitter<Events>() {
  const handlersOf = new Map<keyof Events, Set<Handler<never>>>()

  return {
    /** @returns a function that removes the handler */
    on<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): () => void {
      const handlers = handlersOf.get(name) ?? new Set()
      handlersOf.set(name, handlers.add(handler))
      return () => void handlers.delete(handler)
    },

    isHeard: (name: keyof Events) => (handlersOf.get(name)?.size ?? 0) > 0,

    emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
      for (const handler of [...(handlersOf.get(name) ?? [])]) {
        try {
          handler(event as never) // `on` checked the type for this name
        } catch (error) {
          // A handler's error is reported as uncaught; the channel and the other handlers continue.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
