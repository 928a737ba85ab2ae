import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openProfile } from '../test/support/browser.ts'
import { createTestClock } from '../test/support/clock.ts'
import { startService } from '../test/support/service.ts'
import { playStory, storyMilliseconds } from './story.ts'

/** Creates docs/screenshots, which the documents show. Needs chromium. */

const folder = join(import.meta.dir, '../docs/screenshots')
const options = { viewport: { width: 1360, height: 850 }, locale: 'en-GB' }

mkdirSync(folder, { recursive: true })
const clock = createTestClock(Date.now() - storyMilliseconds)
const service = await startService({
  clock,
  listen: true,
  environment: { PUBLIC_URL: 'https://chat.example', DEMO: 'true' },
})
const { payout, report } = await playStory(service, clock)

for (const [name, path] of [
  ['desk', `/console/desk/${payout}?view=all`],
  ['report', `/console/reports/${report}`],
  ['mails', '/console/system/mails'],
] as const) {
  await take(await openConsole(path), name)
}
await take(await talkInDemo(await open('/demo')), 'demo')
await service[Symbol.asyncDispose]()
process.exit()

async function open(path: string) {
  const page = await (await openProfile(options)).newPage()
  await page.goto(service.base + path)
  return page
}

async function openConsole(path: string) {
  const page = await open(path)
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
