import { createPrivateKey } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { parseAs } from '../../api/fields.ts'
import { type Clock, minute } from '../../lib/clock.ts'
import { RetryLater } from '../../lib/errors.ts'
import { post, reasonOf } from './post.ts'
import { accountEntry } from './pusher.ts'

export type ServiceAccount = ReturnType<typeof parseServiceAccount>

const KeyFile = Type.Object({
  project_id: Type.String({ minLength: 1 }),
  client_email: Type.String({ minLength: 1 }),
  private_key: Type.String(),
  token_uri: Type.String(),
})

/** @throws Error with a reason that completes "NAME must …" */
export function parseServiceAccount(text: string) {
  const file = parseAs(KeyFile, text)
  if (!file) {
    const names = Object.keys(KeyFile.properties).join(', ')
    throw new Error(`be the JSON key file of a service account, with ${names}`)
  }
  if (!/^https?:$/.test(URL.parse(file.token_uri)?.protocol ?? '')) {
    throw new Error('have an http(s) address as token_uri')
  }
  const { project_id: projectId, client_email: clientEmail, token_uri: tokenUri } = file
  return { projectId, clientEmail, tokenUri, privateKey: readPrivateKey(file.private_key) }
}

function readPrivateKey(pem: string) {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'rsa') return key
  } catch {
    // The parser's message may quote the key, so the error below replaces it.
  }
  throw new Error('have an RSA private key in PEM form as private_key')
}

const scope = 'https://www.googleapis.com/auth/firebase.messaging'
const tryMilliseconds = 5_000
const assertionSeconds = 3_600
/** A token is replaced this long before it expires. */
const spareMilliseconds = minute

const Grant = Type.Object({
  access_token: Type.String({ minLength: 1 }),
  expires_in: Type.Number({ minimum: 0 }),
})

type Options = { account: ServiceAccount; clock: Clock; timeoutMilliseconds?: number | undefined }

/** Access tokens by the JWT bearer grant (RFC 7523), with at most one grant request at a time. */
export function createAccessTokens({ account, clock, timeoutMilliseconds }: Options) {
  let held: { token: string; freshUntil: number } | undefined
  let pending: Promise<string> | undefined

  // All callers share the request, so no single push may abort it.
  async function fetchToken() {
    const body = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: await signAssertion(account, clock),
    }).toString()
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const answer = await post(account.tokenUri, { headers, body, timeoutMilliseconds })
    const { status, text } = answer
    const grant = parseAs(Grant, text)
    // Choice: retry even when the account itself is refused, because the operator can fix that.
    if (!grant) {
      const entry = status >= 400 && status < 500 ? `${accountEntry}: ` : ''
      const shown = { ...answer, text: withoutToken(text) }
      throw new RetryLater(`${entry}no access token: ${reasonOf(shown)}`, 0)
    }
    const { access_token: token, expires_in } = grant
    held = { token, freshUntil: clock.now() + expires_in * 1_000 - spareMilliseconds }
    return token
  }

  function current(): Promise<string> {
    if (held && held.freshUntil > clock.now()) return Promise.resolve(held.token)
    pending ??= fetchToken().finally(() => {
      pending = undefined
    })
    return pending
  }

  return {
    current,
    renew(refused: string): Promise<string> {
      if (held?.token === refused) held = undefined
      return current()
    },
  }
}

/** The reason is logged and stored, and an answer that was cut off begins with the token. */
const withoutToken = (text: string) => text.replace(/("access_token"\s*:\s*")[^"]*/, '$1…')

/** @throws Error with the reason for the operator */
export const tryServiceAccount = (account: ServiceAccount, clock: Clock) =>
  createAccessTokens({ account, clock, timeoutMilliseconds: tryMilliseconds }).current()

async function signAssertion({ clientEmail, privateKey, tokenUri }: ServiceAccount, clock: Clock) {
  const { SignJWT } = await import('jose')
  const now = Math.floor(clock.now() / 1_000)
  return new SignJWT({ scope })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(clientEmail)
    .setAudience(tokenUri)
    .setIssuedAt(now)
    .setExpirationTime(now + assertionSeconds)
    .sign(privateKey)
}
