import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure, Loading } from './states.tsx'

const loaders: (() => Promise<unknown>)[] = []

/** A component whose code is loaded when it is first shown. */
export function lazy<P extends object = object>(
  load: () => Promise<ComponentType<P>>,
): ComponentType<P> {
  let loaded: ComponentType<P> | undefined
  const loadOnce = async () => {
    loaded ??= await load()
  }
  loaders.push(loadOnce)
  return function Lazy(props: P) {
    const [error, setError] = useState<unknown>()
    const [, setTurn] = useState(0)
    function start() {
      setError(undefined)
      loadOnce().then(() => setTurn((turn) => turn + 1), setError)
    }
    // `loadAllPages` may have loaded it before the effect runs.
    const isLoaded = loaded !== undefined
    useEffect(() => {
      if (!isLoaded) start()
    }, [])
    if (loaded) {
      const Loaded = loaded
      return <Loaded {...props} />
    }
    if (error !== undefined) return <Failure error={error} retry={start} />
    return <Loading rows={6} />
  }
}

/** Loads the code of all pages, so that they open at once. */
export function loadAllPages(): void {
  for (const load of loaders) load().catch(() => {}) // tried again when it is shown
}
