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

/** One client for the console: all tabs share the session and its renewal. */
export const client = createClient({
  baseUrl: location.origin,
  storage: webStorage(localStorage),
  language: 'en',
})
/** The service requires a second factor before any other request of this admin. */
export const needsFactor = signal(false)
/** Sends a request. When the service asks for a recent proof of identity, asks the user and sends it once more. */
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
/** The signed-in user. */
export const user = signal<User | undefined>(client.restore())
/** Why the session has ended. */
export const ending = signal<string | undefined>(undefined)
export const status = watchStatus(client)

if (user.value) goLive()
client.on('session_ended', () => {
  leave('Your session has ended. Log in again.')
})

/** @throws ApiError · `not_admin` when the credentials belong to a user who is no admin */
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

// Drafts must not be left to the next user of this browser.
function forgetDrafts() {
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith('hostline draft ')) localStorage.removeItem(key)
  }
}

/** Opens the channel, also after the service has closed it for good. It closes with the session. */
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
