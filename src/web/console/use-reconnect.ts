import { useEffect, useRef } from 'preact/hooks'
import { client } from './session.ts'

/** Calls `work` when frames may have been missed: after a reconnect, and on `resync`. */
export function useReconnect(work: () => void): void {
  const latest = useRef(work)
  latest.current = work
  useEffect(() => {
    let wasAway = client.status() !== 'open'
    const removeHandlers = [
      client.on('status', ({ status }) => {
        if (status === 'open' && wasAway) latest.current()
        wasAway = status !== 'open'
      }),
      client.on('resync', () => latest.current()),
    ]
    return () => {
      for (const remove of removeHandlers) remove()
    }
  }, [])
}
