import { effect, signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { navigate, path } from '../ui/router.ts'

const root = '/docs'
/** The first section; its URL is the root. */
export const firstPart = 'introduction'
const keepInPlaceMilliseconds = 2_000
const pauseMilliseconds = 150

/** Id of the section at the top of the viewport. */
export const current = signal(firstPart)
/** The target of the last link: kept in place while sections above it are still rendered. */
let target: string | undefined
let scrollTimer: ReturnType<typeof setTimeout> | undefined
let urlTimer: ReturnType<typeof setTimeout> | undefined

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
    if (id !== current.peek()) scrollToSection(id, isFirst ? 'stay' : 'move')
    isFirst = false
  })
  const growth = new ResizeObserver(() => scrollToTarget())
  growth.observe(document.body)
  const reader = new IntersectionObserver(updateCurrent, { rootMargin: '-12% 0px -87% 0px' })
  for (const part of document.querySelectorAll('[data-part]')) reader.observe(part)
  for (const name of handEvents) addEventListener(name, clearTarget, { passive: true })
  return () => {
    stopFollowing()
    growth.disconnect()
    reader.disconnect()
    for (const name of handEvents) removeEventListener(name, clearTarget)
  }
}

/** Scrolling by hand cancels the landing. */
const handEvents = ['wheel', 'touchmove', 'pointerdown', 'keydown']

/** Scrolls to a section. */
export function scrollToSection(id: string, focus: 'move' | 'stay' = 'move'): void {
  clearTimeout(urlTimer)
  current.value = id
  target = id
  scrollToTarget()
  if (focus === 'move') headingOf(id)?.focus({ preventScroll: true })
  clearTimeout(scrollTimer)
  scrollTimer = setTimeout(clearTarget, keepInPlaceMilliseconds)
}

function scrollToTarget() {
  if (target === undefined) return
  if (target === firstPart) scrollTo({ top: 0 })
  else document.getElementById(target)?.scrollIntoView()
}

function clearTarget() {
  target = undefined
}

const headingOf = (id: string) => document.getElementById(id)?.querySelector<HTMLElement>('h2, h3')

function updateCurrent(entries: IntersectionObserverEntry[]) {
  const part = entries.findLast(({ isIntersecting }) => isIntersecting)?.target
  if (!part || target !== undefined) return
  current.value = part.id
  // Browsers limit how often a page may change its URL.
  clearTimeout(urlTimer)
  urlTimer = setTimeout(() => navigate(addressOf(part.id), 'replace'), pauseMilliseconds)
}

/** True if an element has been near the viewport at least once. */
export function useNearViewport(element: { current: HTMLElement | null }): boolean {
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
