import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

const nearPixels = 48

/** Sticks to the bottom of a scrolling element until the user scrolls up. Entries added at the top do not move the
 *  visible ones. */
export function useStickToBottom(firstId: string | undefined, lastId: string | undefined) {
  const frame = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const [isAtEnd, setAtEnd] = useState(true)
  const sticks = useRef(true)
  const before = useRef({ firstId, height: 0 })

  const toEnd = useCallback(() => {
    const element = frame.current
    if (!element) return
    sticks.current = true
    element.scrollTop = element.scrollHeight
  }, [])

  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    if (before.current.firstId !== firstId) {
      element.scrollTop += element.scrollHeight - before.current.height
    }
    if (sticks.current) toEnd()
    before.current = { firstId, height: element.scrollHeight }
  }, [firstId, lastId, toEnd])

  useEffect(() => {
    const element = frame.current
    if (!element || !content.current) return
    let lastTop = element.scrollTop
    const onScroll = () => {
      const { scrollHeight, scrollTop, clientHeight } = element
      const isNear = scrollHeight - scrollTop - clientHeight < nearPixels
      // The content may have grown since the scroll to its end: only a scroll upwards is the user's.
      if (isNear || scrollTop < lastTop) sticks.current = isNear
      lastTop = scrollTop
      setAtEnd(sticks.current)
    }
    // Images load after their message, and the composer grows.
    const observer = new ResizeObserver(() => {
      before.current.height = element.scrollHeight
      if (sticks.current) toEnd()
    })
    observer.observe(element)
    observer.observe(content.current)
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', onScroll)
    }
  }, [toEnd])

  return { frame, content, isAtEnd, toEnd }
}
