import { loadKeyedHash } from '../../db/keyed-hash.ts'
import type { Orm } from '../../db/open.ts'
import { isSameSecret } from '../../lib/hash.ts'
import type { Locale } from '../../lib/i18n.ts'
import { isPreferenceType, type PreferenceType } from '../../lib/vocabulary.ts'

export type PreferenceLinks = ReturnType<typeof createPreferenceLinks>

type Sent = {
  userId: string
  address: string
  types: readonly PreferenceType[]
}

/** Addresses of the page with the preferences of a person, which work without a login. A keyed hash signs the person, the
 *  address and the types of the mail; they do not expire, because mails are kept. */
export function createPreferenceLinks(orm: Orm, publicUrl: string) {
  const hash = loadKeyedHash(orm, 'mail_preferences')

  return {
    urlFor({ userId, address, types }: Sent, locale: Locale): string {
      const content = [userId, hash(address), ...types].join('~')
      return `${publicUrl}/mail-preferences?lang=${locale}&token=${content}.${hash(content)}`
    },
    read(token: string) {
      const at = token.lastIndexOf('.')
      const content = token.slice(0, Math.max(at, 0))
      if (!isSameSecret(token.slice(at + 1), hash(content))) return undefined
      const [userId = '', addressHash = '', ...types] = content.split('~')
      const wasSentTo = (address: string) => hash(address) === addressHash
      return { userId, types: types.filter(isPreferenceType), wasSentTo }
    },
  }
}
