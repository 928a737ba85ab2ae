import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type Locale, locales, texts } from '../src/lib/i18n.ts'
import { chatRetention } from '../src/modules/chat/store.ts'
import { renderMail } from '../src/outside/mail/templates.ts'

const english = listTexts(texts.en)
// The texts of pages in browsers have files of their own, which load by language.
const ofPages = (locale: string) =>
  listTexts(JSON.parse(readFileSync(`${import.meta.dir}/../src/web/texts/${locale}.json`, 'utf8')))
const allTexts = (locale: Locale) => [...listTexts(texts[locale]), ...ofPages(locale)]
const translations = locales.filter((locale) => locale !== 'en')

test.each(translations)('%s has every text of en, in the same order', (locale) => {
  const places = (all: [string, string][]) => all.map(([place]) => place)
  expect(places(listTexts(texts[locale]))).toEqual(places(english))
  expect(places(ofPages(locale))).toEqual(places(ofPages('en')))
})

test.each(translations)('the texts of %s have the same placeholders as those of en', (locale) => {
  const named = ([place, text]: [string, string]) => [place, text.match(/\{\w+\}/g) ?? []]
  expect(listTexts(texts[locale]).map(named)).toEqual(english.map(named))
})

test.each(translations)('the pages in %s fill the same values into their texts', (locale) => {
  const named = ([place, text]: [string, string]) => [place, text.match(/\{\w+\}/g)?.sort()]
  expect(ofPages(locale).map(named)).toEqual(ofPages('en').map(named))
})

test.each(translations)('%s is a translation, not a copy', (locale) => {
  const own = listTexts(texts[locale])
  const originals = new Map(english)
  const isCopy = ([place, text]: [string, string]) =>
    originals.get(place) === text && place !== '.desk.priorities.normal' // the same word in most
  expect(own.filter(isCopy)).toEqual([])
  expect(own.filter(([, text]) => text.trim() !== text || text === '')).toEqual([])
})

test.each([...locales])('the desk calls canned replies in %s as their page does', (locale) => {
  const all = new Map(ofPages(locale))
  const name = all.get('.console.system.tabs.replies')?.toLowerCase() ?? '–'
  for (const place of ['cannedFailed', 'noCanned']) {
    expect(all.get(`.console.desk.composer.${place}`)?.toLowerCase()).toContain(name)
  }
})

/** Words of a familiar address, and in `pt` words of Brazil. */
const unfit = {
  de: 'du|dir|dich|dein|deine|deinen|deiner|euch|euer|bitte (?!\\p{L}+n Sie)\\p{L}+',
  es: 'tú|ti|te|tu|tus|contigo|vosotros|podéis|tienes|puedes|podrás|has|hayas',
  fr: 'tu|te|toi|ton|tes|peux|veux',
  pt: 'tu|te|ti|contigo|teu|teus|tua|tuas|tens|podes|usuário|senha|arquivo|tela|contato|salvar',
}

test.each(Object.entries(unfit))('%s addresses its readers formally', (locale, words) => {
  const pattern = new RegExp(`(?<!\\p{L})(${words})(?!\\p{L})`, 'iu')
  const invented = /^\.demo\.start\.talk/ // two people who know each other
  const wrong = ([place, text]: [string, string]) => !invented.test(place) && pattern.test(text)
  expect(allTexts(locale as Locale).filter(wrong)).toEqual([])
})

/** What the typography of a language does not have. */
const mistakes: Record<Locale, RegExp> = {
  en: /[„«»'"]| …(?!\{)/,
  de: /[«»”'"]|[^\xa0]…(?!\{)|: (er|sie|es|die|das) /,
  es: /[“”„'"]| …(?!\{)|^[^¿]*\p{L}\?|^[^¡]*\p{L}!/u,
  fr: /[“”„'"]| …(?!\{)|[^\xa0]:(?!\/|\d)|[^\u202f][;?!]|«[^\xa0]|[^\xa0]»/,
  pt: /[“”„'"]| …(?!\{)/,
}

test.each(Object.entries(mistakes))('%s has its own typography', (locale, pattern) => {
  expect(allTexts(locale as Locale).filter(([, text]) => pattern.test(text))).toEqual([])
})

test.each([...locales])(
  'no full stop follows a time in %s, which may end with one: 3 Min.',
  (locale) => {
    expect(ofPages(locale).filter(([, text]) => /\{(time|at|used|since)\}\./.test(text))).toEqual(
      [],
    )
  },
)

test.each(translations)(
  'the texts of %s end like those of en: a sentence with its stop',
  (locale) => {
    const end = ([place, text]: [string, string]) => [place, /[.:?…]$/.exec(text)?.[0]]
    expect(allTexts(locale).map(end)).toEqual(allTexts('en').map(end))
  },
)

test.each([...locales])('the console tells in %s how long removed messages are kept', (locale) => {
  const all = ofPages(locale)
  const told = all.find(([place]) => place.endsWith('reports.removeMessage.text'))
  expect(told?.[1]).toContain(` ${chatRetention[0]?.days} `)
})

test('the HTML of a mail has the same words as its text', () => {
  for (const locale of locales) {
    const settings = {
      get: (name: string) => ({ platform_name: 'Rooms', links: {}, texts: {} })[name],
    }
    const to = { email: 'ada@x.example', locale, displayName: 'Ada' }
    const values = { to, id: '1', link: 'https://x.example/verify#token=t' }
    const { text, html } = renderMail(settings as never, 'verify_email', values) // no others are read
    for (const part of text.split('\n\n')) expect(html).toContain(Bun.escapeHTML(part))
  }
})

/** Every text in a tree of texts, with its path. */
function listTexts(tree: object, place = ''): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]: [string, unknown]) =>
    typeof value === 'string'
      ? [[`${place}.${key}`, value]]
      : listTexts(value as object, `${place}.${key}`),
  )
}
