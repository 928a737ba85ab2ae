import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import { openToInspect } from '../src/db/open.ts'
import { locales } from '../src/lib/i18n.ts'
import { createPreferenceLinks } from '../src/outside/mail/preference-links.ts'
import { borrowPage, interceptFromTheStart, returnPage } from './support/browser.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { startMailServer } from './support/mail.ts'
import { expectAccessible, expectNarrowAccessible } from './support/pages.ts'
import { freePort, type ServerProcess, startServer } from './support/process.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

let directory: ReturnType<typeof temporaryDirectory>
let mail: Awaited<ReturnType<typeof startMailServer>>
let server: ServerProcess
beforeAll(async () => {
  directory = temporaryDirectory()
  mail = await startMailServer()
  const port = await freePort()
  server = await startServer({
    dataDir: `${directory.path}/data`,
    environment: {
      SMTP_URL: mail.url,
      PORT: `${port}`,
      PUBLIC_URL: `http://127.0.0.1:${port}`,
    },
  })
})
afterAll(async () => {
  await server.kill('SIGTERM')
  await mail[Symbol.asyncDispose]()
  directory[Symbol.dispose]()
})

async function post(path: string, body: object, language = 'en') {
  const headers = { 'content-type': 'application/json', 'accept-language': language }
  return fetch(server.base + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

const personOf = (name: string) => ({ email: `${name}@example.com`, password: 'correct horse' })

describe.skipIf(!tools.chromium)('the pages behind links, in a browser', () => {
  let page: Page
  let complaints: string[]
  let requests: string[]
  beforeAll(async () => {
    page = await borrowPage()
    await interceptFromTheStart(page)
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => requests.push(request.url()))
  })
  afterAll(() => returnPage(page))

  /** Opens a page and collects browser errors. */
  async function visit(url: string) {
    complaints = []
    requests = []
    // The same URL without its token may be open already.
    await page.goto('about:blank')
    await page.goto(url)
  }

  test('an address is verified by the button, not by opening the page, with the keyboard alone', async () => {
    const person = personOf('ada')
    await post('/v1/auth/register', person, 'de')
    const { link } = await mail.next(person.email)
    await visit(link)
    await page.reload()
    expect(await page.title()).toBe('E-Mail-Adresse bestätigen · 127.0.0.1')
    expect(await page.locator('html').getAttribute('lang')).toBe('de')
    expect(page.url()).not.toContain('token')
    expect(requests.some((url) => url.includes('/v1/'))).toBe(false)
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Adresse bestätigen')
    await page.keyboard.press('Enter')
    await page.getByText('Ihre Adresse ist bestätigt').waitFor()
    expect(await page.evaluate('document.activeElement.textContent')).toContain('ist bestätigt.')
    expect(complaints).toEqual([])
    await expectAccessible(page)
    expect(requests.every((url) => url.startsWith(server.base) && !url.includes('token'))).toBe(
      true,
    )

    await visit(link)
    await page.getByRole('button').click()
    await page.getByText('Fordern Sie dort einen neuen an').waitFor()
  })

  testAtLength('a password is reset, and a bad one is explained', async () => {
    const person = personOf('bob')
    await post('/v1/auth/register', person)
    await mail.next(person.email)
    await post('/v1/auth/password/forgot', { email: person.email })
    await visit((await mail.next(person.email)).link)
    await expectAccessible(page)
    await page.getByLabel('New password').fill('short')
    await page.getByRole('button').click()
    expect(await page.evaluate('document.querySelector("input").validity.valid')).toBe(false)
    await page.getByLabel('New password').fill('brand new horse')
    await page.keyboard.press('Enter')
    await page.getByText('Your password is set').waitFor()
    expect(complaints).toEqual([])
    const login = await post('/v1/auth/login', { ...person, password: 'brand new horse' })
    expect(login.status).toBe(200)
  })

  test('an answer that is lost or not from the service is no success, and a second try says what it may mean', async () => {
    const person = personOf('dora')
    await post('/v1/auth/register', person)
    await mail.next(person.email)
    await post('/v1/auth/password/forgot', { email: person.email })
    await visit((await mail.next(person.email)).link)
    await page.getByLabel('New password').fill('brand new horse')
    const foreign = [
      { status: 502, contentType: 'application/json', body: '{"error":"Bad Gateway"}' },
      { status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' },
      { status: 200, contentType: 'text/html', body: '<h1>Log in to the network</h1>' },
    ]
    const endpoint = '**/v1/auth/password/reset'
    for (const answer of foreign) {
      await page.route(endpoint, (route) => route.fulfill(answer), { times: 1 })
      await page.getByRole('button').click()
      await page.getByText('The server cannot be reached').waitFor()
    }
    const lose = async (route: Route) => {
      await route.fetch()
      await route.abort()
    }
    await page.route(endpoint, lose, { times: 1 })
    await page.getByRole('button').click()
    await waitFor(async () => {
      const login = await post('/v1/auth/login', { ...person, password: 'brand new horse' })
      return login.status === 200
    })
    await page.getByText('The server cannot be reached').waitFor()
    await page.getByRole('button').click()
    await page.getByText('only its answer was lost').waitFor()
  })

  testAtLength('an address is changed and changed back by the buttons', async () => {
    const person = personOf('carl')
    const registered = await post('/v1/auth/register', person)
    const token = new URL((await mail.next(person.email)).link).hash.slice('#token='.length)
    await post('/v1/auth/verify-email', { token })
    const { access_token } = (await registered.json()) as { access_token: string }
    await fetch(`${server.base}/v1/auth/email/change`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${access_token}` },
      body: JSON.stringify({ new_email: 'carl@new.example', password: person.password }),
    })
    await visit((await mail.next('carl@new.example')).link)
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Use this address' }).click()
    await page.getByText('Your account now has this address').waitFor()
    expect(complaints).toEqual([])
    await visit((await mail.next(person.email)).link)
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Undo the change' }).click()
    await page.getByText('Your former address is back').waitFor()
    expect((await post('/v1/auth/login', person)).status).toBe(401)
    await visit((await mail.next(person.email)).link)
    await page.getByLabel('New password').fill('purple elephant')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Your password is set').waitFor()
    const renewed = { ...person, password: 'purple elephant' }
    expect((await post('/v1/auth/login', renewed)).status).toBe(200)
  })

  test('the first admin is created with the link printed at start', async () => {
    const printed = () => /http\S+\/set-up#token=[\w-]+/.exec(server.output())?.[0]
    const link = await waitFor(printed, 'the link to set up the first admin')
    await visit(link)
    await page.getByLabel('E-mail address').fill('ops@example.com')
    await page.getByLabel('New password').fill('correct horse')
    await page.getByRole('button', { name: 'Create admin' }).click()
    await page.getByRole('heading', { name: 'The admin account is ready.' }).waitFor()
    await page.getByRole('link', { name: 'Open the console' }).waitFor()
    expect(complaints).toEqual([])
    const login = await post('/v1/auth/login', personOf('ops'))
    expect(((await login.json()) as { user: { role: string } }).user.role).toBe('admin')
  })

  testAtLength('a page shows the field that the service refuses', async () => {
    await visit(`${server.base}/set-up#token=none`)
    await page.getByLabel('E-mail address').fill('nobody@nowhere')
    await page.getByLabel('New password').fill('correct horse')
    await page.getByRole('button', { name: 'Create admin' }).click()
    const field = page.getByLabel('E-mail address')
    await page.locator('#email-problem', { hasText: /./ }).waitFor()
    expect(await field.getAttribute('aria-invalid')).toBe('true')
    expect(await page.evaluate('document.activeElement.name')).toBe('email')
    await field.fill('nobody@nowhere.example')
    await page.keyboard.press('Enter')
    await page.getByText(/was used or has expired.$/).waitFor()
    await page.getByRole('link', { name: 'Open the console' }).waitFor()
    expect(await field.getAttribute('aria-invalid')).toBeNull()
    await page.setViewportSize({ width: 320, height: 700 })
    await expectAccessible(page)
  })

  testAtLength('the choice of mails fits a narrow phone in each language', async () => {
    const { email: address, ...person } = personOf('eva')
    const registered = await post('/v1/auth/register', { ...person, email: address })
    const { user } = (await registered.json()) as { user: { id: string } }
    const database = openToInspect(`${directory.path}/data`)
    const links = createPreferenceLinks(database.orm, server.base)
    database.close()
    for (const locale of locales) {
      await visit(links.urlFor({ userId: user.id, address, types: ['support_reply'] }, locale))
      await page.getByRole('table').waitFor()
      await expectNarrowAccessible(page)
    }
  })
})

test('the start page speaks the language of the browser', async () => {
  const answer = await fetch(server.base, { headers: { 'accept-language': 'de' } })
  const html = await answer.text()
  expect(html).toContain('<html lang="de">')
  expect(html).toContain('<strong>Konsole</strong>')
})

test('each page has a strict policy, one language, and the endpoint of its button', async () => {
  const endpoints = {
    'verify-email': '/v1/auth/verify-email',
    'reset-password': '/v1/auth/password/reset',
    'set-up': '/v1/auth/set-up',
    'change-email': '/v1/auth/email/confirm',
    'undo-email': '/v1/auth/email/undo',
  }
  for (const [name, endpoint] of Object.entries(endpoints)) {
    const headers = { 'accept-language': 'es' }
    const answer = await fetch(`${server.base}/${name}?lang=fr`, { headers })
    const html = await answer.text()
    expect(answer.headers.get('content-security-policy')).toBe(pagePolicy)
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    expect(answer.headers.get('cache-control')).toBe('no-cache')
    expect(html).toContain('<html lang="fr">')
    expect(html).toContain(`data-endpoint="${endpoint}"`)
    expect(html).not.toMatch(/<script>|onclick|style=|https?:\/\//)
    for (const [path] of html.matchAll(/\/assets\/[\w.-]+/g)) {
      expect((await fetch(server.base + path)).status).toBe(200)
    }
  }
})
