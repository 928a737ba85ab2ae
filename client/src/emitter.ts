type Handler<T> = (event: T) => void

/** Typed event handlers by event name. */
export function createEmitter<Events>() {
  const handlersOf = new Map<keyof Events, Set<Handler<never>>>()

  /** @returns a function that removes the handler */
  function on<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): () => void {
    const handlers = handlersOf.get(name) ?? new Set()
    handlersOf.set(name, handlers.add(handler))
    return () => off(name, handler)
  }

  function off<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): void {
    handlersOf.get(name)?.delete(handler)
  }

  return {
    on,
    off,
    /** Calls the handler for the next event only.
     *  @returns a function that removes the handler */
    once<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): () => void {
      const remove = on(name, (event) => {
        remove()
        handler(event)
      })
      return remove
    },

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
