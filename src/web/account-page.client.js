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
  const answer = await send().catch(() => undefined)
  button.disabled = false
  if (answer?.ok) {
    form.hidden = true
    show(form.dataset.done, false)
    return
  }
  const { error } = (await answer?.json().catch(() => undefined)) ?? {}
  show(explain(error), true)
})

function send() {
  return fetch(form.dataset.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'accept-language': document.documentElement.lang },
    body: JSON.stringify({ ...Object.fromEntries(new FormData(form)), token }),
  })
}

function explain(error) {
  if (!error) return form.dataset.offline
  if (error.details?.token) return form.dataset.expired
  const reasons = Object.values(error.details ?? {})
  return reasons.length > 0 ? `${error.message} (${reasons.join(', ')})` : error.message
}

function show(text, isError) {
  status.textContent = text
  status.classList.toggle('error', isError)
  status.focus()
}
