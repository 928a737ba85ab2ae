import { signal } from '@preact/signals'
import { createClient, type User, webStorage } from '../../../client/src/client.ts'
import { watchStatus } from '../ui/connection.tsx'

/** The console's one client: its tabs share the session and who renews it. */
export const client = createClient({
  baseUrl: location.origin,
  storage: webStorage(localStorage),
  language: 'en',
})
export const { request } = client
/** Who is logged in; undefined for nobody. */
export const user = signal<User | undefined>(client.restore())
/** The session ended without a logout here. */
export const hasEnded = signal(false)
/** The live channel. */
export const status = watchStatus(client)

if (user.value) goLive()
client.on('session_ended', () => {
  user.value = undefined
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
  await client.logout()
}

// Ends by itself when the session does; what that says is said by `session_ended`.
function goLive() {
  client.connect().catch(() => {})
}
