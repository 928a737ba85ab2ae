import { computed, effect, signal } from '@preact/signals'
import { english, uiTexts } from '../ui/texts.ts'
import de from './texts/de.json'
import en from './texts/en.json'
import es from './texts/es.json'
import fr from './texts/fr.json'
import pt from './texts/pt.json'

export type Texts = typeof en
// The type checker fails when a language lacks a text.
const catalogues = { en, de, es, fr, pt } satisfies Record<string, Texts>
export type Language = keyof typeof catalogues

const names: Record<Language, string> = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  pt: 'Português',
}
const languages = Object.keys(names) as Language[]

const key = 'hostline demo language'
const asked = [localStorage.getItem(key), ...navigator.languages]
const known = asked.map((tag) => languages.find((name) => tag?.split('-')[0] === name))

/** The language chosen before, or else the browser's preference. */
export const language = signal<Language>(known.find((name) => name !== undefined) ?? 'en')
export const texts = computed<Texts>(() => catalogues[language.value])

effect(() => {
  uiTexts.value = { ...english, ...texts.value.words, locale: language.value }
  document.documentElement.lang = language.value
  document.title = `${texts.value.title} · Hostline`
})

export function LanguageSelect() {
  return (
    <select
      aria-label={texts.value.language}
      value={language.value}
      onChange={({ currentTarget: { value } }) => {
        language.value = languages.find((name) => name === value) ?? 'en'
        localStorage.setItem(key, language.value)
      }}
    >
      {languages.map((name) => (
        <option key={name} value={name} lang={name}>
          {names[name]}
        </option>
      ))}
    </select>
  )
}
