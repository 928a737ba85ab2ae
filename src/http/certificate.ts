import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { day, isoTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'

export type TlsFiles = { cert: string; key: string }
/** A PEM certificate with its key, and the time it expires (ms since the epoch). */
export type Certificate = { cert: string; key: string; endsAt: number }

/** For TLS 1.2, the oldest that Bun speaks: forward secrecy protects recorded traffic if the key leaks later. */
export const ciphers = 'ECDHE+AESGCM:ECDHE+CHACHA20'

const warnedDays = 14

/** @throws StartError that names the entry of the configuration */
export function readCertificate(files: TlsFiles): Certificate {
  const read = (path: string) => readFileSync(path, 'utf8')
  const cert = attempt('TLS_CERT cannot be read by this user', () => read(files.cert))
  const key = attempt('TLS_KEY cannot be read by this user', () => read(files.key))
  const certificate = attempt('TLS_CERT is not a usable PEM file', () => new X509Certificate(cert))
  const privateKey = attempt('TLS_KEY is not a usable PEM file', () => createPrivateKey(key))
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

function attempt<T>(problem: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new StartError(`${problem}: ${(cause as Error).message}`, { cause })
  }
}
