import { effect, signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { navigate, path } from '../ui/router.ts'

const root = '/docs'
/** The first section; its URL is the root. */
export const firstPart = 'introduction'
const settlingMilliseconds = 2_000
const pauseMilliseconds = 150

/** Id of the section at the top of the viewport. */
export const current = signal(firstPart)
/** The target of the last link: kept in place while sections above it are still rendered. */
let landing: string | undefined
let settled: ReturnType<typeof setTimeout> | undefined
let noted: ReturnType<typeof setTimeout> | undefined

const idOf = (address: string) => address.slice(root.length + 1) || firstPart
export const addressOf = (id: string) => (id === firstPart ? root : `${root}/${id}`)

/** Handles links and the back button, and updates the URL on scrolling. Call it once the sections are rendered.
 *  @returns a function that stops it */
export function startReading(): () => void {
  // Older links have the section in the hash.
  const hash = location.hash.slice(1)
  if (hash) navigate(addressOf(hash), 'replace')
  history.scrollRestoration = 'manual'
  let isFirst = true
  const stopFollowing = effect(() => {
    const id = idOf(path.value)
    if (id !== current.peek()) land(id, isFirst ? 'stay' : 'move')
    isFirst = false
  })
  const growth = new ResizeObserver(() => scrollToLanding())
  growth.observe(document.body)
  const reader = new IntersectionObserver(noteRead, { rootMargin: '-12% 0px -87% 0px' })
  for (const part of document.querySelectorAll('[data-part]')) reader.observe(part)
  for (const name of handEvents) addEventListener(name, endLanding, { passive: true })
  return () => {
    stopFollowing()
    growth.disconnect()
    reader.disconnect()
    for (const name of handEvents) removeEventListener(name, endLanding)
  }
}

/** Scrolling by hand cancels the landing. */
const handEvents = ['wheel', 'touchmove', 'pointerdown', 'keydown']

/** Scrolls to a section. */
export function land(id: string, focus: 'move' | 'stay' = 'move'): void {
  clearTimeout(noted)
  current.value = id
  landing = id
  scrollToLanding()
  if (focus === 'move') headingOf(id)?.focus({ preventScroll: true })
  clearTimeout(settled)
  settled = setTimeout(endLanding, settlingMilliseconds)
}

function scrollToLanding() {
  if (landing === undefined) return
  if (landing === firstPart) scrollTo({ top: 0 })
  else document.getElementById(landing)?.scrollIntoView()
}

function endLanding() {
  landing = undefined
}

const headingOf = (id: string) => document.getElementById(id)?.querySelector<HTMLElement>('h2, h3')

function noteRead(entries: IntersectionObserverEntry[]) {
  const part = entries.findLast(({ isIntersecting }) => isIntersecting)?.target
  if (!part || landing !== undefined) return
  current.value = part.id
  // Browsers limit how often a page may change its URL.
  clearTimeout(noted)
  noted = setTimeout(() => navigate(addressOf(part.id), 'replace'), pauseMilliseconds)
}

/** Whether an element has been near the viewport at least once. */
export function useNear(element: { current: HTMLElement | null }): boolean {
  const [isNear, setNear] = useState(false)
  useEffect(() => {
    const target = element.current
    if (!target) return
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return
        setNear(true)
        observer.disconnect()
      },
      { rootMargin: '100% 0px' },
    )
    observer.observe(target)
    return () => observer.disconnect()
  }, [element])
  return isNear
}
