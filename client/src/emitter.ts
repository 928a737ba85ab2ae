type Handler<T> = (event: T) => void

/** Handlers by the name of what they are told. */
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
          handler(event as never) // `on` lets in nothing else under this name
        } catch (error) {
          // A mistake of the page is reported as uncaught, and stops neither the channel nor the other handlers.
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
  }
}
