import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { day, isoTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'

export type TlsFiles = { cert: string; key: string }
/** A PEM certificate with its key, and the time it expires (ms since the epoch). */
export type Certificate = { cert: string; key: string; endsAt: number }

/** For TLS 1.2, the oldest version that Bun speaks: forward secrecy keeps recorded traffic unreadable if the key
 *  leaks later. */
export const ciphers = 'ECDHE+AESGCM:ECDHE+CHACHA20'

const warnedDays = 14

/** Reads a certificate and its key.
 *  @throws StartError that names the entry of the configuration */
export function readCertificate(files: TlsFiles): Certificate {
  const [cert, key] = [readPem('TLS_CERT', files.cert), readPem('TLS_KEY', files.key)]
  const certificate = parse('TLS_CERT', () => new X509Certificate(cert))
  const privateKey = parse('TLS_KEY', () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new StartError('TLS_KEY is not the private key of TLS_CERT')
  }
  return { cert, key, endsAt: Date.parse(certificate.validTo) }
}

export function expiryWarning({ endsAt }: Certificate, now: number): string | undefined {
  if (endsAt <= now) return `the certificate expired at ${isoTime(endsAt)}`
  const days = Math.floor((endsAt - now) / day)
  return days < warnedDays
    ? `the certificate expires in ${days} days, at ${isoTime(endsAt)}`
    : undefined
}

function readPem(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new StartError(`${name} cannot be read by this user: ${(cause as Error).message}`, {
      cause,
    })
  }
}

function parse<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw new StartError(`${name} is not a usable PEM file: ${(cause as Error).message}`, { cause })
  }
}
