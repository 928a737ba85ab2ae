import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Profile } from '../../../client/src/contract.ts'
import type en from '../texts/en.json'

/** The texts of the pages, by area. To add one, write it in all five files of `texts`, at the same place. Functions show it
 *  as `texts.console.desk.undo`, with values as `fill(texts.…, { name })`, in the form for an amount as
 *  `plural(texts.…, amount)`, and with elements as `<Filled text={texts.…} values={{ at: <Time … /> }} />`. */
export type Texts = typeof en
export type Language = Profile['locale']

// Each language is a file of its own. The type checker fails when one lacks a text.
const catalogues: Record<Language, () => Promise<{ default: Texts }>> = {
  en: () => import('../texts/en.json'),
  de: () => import('../texts/de.json'),
  es: () => import('../texts/es.json'),
  fr: () => import('../texts/fr.json'),
  pt: () => import('../texts/pt.json'),
}

export const languages = [
  ['en', 'English'],
  ['de', 'Deutsch'],
  ['es', 'Español'],
  ['fr', 'Français'],
  ['pt', 'Português'],
] as const satisfies [Language, string][]

// The account decides in the console; the demo has people of any language.
const key = `hostline language of ${location.pathname.split('/')[1]}`
const wanted = [localStorage.getItem(key), ...navigator.languages].map((tag) => tag?.split('-')[0])

/** The language chosen before, or else the browser's preference. */
export const language = signal<Language>(
  wanted.map((tag) => languages.find(([name]) => name === tag)?.[0]).find(Boolean) ?? 'en',
)
let loaded: Texts | undefined
export const texts: Texts = part(() => loaded)

/** A part of the texts. Modules may name it before the texts are loaded. */
function part<T extends object>(read: () => T | undefined): T {
  const get = (_: T, key: string | symbol) => {
    const found = read()
    if (found) return Reflect.get(found, key)
    return part(() => Reflect.get(read() ?? {}, key)) // strings are read later
  }
  const target: T = Object.create(null)
  return new Proxy(target, { get })
}

/** Comes before anything is shown. */
export async function loadTexts(chosen = language.peek()): Promise<void> {
  loaded = (await catalogues[chosen]()).default
  document.documentElement.lang = chosen
}

/** Stays chosen in this browser. What is shown has to be rendered again. */
export async function speak(chosen: Language): Promise<void> {
  await loadTexts(chosen)
  language.value = chosen
  try {
    localStorage.setItem(key, chosen)
  } catch {
    // Storage is full: the language lasts as long as the page.
  }
}

/** A placeholder without a value stays, such as `{link}` in a hint about texts. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(placeholder, (whole, name) => String(values[name] ?? whole))
}

/** The text of a name that the service may have added since, such as a kind of job: `verification_mail`, else in words. */
export function named(known: Record<string, string>, name: string): string {
  const words = name.replaceAll('_', ' ')
  return known[name] ?? words.charAt(0).toUpperCase() + words.slice(1)
}

const placeholder = /{(\w+)}/g

type FilledProps = { text: string; values: Record<string, ComponentChildren> }

/** A text with elements in it. */
export function Filled({ text, values }: FilledProps) {
  // A split by one group alternates between texts and names.
  return <>{text.split(placeholder).map((part, at) => (at % 2 === 0 ? part : values[part]))}</>
}
