import { createHmac, randomBytes } from 'node:crypto'
import { eq } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { secrets } from './schema.ts'

/** The format of a keyed hash; no email or IP address matches it. */
export const isAddressHash = (text: string) => /^[\w-]{43}$/.test(text)

export type AddressHash = ReturnType<typeof loadAddressHash>

/** A keyed hash of addresses. Equal addresses have equal hashes; without this database a hash cannot be reversed. */
export const loadAddressHash = (orm: Orm) => loadKeyedHash(orm, 'address_hash')

export function loadKeyedHash(orm: Orm, name: 'address_hash' | 'mail_preferences') {
  const known = orm.select().from(secrets).where(eq(secrets.name, name)).get()
  const made = { name, value: randomBytes(32).toString('base64url') }
  const { value } = known ?? orm.insert(secrets).values(made).returning().get()
  return (text: string): string => createHmac('sha256', value).update(text).digest('base64url')
}
