import { effect, signal } from '@preact/signals'
import { uiTexts } from './texts.ts'

const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const key = 'hostline theme'
const stored = localStorage.getItem(key)
const theme = signal<Theme>(themes.find((known) => known === stored) ?? 'auto')

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
  localStorage.setItem(key, theme.value)
})

export function ThemeSelect() {
  return (
    <select
      aria-label={uiTexts.value.theme}
      value={theme.value}
      onChange={(event) => {
        theme.value = themes.find((known) => known === event.currentTarget.value) ?? 'auto'
      }}
    >
      {themes.map((name) => (
        <option key={name} value={name}>
          {uiTexts.value.themes[name]}
        </option>
      ))}
    </select>
  )
}
