import { computed, signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { closest } from './closest.ts'

const address = signal(new URL(location.href))

/** The path without the page's prefix, such as `/console`. */
export const path = computed(() => address.value.pathname)
export const query = computed(() => address.value.searchParams)

/** The scroll positions of the page when it was left. Set by Back and Forward. */
export const scrolled = signal<number[] | undefined>(undefined)
// The window itself does not scroll.
const scrollers = () => document.querySelectorAll('#main, .virtual')

export function restoreScroll(): void {
  const tops = scrolled.value
  if (!tops) return
  for (const [index, part] of scrollers().entries()) part.scrollTop = tops[index] ?? 0
}

addEventListener('popstate', (event) => {
  scrolled.value = event.state ?? undefined
  address.value = new URL(location.href)
})

/** Navigates within the page. `replace` leaves no entry for the back button. */
export function navigate(to: string, how: 'push' | 'replace' = 'push'): void {
  const next = new URL(to, location.href)
  if (next.href === address.value.href) return
  if (how === 'push') {
    history.replaceState(
      [...scrollers()].map(({ scrollTop }) => scrollTop),
      '',
    )
    history.pushState(null, '', next)
  } else history.replaceState(null, '', next)
  scrolled.value = undefined
  address.value = next
}

/** Navigates from a page that is still shown: the user may have gone elsewhere before the response came. */
export function navigateFrom(from: string, to: string, how?: 'replace'): void {
  if (path.peek() === from) navigate(to, how)
}

/** The URL with a changed query; undefined or empty removes a parameter. */
export function withQuery(changes: Record<string, string | undefined>, pathname = path.value) {
  const params = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value)
    else params.delete(name)
  }
  const text = params.toString()
  return pathname + (text && `?${text}`)
}

/** Changes the query in place. */
export const setQuery = (changes: Record<string, string | undefined>) =>
  navigate(withQuery(changes), 'replace')

/** Handles clicks on links within the page; other links are left to the browser.
 *  @param prefix such as `/console` */
export function followLinks(prefix: string): void {
  document.addEventListener('click', (event) => {
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey)
    const link = closest<HTMLAnchorElement>(event, 'a')
    if (!link || !isPlain || event.defaultPrevented || link.target || link.download) return
    const isOwn = link.origin === location.origin && `${link.pathname}/`.startsWith(`${prefix}/`)
    if (!isOwn || link.getAttribute('href')?.startsWith('#')) return
    event.preventDefault()
    navigate(link.href)
  })
}

/** Part of the document title: the open item. */
export const openTitle = signal<string | undefined>(undefined)

/** Sets the document title while the component is mounted. A layout effect ends before that of the next item begins;
 *  others may end after it. */
export function useTitle(title: string | undefined): void {
  useLayoutEffect(() => {
    openTitle.value = title
    return () => {
      openTitle.value = undefined
    }
  }, [title])
}
