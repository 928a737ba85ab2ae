import { effect, signal } from '@preact/signals'
import { Select } from './select.tsx'
import { texts } from './texts.tsx'

const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const key = 'hostline theme'
const stored = localStorage.getItem(key)
const theme = signal<Theme>(themes.find((known) => known === stored) ?? 'auto')

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
})

export function ThemeSelect() {
  const words = texts.kit
  return (
    <Select
      label={words.theme}
      value={theme.value}
      options={themes.map((name) => [name, words.themes[name]])}
      choose={(chosen) => {
        theme.value = chosen
        localStorage.setItem(key, chosen)
      }}
    />
  )
}
