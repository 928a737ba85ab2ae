import type { ErrorKind } from './errors.ts'
import type de from './texts/de.json'
import en from './texts/en.json' with { type: 'json' }
import type es from './texts/es.json'
import type fr from './texts/fr.json'
import type pt from './texts/pt.json'
import type { KnownType } from './vocabulary.ts'

export const locales = ['en', 'de', 'es', 'fr', 'pt'] as const
export type Locale = (typeof locales)[number]

/** Requires a section of the texts to have exactly these keys. */
type Exactly<Section extends keyof typeof en, Key extends string> = Record<
  Section,
  Record<Key, unknown> & Record<Exclude<keyof (typeof en)[Section], Key>, never>
>

/** The type checker refuses missing texts, and texts of unknown errors and notification types. */
export type Texts = typeof en &
  typeof de &
  typeof es &
  typeof fr &
  typeof pt &
  Exactly<'errors', ErrorKind> &
  Exactly<'notifications', KnownType>

/** Every text for people, by language. In `errors` and `fields`, `{value}` is the value of the error or problem. A start loads
 *  English alone. */
export const texts: Record<Locale, Texts> = {
  en,
  get de(): typeof de {
    return require('./texts/de.json')
  },
  get es(): typeof es {
    return require('./texts/es.json')
  },
  get fr(): typeof fr {
    return require('./texts/fr.json')
  },
  get pt(): typeof pt {
    return require('./texts/pt.json')
  },
}

/** The locale for `Intl`, whose `pt` is Brazilian; the texts are European. */
export const formatLocale = (locale: Locale) => (locale === 'pt' ? 'pt-PT' : locale)

/** Chooses the locale for an `Accept-Language` value (RFC 9110, 12.5.4); `en` when none is supported. */
export function negotiateLocale(header: string | null): Locale {
  if (!header) return 'en'
  const ranges = header.slice(0, 1_000).split(',').map(parseRange)
  const named = new Set(ranges.map(({ language }) => language))
  const wanted = ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality)
  for (const { language } of wanted) {
    // `*` matches only languages without a range of their own, so `de;q=0, *` excludes German.
    const match = locales.find((locale) =>
      language === '*' ? !named.has(locale) : locale === language,
    )
    if (match) return match
  }
  return 'en'
}

function parseRange(text: string) {
  const [tag = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  const quality = weight === undefined ? 1 : Number(weight.slice(2))
  return { language: tag.split('-')[0] ?? '', quality: Number.isFinite(quality) ? quality : 0 }
}
