import { ApiError, createClient } from '../client/client.ts'

// Runs in the browser on the account pages: takes the token out of the address, sends the form as JSON, says what came
// of it. The button does the work, never the mere opening of the page: mail scanners open links.
const form = document.querySelector('form')
const status = document.querySelector('[role=status]')
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? ''
history.replaceState(null, '', location.pathname + location.search)

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  show(form.dataset.busy, false)
  const failure = await send().then(() => undefined, (error) => error)
  button.disabled = false
  form.hidden = failure === undefined
  show(failure === undefined ? form.dataset.done : explain(failure), failure !== undefined)
})

function send() {
  const language = document.documentElement.lang
  const client = createClient({ baseUrl: location.origin, language })
  const body = { ...Object.fromEntries(new FormData(form)), token }
  return client.request('POST', form.dataset.endpoint, { body })
}

function explain(error) {
  if (!(error instanceof ApiError)) return form.dataset.offline
  if (error.details?.token) return form.dataset.expired
  const reasons = Object.values(error.details ?? {})
  return reasons.length > 0 ? `${error.message} (${reasons.join(', ')})` : error.message
}

function show(text, isError) {
  status.textContent = text
  status.classList.toggle('error', isError)
  status.focus()
}
