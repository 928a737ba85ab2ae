import { html } from '../html.ts'
import type { Found } from '../index-of.ts'

const mostShown = 40

/** Searches the sections: those whose name has all words come first, then those whose sentences have them, then those
 *  where a field or an error has them. */
export function startSearch(): void {
  const input = document.querySelector<HTMLInputElement>('.search input')
  const [contents, results] = document.querySelectorAll<HTMLElement>('#menu > nav')
  const status = document.querySelector('#menu > [role=status]')
  if (!input || !contents || !results || !status) return
  let reading: Promise<Found[]> | undefined

  input.addEventListener('input', async () => {
    reading ??= readIndex()
    const index = await reading.catch(() => undefined)
    if (!index) reading = undefined
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    contents.hidden = words.length > 0
    results.hidden = words.length === 0
    const found = words.length === 0 || !index ? [] : matching(index, words)
    const why = index ? `Nothing has “${input.value}”.` : 'The service could not be reached.'
    const none = html`<p class="small soft nothing">${why}</p>`
    const links = html`${found.slice(0, mostShown).map(resultLink)}`
    results.innerHTML = (found.length === 0 ? none : links).markup
    status.textContent = words.length === 0 ? '' : `${found.length} found`
  })
  input.form?.addEventListener('submit', (event) => {
    event.preventDefault()
    results.querySelector('a')?.click()
  })
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || isTyping(event)) return
    event.preventDefault()
    input.focus()
  })
  document.getElementById('menu')?.addEventListener('keydown', moveByArrow)
}

const resultLink = ({ id, address, title, mark, group }: Found) =>
  html`<a href="${address}#${id}"><span class="nav-title">${title} <span class="small soft">${group}</span></span><span class="nav-mark ${mark.toLowerCase()}">${mark}</span></a>`

function matching(index: Found[], words: string[]): Found[] {
  const ranked = index.map((section) => ({
    section,
    rank: section.texts.findIndex((text) => words.every((word) => text.includes(word))),
  }))
  return ranked
    .filter(({ rank }) => rank >= 0)
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ section }) => section)
}

/** All pages, read when it is first searched. */
async function readIndex(): Promise<Found[]> {
  const response = await fetch('/docs/search.json')
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
  return response.json()
}

function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  const isField = target instanceof Element && target.matches('input, textarea, select')
  return isField || ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null
}

const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 }

function moveByArrow(event: KeyboardEvent) {
  const step = steps[event.key]
  if (step === undefined) return
  const all = [...document.querySelectorAll<HTMLElement>('#menu nav a')]
  const links = all.filter((link) => link.checkVisibility())
  const at = links.findIndex((link) => link.matches(':focus'))
  event.preventDefault()
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus()
}
