import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

const nearPixels = 48

/** Sticks to the bottom of a scrolling element until the user scrolls up. Entries added at the top do not move the
 *  visible ones. */
export function useFollowing(firstId: string | undefined, lastId: string | undefined) {
  const frame = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const [isAtEnd, setAtEnd] = useState(true)
  const follows = useRef(true)
  const before = useRef({ firstId, height: 0 })

  const toEnd = useCallback(() => {
    const element = frame.current
    if (!element) return
    follows.current = true
    element.scrollTop = element.scrollHeight
  }, [])

  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    if (before.current.firstId !== firstId) {
      element.scrollTop += element.scrollHeight - before.current.height
    }
    if (follows.current) toEnd()
    before.current = { firstId, height: element.scrollHeight }
  }, [firstId, lastId, toEnd])

  useEffect(() => {
    const element = frame.current
    if (!element || !content.current) return
    const look = () => {
      const { scrollHeight, scrollTop, clientHeight } = element
      follows.current = scrollHeight - scrollTop - clientHeight < nearPixels
      setAtEnd(follows.current)
    }
    // Images load after their message, and the composer grows.
    const observer = new ResizeObserver(() => {
      before.current.height = element.scrollHeight
      if (follows.current) toEnd()
    })
    observer.observe(element)
    observer.observe(content.current)
    element.addEventListener('scroll', look, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [toEnd])

  return { frame, content, isAtEnd, toEnd }
}
