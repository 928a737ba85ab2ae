import { signal } from '@preact/signals'
import {
  ApiError,
  type Body,
  type ChannelStatus,
  createClient,
  type User,
  webStorage,
} from '../../../client/src/client.ts'
import { closeDialogs, confirmAction } from '../kit/dialog.tsx'
import { plural } from '../kit/format.ts'
import { type Language, language, speak, texts } from '../kit/texts.tsx'
import { toast } from '../kit/toast.tsx'
import { confirmIdentity } from './confirm-identity.tsx'

/** One client for the console: all tabs share the session and its renewal. Its keys are its own: an app of the same
 *  origin may use the client, too, with the session of another user. */
export const client = createClient({
  baseUrl: location.origin,
  storage: webStorage(localStorage),
  storageKey: 'console',
  language: () => language.value,
})
/** The name of the platform, which the service puts into the title. */
export const platform = document.title
/** The service requires a second factor before any other request of this admin. */
export const needsFactor = signal(false)
/** Sends a request. When the service asks for a recent proof of identity, asks the user and sends it once more. */
export const request = new Proxy(client.request, {
  apply: (target, _, given) => withProof(() => Reflect.apply(target, undefined, given)),
})
const withProof = (send: () => Promise<unknown>) =>
  send()
    .catch(async (error: unknown) => {
      if (refusalOf(error) !== 'confirm_required' || !(await confirmIdentity(prove))) throw error
      return send()
    })
    .catch(noteMissingRight)
const prove = (body: Body<'POST /v1/auth/confirm'>) =>
  client.request('POST /v1/auth/confirm', { body })
export const user = signal<User | undefined>(client.restore())
/** Why the session has ended. */
export const ending = signal<string | undefined>(undefined)
export const status = signal<ChannelStatus>('closed')
client.on('status', (event) => {
  status.value = event.status
})

/** Reading first and listening later would miss what happens in between. */
const openingMilliseconds = 500
let opening: Promise<void> | undefined
/** Resolves when the channel has opened after the login, or takes its time. */
export const opened = (): Promise<void> | undefined => opening

if (user.value) goLive()
// After a login in another tab.
addEventListener('storage', () => {
  if (user.value) return
  const other = client.restore()
  if (other?.role !== 'admin') return
  ending.value = undefined
  goLive()
  user.value = other
})
client.on('session_ended', () => {
  leave(texts.console.shell.ended)
})

/** @throws ApiError · `not_admin` when the credentials belong to a user who is no admin */
export async function login(credentials: { email: string; password: string; code?: string }) {
  const loggedIn = await client.login(credentials)
  if (loggedIn.role !== 'admin') {
    await client.logout()
    throw new Error('not_admin')
  }
  const { locale = language.value } = await client.request('GET /v1/users/me').catch(noProfile)
  if (locale !== language.value) {
    await speak(locale)
    // Pages that were shown keep their language. A reload ends a session that cannot be stored.
    if (opening) return location.reload()
  }
  ending.value = undefined
  goLive()
  user.value = loggedIn
}

/** Such as before the second factor that is required. */
const noProfile = () => ({ locale: undefined })

/** Loads the page again in another language, with the session of before. */
export async function switchLanguage(chosen: Language) {
  await speak(chosen)
  location.reload()
}

/** Work that a logout, or a tab that is left, must not lose. */
export const beforeLeaving = new Set<() => Promise<unknown>>()
addEventListener('visibilitychange', () => {
  if (document.hidden) for (const work of beforeLeaving) void work()
})

/** Asks before it deletes drafts. */
export async function logout() {
  const drafts = draftKeys().length
  const { drafts: title, draftsText: text } = texts.console.shell
  const action = texts.kit.logout
  const question = { title: plural(title, drafts), text, action, isDangerous: true }
  if (drafts > 0 && !(await confirmAction(question))) return
  await Promise.allSettled([...beforeLeaving].map((work) => work()))
  // Drafts must not be left to the next user of this browser.
  for (const key of draftKeys()) localStorage.removeItem(key)
  await end(undefined)
}

async function end(reason: string | undefined) {
  leave(reason)
  try {
    await client.logout()
  } catch {
    toast(texts.console.shell.endedHere)
  }
}

function leave(reason: string | undefined) {
  user.value = undefined
  needsFactor.value = false
  ending.value = reason
  closeDialogs()
}

/** Unsent replies, notes and broadcasts in this browser. */
const draftKeys = () =>
  Object.keys(localStorage).filter((key) => /^hostline (broadcast )?draft /.test(key))

/** Opens the channel, also after the service has closed it for good. It closes with the session. */
export function goLive() {
  opening = Promise.race([
    client.connect().catch(() => {}),
    new Promise<void>((resolve) => setTimeout(resolve, openingMilliseconds)),
  ])
}

export const refusalOf = (error: unknown) =>
  error instanceof ApiError && error.status === 403 ? error.reason : undefined

function noteMissingRight(error: unknown): never {
  const reason = refusalOf(error)
  if (reason === 'totp_required') needsFactor.value = true
  if (reason === 'role_required' && user.value) void end(texts.console.shell.noAdmin)
  throw error
}
