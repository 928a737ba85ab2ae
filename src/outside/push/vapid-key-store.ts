import { generateKeyPairSync } from 'node:crypto'
import type { Orm } from '../../db/open.ts'
import { vapidKeys } from '../../db/schema.ts'

export type VapidKeys = ReturnType<typeof makeVapidKeys>

export function loadVapidKeys(orm: Orm): VapidKeys {
  const known = orm.select().from(vapidKeys).get()
  if (known) return known
  const row = { id: 1, ...makeVapidKeys() }
  return orm.insert(vapidKeys).values(row).returning().get()
}

/** The key pair that browsers bind their subscriptions to (RFC 8292). The public key is the point on P-256, 65 bytes in
 *  base64url: the `applicationServerKey` in browsers. */
export function makeVapidKeys() {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' })
  const point = [Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]
  return {
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: Buffer.concat(point).toString('base64url'),
  }
}
