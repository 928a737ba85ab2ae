import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { AuditAction } from '../src/db/audit-trail.ts'
import { auditActions } from '../src/web/console/system/audit-actions.ts'
import { codeOf } from './support/authenticator.ts'
import { insertDeadJob } from './support/dead-job.ts'
import { testAtLength } from './support/faults.ts'
import { type ObjectStore, startObjectStore } from './support/object-store.ts'
import { expectAccessible, expectNarrowAccessible, password, startPages } from './support/pages.ts'
import { call } from './support/process.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'
import { startReceiver, verify } from './support/webhook-receiver.ts'

const wide = { width: 1280, height: 800 }

describe.skipIf(!tools.chromium)('the system pages of the console', () => {
  let pages: Awaited<ReturnType<typeof startPages>>
  let store: ObjectStore
  let page: Page
  beforeAll(async () => {
    store = await startObjectStore()
    pages = await startPages({ WEBHOOK_PRIVATE: 'true', REPLICA_S3_URL: store.url })
    page = await pages.openConsole('/console/system')
  })
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const ofDialog = (name: string) => page.getByRole('dialog').getByRole('button', { name })

  /** Opens a tab or an area, on a wide screen. */
  async function follow(name: string) {
    await page.setViewportSize(wide)
    await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  }

  test('the overview shows warnings and the last hour by minute', async () => {
    await page.getByRole('heading', { name: 'Mails are not sent' }).waitFor()
    await button('Copy what to set: An admin has no second factor').waitFor()
    const chart = page.getByRole('slider', { name: /^Requests a minute/ })
    const valueText = () => chart.getAttribute('aria-valuetext')
    const newest = await valueText()
    await chart.press('ArrowLeft')
    expect(await valueText()).not.toBe(newest)
    expect(await valueText()).toMatch(/^\d\d:\d\d.*: (no data|\d+ requests)$/)
    await expectAccessible(page)
  })

  testAtLength('the overview shows the lag of the replica and its last failure', async () => {
    const region = page.getByRole('region', { name: 'Replication' })
    await region.getByText('In step').waitFor()
    store.faults.errors = 1
    await pages.register('Rita')
    await waitFor(async () => {
      await page.reload()
      await region.waitFor()
      return (await region.getByText('last failure').count()) > 0
    }, 'the failure to be shown')
    await expectAccessible(page)
    await expectNarrowAccessible(page)
    store.faults.errors = 0
  })

  testAtLength('failed jobs are retried or discarded, and leave the list', async () => {
    using sqlite = new Database(`${pages.dataDir}/hostline.db`)
    for (let made = 0; made < 3; made++) insertDeadJob(sqlite)
    await follow('Jobs')
    const rows = page.getByRole('listitem').filter({ hasText: 'the server said no' })
    await page.getByRole('button', { name: 'Retry Assignee mail' }).first().click()
    await page.getByText('1 job will run again').waitFor()
    await rows.nth(2).waitFor({ state: 'detached' })
    // The focus moves to the row that took its place.
    expect(await page.locator(':focus').textContent()).toBe('Retry')
    await expectAccessible(page)
    await expectNarrowAccessible(page)
    await button('Discard all shown').click()
    await ofDialog('Discard').click()
    await page.getByRole('heading', { name: 'Nothing was given up' }).waitFor()
    await page.getByRole('link', { name: 'Waiting' }).click()
    await page.waitForURL('**/jobs?state=waiting')
    expect(await rows.count()).toBe(0)
  })

  test('a webhook is created, tested, called for a new user and removed', async () => {
    await using receiver = startReceiver()
    await follow('Webhooks')
    await button('Add a webhook').click()
    await page.getByLabel('Address', { exact: true }).fill(receiver.url)
    await button('Add the webhook').click()
    await page.getByText('Choose at least one').waitFor()
    await page.getByLabel('Somebody joined').check()
    await expectAccessible(page, 'dialog')
    await button('Add the webhook').click()
    // The form stays below the identity dialog, and its input is submitted once.
    await page.getByLabel('Password or code').fill(password)
    await expectAccessible(page, 'dialog:last-of-type')
    await button('Confirm').click()
    await page.getByText('shown this once').waitFor()
    await expectAccessible(page, 'dialog')
    const secret = await shownOnce(page)
    await button('Send a test').click()
    await page.getByText('The test was delivered').waitFor()
    const [tried] = receiver.of('webhook.test')
    expect(tried && verify(secret, tried)).toBeTruthy()
    await pages.register('Otto')
    await deliveryArrives(page, receiver)
    await expectAccessible(page)
    await button('Remove').click()
    await ofDialog('Remove').click()
    await page.getByRole('heading', { name: 'No webhooks' }).waitFor()
  })

  testAtLength('a disabled webhook shows the reason, and its secret is rotated', async () => {
    await using receiver = startReceiver({ status: 410 })
    await follow('Webhooks')
    await page.keyboard.press('n')
    await page.getByLabel('Address', { exact: true }).fill(receiver.url)
    await page.getByLabel('Somebody joined').check()
    await button('Add the webhook').click()
    const secret = await shownOnce(page)
    await page.getByRole('heading', { name: receiver.url }).waitFor()
    await pages.register('Paula')
    await deliveryArrives(page, receiver)
    await page.getByText('by the service: it responded with 410').waitFor()
    await button('Switch on').click()
    await button('Switch off').click()
    await ofDialog('Switch off').click()
    await page.getByText('by an admin').waitFor()
    await button('Renew the secret').click()
    await ofDialog('Renew the secret').click()
    expect(await shownOnce(page)).not.toBe(secret)
  })

  testAtLength('a service key is created with scopes, works, and is revoked', async () => {
    await follow('Service keys')
    await button('Add a key').click()
    await page.getByLabel('Name', { exact: true }).fill('payments')
    await page.getByLabel('Most powerful').check()
    await page.getByLabel('Last day').fill('2099-01-31')
    await expectAccessible(page)
    await button('Add the key').click()
    const ask = pages.as(await shownOnce(page))
    const answer = () => ask('POST', '/v1/service/users/none/sessions', {})
    expect((await answer()).status).toBe(404)
    await page.getByText('sessions', { exact: true }).waitFor()
    await expectNarrowAccessible(page)
    await button('Revoke payments').click()
    await ofDialog('Revoke').click()
    await page.getByText('Revoked', { exact: true }).waitFor()
    expect((await answer()).status).toBe(401)
  })

  testAtLength('canned replies are created, changed and removed', async () => {
    await follow('Canned replies')
    await page.getByRole('heading', { name: 'No canned replies' }).waitFor()
    await button('Add a reply').click()
    await page.getByLabel('Title').fill('Payout sent')
    await page.getByLabel('Reply', { exact: true }).fill('It is on its way.')
    await ofDialog('Add the reply').click()
    await button('Edit Payout sent').click()
    await page.getByLabel('Reply', { exact: true }).fill('It arrives tomorrow.')
    await button('Save').click()
    await page.getByText('It arrives tomorrow.').waitFor()
    await expectAccessible(page)
    await expectNarrowAccessible(page)
    await button('Remove Payout sent').click()
    await ofDialog('Remove').click()
    await page.getByRole('heading', { name: 'No canned replies' }).waitFor()
  })

  testAtLength('the filters of the audit log are in the URL', async () => {
    const { id } = await pages.register('Rosa')
    await follow('Audit log')
    await page.getByLabel('Action').selectOption('User registered')
    await page.waitForURL('**/audit?action=user_registered')
    await page
      .locator(`[title="${id}"]`)
      .getByRole('link', { name: /^Only by/ })
      .click()
    await page.waitForURL(`**/audit?action=user_registered&actor_id=${id}`)
    await page.reload()
    const rows = page.getByRole('list', { name: 'Audit log' }).getByRole('listitem')
    await rows.first().waitFor()
    expect(await rows.count()).toBe(1)
    const person = rows.getByRole('link', { name: /^Person/ })
    expect(await person.getAttribute('href')).toBe(`/console/people/${id}`)
    await expectAccessible(page)
    await page.getByLabel('Before').fill('2020-01-01T00:00')
    await page.getByRole('heading', { name: 'Nothing was recorded' }).waitFor()
    await expectNarrowAccessible(page)
  })

  testAtLength('another session is ended', async () => {
    const other = await logInElsewhere()
    await follow('Account')
    await page.getByText('This one').waitFor()
    await page.getByRole('button', { name: /^End the session/ }).click()
    await ofDialog('End the session').click()
    await page.getByText('The session has ended').waitFor()
    expect((await other('GET', '/v1/users/me')).status).toBe(401)
  })

  testAtLength('a changed password ends the other sessions, and their pages say so', async () => {
    const other = await logInElsewhere()
    await follow('Account')
    await page.getByLabel('Current password').fill('wrong horse')
    await page.getByLabel('New password').fill('a better horse')
    await page.keyboard.press('Enter')
    await page.getByText('password is wrong').waitFor()
    await page.getByLabel('Current password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByText('The password is changed').waitFor()
    expect((await other('GET', '/v1/users/me')).status).toBe(401)
    await expectAccessible(page)
    const after = await logInElsewhere('a better horse')
    const change = { current_password: 'a better horse', new_password: password }
    expect((await after('POST', '/v1/auth/password/change', change)).status).toBe(204)
    await page.getByText('Your session has ended').waitFor()
  })

  testAtLength('a second factor is set up, required at login, and removed', async () => {
    await logIn(page, pages.admin.email)
    await button('Set it up').click()
    const { secret, codes } = await setUpFactor(page)
    expect(codes).toHaveLength(10)
    await expectAccessible(page, '[aria-labelledby=factor]')
    await expectNarrowAccessible(page)
    await button('I have saved them').click()
    await button('Log out').click()
    await logIn(page, pages.admin.email)
    await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(secret, Date.now() + 30_000))
    await page.keyboard.press('Enter')
    await button('Switch it off').click()
    const factor = page.getByRole('region', { name: 'Second factor' })
    await factor.getByLabel('Password').fill(password)
    await factor.getByRole('textbox', { name: 'Code' }).fill(codes[0] ?? '')
    await page.keyboard.press('Enter')
    await button('Set it up').waitFor()
  })

  test('when admins need a second factor, the console requires it first and then continues', async () => {
    await pages.stop()
    await pages.start({ ADMIN_TOTP: 'required' })
    await pages.open('/console/system/replies')
    await logIn(page, pages.admin.email)
    await page.getByRole('heading', { name: 'Set up your second factor' }).waitFor()
    await expectAccessible(page)
    await setUpFactor(page)
    await button('I have saved them').click()
    await page.getByRole('heading', { name: 'No canned replies' }).waitFor()
    await page.getByText('Live').waitFor()
  })

  /** Another session of the admin.
   *  @returns a function for its requests */
  async function logInElsewhere(secret = password) {
    const body = { email: pages.admin.email, password: secret }
    const answer = await call(pages.base, 'POST', '/v1/auth/login', { body })
    return pages.as(answer.body.access_token)
  }
})

test('the audit log can be filtered by every action', () => {
  type Missing = Exclude<AuditAction, (typeof auditActions)[number]>
  const missing: Missing[] = []
  const none: never[] = missing
  const known: readonly AuditAction[] = auditActions
  expect([none.length, new Set(known).size]).toEqual([0, auditActions.length])
})

async function logIn(page: Page, email: string) {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** The secret of a dialog. */
async function shownOnce(page: Page): Promise<string> {
  const dialog = page.getByRole('dialog').filter({ hasText: 'I have saved it' })
  const secret = await dialog.locator('code').textContent()
  await dialog.getByRole('button', { name: 'I have saved it' }).click()
  return secret ?? ''
}

async function setUpFactor(page: Page) {
  await page.getByLabel('Password or code').fill(password)
  await page.getByRole('button', { name: 'Confirm', exact: true }).click()
  await page.getByRole('img', { name: 'QR code' }).waitFor()
  const shown = await page.locator('.copyable code').textContent()
  const secret = (shown ?? '').replaceAll(' ', '')
  await page.getByRole('textbox', { name: 'Code' }).fill('000000')
  await page.keyboard.press('Enter')
  await page.getByText('code is wrong').waitFor()
  await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(secret, Date.now()))
  await page.keyboard.press('Enter')
  const codes = page.locator('.codes li')
  await codes.first().waitFor()
  return { secret, codes: await codes.allTextContents() }
}

/** Reloads the deliveries of a webhook until the received one is listed. */
async function deliveryArrives(page: Page, receiver: ReturnType<typeof startReceiver>) {
  await waitFor(() => receiver.of('user.created')[0])
  await waitFor(async () => {
    const answered = page.waitForResponse(/\/deliveries/)
    await page.getByRole('button', { name: 'Refresh' }).click()
    await (await answered).finished()
    const list = page.getByRole('list', { name: 'Deliveries' })
    return (await list.getByText('user.created').count()) > 0
  }, 'a delivery')
}
