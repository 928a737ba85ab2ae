import { expect, test } from 'bun:test'
import { errorKinds } from '../src/lib/errors.ts'
import { catalogues, locales } from '../src/lib/messages.ts'
import { mailTexts, renderMail } from '../src/mail/templates.ts'
import { pageTexts } from '../src/web/page-texts.ts'

const placeholders = (text: string) => text.match(/\{\w+\}/g) ?? []

test.each([...locales])(
  'the catalogue %s is complete, with the same placeholders as en',
  (locale) => {
    const { errors, fields } = catalogues[locale]
    expect(Object.keys(errors).sort()).toEqual([...errorKinds].sort())
    expect(Object.keys(fields).sort()).toEqual(Object.keys(catalogues.en.fields).sort())
    for (const [key, text] of Object.entries(fields)) {
      const original = catalogues.en.fields[key as keyof typeof fields]
      expect([key, placeholders(text)]).toEqual([key, placeholders(original)])
    }
  },
)

test.each(locales.filter((locale) => locale !== 'en'))(
  '%s is a translation, not a copy',
  (locale) => {
    const own = Object.values(catalogues[locale].errors)
    const english = new Set(Object.values(catalogues.en.errors))
    expect(own.filter((text) => english.has(text))).toEqual([])
    expect(own.every((text) => text.trim() === text && text !== '')).toBe(true)
  },
)

/** Every text in a tree of texts, by its place. */
function textsOf(tree: object, place = ''): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]: [string, unknown]) =>
    typeof value === 'string'
      ? [[`${place}.${key}`, value]]
      : textsOf(value as object, `${place}.${key}`),
  )
}

test.each([
  ['mails', mailTexts],
  ['pages', pageTexts],
] as const)(
  'the texts of %s are there in every language, none of them left in English',
  (_, texts) => {
    const english = textsOf(texts.en)
    for (const locale of locales) {
      const own = textsOf(texts[locale])
      expect(own.map(([place]) => place)).toEqual(english.map(([place]) => place))
      if (locale === 'en') continue
      const copied = own.filter(([place, text]) =>
        english.some(([p, t]) => p === place && t === text),
      )
      expect(copied).toEqual([])
    }
  },
)

test('the HTML of a mail says what its text says', () => {
  for (const locale of locales) {
    const { text, html } = renderMail('verify_email', locale, 'https://x.example/verify#token=t')
    for (const part of text.split('\n\n')) expect(html).toContain(part)
    expect(html).toContain(`<html lang="${locale}">`)
  }
})
