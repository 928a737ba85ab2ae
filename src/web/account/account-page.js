// Runs in the browser on the account pages: reads the token from the URL, posts the form as JSON and shows the result.
// Nothing is sent before the button is pressed, because mail scanners open links.
const deadlineMilliseconds = 30_000
const form = document.querySelector('form')
const result = document.querySelector('[role=status]')
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? ''
history.replaceState(null, '', location.pathname + location.search)
// Another link to the same page may be opened in the same tab.
addEventListener('hashchange', () => location.reload())

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  show(form.dataset.busy, false)
  const problem = await send().catch(() => form.dataset.offline)
  button.disabled = false
  form.hidden = problem === undefined
  show(problem ?? form.dataset.done, problem !== undefined)
  if (problem === undefined) document.querySelector('.next')?.removeAttribute('hidden')
})

/** @returns the error message, or undefined on success
 *  @throws the error of fetch when the server cannot be reached */
async function send() {
  const response = await fetch(form.dataset.endpoint, {
    method: 'POST',
    signal: AbortSignal.timeout(deadlineMilliseconds),
    headers: {
      'content-type': 'application/json',
      'accept-language': document.documentElement.lang,
    },
    body: JSON.stringify({ ...Object.fromEntries(new FormData(form)), token }),
  })
  if (response.ok) return undefined
  // A reverse proxy may have answered with HTML.
  const { error } = await response.json().catch(() => ({}))
  return error === undefined ? `HTTP ${response.status}` : explain(error)
}

function explain({ message, details }) {
  if (details?.token) return form.dataset.expired
  const reasons = Object.values(details ?? {})
  return reasons.length > 0 ? `${message} (${reasons.join(', ')})` : message
}

function show(text, isError) {
  result.textContent = text
  result.classList.toggle('error', isError)
  result.focus()
}
