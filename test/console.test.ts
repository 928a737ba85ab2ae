import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { hasBrowser } from './support/browser.ts'
import { expectAccessible, password, startPages } from './support/pages.ts'

describe.skipIf(!hasBrowser)('the console', () => {
  let pages: Awaited<ReturnType<typeof startPages>>
  beforeAll(async () => {
    pages = await startPages()
  }, 60_000)
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  test('an admin logs in, stays logged in, and logs out', async () => {
    const page = await pages.openConsole()
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

  test('who is no admin does not get in, and a wrong password says so', async () => {
    const { email } = await pages.register('Nina')
    const page = await pages.open('/console')
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill('wrong horse')
    await page.keyboard.press('Enter')
    await page.getByText('e-mail address or the password is wrong').waitFor()
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByText('This account is not an admin').waitFor()
  })
})
