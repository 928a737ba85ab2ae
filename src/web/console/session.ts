import { signal } from '@preact/signals'
import {
  ApiError,
  createClient,
  type Request,
  type User,
  webStorage,
} from '../../../client/src/client.ts'
import { watchStatus } from '../ui/connection.tsx'

/** The console's one client: its tabs share the session and who renews it. */
export const client = createClient({
  baseUrl: location.origin,
  storage: webStorage(localStorage),
  language: 'en',
})
/** The service wants a second factor of this admin before anything else. */
export const needsFactor = signal(false)
export const request: Request = (route, ...options) =>
  client.request(route, ...options).catch(noteMissingFactor)
/** Who is logged in; undefined for nobody. */
export const user = signal<User | undefined>(client.restore())
/** The session ended without a logout here. */
export const hasEnded = signal(false)
/** The live channel. */
export const status = watchStatus(client)

if (user.value) goLive()
client.on('session_ended', () => {
  user.value = undefined
  needsFactor.value = false
  hasEnded.value = true
})

/** @throws ApiError · `not_admin` when somebody else's password was right */
export async function login(credentials: { email: string; password: string; code?: string }) {
  const loggedIn = await client.login(credentials)
  if (loggedIn.role !== 'admin') {
    await client.logout()
    throw new Error('not_admin')
  }
  hasEnded.value = false
  user.value = loggedIn
  goLive()
}

export async function logout() {
  user.value = undefined
  needsFactor.value = false
  await client.logout()
}

// Ends by itself when the session does; what that says is said by `session_ended`.
function goLive() {
  client.connect().catch(() => {})
}

function noteMissingFactor(error: unknown): never {
  const isOfSession = error instanceof ApiError && error.status === 403
  if (isOfSession && error.reason === 'totp_required') needsFactor.value = true
  throw error
}
