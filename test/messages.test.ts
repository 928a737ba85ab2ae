import { expect, test } from 'bun:test'
import { errorKinds } from '../src/lib/errors.ts'
import { catalogues, locales } from '../src/lib/messages.ts'

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
