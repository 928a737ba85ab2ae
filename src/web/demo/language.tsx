import { computed, effect, signal } from '@preact/signals'
import { english, words } from '../ui/words.ts'
import de from './texts/de.json'
import en from './texts/en.json'
import es from './texts/es.json'
import fr from './texts/fr.json'
import pt from './texts/pt.json'

export type Texts = typeof en
// The type checker fails when a language lacks a text.
const texts = { en, de, es, fr, pt } satisfies Record<string, Texts>
export type Language = keyof typeof texts

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
export const say = computed<Texts>(() => texts[language.value])

effect(() => {
  words.value = { ...english, ...say.value.words, locale: language.value }
  document.documentElement.lang = language.value
  document.title = `${say.value.title} · Hostline`
})

export function LanguageSelect() {
  return (
    <select
      aria-label={say.value.language}
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
