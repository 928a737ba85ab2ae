import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core'

const executablePath = Bun.which('chromium') ?? Bun.which('google-chrome') ?? ''
/** A test that needs a browser is skipped where there is none. */
export const hasBrowser = executablePath !== ''

const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Names that are no loopback to the browser: pages from there are no secure context.
  '--host-resolver-rules=MAP *.test 127.0.0.1',
]
let browser: Promise<Browser> | undefined

/** A profile of its own in the browser that the test files of a process share: a start of it takes two seconds. It ends with
 *  the process. */
export async function openProfile(options: BrowserContextOptions = {}) {
  browser ??= chromium.launch({ executablePath, args, headless: true })
  return (await browser).newContext(options)
}
