import { type Inputs, useLayoutEffect, useState } from 'preact/hooks'
import type { ChannelStatus, Client } from './client.ts'
import type { Opened } from './state.ts'

/** Opens a store of `hostline-client/state` while the component is mounted, and another one when an input changes.
 *  @returns its state and its actions; undefined in the first render, which is never painted */
export function useStore<T extends object, A extends object>(
  open: () => Opened<T> & A,
  inputs: Inputs,
): (A & T) | undefined {
  const [used, setUsed] = useState<A & T>()
  function start() {
    const store = open()
    const show = () => setUsed({ ...store, ...store.getSnapshot() })
    const unsubscribe = store.subscribe(show)
    show()
    return () => {
      unsubscribe()
      store.close()
    }
  }
  useLayoutEffect(start, inputs)
  return used
}

/** The state of the client's channel. */
export function useStatus(client: Client): ChannelStatus {
  const [status, setStatus] = useState(client.status)
  useLayoutEffect(() => {
    setStatus(client.status())
    return client.on('status', (event) => setStatus(event.status))
  }, [client])
  return status
}
