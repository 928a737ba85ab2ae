import { useEffect, useRef } from 'preact/hooks'

/** Tells when an element comes into sight and when it leaves it; what is in another tab of the page is not in sight. */
export function useInSight<E extends Element>(tell: (isInSight: boolean) => void) {
  const element = useRef<E>(null)
  const latest = useRef(tell)
  latest.current = tell
  useEffect(() => {
    if (!element.current) return
    const observer = new IntersectionObserver((entries) => {
      const newest = entries.at(-1)
      if (newest) latest.current(newest.isIntersecting)
    })
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return element
}
