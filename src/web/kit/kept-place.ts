import { useLayoutEffect, useRef } from 'preact/hooks'

const nearPixels = 48

export const isNearEnd = ({ scrollTop }: Element): boolean => scrollTop > -nearPixels

/** For a log with one child that is scrolled from its end (`from-end`): earlier entries, and images that load, do not
 *  move it. A new entry is shown if the end was, and else moves nothing.
 *  @param newest the id of the newest entry */
export function useKeptPlace(newest = '') {
  const frame = useRef<HTMLDivElement>(null)
  const before = useRef({ newest, height: 0 })
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const grown = element.scrollHeight - before.current.height
    if (newest !== before.current.newest)
      element.scrollTop = isNearEnd(element) ? 0 : element.scrollTop - grown
    before.current = { newest, height: element.scrollHeight }
  })
  useLayoutEffect(() => {
    const element = frame.current
    if (!element?.firstElementChild) return
    const observer = new ResizeObserver(() => {
      before.current.height = element.scrollHeight
    })
    observer.observe(element.firstElementChild)
    return () => observer.disconnect()
  }, [])
  return frame
}
