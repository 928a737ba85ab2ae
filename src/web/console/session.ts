import { signal } from '@preact/signals'
import {
  ApiError,
  type Body,
  createClient,
  type Request,
  type User,
  webStorage,
} from '../../../client/src/client.ts'
import { watchStatus } from '../ui/connection.tsx'
import { closeDialogs } from '../ui/dialog.tsx'
import { toast } from '../ui/toast.tsx'
import { confirmIdentity } from './confirm-identity.tsx'

/** The console's one client: its tabs share the session and who renews it. */
export const client = createClient({
  baseUrl: location.origin,
  storage: webStorage(localStorage),
  language: 'en',
})
/** The service wants a second factor of this admin before anything else. */
export const needsFactor = signal(false)
/** Sends a request. Where the service asks again who is there, the person is asked, and it is sent once more. */
export const request: Request = (route, ...options) => {
  const send = () => client.request(route, ...options)
  return send()
    .catch(async (error: unknown) => {
      if (refusalOf(error) !== 'confirm_required' || !(await confirmIdentity(prove))) throw error
      return send()
    })
    .catch(noteMissingRight)
}
const prove = (body: Body<'POST /v1/auth/confirm'>) =>
  client.request('POST /v1/auth/confirm', { body })
/** Who is logged in; undefined for nobody. */
export const user = signal<User | undefined>(client.restore())
/** Why somebody who was here must log in again. */
export const ending = signal<string | undefined>(undefined)
/** The live channel. */
export const status = watchStatus(client)

if (user.value) goLive()
client.on('session_ended', () => {
  leave('Your session has ended. Log in again.')
})

/** @throws ApiError · `not_admin` when somebody else's password was right */
export async function login(credentials: { email: string; password: string; code?: string }) {
  const loggedIn = await client.login(credentials)
  if (loggedIn.role !== 'admin') {
    await client.logout()
    throw new Error('not_admin')
  }
  ending.value = undefined
  user.value = loggedIn
  goLive()
}

export async function logout() {
  forgetDrafts()
  await end(undefined)
}

async function end(reason: string | undefined) {
  leave(reason)
  try {
    await client.logout()
  } catch {
    toast(
      'You are logged out here. The service could not be reached: there the session ends by itself.',
    )
  }
}

function leave(reason: string | undefined) {
  user.value = undefined
  needsFactor.value = false
  ending.value = reason
  closeDialogs()
}

// What was begun here is not for whoever uses this browser next.
function forgetDrafts() {
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith('hostline draft ')) localStorage.removeItem(key)
  }
}

/** Opens the channel, again when the service closed it for good. It ends with the session. */
export function goLive() {
  client.connect().catch(() => {})
}

const refusalOf = (error: unknown) =>
  error instanceof ApiError && error.status === 403 ? error.reason : undefined

function noteMissingRight(error: unknown): never {
  const reason = refusalOf(error)
  if (reason === 'totp_required') needsFactor.value = true
  if (reason === 'role_required' && user.value) void end('You are no longer an admin.')
  throw error
}
