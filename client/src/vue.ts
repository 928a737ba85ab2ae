import { type ShallowRef, shallowRef, watchEffect } from 'vue'
import type { ChannelStatus, Client } from './client.ts'
import type { Opened } from './state.ts'

/** Opens a store of `hostline-client/state` while the component is mounted, and another one when a prop or ref that
 *  `open` reads changes.
 *  @returns its state and its actions */
export function useStore<T extends object, A extends object>(
  open: () => Opened<T> & A,
): Readonly<ShallowRef<A & T>> {
  const used = shallowRef<A & T>()
  watchEffect((onCleanup) => {
    const store = open()
    const show = () => {
      used.value = { ...store, ...store.getSnapshot() }
    }
    const unsubscribe = store.subscribe(show)
    show()
    onCleanup(() => {
      unsubscribe()
      store.close()
    })
  })
  return used as ShallowRef<A & T> // the effect has run
}

/** The state of the client's channel. */
export function useStatus(client: Client): Readonly<ShallowRef<ChannelStatus>> {
  const status = shallowRef(client.status())
  // A render on a server ends effects, but not their scope.
  watchEffect((onCleanup) =>
    onCleanup(
      client.on('status', (event) => {
        status.value = event.status
      }),
    ),
  )
  return status
}
