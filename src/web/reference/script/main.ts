import { startReading } from './reading.ts'
import { startSearch } from './search.ts'
import { startTrying } from './trying.ts'

keepChoice('theme', 'hostline theme', 'auto')
keepChoice('language', 'hostline samples', 'curl')
document.addEventListener('click', ({ target }) => {
  const button = (target as Element).closest<HTMLElement>('.copy')
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
    localStorage.setItem(key, select.value)
    document.documentElement.dataset[name] = select.value
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
