import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hostline } from './support/command.ts'
import { testAtLength } from './support/faults.ts'
import { expectAccessible, password, startPages } from './support/pages.ts'
import { tools } from './support/tools.ts'

describe.skipIf(!tools.chromium)('the console', () => {
  let pages: Awaited<ReturnType<typeof startPages>>
  let page: Page
  beforeAll(async () => {
    pages = await startPages()
    page = await pages.openConsole()
  })
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  test('an admin logs in, stays logged in, and logs out', async () => {
    await page.waitForURL('**/console/desk')
    await page.getByText('Live').waitFor()
    await page.reload()
    await page.getByText('Live').waitFor()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Hostline' }).waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Log in' }).waitFor()
    await expectAccessible(page)
  })

  test('a user who is no admin is refused, and a wrong password shows an error', async () => {
    const { email } = await pages.register('Nina')
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill('wrong horse')
    await page.keyboard.press('Enter')
    await page.getByText('e-mail address or the password is wrong').waitFor()
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByText('This account is not an admin').waitFor()
  })

  test('an admin who loses the role is logged out at once', async () => {
    const { email } = await pages.createAdmin('omar@example.com')
    await page.getByLabel('E-mail address').fill(email)
    await page.keyboard.press('Enter')
    await page.getByText('Live').waitFor()
    await hostline(['user', 'role', email, 'user'], pages.dataDir)
    await page.getByText('You are no longer an admin.').waitFor()
  })

  testAtLength(
    'tabs share one session: they use the same renewed tokens and all end with it',
    async () => {
      await pages.logIn(page)
      const other = await page.context().newPage()
      const renewals = new Set<string>()
      page.context().on('request', (request) => {
        if (!request.url().endsWith('/v1/auth/refresh')) return
        renewals.add(`${request.headers()['x-idempotency-key']} ${request.postData()}`)
      })
      await page.evaluate(expireSoon)
      await Promise.all([page.reload(), other.goto(page.url())])
      await Promise.all([page, other].map((tab) => tab.getByText('Live').waitFor()))
      // A tab that does not see the stored tokens yet sends the same renewal, with the same result.
      expect([...renewals]).toEqual([expect.any(String)])
      await other.getByRole('button', { name: 'Log out' }).click()
      await page.getByText('Your session has ended').waitFor()
      await other.close()
    },
  )

  testAtLength('the console continues after the service was away', async () => {
    await pages.logIn(page)
    await page.getByText('Live').waitFor()
    await pages.stop()
    await page.getByText('Offline').first().waitFor()
    await pages.start()
    await page.getByText('Live').waitFor()
  })

  test('the chosen light or dark theme is kept', async () => {
    await pages.openConsole()
    await page.emulateMedia({ colorScheme: 'light' })
    await page.getByRole('link', { name: 'Account' }).click()
    const background = () =>
      page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const before = await background()
    await page.getByLabel('Appearance').selectOption('dark')
    expect(await background()).not.toBe(before)
    await page.reload()
    await page.getByLabel('Appearance').waitFor()
    expect(await background()).not.toBe(before)
  })
})

/** Runs in the page: makes its access token expire soon. */
function expireSoon() {
  for (const [key, text] of Object.entries({ ...localStorage })) {
    if (!key.endsWith(' session')) continue
    const session = { ...JSON.parse(text), expiresAt: Date.now() + 20_000 }
    localStorage.setItem(key, JSON.stringify(session))
  }
}
