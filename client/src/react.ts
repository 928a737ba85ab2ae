import { type DependencyList, useLayoutEffect, useState, useSyncExternalStore } from 'react'
import type { ChannelStatus, Client } from './client.ts'
import type { Opened } from './state.ts'

const never = () => () => {}

/** Opens a store of `hostline-client/state` while the component is mounted, and another one when an input changes.
 *  @returns its state and its actions; undefined in the first render, which is never painted */
export function useStore<T extends object, A extends object>(
  open: () => Opened<T> & A,
  inputs: DependencyList,
): (A & T) | undefined {
  const [store, setStore] = useState<Opened<T> & A>()
  function start() {
    const opened = open()
    setStore(opened)
    return opened.close
  }
  useLayoutEffect(start, inputs)
  const getState = () => store?.getSnapshot()
  const state = useSyncExternalStore(store?.subscribe ?? never, getState, getState)
  return store && state && { ...store, ...state }
}

/** The state of the client's channel. */
export function useStatus(client: Client): ChannelStatus {
  return useSyncExternalStore(
    (listener) => client.on('status', listener),
    client.status,
    client.status,
  )
}
