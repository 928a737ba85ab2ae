import { useEffect, useRef } from 'preact/hooks'
import { client } from './session.ts'

type Refresh = {
  /** Polling interval while the page is visible. Without it, reloads only after a reconnect. */
  seconds?: number
  /** True while the shown rows must stay. */
  isPaused?: () => boolean
}

/** Reloads data that no frame announces: at an interval, and after a reconnect. A reload due while the page is
 *  hidden runs once it is visible. */
export function useRefresh(reload: () => void, { seconds, isPaused }: Refresh = {}): void {
  const work = useRef(() => {})
  const isDue = useRef(false)
  work.current = () => {
    isDue.current = document.hidden
    if (!document.hidden && !isPaused?.()) reload()
  }

  useEffect(() => {
    const catchUp = () => {
      if (isDue.current && !document.hidden) work.current()
    }
    document.addEventListener('visibilitychange', catchUp)
    return () => document.removeEventListener('visibilitychange', catchUp)
  }, [])

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
