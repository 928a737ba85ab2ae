import { signal } from '@preact/signals'
import { type Client, createClient } from '../../../client/src/client.ts'

/** A raw response. */
export type TryResponse = {
  status: number
  statusText: string
  milliseconds: number
  headers: Headers
  type: string
  bytes: ArrayBuffer
}
export type TryRequest = {
  route: string
  params: Record<string, string>
  query: Record<string, string>
  headers: Record<string, string>
  body?: unknown
  file?: { bytes: Blob }
}

/** One request at a time: a response cannot be matched to its request. */
export const isBusy = signal(false)
let onResponse: ((response: TryResponse) => void) | undefined

/** Captures the raw response before the client parses it. */
async function observedFetch(url: string, init: object): Promise<Response> {
  const began = performance.now()
  const response = await fetch(url, init)
  const milliseconds = performance.now() - began
  const isRenewal = url.endsWith('/v1/auth/refresh')
  if (!isRenewal || isRenewalTried) {
    const { status, statusText, headers } = response
    const bytes = await response.clone().arrayBuffer()
    const type = headers.get('content-type') ?? ''
    onResponse?.({ status, statusText, milliseconds, headers, type, bytes })
  }
  return response
}
let isRenewalTried = false

// A prefix of its own: a login here must not change the session of the console.
const own = (key: string) => `reference ${key}`
const person = createClient({
  baseUrl: location.origin,
  language: 'en',
  fetch: observedFetch,
  storage: {
    get: (key) => sessionStorage.getItem(own(key)),
    set: (key, value) => sessionStorage.setItem(own(key), value),
    remove: (key) => sessionStorage.removeItem(own(key)),
  },
})

type Caller =
  | { kind: 'nobody' }
  | { kind: 'person'; name: string }
  | { kind: 'token'; client: Client }

const restored = person.restore()
/** The identity that requests are sent with. */
export const caller = signal<Caller>(
  restored ? { kind: 'person', name: restored.display_name } : { kind: 'nobody' },
)
person.on('session_ended', forget)

/** @throws ApiError */
export async function logIn(credentials: { email: string; password: string; code?: string }) {
  const { display_name: name } = await alone(() => person.login(credentials))
  caller.value = { kind: 'person', name }
}

/** Uses an access token or a service key, which is kept in memory only. */
export function takeToken(token: string): void {
  const options = { baseUrl: location.origin, language: 'en', fetch: observedFetch }
  caller.value = { kind: 'token', client: createClient({ ...options, serviceKey: token }) }
}

export async function logOut(): Promise<void> {
  const wasPerson = caller.value.kind === 'person'
  forget()
  if (wasPerson) await alone(() => person.logout())
}

function forget() {
  caller.value = { kind: 'nobody' }
}

/** @returns the response, also if it is an error
 *  @throws the error of fetch */
export async function sendTry({ route, ...options }: TryRequest): Promise<TryResponse> {
  const { value } = caller
  const client = value.kind === 'token' ? value.client : person
  const stop = new AbortController()
  let last: TryResponse | undefined
  isRenewalTried = route === 'POST /v1/auth/refresh'
  onResponse = (response) => {
    last = response
    // Only a 401 lets the client renew the token and retry; other errors are shown at once, without retries.
    if (response.status !== 401) stop.abort()
  }
  try {
    await alone(() => (client.request as Untyped)(route, { ...options, signal: stop.signal }))
  } catch (error) {
    if (last === undefined) throw error
  } finally {
    onResponse = undefined
  }
  if (last === undefined) throw new Error('no answer')
  return last
}

async function alone<T>(work: () => Promise<T>): Promise<T> {
  isBusy.value = true
  try {
    return await work()
  } finally {
    isBusy.value = false
  }
}

/** Routes come from the document, so their types are unknown. */
type Untyped = (route: string, options: object) => Promise<unknown>
