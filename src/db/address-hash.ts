import { createHmac, randomBytes } from 'node:crypto'
import { eq } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { secrets } from './schema.ts'

const name = 'address_hash'

/** The format of a keyed hash; no email or IP address matches it. */
export const isAddressHash = (text: string) => /^[\w-]{43}$/.test(text)

export type AddressHash = ReturnType<typeof loadAddressHash>

/** A keyed hash (HMAC) of addresses. Equal addresses have equal hashes; without this database a hash cannot be reversed. */
export function loadAddressHash(orm: Orm) {
  const known = orm.select().from(secrets).where(eq(secrets.name, name)).get()
  const { value } = known ?? orm.insert(secrets).values(makeSecret()).returning().get()
  return (address: string): string =>
    createHmac('sha256', value).update(address).digest('base64url')
}

const makeSecret = () => ({ name, value: randomBytes(32).toString('base64url') })
