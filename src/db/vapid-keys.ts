import type { Orm } from './open.ts'
import { vapidKeys } from './schema.ts'

type Keys = { privateKey: string; publicKey: string }

/** The key pair of Web Push, made at the first start: browsers bind their subscriptions to it. */
export function loadVapidKeys(orm: Orm, make: () => Keys): Keys {
  const known = orm.select().from(vapidKeys).get()
  return (
    known ??
    orm
      .insert(vapidKeys)
      .values({ id: 1, ...make() })
      .returning()
      .get()
  )
}
