/** The sender of requests: a person who has logged in, or a token without a name. */
export type Caller = { name?: string; token: string; refreshToken?: string }

// A key of its own: a login here must not change the session of the console.
const storageKey = 'reference caller'
let caller: Caller | undefined
let notify: (caller: Caller | undefined) => void = () => {}

/** The caller of the pages of this tab. */
export function keptCaller(): Caller | undefined {
  const kept = sessionStorage.getItem(storageKey)
  caller = kept === null ? undefined : JSON.parse(kept)
  return caller
}

export function onCallerChange(listener: typeof notify): void {
  notify = listener
}

function setCaller(next: Caller | undefined) {
  caller = next
  if (next) sessionStorage.setItem(storageKey, JSON.stringify(next))
  else sessionStorage.removeItem(storageKey)
  notify(next)
}

/** Makes the buttons of all forms open the dialog, or log out. */
export function startLogin(): void {
  const dialog = document.querySelector('dialog')
  if (!dialog) return
  document.addEventListener('click', ({ target }) => {
    if (!(target as Element).closest('[data-login]')) return
    if (caller) return void logOut()
    for (const form of dialog.querySelectorAll('form')) form.reset()
    dialog.showModal()
  })
  dialog.addEventListener('click', ({ target }) => {
    if ((target as Element).closest('[data-close]')) dialog.close()
  })
  dialog.addEventListener('submit', async (event) => {
    const form = event.target as HTMLFormElement
    const given = new FormData(form)
    event.preventDefault()
    const token = given.get('token')
    if (token !== null) setCaller({ token: String(token).trim() })
    if (token !== null || (await logIn(form, given))) dialog.close()
  })
}

async function logIn(form: HTMLFormElement, given: FormData): Promise<boolean> {
  const body = Object.fromEntries([...given].filter(([, value]) => value !== ''))
  const response = await post('/v1/auth/login', body).catch(() => undefined)
  const answer = await response?.json().catch(() => undefined)
  if (response?.ok) {
    const { user, access_token: token, refresh_token: refreshToken } = answer
    setCaller({ name: user.display_name, token, refreshToken })
    return true
  }
  const asksForCode = response?.headers.get('x-error-reason')?.startsWith('totp_')
  if (asksForCode) form.querySelector('[hidden]')?.removeAttribute('hidden')
  const problem = form.querySelector('.error')
  if (problem) problem.textContent = answer?.error.message ?? 'The service could not be reached.'
  return false
}

async function logOut() {
  const { token = '', refreshToken } = caller ?? {}
  setCaller(undefined)
  if (refreshToken)
    await post('/v1/auth/logout', { refresh_token: refreshToken }, token).catch(() => {})
}

const post = (path: string, body: object, token?: string) =>
  fetch(path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  })
