import { computed, signal } from '@preact/signals'

const address = signal(new URL(location.href))

/** The path of the page, without the page's own prefix such as `/console`. */
export const path = computed(() => address.value.pathname)
/** What the address asks for: filters and the like. */
export const query = computed(() => address.value.searchParams)

addEventListener('popstate', () => {
  address.value = new URL(location.href)
})

/** Shows another address of this page. The back button leads here again, unless it replaces this one. */
export function navigate(to: string, how: 'push' | 'replace' = 'push'): void {
  const next = new URL(to, location.href)
  if (next.href === address.value.href) return
  if (how === 'push') history.pushState(null, '', next)
  else history.replaceState(null, '', next)
  address.value = next
}

/** The address with other values in its query; undefined or empty takes one away. */
export function withQuery(changes: Record<string, string | undefined>, pathname = path.value) {
  const params = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value)
    else params.delete(name)
  }
  const text = params.toString()
  return pathname + (text && `?${text}`)
}

/** Lets links to this page's own addresses change what it shows; all others leave it.
 *  @param prefix such as `/console` */
export function followLinks(prefix: string): void {
  document.addEventListener('click', (event) => {
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey)
    const link = (event.target as Element).closest('a')
    if (!link || !isPlain || event.defaultPrevented || link.target || link.download) return
    const isOwn = link.origin === location.origin && `${link.pathname}/`.startsWith(`${prefix}/`)
    if (!isOwn || link.getAttribute('href')?.startsWith('#')) return
    event.preventDefault()
    navigate(link.href)
  })
}
