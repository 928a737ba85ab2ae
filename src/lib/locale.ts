import { type Locale, locales } from './messages.ts'

/** The locale that an `Accept-Language` value asks for (RFC 9110, 12.5.4); `en` when none of ours is wanted. */
export function negotiateLocale(header: string | null): Locale {
  if (!header) return 'en'
  const wanted = header
    .slice(0, 1_000)
    .split(',')
    .map(parseRange)
    .filter((range) => range.quality > 0)
    .sort((a, b) => b.quality - a.quality)
  for (const { language } of wanted) {
    const match = locales.find((locale) => locale === language || language === '*')
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
