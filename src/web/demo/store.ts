import { useEffect, useState } from 'preact/hooks'

/** Opens a store of live data, and closes it when the component goes. */
export function useStore<T extends { close: () => void }>(open: () => T): T {
  const [store] = useState(open)
  useEffect(() => store.close, [store])
  return store
}
