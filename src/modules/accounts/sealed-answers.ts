import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const purpose = 'hostline refresh answer'

/** Encrypts an answer for whoever has `token`: AES-256-GCM under a key that HKDF-SHA-256 (RFC 5869) derives from it. Where
 *  only the hash of the token is kept, what is kept here cannot be read. */
export function seal(answer: string, token: string): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, keyOf(token), nonce)
  const text = [cipher.update(answer, 'utf8'), cipher.final()]
  return Buffer.concat([nonce, cipher.getAuthTag(), ...text]).toString('base64')
}

/** @throws Error when it was sealed for another token, or has been changed */
export function unseal(sealed: string, token: string): string {
  const bytes = Buffer.from(sealed, 'base64')
  const [nonce, rest] = [bytes.subarray(0, nonceBytes), bytes.subarray(nonceBytes)]
  const decipher = createDecipheriv(algorithm, keyOf(token), nonce)
  decipher.setAuthTag(rest.subarray(0, tagBytes))
  return decipher.update(rest.subarray(tagBytes), undefined, 'utf8') + decipher.final('utf8')
}

function keyOf(token: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', token, '', purpose, keyBytes))
}
