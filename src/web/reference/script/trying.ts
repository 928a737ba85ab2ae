import { codeBlock, colouredJson, html } from '../html.ts'
import { addressOf, clientCallOf, curlOf, type SampleRequest, tokenIn } from '../samples.ts'

/** The sender of requests: a person who has logged in, or a token without a name. */
type Caller = { name?: string; token: string; refreshToken?: string }

// A key of its own: a login here must not change the session of the console.
const storageKey = 'reference caller'
let caller: Caller | undefined

/** Forms send real requests, and the samples beside them follow what was typed and who is logged in. */
export function startTrying(): void {
  const kept = sessionStorage.getItem(storageKey)
  caller = kept === null ? undefined : JSON.parse(kept)
  // The page shows nobody already.
  if (caller) showCaller()
  startLogin()
  document.addEventListener('input', (event) => {
    const form = formOf(event)
    if (form) showSamples(form)
  })
  document.addEventListener('submit', (event) => {
    const form = formOf(event)
    if (!form) return
    event.preventDefault()
    void send(form)
  })
}

const formOf = ({ target }: Event) =>
  target instanceof Element && target.closest<HTMLFormElement>('form[data-request]')

/** The request as it stands in the form. */
function requestOf(form: HTMLFormElement): SampleRequest {
  const data = new FormData(form)
  const given = (place: string) =>
    Object.fromEntries(
      [...data]
        .filter(([name, value]) => name.startsWith(`${place} `) && value !== '')
        .map(([name, value]) => [name.slice(place.length + 1), String(value)]),
    )
  const body = String(data.get('body') ?? '').trim()
  return {
    ...JSON.parse(form.dataset['request'] ?? ''),
    params: given('path'),
    query: given('query'),
    headers: given('header'),
    body: body === '' ? undefined : body,
  }
}

function showSamples(form: HTMLFormElement) {
  const request = requestOf(form)
  const base = document.querySelector('main')?.dataset['base'] ?? location.origin
  for (const block of form.closest('.part')?.querySelectorAll('[data-sample]') ?? []) {
    const isCurl = block.matches('[data-sample=curl]')
    block.textContent = isCurl ? curlOf(request, base, caller?.token) : clientCallOf(request)
  }
}

/** Shows who sends the requests, and their token in the samples. */
function showCaller() {
  const who = caller?.name ? `As ${caller.name}` : 'With the token that you gave'
  for (const line of document.querySelectorAll('[data-caller]'))
    line.textContent = caller ? who : 'Without a token'
  const action = caller?.name ? 'Log out' : 'Forget the token'
  for (const button of document.querySelectorAll('[data-login]'))
    button.textContent = caller ? action : 'Log in'
  for (const block of document.querySelectorAll('[data-sample=curl]')) {
    const text = block.textContent ?? ''
    const token = tokenIn(text.includes('Bearer sk_') ? 'service' : 'access', caller?.token)
    block.textContent = text.replace(/Bearer [^']*/, () => `Bearer ${token}`)
  }
}

function setCaller(next: Caller | undefined) {
  caller = next
  if (next) sessionStorage.setItem(storageKey, JSON.stringify(next))
  else sessionStorage.removeItem(storageKey)
  showCaller()
}

/** Makes the buttons of all forms open the dialog, or log out. */
function startLogin(): void {
  const dialog = document.querySelector('dialog')
  if (!dialog) return
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element && target.closest('[data-login]'))) return
    if (caller) return void logOut()
    for (const form of dialog.querySelectorAll('form')) form.reset()
    dialog.showModal()
  })
  dialog.addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('[data-close]')) dialog.close()
  })
  dialog.addEventListener('submit', async (event) => {
    const form = event.target
    if (!(form instanceof HTMLFormElement)) return
    const given = new FormData(form)
    event.preventDefault()
    const token = given.get('token')
    if (token !== null) setCaller({ token: String(token).trim() })
    if (token !== null || (await logInOnce(form, given))) dialog.close()
  })
}

let loggingIn: Promise<boolean> | undefined

/** Each login begins a session, however often Enter is pressed until the response. */
function logInOnce(form: HTMLFormElement, given: FormData): Promise<boolean> {
  loggingIn ??= logIn(form, given).finally(() => {
    loggingIn = undefined
  })
  return loggingIn
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

async function send(form: HTMLFormElement) {
  const status = form.parentElement?.querySelector('[role=status]')
  const button = form.querySelector<HTMLButtonElement>('.primary')
  if (!status || !button || button.disabled) return
  button.disabled = true
  try {
    status.innerHTML = await answerTo(requestOf(form), new FormData(form).get('file'))
  } catch (error) {
    const isBody = error instanceof SyntaxError
    const text = isBody ? 'The body is not valid JSON.' : 'The service could not be reached.'
    status.innerHTML = html`<p class="error">${text}</p>`.markup
  }
  button.disabled = false
}

/** Sends a request.
 *  @throws SyntaxError: the body is no JSON · TypeError: no connection */
async function answerTo(request: SampleRequest, file: FormDataEntryValue | null): Promise<string> {
  const { method, body, token } = request
  if (body !== undefined) JSON.parse(body)
  const began = performance.now()
  const response = await fetch(
    addressOf(request, (name) => `{${name}}`),
    {
      method,
      headers: {
        'accept-language': 'en',
        ...(caller && token !== 'none' && { authorization: `Bearer ${caller.token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(file instanceof File && fileHeaders(file)),
        ...request.headers,
      },
      body: file ?? body ?? null,
    },
  )
  const bytes = await response.arrayBuffer()
  return answerMarkup(response, bytes, performance.now() - began)
}

const fileHeaders = ({ name, type }: File) => ({
  'content-type': type || 'application/octet-stream',
  'x-file-name': encodeURIComponent(name),
})

const shownHeaders = [
  'x-request-id',
  'x-error-reason',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'idempotent-replayed',
]

function answerMarkup(response: Response, bytes: ArrayBuffer, milliseconds: number): string {
  const { status, statusText, headers } = response
  const given = shownHeaders.filter((name) => headers.has(name))
  const type = headers.get('content-type') ?? ''
  const text = /json|^text\//.test(type) ? new TextDecoder().decode(bytes) : ''
  const json = type.includes('json') && colouredJson(indented(text))
  const none = bytes.byteLength === 0 ? 'No body.' : `${bytes.byteLength} bytes of ${type}.`
  return html`<p class="row small"><span class="badge number ${status < 400 ? 'good' : 'danger'}">${status} ${statusText}</span><span class="soft number">${Math.round(milliseconds)} ms</span></p>
<dl class="headers small">${given.map((name) => html`<div class="header-line"><dt class="soft">${name}</dt><dd class="mono">${headers.get(name) ?? ''}</dd></div>`)}</dl>
${text === '' ? html`<p class="small soft">${none}</p>` : codeBlock('The answer', html`<pre>${json || text}</pre>`)}`
    .markup
}

// A proxy may give other content the type of JSON.
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
