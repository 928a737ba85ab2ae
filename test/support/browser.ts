import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { tools } from './tools.ts'

const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Hosts that the browser does not treat as loopback, so that their pages are no secure context.
  '--host-resolver-rules=MAP *.test 127.0.0.1',
]
const executablePath = join(import.meta.dir, 'chromium.sh')
const env = { ...process.env, CHROMIUM: tools.chromium }
let browser: Promise<Browser> | undefined

/** A new profile in the browser that the test files of a process share, because a start takes two seconds. The
 *  browser ends with the process. */
export async function openProfile(options: BrowserContextOptions = {}) {
  browser ??= chromium.launch({ executablePath, env, args, headless: true })
  return (await browser).newContext(options)
}

let page: Promise<Page> | undefined

/** The only page of the process, wide and empty, because another one takes a CPU second. The borrower returns it. */
export async function borrowPage() {
  page ??= openPage()
  const borrowed = await page
  // Behind a tab that a failed test has left, an incognito Chromium never answers a question for permission.
  await borrowed.bringToFront()
  await borrowed.setViewportSize({ width: 1280, height: 800 })
  return borrowed
}

async function openPage() {
  const opened = await (await openProfile()).newPage()
  opened.setDefaultTimeout(60_000)
  return opened
}

/** Lets the requests of a borrowed page pass through the test from now on, so that no request escapes a later route:
 *  Chromium says that it intercepts before its busy pages do. Preflights are then answered for the service. */
export const interceptFromTheStart = (page: Page) =>
  page.context().route('**/intercepted', (route) => route.fallback())

/** Leaves the service and resets emulation. Its storage is not visible to the next borrower: each service has a
 *  port, and so an origin, of its own. */
export async function returnPage(page: Page) {
  for (const event of ['console', 'pageerror', 'request'] as const) page.removeAllListeners(event)
  await page.unrouteAll()
  await page.context().unrouteAll()
  await page.context().clearPermissions()
  await page.emulateMedia({ colorScheme: null, reducedMotion: null })
  await page.goto('about:blank')
}
