import { createCipheriv, createECDH, type ECDH, hkdfSync, randomBytes } from 'node:crypto'
import type { WebPushSubscription } from './subscription.ts'

const curve = 'prime256v1'
const tagBytes = 16
const headerBytes = 16 + 4 + 1 + 65
/** A push service need not take more (RFC 8030, 7.2). */
const maxBodyBytes = 4_096
const lastRecord = Buffer.of(2)

/** What fits into one message: header, delimiter and tag take their part. */
export const maxPlaintextBytes = maxBodyBytes - headerBytes - lastRecord.length - tagBytes

/** What is made anew for every message. */
type Sender = { ecdh: ECDH; salt: Uint8Array }

/** Encrypts for one browser (RFC 8291) in one record of aes128gcm (RFC 8188).
 *  @returns the body of the request */
export function encrypt(
  plaintext: Uint8Array,
  keys: WebPushSubscription['keys'],
  { ecdh, salt }: Sender = newSender(),
): Uint8Array<ArrayBuffer> {
  const receiverKey = Buffer.from(keys.p256dh, 'base64url')
  const senderKey = ecdh.getPublicKey()
  const keyInfo = Buffer.concat([Buffer.from('WebPush: info\0'), receiverKey, senderKey])
  const authSecret = Buffer.from(keys.auth, 'base64url')
  const input = hkdf(ecdh.computeSecret(receiverKey), authSecret, keyInfo, 32)
  const key = hkdf(input, salt, 'Content-Encoding: aes128gcm\0', 16)
  const nonce = hkdf(input, salt, 'Content-Encoding: nonce\0', 12)

  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const record = [cipher.update(plaintext), cipher.update(lastRecord), cipher.final()]
  return Buffer.concat([headerOf(salt, senderKey), ...record, cipher.getAuthTag()])
}

function newSender(): Sender {
  const ecdh = createECDH(curve)
  ecdh.generateKeys()
  return { ecdh, salt: randomBytes(16) }
}

// salt, record size, length of the key id, key id: the sender's public key
function headerOf(salt: Uint8Array, senderKey: Uint8Array) {
  const sizes = Buffer.alloc(5)
  sizes.writeUInt32BE(maxBodyBytes)
  sizes.writeUInt8(senderKey.length, 4)
  return Buffer.concat([salt, sizes, senderKey])
}

function hkdf(input: Uint8Array, salt: Uint8Array, info: string | Uint8Array, length: number) {
  return new Uint8Array(hkdfSync('sha256', input, salt, info, length))
}
