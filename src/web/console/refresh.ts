import { useEffect, useRef } from 'preact/hooks'
import { client } from './session.ts'

type Refresh = {
  /** How often, while the page is shown; only after a reconnect when it is left out. */
  seconds?: number
  /** Whether what is shown must stay for now. */
  isHeld?: () => boolean
}

/** Loads quietly again what no frame tells about: every so often, and after the connection was lost. */
export function useRefresh(reload: () => void, { seconds, isHeld }: Refresh = {}): void {
  const work = useRef(() => {})
  work.current = () => {
    if (!document.hidden && !isHeld?.()) reload()
  }

  useEffect(() => {
    if (seconds === undefined) return
    const timer = setInterval(() => work.current(), seconds * 1_000)
    return () => clearInterval(timer)
  }, [seconds])

  useEffect(() => {
    let wasLost = false
    const forgetStatus = client.on('status', ({ status }) => {
      if (status === 'open' && wasLost) work.current()
      wasLost = status !== 'open'
    })
    const forgetResync = client.on('resync', () => work.current())
    return () => {
      forgetStatus()
      forgetResync()
    }
  }, [])
}
