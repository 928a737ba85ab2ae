import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from './support/browser.ts'
import { expectAccessible, password, startPages } from './support/pages.ts'

const tickets = '/v1/admin/support/tickets'

describe.skipIf(!hasBrowser)('the desk', () => {
  let pages: Awaited<ReturnType<typeof startPages>>
  let admin: ReturnType<typeof pages.as>
  beforeAll(async () => {
    pages = await startPages()
    const credentials = { email: pages.admin.email, password }
    const { body } = await pages.as('')('POST', '/v1/auth/login', credentials)
    admin = pages.as(body.access_token)
    const canned = { title: 'Payout is on its way', body: 'Your payout left us today.' }
    await admin('POST', '/v1/admin/support/canned-replies', canned)
  }, 60_000)
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  /** Somebody who opens tickets and writes into them. */
  async function customer(name: string) {
    const call = pages.as((await pages.register(name)).token)
    return {
      open: async (subject: string): Promise<string> =>
        (await call('POST', '/v1/support/tickets', { subject, body: `${subject}?` })).body.id,
      write: (id: string, body: string) =>
        call('POST', `/v1/support/tickets/${id}/messages`, { body }),
    }
  }

  const thread = (page: Page) => page.getByRole('log', { name: 'Messages' })
  const heading = (page: Page, subject: string) => page.getByRole('heading', { name: subject })
  const rows = (page: Page) => page.locator('.ticket-row a')

  test('an operator answers who has waited longest, by the keyboard alone', async () => {
    const nina = await customer('Nina')
    const id = await nina.open('Payout is late')
    await (await customer('Tom')).open('Camera is black')
    const page = await pages.openConsole('/console/desk')
    await page.getByText('Camera is black').waitFor()
    await expectAccessible(page)
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await heading(page, 'Payout is late').waitFor()
    await thread(page).getByText('Payout is late?').waitFor()

    await page.keyboard.press('n')
    await page.keyboard.type('Called the bank.')
    await page.keyboard.press('Control+Enter')
    await thread(page).getByText('only admins see this').waitFor()

    await page.keyboard.press('Escape')
    await page.keyboard.press('r')
    await page.keyboard.type('Hello! /payo')
    await page.getByRole('option', { name: 'Payout is on its way' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByLabel('Status after sending').selectOption('in_progress')
    await page.getByRole('button', { name: 'Send and set in progress' }).click()
    await thread(page).getByText('Hello! Your payout left us today.').waitFor()
    await thread(page).getByText('set the status to in progress').waitFor()
    await expectAccessible(page)

    await nina.write(id, 'It has arrived, thank you!')
    await thread(page).getByText('It has arrived').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('c')
    await thread(page).getByText('set the status to closed').waitFor()
    const { body } = await admin('GET', `${tickets}/${id}`)
    expect(body).toMatchObject({
      status: 'closed',
      assignee: { id: pages.admin.id },
      notes: [{ body: 'Called the bank.' }],
    })
    await page.context().close()
  }, 30_000)

  test('a reply that somebody has overtaken waits for a look, and a draft outlives a reload', async () => {
    const nina = await customer('Mia')
    const id = await nina.open('Refund')
    for (let n = 0; n < 12; n++) await nina.write(id, `Line ${n}\n\n\n\nof many`)
    const page = await pages.openConsole(`/console#ticket=${id}`)
    await thread(page).getByText('Line 11').waitFor()
    await page.getByLabel('Reply', { exact: true }).last().fill('Done.')
    await page.reload()
    await thread(page).getByText('Line 11').waitFor()
    await thread(page).evaluate((element) => element.scrollTo(0, 0))
    await nina.write(id, 'One more thing')
    await page.getByRole('button', { name: 'New message' }).waitFor()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Mia wrote meanwhile.').waitFor()
    expect((await admin('GET', `${tickets}/${id}`)).body.messages).toHaveLength(14)
    await page.getByRole('button', { name: 'Send anyway' }).click()
    await thread(page).getByText('Done.').waitFor()
    expect(await page.getByRole('textbox', { name: 'Reply' }).inputValue()).toBe('')
    await page.context().close()
  }, 30_000)

  test('several tickets are changed at once, and the address keeps view, search and ticket', async () => {
    const tom = await customer('Oskar')
    const ids = [await tom.open('First'), await tom.open('Second'), await tom.open('Third')]
    const page = await pages.openConsole('/console/desk?view=unassigned&q=oskar')
    await page.getByText('Third').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('End')
    await page.getByRole('checkbox', { name: 'Select First' }).click({ modifiers: ['Shift'] })
    await page.getByText('3 tickets selected').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Set priority').selectOption('high')
    await page.getByText('3 tickets changed').waitFor()
    for (const id of ids) {
      expect((await admin('GET', `${tickets}/${id}`)).body.priority).toBe('high')
    }
    await rows(page).first().click()
    await heading(page, 'Third').waitFor()
    await page.reload()
    await heading(page, 'Third').waitFor()
    expect(await rows(page).count()).toBe(3)
    await page.getByRole('searchbox').fill('second')
    await page.waitForURL('**q=second')
    await page.locator('.ticket-row', { hasText: 'First' }).waitFor({ state: 'detached' })
    await page.goBack()
    await page.getByText('No ticket is open').waitFor()
    await page.context().close()
  }, 30_000)

  test('what is new waits for a word, and on a phone list and ticket take turns', async () => {
    const eva = await customer('Eva')
    const id = await eva.open('Donaudampfschifffahrtselektrizitätenhauptbetriebswerk')
    const viewport = { width: 320, height: 640 }
    const page = await pages.openConsole('/console/desk', { viewport, hasTouch: true })
    await page.getByText('Donaudampf').waitFor()
    await expectAccessible(page)
    await eva.open('Another question')
    await page.getByRole('button', { name: '1 new · Show' }).click()
    await page.getByText('Another question').waitFor()
    await page.getByText('Donaudampf').tap()
    await page.waitForURL(`**/desk/${id}`)
    await thread(page).getByText('Donaudampf').waitFor()
    await page.getByRole('button', { name: 'Details' }).click()
    await page.getByText('eva@example.com').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Hide the details' }).click()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Back to the list' }).click()
    await page.getByText('Another question').waitFor()
    await page.context().close()
  }, 30_000)
})
