type Handler<T> = (event: T) => void

/** Typed event handlers by event name. */
export function createEmitter<Events>() {
  /** By the handler that was given, the function that is called: for `once` they differ. */
  const handlersOf = new Map<keyof Events, Map<Handler<never>, Handler<never>>>()

  /** @returns a function that removes the handler */
  function on<Name extends keyof Events>(
    name: Name,
    handler: Handler<Events[Name]>,
    call: Handler<Events[Name]> = handler,
  ): () => void {
    const handlers = handlersOf.get(name) ?? new Map()
    handlersOf.set(name, handlers.set(handler, call))
    return () => off(name, handler)
  }

  function off<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): void {
    handlersOf.get(name)?.delete(handler)
  }

  return {
    on: <Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>) =>
      on(name, handler),
    off,
    /** Calls the handler for the next event only.
     *  @returns a function that removes the handler */
    once: <Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>) =>
      on(name, handler, (event) => {
        off(name, handler)
        handler(event)
      }),

    emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
      for (const handler of [...(handlersOf.get(name)?.values() ?? [])]) {
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
