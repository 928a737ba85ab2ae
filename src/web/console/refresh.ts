import { useEffect, useRef } from 'preact/hooks'
import { client } from './session.ts'

type Refresh = {
  /** How often, while the page is shown; only after a reconnect when it is left out. */
  seconds?: number
  /** Whether what is shown must stay for now. */
  isHeld?: () => boolean
}

/** Loads quietly again what no frame tells about: every so often, and after the connection was lost. What is due while the
 *  page is hidden happens when it is shown. */
export function useRefresh(reload: () => void, { seconds, isHeld }: Refresh = {}): void {
  const work = useRef(() => {})
  const isOwed = useRef(false)
  work.current = () => {
    isOwed.current = document.hidden
    if (!document.hidden && !isHeld?.()) reload()
  }

  useEffect(() => {
    const catchUp = () => {
      if (isOwed.current && !document.hidden) work.current()
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
