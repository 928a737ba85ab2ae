import { afterAll, beforeAll, describe, expect } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import { type Locale, locales } from '../src/lib/i18n.ts'
import { describeAtLength, testAtLength } from './support/faults.ts'
import {
  choose,
  delayEffects,
  expectAccessible,
  expectNarrowAccessible,
  expectWholeWords,
  loseResponse,
  password,
  startPages,
  waitForEffects,
} from './support/pages.ts'
import { tools } from './support/tools.ts'
import { waitFor, waitOut } from './support/wait.ts'

type Pages = Awaited<ReturnType<typeof startPages>>
type Person = Awaited<ReturnType<Pages['register']>>

/** Puts copies of the first row before the rows of a list. */
const lengthen = (page: Page, address: string, amount: number) =>
  page.route(address, async (route) => {
    const response = await route.fetch()
    const { data, ...rest } = await response.json()
    const copies = Array.from({ length: amount }, (_, n) => ({ ...data[0], id: `copy-${n}` }))
    await route.fulfill({ response, json: { ...rest, data: [...copies, ...data] } })
  })

describeAtLength.skipIf(!tools.chromium)('people and reports in the console', () => {
  let pages: Pages
  let page: Page
  let nina: Person
  let mallory: Person
  beforeAll(async () => {
    pages = await startPages()
    nina = await pages.register('Nina')
    mallory = await pages.register('Mallory')
    page = await pages.openConsole('/console/reports')
  })
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  /** Opens an area of the console without a reload. */
  async function show(area: string) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.getByRole('navigation', { name: 'Areas' }).getByRole('link', { name: area }).click()
  }

  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  /** Confirms in a dialog. */
  const agree = (name: string) =>
    page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
  /** Asked for once per page load. */
  const confirmIdentity = async () => {
    await page.getByLabel('Password or code').fill(password)
    await agree('Confirm')
  }

  /** Three messages and a notice; the second one is to be reported. */
  async function talk() {
    const { body } = await pages.as(mallory.token)('POST', '/v1/chat/conversations', {
      user_id: nina.id,
    })
    const path = `/v1/chat/conversations/${body.id}/messages`
    const say = ({ token }: Person, text: string) => pages.as(token)('POST', path, { body: text })
    await say(nina, 'Hello Mallory')
    const bad = await say(mallory, 'Send me your card number')
    await say(nina, 'No, thank you')
    const ask = await pages.trusted(pages.admin.email)
    await pages.notice(ask, [nina.id, mallory.id], 'Moved to 15:00')
    return { path, messageId: bad.body.id as string }
  }
  const report = (body: object) => pages.as(nina.token)('POST', '/v1/reports', body)

  testAtLength(
    'a report arrives live with its context, and actions on it appear at once',
    async () => {
      const { path, messageId } = await talk()
      await page.getByText('Nothing is open').waitFor()
      await page.getByText('Live').waitFor()
      await expectAccessible(page)
      await report({ message_id: messageId, reason: 'fraud', body: 'He wants my money.' })
      await page.getByRole('link', { name: /Mallory.*Fraud · message, from Nina/ }).click()
      await page.getByText('He wants my money.').waitFor()
      const said = page.getByRole('region', { name: 'Conversation' }).getByRole('listitem')
      expect(await said.locator('.prose').allTextContents()).toEqual([
        'Hello Mallory',
        'Send me your card number',
        'No, thank you',
        'Moved to 15:00',
      ])
      expect(await said.nth(3).textContent()).toContain('Notice of the platform')
      expect(await said.nth(1).textContent()).toContain('Reported message')
      await expectAccessible(page)

      await press('Remove the message…')
      await agree('Remove the message')
      await page.getByText('Removed for both of them').waitFor()
      await page.locator('.pane-detail h2:focus').waitFor()
      await page.reload()
      await page.getByText('Removed for both of them').waitFor()
      const { body } = await pages.as(nina.token)('GET', path)
      expect(body.data[2]).toMatchObject({ id: messageId, body: '' })

      await press('Disable the person…')
      await agree('Disable')
      await confirmIdentity()
      await page.getByText('Disabled', { exact: true }).waitFor()
      await page.locator('.pane-detail h2:focus').waitFor()
      expect((await pages.as(mallory.token)('GET', '/v1/users/me')).status).toBe(401)

      await page.keyboard.press('e')
      await page.getByLabel('Note').fill('Mallory is out.')
      await agree('Resolve')
      await page.getByText('Mallory is out.').waitFor()
      await page.getByText('Nothing is open').waitFor()
      await page.getByRole('link', { name: 'Resolved', exact: true }).click()
      await page.getByRole('link', { name: /Mallory.*Fraud/ }).waitFor()
      await expectNarrowAccessible(page)
    },
  )

  testAtLength('a person is purged after their name was typed', async () => {
    const { id, token } = await pages.register('Petra')
    for (const subject of ['One', 'Two']) {
      await pages.as(token)('POST', '/v1/support/tickets', { subject, body: 'b' })
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${pages.base}/console/people/${id}`)
    await press('Purge…')
    await page
      .getByText('messages 0, messages to followers 0, files 0, tickets 2, reports 0')
      .waitFor()
    await page.getByLabel('Type “Petra” to go on').fill('Petra')
    await expectAccessible(page, 'dialog')
    await agree('Purge for good')
    await page.getByText('Petra is being purged.').waitFor()
    const ask = await pages.trusted(pages.admin.email)
    const path = `/v1/admin/audit-log?action=user_purged&target_id=${id}`
    await waitFor(async () => (await ask('GET', path)).body.data.length === 1, 'the purge')
  })

  testAtLength('a refusal that is about no field of the form is shown', async () => {
    const { id } = await pages.register('Perry')
    await page.goto(`${pages.base}/console/people/${id}`)
    await press('Open a ticket…')
    for (const label of ['Subject', 'Message']) await page.getByLabel(label).fill('Hello')
    await (await pages.trusted(pages.admin.email))('DELETE', `/v1/admin/users/${id}`)
    await agree('Send')
    await page.getByRole('alert').getByText('must be an existing user').waitFor()
    await agree('Cancel')
  })

  testAtLength('a question that was loaded late is not asked on another page', async () => {
    const held = Promise.withResolvers<void>()
    await page.goto(`${pages.base}/console/people/${nina.id}`)
    await page.route('**/v1/admin/users/*/purge', async (route) => {
      await held.promise
      await route.continue()
    })
    await press('Purge…')
    await show('Broadcast')
    await page.getByLabel('Title').fill('Hello')
    await page.getByLabel('Text').fill('to everybody')
    const counted = page.getByRole('button', { name: 'Send…' })
    await waitFor(() => counted.isEnabled())
    await page.route('**/v1/admin/users?*', async (route) => {
      await held.promise
      await route.continue()
    })
    await counted.click()
    await show('Desk')
    held.resolve()
    await waitOut(500)
    expect(await page.locator('dialog[open]').count()).toBe(0)
    await page.unrouteAll()
    await show('Broadcast')
    for (const label of ['Title', 'Text']) await page.getByLabel(label).fill('')
  })

  testAtLength('the badge forgets a report that a colleague has resolved', async () => {
    const { id } = (await report({ user_id: mallory.id, reason: 'other' })).body
    const tab = await page.context().newPage()
    await tab.clock.install()
    await tab.goto(`${pages.base}/console/people`)
    const link = tab
      .getByRole('navigation', { name: 'Areas' })
      .getByRole('link', { name: /^Reports/ })
    await waitFor(async () => (await link.textContent()) === 'Reports1')
    const admin = await pages.trusted(pages.admin.email)
    await admin('PATCH', `/v1/admin/reports/${id}`, { status: 'resolved' })
    await tab.clock.fastForward(61_000)
    await waitFor(async () => (await link.textContent()) === 'Reports')
    await tab.close()
  })

  testAtLength('new reports are counted, not inserted, while the list is read', async () => {
    await report({ user_id: pages.admin.id, reason: 'spam' })
    await show('Reports')
    const rows = page.getByRole('list', { name: 'Open reports' }).getByRole('listitem')
    await rows.first().waitFor()
    await page.getByText('Live').waitFor()
    await report({ user_id: (await pages.register('Oscar')).id, reason: 'harassment' })
    await page.getByRole('button', { name: '1 new · Show' }).waitFor()
    expect(await rows.count()).toBe(1)
    await press('1 new · Show')
    await page.locator(':focus', { hasText: 'Oscar' }).waitFor()
    expect(await rows.allTextContents()).toEqual([
      expect.stringContaining('Oscar'),
      expect.stringContaining('grace'),
    ])
    await page.setViewportSize({ width: 320, height: 640 })
    await rows.first().getByRole('link').click()
    await page.getByRole('link', { name: 'Reports', exact: true }).first().waitFor()
    await expectNarrowAccessible(page)
    await page.keyboard.press('u')
    await page.locator(':focus', { hasText: 'Oscar' }).waitFor()
  })

  testAtLength('a report that comes while the list is read again is new', async () => {
    const frames: string[] = []
    page.once('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => frames.push(String(payload))),
    )
    const arrive = async (name: string) => {
      const before = frames.length
      await report({ user_id: (await pages.register(name)).id, reason: 'spam' })
      await waitFor(() => frames.length > before)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${pages.base}/console/reports`)
    await page.getByRole('list', { name: 'Open reports' }).waitFor()
    await page.getByText('Live').waitFor()
    await arrive('Olga')
    await page.route(
      '**/v1/admin/reports?*limit=*',
      async (route) => {
        const response = await route.fetch()
        await arrive('Otto')
        await route.fulfill({ response })
      },
      { times: 1 },
    )
    await press('1 new · Show')
    await page.locator(':focus', { hasText: 'Olga' }).waitFor()
    await press('1 new · Show')
    await page.locator(':focus', { hasText: 'Otto' }).waitFor()
  })

  testAtLength(
    'after a lost connection a report is not read again, and a resolved one is no longer new',
    async () => {
      const admin = await pages.trusted(pages.admin.email)
      const query = '/v1/admin/audit-log?action=report_viewed'
      const viewed = async () => (await admin('GET', query)).body.pagination.total
      await show('Reports')
      await page.getByRole('link', { name: /Oscar/ }).click()
      // What is kept in the page may be shown while it is read again.
      await page.reload()
      await page.getByRole('heading', { name: 'Harassment' }).waitFor()
      await page.getByText('Live').waitFor()
      const before = await viewed()
      for (const view of ['Resolved', 'Open']) {
        await page.getByRole('link', { name: view, exact: true }).click()
        await page.getByRole('list', { name: `${view} reports` }).waitFor()
      }
      await page.mouse.move(0, 0)
      const { id } = (await report({ user_id: (await pages.register('Quinn')).id, reason: 'spam' }))
        .body
      await page.getByRole('button', { name: '1 new · Show' }).waitFor()
      await admin('PATCH', `/v1/admin/reports/${id}`, { status: 'resolved' })
      await pages.stop()
      await page.getByText('Offline').first().waitFor()
      await pages.start()
      await page.getByText('1 new').waitFor({ state: 'detached' })
      await page.getByText('Live').waitFor()
      expect(await viewed()).toBe(before)
    },
  )

  testAtLength('a search that is begun as a person closes keeps the focus', async () => {
    await show('People')
    await page.getByRole('link', { name: /^Nina/ }).click()
    await page.getByRole('heading', { name: 'Nina' }).waitFor()
    await delayEffects(page)
    for (const key of ['u', '/', 'n', 'i']) await page.keyboard.press(key)
    await waitForEffects()
    await page.keyboard.type('na')
    expect(await page.getByRole('searchbox').inputValue()).toBe('nina')
    await page.goto(`${pages.base}/console/people`)
  })

  testAtLength('another filter shows people from the first one on', async () => {
    await show('People')
    await page.setViewportSize({ width: 1280, height: 360 })
    const top = () => page.locator('.virtual').evaluate(({ scrollTop }) => scrollTop)
    await page.locator('.virtual').evaluate((list) => list.scrollTo(0, 60))
    expect(await top()).toBeGreaterThan(0)
    const left = await top()
    await page.getByRole('link', { name: 'Reports' }).click()
    await page.getByRole('heading', { name: 'Reports' }).waitFor()
    await page.goBack()
    await waitFor(async () => (await top()) === left, 'the place in the list')
    await choose(page, 'State', 'Enabled')
    await page.waitForURL('**/people?disabled=false')
    await page
      .getByRole('status')
      .getByText(/^Results: \d+$/)
      .waitFor()
    await waitFor(async () => (await top()) === 0)
    // Rows are as high as their text, also for people who read larger text.
    const emulation = await page.context().newCDPSession(page)
    await emulation.send('Page.setFontSizes', { fontSizes: { standard: 24, fixed: 20 } })
    await page.reload()
    const row = page.locator('.virtual li').first()
    await row.waitFor()
    const [outside, inside] = [await row.boundingBox(), await row.locator('a').boundingBox()]
    expect(inside?.height).toBeGreaterThan(60)
    expect(inside?.height).toBeLessThanOrEqual(outside?.height ?? 0)
    await emulation.send('Page.setFontSizes', { fontSizes: { standard: 16, fixed: 13 } })
    await page.reload()
  })

  testAtLength(
    'the row of a person far down is shown, and more deliveries get the focus',
    async () => {
      await lengthen(page, '**/v1/admin/users?*', 40)
      await lengthen(page, `**/v1/admin/users/${nina.id}/deliveries?*`, 12)
      await page.goto(`${pages.base}/console/people/${nina.id}`)
      await page.locator('.virtual .item.open').getByText('Nina', { exact: true }).waitFor()
      const mails = page.getByRole('region', { name: 'Mails and pushes' })
      await mails.getByRole('button', { name: 'Show more' }).click()
      await mails.locator('li:nth-child(11):focus').waitFor()
      await page.unrouteAll()
      // Further ones that cannot be read are no silence.
      await page.route(`**/v1/admin/users/${nina.id}/deliveries?*`, async (route) => {
        if (route.request().url().includes('cursor')) return route.abort()
        const response = await route.fetch()
        const { data } = await response.json()
        await route.fulfill({ response, json: { data, pagination: { cursor: 'further' } } })
      })
      await page.reload()
      for (let presses = 0; presses < 2; presses++)
        await mails.getByRole('button', { name: 'Show more' }).click()
      await mails.getByText('The service cannot be reached').waitFor()
      await page.unrouteAll()
      await page.goto(`${pages.base}/console/people`)
    },
  )

  testAtLength(
    'a person is found by part of the name, made a host, logged out, verified and removed',
    async () => {
      const paula = await pages.register('Paula')
      await show('People')
      await page.getByRole('list', { name: 'People' }).getByText('Nina', { exact: true }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('aul')
      await page.waitForURL('**/console/people?q=aul')
      await page.getByText('Nina', { exact: true }).waitFor({ state: 'detached' })
      await expectAccessible(page)
      await page.getByRole('link', { name: /Paula/ }).click()
      await press('Change the role…')
      await page.locator('dialog :checked:focus').waitFor()
      await page.getByRole('radio', { name: /Host/ }).check()
      await expectAccessible(page, 'dialog')
      await agree('Change the role')
      await page.getByText('Paula is now: Host.').waitFor()
      const { body } = await pages.as(paula.token)('GET', '/v1/users/me')
      expect(body.role).toBe('host')

      await press('Open a ticket…')
      await expectAccessible(page, 'dialog')
      await page.getByLabel('Subject').fill('Your payout')
      await page.getByRole('radio', { name: 'Billing' }).check()
      await page.getByLabel('Message').fill('The bank sent it back.')
      await page.route('**/v1/admin/support/tickets', loseResponse, { times: 1 })
      await agree('Send')
      await page.getByRole('alert').waitFor()
      await agree('Send')
      await page.getByRole('log').getByText('The bank sent it back.').waitFor()
      await page.goBack()
      const opened = page.getByRole('region', { name: 'Tickets' }).getByRole('link')
      await opened.getByText('Your payout').waitFor()
      expect(await opened.count()).toBe(1)

      const mails = page.getByRole('region', { name: 'Mails and pushes' })
      await mails.getByText('Mail: Verification mail').waitFor()
      await press('Show the sessions')
      await page.getByText('127.0.0.1').waitFor()
      await expectAccessible(page)
      const download = page.waitForEvent('download')
      await press('Export everything')
      const exported = await Bun.file(await (await download).path()).json()
      expect(exported.user).toMatchObject({ id: paula.id, role: 'host' })
      await press('End all sessions…')
      await agree('End all sessions')
      await page.getByText('No sessions.').waitFor()
      expect((await pages.as(paula.token)('GET', '/v1/users/me')).status).toBe(401)

      const held = Promise.withResolvers<void>()
      await page.route(`**/v1/admin/users/${paula.id}`, async (route) => {
        if (route.request().method() === 'PATCH') await held.promise
        await route.continue()
      })
      await press('Verify the address…')
      await agree('Verify')
      // An answer that comes late takes no focus from where somebody types.
      await page.getByRole('searchbox').focus()
      held.resolve()
      await page.getByRole('definition').getByText('Verified', { exact: true }).waitFor()
      await waitOut(100)
      expect(await page.locator('input[type=search]:focus').count()).toBe(1)
      await page.unrouteAll()

      await expectNarrowAccessible(page)
      await press('Remove…')
      const isLocked = page.getByRole('button', { name: 'Remove for good' }).isDisabled()
      expect(await isLocked).toBe(true)
      await page.getByLabel('Type “paula” to go on').fill('paula')
      await agree('Remove for good')
      await page.getByText('Nobody found').waitFor()
      await expectNarrowAccessible(page)
    },
  )

  testAtLength('a name without spaces fits, in dialogs, too', async () => {
    const name =
      'Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft'.slice(
        0,
        80,
      )
    const { id } = await pages.register('long', name)
    await page.goto(`${pages.base}/console/people/${id}`)
    await page.getByRole('heading', { name }).waitFor()
    // A tablet has no room for the list beside it.
    await page.setViewportSize({ width: 800, height: 800 })
    await expectWholeWords(page)
    await expectNarrowAccessible(page)
    await press('Remove…')
    await page.getByLabel(`Type “${name}” to go on`).waitFor()
    await expectNarrowAccessible(page)
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  testAtLength(
    'the only admin learns why they cannot lock themselves out, also when the service refuses',
    async () => {
      const lookAtMyself = async () => {
        await show('People')
        await page.getByRole('link', { name: /^grace/i }).click()
      }
      await lookAtMyself()
      await page.getByText('This is you, and there is no other admin').waitFor()
      expect(await page.getByRole('button', { name: 'Change the role…' }).isDisabled()).toBe(true)
      const other = await pages.createAdmin('omar@example.com')
      // The page reads the number of admins again when it is opened, but not twice at once.
      await waitFor(async () => {
        await lookAtMyself()
        const words = page.getByText('This is you: if you change your role')
        return words.waitFor({ timeout: 2_000 }).then(
          () => true,
          () => false,
        )
      }, 'the other admin')
      await press('Disable…')
      const omar = await pages.trusted('omar@example.com')
      await omar('DELETE', `/v1/admin/users/${other.id}`)
      await agree('Disable')
      await page.getByText('last admin').waitFor()
    },
  )

  testAtLength(
    'a broadcast to a role shows its recipient count, is sent once, and appears in the history',
    async () => {
      const hosts = await Promise.all(['Hana', 'Hugo', 'Hilde'].map((name) => pages.register(name)))
      const admin = await pages.trusted(pages.admin.email)
      for (const { id } of hosts) await admin('PATCH', `/v1/admin/users/${id}`, { role: 'host' })
      await show('Broadcast')
      await page.getByText('Nothing was sent yet').waitFor()
      await page.getByLabel('A role').check()
      await page.getByLabel('Title').fill('New opening hours')
      await page.getByLabel('Text').fill('From May on we answer from 8 to 20 o’clock.')
      await page.reload()
      await page.getByText('Reaches 3 people').waitFor()
      await expectAccessible(page)
      expect(await page.getByLabel('Title').inputValue()).toBe('New opening hours')

      await page.getByRole('button', { name: 'Send…' }).dblclick()
      await agree('Send to 3 people')
      await page.getByText('3 of 3 delivered').waitFor()
      await page.getByText('Completed').waitFor()
      await expectAccessible(page)
      await page.keyboard.press('u')
      const sent = page.getByRole('region', { name: 'Sent before' }).getByRole('listitem')
      await sent.getByText('New opening hours').waitFor()
      expect(await sent.count()).toBe(1)
      expect(await page.getByLabel('Title').inputValue()).toBe('')
      const [hana] = hosts
      const { body } = await pages.as(hana?.token ?? '')('GET', '/v1/notifications')
      expect(body.data).toMatchObject([{ type: 'broadcast', title: 'New opening hours' }])
      // Whoever has gone elsewhere before the response stays there.
      const sendSlowly = async (title: string) => {
        const held = Promise.withResolvers<void>()
        const path = '**/v1/admin/notifications'
        const pass = async (route: Route) => {
          await held.promise
          await route.continue()
        }
        await page.route(path, pass, { times: 1 })
        await page.getByLabel('A role').check()
        await page.getByLabel('Title').fill(title)
        await page.getByLabel('Text').fill('We are back in September.')
        const stored = page.waitForResponse(path)
        await page.getByRole('button', { name: 'Send…' }).click()
        await agree('Send to 3 people')
        return async () => {
          held.resolve()
          await (await stored).finished()
        }
      }
      const answerFirst = await sendSlowly('Closed in August')
      await show('People')
      await answerFirst()
      await page.evaluate('new Promise((resolve) => requestIdleCallback(resolve))')
      expect(new URL(page.url()).pathname).toBe('/console/people')
      // What is typed before the response stays, for another broadcast.
      await show('Broadcast')
      expect(await page.getByLabel('Title').inputValue()).toBe('')
      const answerSecond = await sendSlowly('Closed in July')
      await page.getByLabel('Title').fill('Closed in June')
      await answerSecond()
      await page.getByText('Press Send to send this one, too').waitFor()
      expect(await page.getByLabel('Title').inputValue()).toBe('Closed in June')
      await expectNarrowAccessible(page)
    },
  )

  testAtLength(
    'people are picked one by one, and a broadcast with a lost response is sent once',
    async () => {
      await show('Broadcast')
      await page.getByLabel('Chosen people').check()
      await pages.register('Albert')
      const search = page.getByLabel('Search people to add')
      await search.fill('al')
      await page.getByRole('button', { name: /^Albert/ }).waitFor()
      // The Enter of an input method accepts a character.
      await search.dispatchEvent('keydown', { key: 'Enter', isComposing: true })
      // Enter picks from the search that is in the field, not from the one that is shown.
      await search.fill('nin')
      await search.press('Enter')
      await page.getByRole('button', { name: 'Leave out Nina' }).waitFor()
      await page.getByText('Reaches 1 person').waitFor()
      await page.getByLabel('Title').fill('Your lesson')
      await page.getByLabel('Text').fill('It starts soon.')
      await page.getByText('More', { exact: true }).click()
      await press('Add a row')
      await page.getByLabel('Name 1').fill('link')
      await page.getByLabel('Value 1').fill('x'.repeat(5_000))
      await page.keyboard.press('Enter')
      await agree('Send to 1 person')
      const wrong = page.locator('.more .error')
      await waitFor(() => wrong.evaluate((it) => it.matches(':focus')))
      await page.getByLabel('Value 1').fill('https://example.com/lesson')
      await expectAccessible(page)
      await page.keyboard.press('Enter')
      await page.route('**/v1/admin/notifications', loseResponse, { times: 1 })
      await agree('Send to 1 person')
      await page.getByText('The service cannot be reached').waitFor()
      await press('Send…')
      await agree('Send to 1 person')
      await page.getByText('1 of 1 delivered').waitFor()
      const { body } = await pages.as(nina.token)('GET', '/v1/notifications')
      expect(body.data).toHaveLength(1)
      expect(body.data[0].data).toMatchObject({ link: 'https://example.com/lesson' })
    },
  )

  describe.each([...locales])('in %s', (locale) => {
    testAtLength(
      'each area fits on a phone, and all of its texts are in that language',
      async () => {
        const admin = await pages.trusted(pages.admin.email)
        const hook = { url: 'https://receiver.example.com/a-long-path', events: ['user.created'] }
        const { body } = await admin('POST', '/v1/admin/webhooks', hook)
        await pages.as(nina.token)('PATCH', '/v1/users/me', { display_name: longName })
        const news = { audience: 'users', user_ids: [nina.id], title: longName, body: 'Soon.' }
        const sent = await admin('POST', '/v1/admin/notifications', { ...news, client_id: locale })
        const reports = await admin('GET', '/v1/admin/reports?status=resolved')
        await page.evaluate(
          (tag) => localStorage.setItem('hostline language of console', tag),
          locale,
        )
        await page.setViewportSize({ width: 390, height: 780 })
        await page.reload()
        await page.locator('h1').waitFor()
        const others = await foreignTexts(locale)
        for (const path of [
          `people/${nina.id}`,
          `reports/${reports.body.data[0].id}`,
          'announcements',
          `announcements/${sent.body.broadcast_id}`,
          'system',
          'system/jobs',
          'system/webhooks',
          `system/webhooks/${body.id}`,
          'system/keys',
          'system/replies',
          'system/bans',
          'system/audit',
          'account',
        ]) {
          await page.evaluate(`(${goTo})('/console/${path}')`)
          await page.locator('.skeleton, [aria-busy=true]').first().waitFor({ state: 'detached' })
          const { texts, beyond } = await page.evaluate<Screen>(readScreen)
          const isForeign = (text: string) => text.length > 2 && others.has(text)
          const foreign = texts.filter(
            (text) => isForeign(text) || /{(?!name)|undefined/.test(text),
          )
          expect({ path, foreign, beyond }).toEqual({ path, foreign: [], beyond: [] })
          await expectWholeWords(page)
        }
      },
    )
  })
})

const longName = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft'

/** The texts of the pages in other languages that differ in this one. */
async function foreignTexts(locale: Locale): Promise<Set<string>> {
  const textsOf = async (tag: Locale) =>
    flat(await Bun.file(`${import.meta.dir}/../src/web/texts/${tag}.json`).json())
  const own = new Set(await textsOf(locale))
  const all = await Promise.all(locales.map(textsOf))
  return new Set(all.flat().filter((text) => !own.has(text)))
}

const flat = (tree: object): string[] =>
  Object.values(tree).flatMap((value) => (typeof value === 'string' ? [value] : flat(value)))

/** Runs in the page: follows an address without loading the page again. */
const goTo = `async (address) => {
  history.pushState(null, '', address)
  dispatchEvent(new PopStateEvent('popstate'))
  for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame)
}`

type Screen = { texts: string[]; beyond: string[] }

/** Runs in the page: reads its texts, and what ends beyond the screen but for the bar of tabs, which scrolls. */
const readScreen = `(() => {
  const texts = [...document.querySelectorAll('body *')]
    .filter((one) => one.children.length === 0 || one.matches('a, button'))
    .map(({ textContent }) => textContent.trim())
  const beyond = [...document.querySelectorAll('#main *:not(.tabs *, .truncate *, svg *, .visually-hidden)')]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map(({ outerHTML }) => outerHTML.slice(0, 200))
  return { texts, beyond }
})()`
