// Runs in the browser on the account pages: reads the token from the URL, posts the form as JSON and shows the result.
// Nothing is sent before the button is pressed, because mail scanners open links.
const deadlineMilliseconds = 30_000
const form = document.querySelector('form')
const result = document.querySelector('[role=status]')
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? history.state?.token ?? ''
// The address shows no token, and a reload still finds it: phones drop pages behind a password manager.
history.replaceState({ token }, '', location.pathname + location.search)
// Another link to the same page may be opened in the same tab.
addEventListener('hashchange', () => location.reload())
/** The service may have done what it was asked all the same. */
let isAnswerLost = false

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  showProblems({})
  show(form.dataset.busy, false)
  const problem = await send().catch(() => {
    isAnswerLost = true
    return form.dataset.offline
  })
  button.disabled = false
  if (problem === undefined) finish()
  else show(problem, true)
})

/** The first sentence of the success becomes the heading of the page. */
function finish() {
  const heading = document.querySelector('h1')
  const [title, ...rest] = form.dataset.done.split(/(?<=[.!]) /)
  end()
  heading.textContent = title
  heading.tabIndex = -1
  result.textContent = rest.join(' ')
  heading.focus()
}

/** The form has no use any more. */
function end() {
  form.hidden = true
  document.querySelector('.next')?.removeAttribute('hidden')
}

/** @returns the error message, or undefined on success
 *  @throws when the service cannot be reached, or something in between answers for it */
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
  const { error } = response.status === 204 ? {} : await response.json()
  if (response.ok) return undefined
  if (typeof error?.code !== 'string') throw new Error('not from the service')
  return explain(error)
}

function explain({ message, details }) {
  if (details?.token) {
    end()
    return isAnswerLost ? form.dataset.lost : form.dataset.expired
  }
  return showProblems(details ?? {}) ? '' : message
}

/** Shows problems beside their fields.
 *  @returns whether all have one */
function showProblems(problems) {
  for (const input of form.querySelectorAll('input')) {
    const problem = problems[input.name]
    document.getElementById(`${input.id}-problem`).textContent = problem ?? ''
    input.ariaInvalid = problem === undefined ? null : 'true'
  }
  form.querySelector('[aria-invalid]')?.focus()
  const names = Object.keys(problems)
  return names.length > 0 && names.every((name) => form.elements.namedItem(name))
}

function show(text, isError) {
  result.textContent = text
  result.classList.toggle('error', isError)
  if (text !== '') result.focus()
}
