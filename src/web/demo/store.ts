import { useEffect, useState } from 'preact/hooks'

/** Opens a store for as long as the component is mounted. */
export function useStore<T extends { close: () => void }>(open: () => T): T {
  const [store] = useState(open)
  useEffect(() => store.close, [store])
  return store
}
