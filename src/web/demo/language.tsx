import { computed } from '@preact/signals'
import { texts as all, language, languages, speak } from '../kit/texts.tsx'

export { type Language, language } from '../kit/texts.tsx'

export const texts = computed(() => {
  language.value // a new one brings other texts
  return all.demo
})

export function LanguageSelect() {
  return (
    <select
      aria-label={texts.value.language}
      value={language.value}
      onChange={({ currentTarget: { value } }) => {
        const chosen = languages.find(([name]) => name === value)
        if (chosen) void speak(chosen[0])
      }}
    >
      {languages.map(([name, title]) => (
        <option key={name} value={name} lang={name}>
          {title}
        </option>
      ))}
    </select>
  )
}
