import { useEffect, useRef } from 'preact/hooks'

/** Calls `onChange` when an element enters or leaves the viewport. In a hidden browser tab nothing is visible. */
export function useInView<E extends Element>(onChange: (isInView: boolean) => void) {
  const element = useRef<E>(null)
  const latest = useRef(onChange)
  latest.current = onChange
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
