import { computed } from '@preact/signals'
import { Select } from '../kit/select.tsx'
import { texts as all, language, languages, speak } from '../kit/texts.tsx'

export { type Language, language } from '../kit/texts.tsx'

export const texts = computed(() => {
  language.value // a new one brings other texts
  return all.demo
})

export function LanguageSelect() {
  return (
    <Select
      label={texts.value.language}
      value={language.value}
      options={languages}
      choose={(chosen) => void speak(chosen)}
    />
  )
}
