import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import type { AuditAction } from '../src/db/audit-trail.ts'
import type { JobKind } from '../src/jobs/outbox.ts'
import en from '../src/web/texts/en.json'
import { codeOf } from './support/authenticator.ts'
import { hostline } from './support/command.ts'
import { insertDeadJob } from './support/dead-job.ts'
import { describeAtLength, testAtLength } from './support/faults.ts'
import { png } from './support/files.ts'
import { type ObjectStore, startObjectStore } from './support/object-store.ts'
import {
  choose,
  delayEffects,
  expectAccessible,
  expectNarrowAccessible,
  loseResponse,
  password,
  startPages,
} from './support/pages.ts'
import { call } from './support/process.ts'
import { tools } from './support/tools.ts'
import { waitFor, waitOut } from './support/wait.ts'
import { startReceiver, verify } from './support/webhook-receiver.ts'

const wide = { width: 1280, height: 800 }

describeAtLength.skipIf(!tools.chromium)('the system pages of the console', () => {
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

  testAtLength('the overview shows warnings and the last hour by minute', async () => {
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

  testAtLength('another area begins at its top, and Back leads to where one was', async () => {
    await page.setViewportSize({ width: 1280, height: 300 })
    const top = () => page.locator('#main').evaluate(({ scrollTop }) => scrollTop)
    await page.locator('#main').evaluate((main) => main.scrollTo(0, 200))
    expect(await top()).toBe(200)
    // A response renders the shell again when Back has rendered the overview, before the effects of either have run.
    await page.evaluate(() => {
      const { fetch } = globalThis
      const back = new Promise((resolve) => addEventListener('popstate', resolve, { once: true }))
      const held = async (...request: Parameters<typeof fetch>) => {
        const response = await fetch(...request)
        const body = await response.text()
        await back
        globalThis.fetch = fetch
        return new Response(body, response)
      }
      globalThis.fetch = Object.assign(held, fetch)
    })
    const profile = page.waitForResponse('**/v1/users/me')
    await page.getByRole('navigation').getByRole('link', { name: 'Account' }).click()
    await page.getByRole('heading', { name: 'Account' }).waitFor()
    await waitFor(async () => (await top()) === 0, 'the top of the page')
    await profile
    await page.goBack()
    await waitFor(async () => (await top()) === 200, 'the place in the overview')
    await waitOut(200)
    expect(await top()).toBe(200)
  })

  testAtLength('a shortcut that leaves a page takes the focus along', async () => {
    await page.getByRole('link', { name: 'Overview' }).press('g')
    await page.keyboard.press('a')
    await page.locator('#main:focus').waitFor()
    await page.goBack()
  })

  testAtLength('a fault of a page is shown as such, and the other pages go on', async () => {
    const broken = { data: [null], pagination: { cursor: null, has_more: false, limit: 50 } }
    await page.route('**/v1/admin/bans?*', (route) => route.fulfill({ json: broken }))
    await follow('Bans')
    await page.getByRole('alert').getByText('This page has a fault').waitFor()
    await page.unrouteAll()
    await follow('Overview')
    await page.getByRole('heading', { name: 'Mails are not sent' }).waitFor()
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

  testAtLength('an overview that cannot be read again says so', async () => {
    await page.route('**/v1/admin/system', (route) => route.abort())
    await follow('Jobs')
    await follow('Overview')
    await page.getByText('Not up to date').waitFor()
    await page.unroute('**/v1/admin/system')
    await button('Try again').click()
    await page.getByText('Not up to date').waitFor({ state: 'detached' })
  })

  testAtLength('failed jobs are retried or discarded, and leave the list', async () => {
    using sqlite = new Database(`${pages.dataDir}/hostline.db`)
    sqlite.run('PRAGMA busy_timeout = 5000') // the server writes, too
    for (let made = 0; made < 3; made++) insertDeadJob(sqlite)
    const { id } = await pages.register('Ruth')
    const payload = JSON.stringify({ user_id: id })
    sqlite.run(`UPDATE outbox SET kind = 'unread_mail', payload = ? WHERE id = ?`, [
      payload,
      insertDeadJob(sqlite),
    ])
    await page.reload()
    await page.getByRole('link', { name: /^System\s*1$/ }).waitFor()
    await page.getByRole('heading', { name: 'Jobs were given up' }).waitFor()
    await follow('Jobs')
    const mail = page.getByRole('listitem').filter({ hasText: 'Unread mail' })
    const person = mail.getByRole('link', { name: 'Ruth', exact: true })
    expect(await person.getAttribute('href')).toBe(`/console/people/${id}`)
    const rows = page.getByRole('listitem').filter({ hasText: 'the server said no' })
    await page.getByRole('button', { name: 'Retry Assignee mail' }).first().click()
    await page.getByText('1 job will run again').waitFor()
    await rows.nth(3).waitFor({ state: 'detached' })
    // The focus moves to the row that took its place.
    expect(await page.locator(':focus').textContent()).toBe('Retry')
    await expectAccessible(page)
    await expectNarrowAccessible(page)
    const text = await rows.first().locator('.main').boundingBox()
    expect(text?.width).toBeGreaterThan(200)
    const tooMany = { error: { code: 'rate_limited', message: 'Slower, please.' } }
    const refusal = { status: 429, headers: { 'retry-after': '1' }, json: tooMany }
    await page.route('**/v1/admin/jobs/*', (route) => route.fulfill(refusal), { times: 1 })
    await button('Discard all shown').click()
    await ofDialog('Discard').click()
    await page.getByRole('heading', { name: 'Nothing was given up' }).waitFor()
    await page.getByRole('link', { name: 'Waiting' }).click()
    await page.waitForURL('**/jobs?state=waiting')
    expect(await rows.count()).toBe(0)
  })

  testAtLength('a webhook is created, tested, called for a new user and removed', async () => {
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
    // Outside of the dialog all is inert.
    await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error())')
    await button('Copy the secret').click()
    const toast = page.locator('.toast', { hasText: 'Selected. Press Ctrl+C' })
    await toast.getByRole('button', { name: 'Close' }).click()
    const secret = await shownOnce(page)
    await button('Send a test').click()
    await page.getByText('The test was delivered').waitFor()
    const [tried] = receiver.of('webhook.test')
    expect(tried && verify(secret, tried)).toBeTruthy()
    insertDeliveries(pages.dataDir, page.url().split('/').at(-1) ?? '', 60)
    await button('Refresh').click()
    await button('Show more').click()
    const deliveries = page.getByRole('list', { name: 'Deliveries' }).getByRole('listitem')
    await deliveries.nth(59).waitFor()
    // The button is gone, and the first further row has the focus.
    await deliveries.nth(50).locator(':focus').waitFor()
    await pages.register('Otto')
    await deliveryArrives()
    expect(await deliveries.count()).toBe(61)
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
    await deliveryArrives()
    await page.getByText('by the service: it responded with 410').waitFor()
    await button('Edit').click()
    await page.getByLabel('An account was removed').check()
    await button('Save').click()
    await page.locator('.badge', { hasText: 'user.deleted' }).waitFor()
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
    const emulation = await page.context().newCDPSession(page)
    await emulation.send('Emulation.setTimezoneOverride', { timezoneId: withAnotherDay() })
    await button('Add a key').click()
    const today = await page.evaluate<string>("new Date().toLocaleDateString('sv')")
    expect(today).not.toBe(new Date().toISOString().slice(0, 10))
    expect(await page.getByLabel('Last day').getAttribute('min')).toBe(today)
    await emulation.send('Emulation.setTimezoneOverride', { timezoneId: '' })
    await page.getByLabel('Name', { exact: true }).fill('payments')
    await page.getByLabel('Most powerful').check()
    await page.getByLabel('Last day').fill('2099-01-31')
    await expectAccessible(page)
    await button('Add the key').click()
    const ask = pages.as(await shownOnce(page))
    const answer = () => ask('POST', '/v1/service/users/none/sessions', {})
    expect((await answer()).status).toBe(404)
    const key = page.getByRole('listitem').filter({ hasText: 'payments' })
    await key.getByText('sessions', { exact: true }).waitFor()
    await expectNarrowAccessible(page)
    await button('Revoke payments').click()
    await ofDialog('Revoke').click()
    await page.getByText('Revoked', { exact: true }).waitFor()
    // The button is gone, and its list has the focus.
    await page.locator('.stack:focus', { has: key }).waitFor()
    expect((await answer()).status).toBe(401)
  })

  testAtLength(
    'settings show their effect while they are typed, and what another admin has changed',
    async () => {
      await follow('Settings')
      const name = page.getByLabel('Name of the platform')
      await name.fill('Rooms')
      await page.locator('.settings .word-mark').getByText('Rooms').waitFor()
      await follow('Mails')
      await follow('Settings')
      expect(await name.inputValue()).toBe('Rooms')
      await page.locator('.mail-body').getByText('Rooms').first().waitFor()
      await page.getByLabel('Address for questions').fill('help')
      await button('Save').click()
      const problem = page.locator('.problem').getByText('must be a valid e-mail address')
      await problem.waitFor()
      await expectAccessible(page)
      await page.getByLabel('Address for questions').fill('')
      const ask = await pages.trusted((await pages.createAdmin('omar@example.com')).email)
      await ask('PATCH', '/v1/admin/settings', { platform_name: 'Halls', accent: '#006600' })
      await button('Save').click()
      await page.getByText('Somebody has changed this to “Halls” meanwhile.').waitFor()
      expect(await page.getByLabel('Colour', { exact: true }).inputValue()).toBe('#006600')
      await button('Keep mine').click()
      await page.locator('.save button:focus').waitFor()
      await button('Save').click()
      await page.getByText('The settings are saved.').waitFor()
      const { body } = await ask('GET', '/v1/admin/settings')
      expect([body.platform_name, body.accent, body.support_email]).toEqual([
        'Rooms',
        '#006600',
        null,
      ])
      expect(await name.inputValue()).toBe('Rooms')
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Save')
      await page.getByLabel('Days for which messages are kept').fill('30')
      await button('Save').click()
      await page.getByText('deletes: messages 0, tickets 0.').waitFor()
      await expectNarrowAccessible(page)
    },
  )

  testAtLength(
    'a form takes the focus of the button before it, also on a busy machine',
    async () => {
      await follow('Mails')
      // Effects come late there, when the focus was kept in the page.
      await delayEffects(page)
      await button('Edit Confirm the address').click()
      await page.locator('.mails input:focus').waitFor()
      await page.goto(`${pages.base}/console/system`)
    },
  )

  testAtLength('the text of a mail is changed in one language, beside its preview', async () => {
    await follow('Mails')
    await choose(page, 'Language', 'Deutsch')
    await button('Edit Confirm the address').click()
    await page.locator('.mails input:focus').waitFor()
    await page.getByText('{link} on a line of its own is a button.').waitFor()
    await page.getByLabel('Subject').fill('{platform}: hallo {x}')
    // It is kept while something else is shown.
    for (const language of ['English', 'Deutsch']) await choose(page, 'Language', language)
    await button('Save').click()
    await page.locator('.problem').getByText('has an unknown placeholder: {x}').waitFor()
    await page.getByLabel('Subject').fill('{platform}: hallo')
    await page.getByRole('heading', { name: 'Rooms: hallo' }).waitFor()
    await expectAccessible(page)
    await button('Save').click()
    await page.getByText('Own text').waitFor()
    await page.locator('.mails button:focus', { hasText: 'Edit' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Rooms: hallo' }).waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    expect(await page.evaluate(shiftOfLayout)).toBeLessThan(0.1)
    await expectNarrowAccessible(page)
  })

  testAtLength('a mail with a long word is no wider than a phone', async () => {
    const ask = await pages.trusted(pages.admin.email)
    const text = { kind: 'notifications', lang: 'en', body: 'x'.repeat(200) }
    const { body } = await ask('POST', '/v1/admin/settings/texts/preview', text)
    // The policy and the styles of a page would count for it, too.
    await page.goto('about:blank')
    await page.setViewportSize({ width: 360, height: 640 })
    await page.setContent(body.html)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
    await page.goto(`${pages.base}/console/system`)
  })

  testAtLength('the bar with Save hides no field that has the focus, and no refusal', async () => {
    await follow('Settings')
    const isVisible = (part: string) =>
      page.evaluate(`(() => {
        const shown = document.activeElement.closest('${part}')
        const { left, bottom } = shown.getBoundingClientRect()
        return shown.contains(document.elementFromPoint(left + 4, bottom - 4))
      })()`)
    await page.setViewportSize({ width: 360, height: 740 })
    await page.getByLabel('Address of the app').fill('nonsense')
    await button('Save').click()
    await page.locator('.settings [aria-invalid=true]:focus').waitFor()
    expect(await isVisible('.field')).toBe(true)
    await page.locator('.settings [name="accent"]').focus()
    for (const name of ['app_url', 'support_email', 'links.home']) {
      await page.keyboard.press('Tab')
      await page.locator(`[name="${name}"]:focus`).waitFor()
      expect([name, await isVisible('input')]).toEqual([name, true])
    }
    await button('Discard').click()
  })

  testAtLength('settings and mails whose response was lost are saved again', async () => {
    const isMeanwhile = () => page.getByText('meanwhile').count()
    const saveTwice = async (saved: string) => {
      await page.route('**/v1/admin/settings', loseChange)
      await button('Save').click()
      await page.getByText('The service cannot be reached.').waitFor()
      await page.unroute('**/v1/admin/settings')
      await button('Save').click()
      await page.getByText(saved).waitFor()
      expect(await isMeanwhile()).toBe(0)
    }
    await follow('Settings')
    await page.getByLabel('Name of the platform').fill('Flats')
    await saveTwice('The settings are saved.')
    await follow('Mails')
    await button('Edit Confirm the address').click()
    await page.getByLabel('Subject').fill('{platform}: welcome')
    await saveTwice('Own text')
  })

  testAtLength('what is typed into settings and mails while they are saved stays', async () => {
    const ask = await pages.trusted('omar@example.com')
    const held: (() => void)[] = []
    const path = '**/v1/admin/settings'
    await page.route(path, async (route) => {
      if (route.request().method() === 'PATCH') await new Promise<void>((go) => held.push(go))
      await route.continue()
    })
    const release = async () => (await waitFor(() => held.shift()))()
    await follow('Settings')
    const [name, questions] = [
      page.getByLabel('Name of the platform'),
      page.getByLabel('Address for questions'),
    ]
    await name.fill('Houses')
    await button('Save').click()
    await waitFor(() => held.length === 1)
    await questions.fill('help@example.com')
    await release()
    await button('Discard').waitFor()
    expect(await questions.inputValue()).toBe('help@example.com')
    await button('Discard').click()
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Save')
    // So does what equals the value of before.
    await name.fill('Huts')
    await button('Save').click()
    await waitFor(() => held.length === 1)
    await name.fill('Houses')
    await release()
    await page.getByText('The settings are saved.').last().waitFor()
    await waitFor(
      async () => (await ask('GET', '/v1/admin/settings')).body.platform_name === 'Huts',
    )
    await button('Discard').waitFor()
    expect(await name.inputValue()).toBe('Houses')
    // A logo that was uploaded meanwhile, and another name of the admin, leave it alone.
    const uploaded = Promise.withResolvers<void>()
    await page.route('**/v1/files', async (route) => {
      await uploaded.promise
      const file_url = `data:image/png;base64,${Buffer.from(png).toString('base64')}`
      await route.fulfill({ json: { file_url } })
    })
    const logo = { name: 'logo.png', mimeType: 'image/png', buffer: Buffer.from(png) }
    await page.locator('.settings input[type=file]').setInputFiles(logo)
    await name.fill('Homes')
    uploaded.resolve()
    await button('No logo').press('Enter')
    await page.locator('.settings button:focus', { hasText: 'Upload' }).waitFor()
    expect(await name.inputValue()).toBe('Homes')
    await page.unroute('**/v1/files')
    await follow('Account')
    await button('Name…').click()
    await page.getByLabel('Name', { exact: true }).fill('Grace')
    await ofDialog('Save').click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    await follow('System')
    await follow('Settings')
    expect(await name.inputValue()).toBe('Homes')
    await button('Discard').click()
    await follow('Mails')
    await choose(page, 'Language', 'English')
    for (const mail of ['Confirm the address', 'New password']) {
      await button(`Edit ${mail}`).click()
    }
    const subjects = page.getByLabel('Subject')
    await subjects.nth(0).fill('First')
    await subjects.nth(1).fill('Second')
    await button('Save').nth(0).click()
    await button('Save').nth(1).click()
    for (let save = 0; save < 2; save++) await release()
    await waitFor(async () => (await subjects.count()) === 0)
    await page.unroute(path)
    const { texts: stored } = (await ask('GET', '/v1/admin/settings')).body
    const kinds = ['verify_email', 'reset_password'] as const
    expect(kinds.map((kind) => stored[kind].en.subject)).toEqual(['First', 'Second'])
    // Somebody else was faster: what was typed while that was found out stays, too.
    await button('Edit New password').click()
    await subjects.fill('Mine')
    await ask('PATCH', '/v1/admin/settings', {
      texts: { ...stored, reset_password: { en: { subject: 'Theirs' } } },
    })
    await page.route(path, async (route) => {
      await new Promise<void>((go) => held.push(go))
      await route.continue()
    })
    await button('Save').press('Enter')
    await waitFor(() => held.length > 0)
    await subjects.fill('Mine, too')
    await button('Save').focus()
    for (const go of held.splice(0)) go()
    await page.getByText('meanwhile').waitFor()
    expect(await subjects.inputValue()).toBe('Mine, too')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Save')
    await page.unroute(path)
    await button('Cancel').click()
  })

  testAtLength('a mail domain is banned, and the ban removed', async () => {
    await follow('Bans')
    await button('Add a ban').click()
    await page.getByLabel('Value').fill('no domain')
    await ofDialog('Ban').click()
    await page.getByText('must be a domain such as spam.example').waitFor()
    await page.getByLabel('Value').fill('spam.example')
    await page.getByLabel('Reason').fill('spam wave')
    await expectAccessible(page, 'dialog')
    await ofDialog('Ban').click()
    await page.getByText('spam wave').waitFor()
    await expectAccessible(page)
    // The sentence about the list wraps before the button beside it does.
    await page.setViewportSize({ width: 900, height: 800 })
    const [about, add] = await Promise.all(
      [page.getByText('Nobody registers'), button('Add a ban')].map((part) => part.boundingBox()),
    )
    expect(add?.x).toBeGreaterThan((about?.x ?? 0) + (about?.width ?? 0))
    await expectNarrowAccessible(page)
    const body = { email: 'a@spam.example', password }
    const { status } = await call(pages.base, 'POST', '/v1/auth/register', { body })
    expect(status).toBe(403)
    await page.route('**/v1/admin/bans?*', async (route) => {
      const response = await route.fetch()
      const json = await response.json()
      // The last moment of the day before yesterday.
      json.data[0].created_at = new Date(new Date().setHours(-24, 0, 0, -1)).toISOString()
      await route.fulfill({ response, json })
    })
    await page.reload()
    await page.getByText('2 days ago').waitFor()
    await page.unrouteAll()
    await button('Remove the ban of spam.example').click()
    await ofDialog('Remove the ban').click()
    await page.getByRole('heading', { name: 'Nothing is banned' }).waitFor()
  })

  testAtLength('canned replies are created, changed and removed', async () => {
    await follow('Canned replies')
    await page.getByRole('heading', { name: 'No canned replies' }).waitFor()
    await button('Add a reply').click()
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'detached' })
    await button('Add a reply').click()
    await page.getByLabel('Title').fill('Payout sent')
    await page.getByLabel('Reply', { exact: true }).fill('It is on its way.')
    // What was typed stays.
    await pressEscapeTwice(page)
    await page.getByRole('radio', { name: 'Deutsch' }).check()
    // The second attempt after a lost response adds no second one.
    await page.route('**/v1/admin/support/canned-replies', loseResponse, { times: 1 })
    await ofDialog('Add the reply').click()
    await page.getByText('The service cannot be reached.').waitFor()
    await ofDialog('Add the reply').click()
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(await page.getByRole('button', { name: /^Edit/ }).count()).toBe(1)
    await button('Edit Payout sent').click()
    expect(await page.getByRole('radio', { name: 'Deutsch' }).isChecked()).toBe(true)
    await page
      .locator('dialog[open]')
      .getByLabel('Reply', { exact: true })
      .fill('It arrives tomorrow.')
    // What somebody else has changed meanwhile stays.
    const other = await pages.trusted('omar@example.com')
    const replies = '/v1/admin/support/canned-replies'
    const stored = async () => (await other('GET', replies)).body.data[0]
    await other('PATCH', `${replies}/${(await stored()).id}`, { locale: 'fr' })
    await button('Save').click()
    await page.getByText('It arrives tomorrow.').waitFor()
    expect((await stored()).locale).toBe('fr')
    await expectAccessible(page)
    await expectNarrowAccessible(page)
    await button('Remove Payout sent').click()
    await ofDialog('Remove').click()
    await page.getByRole('heading', { name: 'No canned replies' }).waitFor()
  })

  testAtLength('the filters of the audit log are in the URL', async () => {
    const { id } = await pages.register('Rosa')
    await follow('Audit log')
    await choose(page, 'Action', 'User registered')
    await page.waitForURL('**/audit?action=user_registered')
    await page
      .locator(`[title="${id}"]`)
      .getByRole('link', { name: /^Only by/ })
      .click()
    await page.waitForURL(`**/audit?action=user_registered&actor_id=${id}`)
    await page.getByLabel('Target').fill('rosa@')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**&actor_id=${id}&target_id=${id}`)
    // A former search that is answered late does not replace the later one, and a search does not follow elsewhere.
    const slow = Promise.withResolvers<void>()
    await page.route('**/v1/admin/users?q=omar*', async (route) => {
      await slow.promise
      await route.continue()
    })
    const target = page.getByLabel('Target')
    const former = page.waitForRequest('**/v1/admin/users?q=omar*')
    await waitFor(async () => (await target.inputValue()) === 'Rosa')
    await page.getByLabel('Target').fill('omar@')
    await page.keyboard.press('Enter')
    const late = await former
    await page.getByLabel('Target').fill('grace@')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**&target_id=${pages.admin.id}`)
    await waitFor(async () => (await target.inputValue()) === pages.admin.id)
    await page.getByLabel('Target').fill('rosa@')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**&target_id=${id}`)
    slow.resolve()
    await (await late.response())?.finished()
    await waitOut(100)
    expect(page.url()).toEndWith(`&target_id=${id}`)
    await page.unrouteAll()
    // What is typed while the list loads stays.
    const listed = Promise.withResolvers<void>()
    await page.route('**/v1/admin/audit-log?*', async (route) => {
      await listed.promise
      await route.continue()
    })
    await page.goto(`${pages.base}/console/system/audit`)
    await page.getByLabel('Actor').fill('ro')
    listed.resolve()
    await page.getByRole('list', { name: 'Audit log' }).waitFor()
    expect(await page.getByLabel('Actor').inputValue()).toBe('ro')
    await page.unrouteAll()
    await page.goto(
      `${pages.base}/console/system/audit?action=user_registered&actor_id=${id}&target_id=${id}`,
    )
    const rows = page.getByRole('list', { name: 'Audit log' }).getByRole('listitem')
    await rows.first().waitFor()
    expect(await rows.count()).toBe(1)
    const person = rows.getByRole('link', { name: 'Rosa', exact: true })
    expect(await person.getAttribute('href')).toBe(`/console/people/${id}`)
    expect(await page.getByLabel('Target').inputValue()).toBe('Rosa')
    await expectAccessible(page)
    const soon = { code: 'rate_limited', message: 'Slower, please.' }
    const refusal = { status: 429, headers: { 'retry-after': '5399' }, json: { error: soon } }
    await page.route('**/v1/admin/audit-log?*', (route) => route.fulfill(refusal), { times: 1 })
    await page.reload()
    await page.getByText('Try again in 1 hr 29 min.').waitFor()
    await button('Try again').click()
    await person.waitFor()
    await page.getByLabel('Before').fill('2020-01-01T00:00')
    await page.getByRole('heading', { name: 'Nothing was recorded' }).waitFor()
    await expectNarrowAccessible(page)
  })

  testAtLength('an admin changes name and picture, on a page that does not jump', async () => {
    await page.setViewportSize({ width: 390, height: 780 })
    await page.goto(`${pages.base}/console/account`)
    await button('Name…').click()
    await page.getByLabel('Name', { exact: true }).fill('Grace Hopper')
    await ofDialog('Save').click()
    await page.getByText('Saved.').waitFor()
    const profile = page.getByRole('region', { name: 'Profile' })
    await profile.getByText('GH').waitFor()
    // A change whose response was lost is shown.
    await page.route('**/v1/users/me', loseChange)
    await button('Name…').click()
    await page.locator('dialog[open]').getByLabel('Name', { exact: true }).fill('Grace M. Hopper')
    await ofDialog('Save').click()
    await profile.getByText('Grace M. Hopper').waitFor()
    await page.unroute('**/v1/users/me')
    await ofDialog('Cancel').click()
    await page.reload()
    await page.locator('.me', { hasText: 'Grace M. Hopper' }).waitFor({ state: 'attached' })
    const picture = await page.screenshot()
    const file = { name: 'me.png', mimeType: 'image/png', buffer: picture }
    await page.getByLabel('Picture…').last().setInputFiles(file)
    await profile.locator('img.avatar').waitFor()
    expect(await page.evaluate(shiftOfLayout)).toBeLessThan(0.1)
    await expectAccessible(page)
    await button('No picture').press('Enter')
    await profile.getByText('GH').waitFor()
    await page.locator('button:focus', { hasText: 'Picture…' }).waitFor()
    await follow('System')
  })

  testAtLength('another session is ended', async () => {
    const other = await logInElsewhere()
    await follow('Account')
    const { body } = await other('GET', '/v1/auth/sessions')
    const buttons = page.getByRole('button', { name: /^End the session/ })
    // The list as it was before the login is visible at first.
    await waitFor(async () => (await buttons.count()) === body.data.length - 1)
    await buttons.first().click()
    await ofDialog('End the session').click()
    await page.getByText('The session has ended').waitFor()
    expect((await other('GET', '/v1/users/me')).status).toBe(401)
  })

  testAtLength('a changed password ends the other sessions, and their pages say so', async () => {
    const other = await logInElsewhere()
    await follow('Account')
    await button('Password…').click()
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
    // The service counts confirmations by account, and the tests above made some of the other admin.
    const { email } = await pages.createAdmin('hedy@example.com')
    await logIn(page, email)
    // The pressed button is gone before the dialog opens, which gives the focus back to what took it meanwhile.
    const lateAnswer = async (route: Route) => {
      await page.locator('main:focus').waitFor()
      await route.continue()
    }
    await page.route('**/v1/auth/totp', lateAnswer, { times: 1 })
    await button('Set it up').press('Enter')
    await page.getByLabel('Password or code').press('Escape')
    await page.locator('button:focus', { hasText: 'Set it up' }).waitFor()
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    const { secret, codes } = await setUpFactor(page)
    expect(codes).toHaveLength(10)
    await expectAccessible(page, '[aria-labelledby=factor]')
    await expectNarrowAccessible(page)
    await button('I have saved them').click()
    await button('Log out').click()
    await logIn(page, email)
    await page.getByRole('textbox', { name: 'Code' }).fill(codes[0] ?? '')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    const prove = async (code: string) => {
      await dialog.getByLabel('Password').fill(password)
      await dialog.getByRole('textbox', { name: 'Code' }).fill(code)
      await page.keyboard.press('Enter')
    }
    await button('New recovery codes').click()
    await prove(codeOf(secret, Date.now() + 30_000))
    await page.getByRole('dialog', { name: 'Keep your recovery codes' }).waitFor()
    await pressEscapeTwice(page)
    await expectAccessible(page)
    await expectNarrowAccessible(page)
    const [renewed = ''] = await dialog.getByRole('listitem').allTextContents()
    expect(codes).not.toContain(renewed)
    await button('I have saved them').click()
    await button('Switch it off').click()
    await prove(renewed)
    // Without the response to the first code the page reads that it is on.
    await button('Set it up').click()
    await page.getByLabel('Password or code').fill(password)
    await button('Confirm').click()
    const shown = await page.locator('.copyable code').textContent()
    const again = (shown ?? '').replaceAll(' ', '')
    await page.route('**/v1/auth/totp/confirm', loseResponse, { times: 1 })
    await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(again, Date.now()))
    await page.keyboard.press('Enter')
    await page.locator('.factor .badge').getByText('On', { exact: true }).waitFor()
    await page.getByText('If you have not saved its recovery codes').waitFor()
    await button('Switch it off').click()
    await prove(codeOf(again, Date.now() + 30_000))
    await button('Set it up').waitFor()
  })

  testAtLength(
    'a second factor set up in another tab, and one that was removed, show here',
    async () => {
      await page.locator('dialog').waitFor({ state: 'detached' })
      await button('Log out').click()
      const { email } = await pages.createAdmin('ivy@example.com')
      await logIn(page, email)
      const elsewhere = await pages.trusted(email)
      await button('Set it up').click()
      const next = codeOf(await switchOn(elsewhere), Date.now() + 30_000)
      await page.getByLabel('Password or code').fill(`${next.slice(0, 3)} ${next.slice(3)}`)
      await button('Confirm').click()
      await page.locator('.factor .badge').getByText('On', { exact: true }).waitFor()
      await hostline(['user', 'totp-off', email], pages.dataDir)
      await button('Switch it off').click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Password').fill(password)
      await dialog.getByRole('textbox', { name: 'Code' }).fill(next)
      await page.keyboard.press('Enter')
      await dialog.getByRole('alert').waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await button('Set it up').waitFor()
    },
  )

  testAtLength(
    'a login that waits for a code does without one once the factor is removed',
    async () => {
      await page.locator('dialog').waitFor({ state: 'detached' })
      await button('Log out').click()
      const { email } = await pages.createAdmin('jean@example.com')
      await switchOn(await pages.trusted(email))
      await logIn(page, email)
      await page.locator('[name=code]:focus').press('Enter')
      await page.getByText('Please enter the code').waitFor()
      await hostline(['user', 'totp-off', email], pages.dataDir)
      await button('Log in').click()
      await button('Set it up').waitFor()
    },
  )

  testAtLength(
    'when admins need a second factor, the console requires it first and then continues',
    async () => {
      await pages.stop()
      await pages.start({ ADMIN_TOTP: 'required' })
      await pages.open('/console/system/replies')
      await logIn(page, pages.admin.email)
      await page.getByRole('heading', { name: 'Set up your second factor' }).waitFor()
      await expectAccessible(page)
      await page.getByLabel('Password or code').press('Escape')
      await page.locator('main:focus').waitFor()
      await page.locator('dialog').waitFor({ state: 'detached' })
      await button('Try again').click()
      const other = await page.context().newPage()
      await setUpFactor(page, async () => {
        await other.goto(`${pages.base}/console/people`)
        await other.locator('.copyable code').waitFor()
      })
      await other.getByRole('searchbox').waitFor()
      await other.close()
      await button('I have saved them').click()
      await page.getByRole('heading', { name: 'No canned replies' }).waitFor()
      await page.getByText('Live').waitFor()
    },
  )

  /** Waits until the open webhook was called for a new user, and the list shows that. */
  async function deliveryArrives() {
    const ask = await pages.trusted(pages.admin.email)
    const path = `/v1/admin/webhooks/${page.url().split('/').at(-1)}/deliveries`
    type Delivery = { type: string; status: string }
    const isTried = ({ type, status }: Delivery) => type === 'user.created' && status !== 'waiting'
    await waitFor(async () => (await ask('GET', path)).body.data.some(isTried), 'a delivery')
    await button('Refresh').click()
    await page.getByRole('list', { name: 'Deliveries' }).getByText('user.created').waitFor()
  }

  const loseChange = (route: Route) =>
    route.request().method() === 'PATCH' ? loseResponse(route) : route.continue()

  /** Another session of the admin.
   *  @returns a function for its requests */
  async function logInElsewhere(secret = password) {
    const body = { email: pages.admin.email, password: secret }
    const answer = await call(pages.base, 'POST', '/v1/auth/login', { body })
    return pages.as(answer.body.access_token)
  }
})

test('each action of the audit log and each kind of job has a text, and no other name has', () => {
  const { audit, jobs } = en.console.system
  type Same<A, B> = [A, B] extends [B, A] ? true : never
  // The type checker fails otherwise.
  const same: [
    Same<AuditAction, keyof typeof audit.actions>,
    Same<JobKind, keyof typeof jobs.kinds>,
  ] = [true, true]
  expect(same).toEqual([true, true])
})

/** Runs in the page: how much has moved by itself. */
const shiftOfLayout = `(async () => {
  const shifts = []
  new PerformanceObserver((list) => shifts.push(...list.getEntries())).observe({
    type: 'layout-shift',
    buffered: true,
  })
  for (let frames = 0; frames < 5; frames++) await new Promise(requestAnimationFrame)
  const unasked = shifts.filter(({ hadRecentInput }) => !hadRecentInput)
  return unasked.reduce((sum, { value }) => sum + value, 0)
})()`

async function logIn(page: Page, email: string) {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** A time zone in which it is not the day of UTC. */
const withAnotherDay = () =>
  new Date().getUTCHours() < 11 ? 'Pacific/Pago_Pago' : 'Pacific/Kiritimati'

/** The second one closes a dialog that refuses the first alone. */
async function pressEscapeTwice(page: Page) {
  for (let press = 0; press < 2; press++) await page.keyboard.press('Escape')
}

/** The secret of a dialog. */
async function shownOnce(page: Page): Promise<string> {
  const dialog = page.getByRole('dialog').filter({ hasText: 'I have saved it' })
  await dialog.waitFor()
  await pressEscapeTwice(page)
  const secret = await dialog.locator('code').textContent()
  await dialog.getByRole('button', { name: 'I have saved it' }).click()
  return secret ?? ''
}

/** @returns the secret of the second factor */
async function switchOn(
  call: Awaited<ReturnType<Awaited<ReturnType<typeof startPages>>['trusted']>>,
): Promise<string> {
  const { secret } = (await call('POST', '/v1/auth/totp', {})).body
  await call('POST', '/v1/auth/totp/confirm', { code: codeOf(secret, Date.now()) })
  return secret
}

/** @param meanwhile runs before the code is typed */
async function setUpFactor(page: Page, meanwhile?: () => Promise<void>) {
  await page.getByLabel('Password or code').fill(password)
  await page.getByRole('button', { name: 'Confirm', exact: true }).click()
  await page.getByRole('img', { name: 'QR code' }).waitFor()
  const shown = await page.locator('.copyable code').textContent()
  const secret = (shown ?? '').replaceAll(' ', '')
  await meanwhile?.()
  await page.getByRole('textbox', { name: 'Code' }).fill('abc')
  await page.keyboard.press('Enter')
  await page.locator('.problem').waitFor()
  await page.getByRole('textbox', { name: 'Code' }).fill('000000')
  await page.keyboard.press('Enter')
  await page.getByText('code is wrong').waitFor()
  await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(secret, Date.now()))
  await page.keyboard.press('Enter')
  const codes = page.locator('.codes li')
  await codes.first().waitFor()
  return { secret, codes: await codes.allTextContents() }
}

function insertDeliveries(dataDir: string, webhookId: string, amount: number) {
  using sqlite = new Database(`${dataDir}/hostline.db`)
  sqlite.run('PRAGMA busy_timeout = 5000')
  for (let at = 1; at <= amount; at++) {
    sqlite.run(
      `INSERT INTO webhook_deliveries (webhook_id, id, event, status, attempts, created_at, attempted_at)
       VALUES (?1, ?2, '{"type":"user.deleted","id":"none"}', 'delivered', 1, ?3, ?3)`,
      [webhookId, `old-${at}`, at],
    )
  }
}
