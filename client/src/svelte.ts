import type { ChannelStatus, Client } from './client.ts'
import type { Opened } from './state.ts'

/** A store as Svelte reads it: `$inbox`. */
type Readable<T> = { subscribe: (run: (value: T) => void) => () => void }

/** Opens a store of `hostline-client/state` for as long as a component subscribes: `useStore(openThread, client, id)`.
 *  @returns a store of its state and its actions */
export function useStore<T extends object, A extends object, Inputs extends unknown[]>(
  open: (...inputs: Inputs) => Opened<T> & A,
  ...inputs: Inputs
): Readable<A & T> {
  return {
    subscribe(run) {
      const store = open(...inputs)
      const show = () => run({ ...store, ...store.getSnapshot() })
      const unsubscribe = store.subscribe(show)
      show()
      return () => {
        unsubscribe()
        store.close()
      }
    },
  }
}

/** The state of the client's channel. */
export function useStatus(client: Client): Readable<ChannelStatus> {
  return {
    subscribe(run) {
      run(client.status())
      return client.on('status', (event) => run(event.status))
    },
  }
}
