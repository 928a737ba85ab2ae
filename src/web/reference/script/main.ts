import { startSearch } from './search.ts'
import { startTrying } from './trying.ts'

const pauseMilliseconds = 150
keepChoice('theme', 'hostline theme', 'auto')
keepChoice('language', 'hostline samples', 'curl')
document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element && target.closest<HTMLElement>('.copy')
  if (button) void copy(button)
})
startReading()
startSearch()
startTrying()

/** Keeps the value of a select in the storage, and in a data attribute of the page for the styles. */
function keepChoice(name: string, key: string, first: string) {
  const select = document.querySelector<HTMLSelectElement>(`select[name=${name}]`)
  if (!select) return
  select.value = localStorage.getItem(key) ?? first
  if (select.value === '') select.value = first
  document.documentElement.dataset[name] = select.value
  select.addEventListener('change', () => {
    document.documentElement.dataset[name] = select.value
    localStorage.setItem(key, select.value)
  })
}

async function copy(button: HTMLElement) {
  const blocks = [...(button.closest('.code')?.querySelectorAll('pre') ?? [])]
  const shown = blocks.find((block) => block.checkVisibility())
  if (!shown) return
  try {
    await navigator.clipboard.writeText(shown.textContent ?? '')
    button.textContent = 'Copied'
  } catch {
    // Pages without HTTPS have no clipboard.
    getSelection()?.selectAllChildren(shown)
    button.textContent = 'Press Ctrl C'
  }
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 2_000)
}

/** Marks the section at the top of the viewport in the navigation, and names it in the address. */
function startReading(): void {
  const all = [...document.querySelectorAll<HTMLAnchorElement>('.nav-group a')]
  const links = new Map(all.map((link) => [link.hash.slice(1), link]))
  openElsewhere()
  let timer: ReturnType<typeof setTimeout> | undefined

  function show(id: string) {
    const link = links.get(id)
    if (!link || link.ariaCurrent !== null) return
    for (const other of all) other.ariaCurrent = null
    link.ariaCurrent = 'location'
    link.scrollIntoView({ block: 'nearest' })
    clearTimeout(timer)
    const { hash } = location
    timer = setTimeout(() => {
      const isStart = scrollY === 0 && hash === ''
      // A link may have been followed meanwhile.
      if (!isStart && location.hash === hash) history.replaceState(null, '', `#${id}`)
    }, pauseMilliseconds)
  }

  const reader = new IntersectionObserver(
    (entries) => {
      const top = entries.find(({ isIntersecting }) => isIntersecting)
      if (top) show(top.target.id)
    },
    { rootMargin: '-12% 0px -87% 0px' },
  )
  for (const part of document.querySelectorAll('[data-part]')) reader.observe(part)
  addEventListener('hashchange', focusTarget)
  startMenu()
}

/** The section of the address may be on another page. */
function openElsewhere() {
  const id = location.hash.slice(1)
  if (id !== '' && !document.getElementById(id)) location.replace(`/docs/${id}`)
}

/** Keyboards and screen readers go on at the heading of the section. */
function focusTarget() {
  const target = document.getElementById(location.hash.slice(1))
  target?.querySelector<HTMLElement>('h2, h3')?.focus({ preventScroll: true })
}

/** The navigation of narrow screens. */
function startMenu() {
  const button = document.querySelector('.menu-button')
  const menu = document.getElementById('menu')
  const toggle = (isOpen: boolean) => {
    menu?.classList.toggle('open', isOpen)
    button?.setAttribute('aria-expanded', `${isOpen}`)
  }
  button?.addEventListener('click', () => toggle(!menu?.classList.contains('open')))
  menu?.addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('a')) toggle(false)
  })
}
