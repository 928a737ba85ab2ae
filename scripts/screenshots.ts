import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { openProfile } from '../test/support/browser.ts'
import { createTestClock } from '../test/support/clock.ts'
import { startService } from '../test/support/service.ts'
import { playStory, storyMilliseconds } from './story.ts'

/** Creates docs/screenshots. Needs chromium. */

const folder = join(import.meta.dir, '../docs/screenshots')
const wide = { viewport: { width: 1360, height: 850 }, locale: 'en-GB' }
const dark = { ...wide, colorScheme: 'dark' } as const
const phone = { viewport: { width: 390, height: 780 }, locale: 'en-GB' }

mkdirSync(folder, { recursive: true })
const clock = createTestClock(Date.now() - storyMilliseconds)
const service = await startService({
  clock,
  listen: true,
  environment: { PUBLIC_URL: 'https://chat.example', DEMO: 'true' },
})
const { payout, report, cast } = await playStory(service, clock)
const ticket = `/console/desk/${payout}?view=all`

for (const [name, path, options] of [
  ['desk', ticket, wide],
  ['desk-dark', ticket, dark],
  ['desk-phone', ticket, phone],
  ['report', `/console/reports/${report}`, wide],
  ['person', `/console/people/${cast['Ben Okafor'].id}`, wide],
  ['broadcast', '/console/announcements', wide],
  ['system', '/console/system', dark],
  ['settings', '/console/system/settings', wide],
  ['mails', '/console/system/mails', wide],
  ['mails-dark', '/console/system/mails?lang=fr', { ...dark, ...phone }],
] as const) {
  const page = await openConsole(path, options)
  await take(page, name)
}
await take(await open('/', wide), 'start')
const reference = await open('/docs/chat#sendMessage', wide)
await reference.locator('#sendMessage').getByText('at most 5,000 characters').waitFor()
await take(reference, 'reference')
await take(await talkInDemo(await open('/demo', wide)), 'demo')
await service[Symbol.asyncDispose]()
process.exit()

async function open(path: string, options: BrowserContextOptions) {
  const page = await (await openProfile(options)).newPage()
  await page.goto(service.base + path)
  return page
}

async function openConsole(path: string, options: BrowserContextOptions) {
  const page = await open(path, options)
  await page.getByLabel('E-mail address').fill('grace@example.com')
  await page.getByLabel('Password').fill('correct horse')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.locator('#main').waitFor()
  return page
}

async function talkInDemo(page: Page) {
  const [left, right] = [page.locator('.panel.left'), page.locator('.panel.right')]
  await page.getByRole('button', { name: 'Start with two people' }).click()
  await right.getByRole('link', { name: /Hello!/ }).click()
  await write(left, 'Perfect. We are two, and a very small dog.')
  await right.getByText('a very small dog').waitFor()
  await right.getByLabel('Message', { exact: true }).pressSequentially('Small dogs are')
  await left.getByText('is typing').waitFor()
  return page
}

async function write(panel: ReturnType<Page['locator']>, text: string) {
  const field = panel.getByRole('textbox', { name: 'Message' })
  await field.fill(text)
  await field.press('Enter')
}

/** Takes a screenshot once the page has loaded. */
async function take(page: Page, name: string) {
  await page.waitForLoadState('networkidle')
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' })
  await page.context().close()
}
