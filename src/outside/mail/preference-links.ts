import { loadKeyedHash } from '../../db/keyed-hash.ts'
import type { Orm } from '../../db/open.ts'
import { isSameSecret } from '../../lib/hash.ts'
import type { Locale } from '../../lib/i18n.ts'
import { isPreferenceType, type PreferenceType } from '../../lib/vocabulary.ts'

export type PreferenceLinks = ReturnType<typeof createPreferenceLinks>

/** Addresses of the page with the preferences of a person, which work without a login. A keyed hash signs the person and
 *  the types of the mail; they do not expire, because mails are kept. */
export function createPreferenceLinks(orm: Orm, publicUrl: string) {
  const hash = loadKeyedHash(orm, 'mail_preferences')

  return {
    urlFor(userId: string, types: readonly PreferenceType[], locale: Locale): string {
      const content = [userId, ...types].join('~')
      return `${publicUrl}/mail-preferences?lang=${locale}&token=${content}.${hash(content)}`
    },
    /** @returns undefined for an address that was not made here */
    read(token: string): { userId: string; types: PreferenceType[] } | undefined {
      const at = token.lastIndexOf('.')
      const content = token.slice(0, Math.max(at, 0))
      if (!isSameSecret(token.slice(at + 1), hash(content))) return undefined
      const [userId = '', ...types] = content.split('~')
      return { userId, types: types.filter(isPreferenceType) }
    },
  }
}
