import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page, Route, ViewportSize } from 'playwright-core'
import { borrowPage, interceptFromTheStart, returnPage } from './browser.ts'
import { hostline } from './command.ts'
import { temporaryDirectory } from './directory.ts'
import { isAtLength } from './faults.ts'
import { call, freePort, startServer } from './process.ts'
import { waitOut } from './wait.ts'

type Ask = (method: string, path: string, body?: object) => ReturnType<typeof call>
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
export const password = 'correct horse'
const wide = { width: 1280, height: 800 }

/** The executable with an admin, and a browser that collects the errors of pages. */
export async function startPages(environment: Record<string, string> = {}) {
  const directory = temporaryDirectory()
  const dataDir = `${directory.path}/data`
  // The same one after a restart.
  const port = `${await freePort()}`
  const start = (more: Record<string, string> = {}) =>
    startServer({ dataDir, environment: { PORT: port, ...environment, ...more } })
  let server = await start()
  const { base } = server
  const admin = await createAdmin(dataDir, 'grace@example.com')
  const wrongs: string[] = []

  // All visits take place in one page.
  let borrowed: Page | undefined
  async function visit(path: string, viewport: ViewportSize) {
    if (!borrowed) {
      borrowed = await borrowPage()
      await interceptFromTheStart(borrowed)
      collectErrors(borrowed, base, wrongs)
    }
    await borrowed.setViewportSize(viewport)
    await borrowed.emulateMedia({ colorScheme: null, reducedMotion: null })
    await borrowed.goto(base + path)
    return borrowed
  }

  /** Logs in when the console asks for it. */
  async function logIn(page: Page) {
    await page.getByLabel('E-mail address').fill(admin.email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.locator('#main').waitFor()
  }

  return {
    base,
    dataDir,
    admin,
    /** Console errors, violated policies and requests to other hosts, of all pages. */
    wrongs,
    /** A page for a first visit. */
    async open(path: string, viewport = wide) {
      const page = await visit('/healthz', viewport)
      await page.evaluate('localStorage.clear(); sessionStorage.clear()')
      return visit(path, viewport)
    },
    /** A page of the console, logged in. */
    async openConsole(path = '/console', viewport = wide) {
      const page = await visit(path, viewport)
      const area = page.locator('#main')
      const email = page.getByLabel('E-mail address')
      await area.or(email).first().waitFor()
      if (!(await area.isVisible())) await logIn(page)
      return page
    },
    logIn,
    /** Registers a user of the platform. */
    async register(name: string, displayName = name) {
      const email = `${name.toLowerCase()}@example.com`
      const body = { email, password, display_name: displayName }
      const answer = await call(base, 'POST', '/v1/auth/register', { body })
      return { id: answer.body.user.id as string, email, token: answer.body.access_token as string }
    },
    as: (token: string) => (method: string, path: string, body?: object) =>
      call(base, method, path, { token, body }),
    /** A confirmed session of an admin.
     *  @returns a function for its requests */
    async trusted(email: string) {
      const answer = await call(base, 'POST', '/v1/auth/login', { body: { email, password } })
      const { access_token: token } = answer.body
      await call(base, 'POST', '/v1/auth/confirm', { token, body: { password } })
      return (method: string, path: string, body?: object) =>
        call(base, method, path, { token, body })
    },
    /** Sends both people a notice of the platform.
     *  @param by an admin, see `trusted` */
    async notice(by: Ask, people: readonly string[], body: string) {
      const made = await by('POST', '/v1/admin/service-keys', {
        name: 'notices',
        scopes: ['messages'],
      })
      const message = { user_ids: people, body }
      const options = { token: made.body.key, body: message }
      expect((await call(base, 'POST', '/v1/service/messages', options)).status).toBe(201)
    },
    stop: (signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM') => server.kill(signal),
    /** Starts a stopped server at the same address. */
    async start(more?: Record<string, string>) {
      server = await start(more)
    },
    createAdmin: (email: string) => createAdmin(dataDir, email),
    async [Symbol.asyncDispose]() {
      if (borrowed) await returnPage(borrowed)
      await server[Symbol.asyncDispose]()
      directory[Symbol.dispose]()
    },
  }
}

async function createAdmin(dataDir: string, email: string) {
  const command = ['user', 'create', '--email', email, '--role', 'admin', '--password-stdin']
  const { exitCode, out, err } = await hostline(command, dataDir, { stdin: password })
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
  return { email, id: out.split('\t')[0] ?? '' }
}

function collectErrors(page: Page, base: string, wrongs: string[]) {
  page.on('console', (message) => {
    if (message.type() === 'error' && !isExpected(message.text())) wrongs.push(message.text())
  })
  page.on('pageerror', (error) => wrongs.push(error.message))
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (/^https?:$/.test(protocol) && origin !== base) wrongs.push(`asked ${request.url()}`)
  })
}

/** Browsers also log failed requests in their console; pages show these to the user. */
const isExpected = (text: string) =>
  /^Failed to load resource|^WebSocket (connection to|is already in CLOSING)/.test(text)

/** Expects no overflow of the screen and, at length, no accessibility violation in light and dark mode: axe takes a
 *  CPU second a page.
 *  @param part a selector, when the rest was checked before */
export async function expectAccessible(page: Page, part = 'html') {
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  if (isAtLength) expect(await violations(page, part)).toEqual([])
  // Only colours differ in dark mode.
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  if (isAtLength) {
    expect(await violations(page, part, { runOnly: ['color-contrast'] })).toEqual([])
  }
  await expectFits(page)
}

/** The same on a narrow screen, where colours do not differ. */
export async function expectNarrowAccessible(page: Page) {
  await page.setViewportSize({ width: 320, height: 640 })
  const rules = { 'color-contrast': { enabled: false } }
  if (isAtLength) expect(await violations(page, 'html', { rules })).toEqual([])
  await expectFits(page)
  // iOS zooms into fields with smaller text.
  expect(await page.evaluate(smallFields)).toEqual([])
}

const smallFields = `[...document.querySelectorAll('input, select, textarea')]
  .filter((field) => !field.matches('[type=checkbox], [type=radio], [type=range], [type=file], [type=color]'))
  .filter((field) => Number.parseFloat(getComputedStyle(field).fontSize) < 16)
  .map(({ outerHTML }) => outerHTML.slice(0, 200))`

async function expectFits(page: Page) {
  const beyond = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  expect(beyond).toBeLessThanOrEqual(0)
  const cut =
    await page.evaluate(`[...document.querySelectorAll('body *:not(pre, .tabs, .segments)')]
    .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1)
    .filter((one) => /auto|scroll/.test(getComputedStyle(one).overflowX))
    .map(({ outerHTML }) => outerHTML.slice(0, 200))`)
  expect(cut).toEqual([])
  await expectWholeWords(page)
}

/** Long texts may break anywhere, but what stands beside them keeps its short words whole. */
export async function expectWholeWords(page: Page) {
  expect(await page.evaluate(brokenWords)).toEqual([])
}

const brokenWords = `(() => {
  const found = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const range = document.createRange()
  while (walker.nextNode()) {
    const { currentNode: node } = walker
    if (!node.parentElement.checkVisibility() || node.parentElement.closest('code, pre')) continue
    for (const { 0: word, index } of node.data.matchAll(/(?<!\\S)[\\p{L}\\p{N}]{2,12}(?!\\S)/gu)) {
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
      if (lines.size > 1) found.push(word + ' in ' + node.parentElement.outerHTML.slice(0, 200))
    }
  }
  return found
})()`

async function violations(page: Page, part: string, options: object = {}) {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axe)
  return page.evaluate(
    async ([selector, choice]) => {
      const { axe } = globalThis as never as { axe: Axe }
      const { violations } = await axe.run(selector, { resultTypes: ['violations'], ...choice })
      return violations.map(({ id, nodes }) => ({ id, where: nodes.map(({ html }) => html) }))
    },
    [part, options] as const,
  )
}

type Violation = { id: string; nodes: { html: string }[] }
type Axe = { run(part: string, options: object): Promise<{ violations: Violation[] }> }

/** Chooses in a menu by the name of its button and the text of the option. */
export async function choose(page: Page, label: string, option: string) {
  await page.getByRole('button', { name: new RegExp(`^${label}(: |$)`) }).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

/** Effects and frames of the page come late from now on, as on a busy machine, until it is loaded again. */
export async function delayEffects(page: Page) {
  await page.evaluate(`(() => {
    const usual = setTimeout
    window.requestAnimationFrame = (work) => usual(work, ${effectsDelayMilliseconds})
    window.cancelAnimationFrame = clearTimeout
    window.setTimeout = (work, after = 0, ...given) =>
      usual(work, after < 100 ? ${effectsDelayMilliseconds} : after, ...given)
  })()`)
}

/** Longer than `delayEffects` takes. */
export const waitForEffects = () => waitOut(3 * effectsDelayMilliseconds)

const effectsDelayMilliseconds = 300

/** Lets the request arrive and drops its response. */
export async function loseResponse(route: Route) {
  await route.fetch()
  await route.abort()
}
