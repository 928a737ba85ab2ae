import { afterAll, beforeAll, expect } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import { describeAtLength, testAtLength } from './support/faults.ts'
import { png } from './support/files.ts'
import {
  choose,
  expectAccessible,
  expectNarrowAccessible,
  loseResponse,
  password,
  startPages,
} from './support/pages.ts'
import { call, startServer } from './support/process.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

/** A person in one of the two panels of the page. */
function personIn(panel: Locator) {
  const field = panel.getByRole('textbox', { name: 'Message' })
  const tab = (name: string) => panel.getByRole('navigation').getByRole('link', { name })
  return {
    panel,
    field,
    tab,
    async register(email: string) {
      await panel.getByLabel('Name').fill('Nina Own')
      await panel.getByLabel('E-mail address').fill(email)
      await panel.getByLabel('Password').fill(password)
      await panel.getByRole('button', { name: 'Register' }).click()
    },
    async write(text: string) {
      await field.fill(text)
      await field.press('Enter')
    },
    hears: (text: string) => panel.getByRole('log').getByText(text, { exact: true }).waitFor(),
    /** The visible messages, in order. */
    said: () => panel.locator('.bubble .prose').allTextContents(),
    press: (name: string) => panel.getByRole('button', { name, exact: true }).click(),
    /** Presses the switch that cuts the connection. */
    turn: () => panel.getByRole('switch').click(),
  }
}

describeAtLength.skipIf(!tools.chromium)('the demo', () => {
  let pages: Awaited<ReturnType<typeof startPages>>
  let page: Page
  let left: ReturnType<typeof personIn>
  let right: ReturnType<typeof personIn>

  beforeAll(async () => {
    pages = await startPages()
    page = await pages.open('/demo')
    left = personIn(page.locator('.panel.left'))
    right = personIn(page.locator('.panel.right'))
  })
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  const accessibleOnPhone = async () => {
    await expectNarrowAccessible(page)
    const talk = await left.panel.locator('.thread > .scroll').boundingBox()
    expect(talk?.height).toBeGreaterThan(250)
    expect(await right.panel.isVisible()).toBe(false)
    await page.getByLabel('Personnes').getByRole('link').last().click()
    await right.panel.waitFor()
    expect(await left.panel.isVisible()).toBe(false)
    await page.setViewportSize({ width: 1280, height: 800 })
  }

  testAtLength(
    'one button brings two people, a talk and an answered ticket; a taken address is reported',
    async () => {
      const { email } = await pages.register('Nina')
      await page.getByRole('heading', { level: 1 }).waitFor()
      await expectAccessible(page)
      await page.route('**/assets/fr-*', (route) => route.abort())
      await choose(page, 'Language', 'Français')
      await page.getByText('The service cannot be reached').waitFor()
      await page.unrouteAll()
      await left.register(email)
      await left.panel.getByRole('alert').getByText('already').waitFor()
      await left.panel.locator('.error:focus').waitFor()
      await page.getByRole('button', { name: 'Start with two people' }).click()
      for (const { panel } of [left, right]) await panel.getByText('Live.').waitFor()
      await left.hears('Hello! Yes, from the 10th. Shall I keep it for you?')
      await left.tab('Notifications 1 unread').click()
      await left.panel.getByRole('button', { name: /My invoice/ }).click()
      await left.hears('Thank you for telling us. We have corrected it and sent the invoice again.')
      await left.tab('Chat').click()
      await page.setViewportSize({ width: 320, height: 640 })
      const row = left.panel.locator('.item a').first()
      const cut = await row.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)
      expect(cut).toBe(0)
      await page.setViewportSize({ width: 1280, height: 800 })
    },
  )

  testAtLength('each person sees the badge, typing and read receipt of the other', async () => {
    await left.press(await writeToOther())
    await left.write('Are you there?')
    await right.tab('Chat 2 unread').waitFor()
    await left.panel.getByText('Sent').first().waitFor()
    await right.panel.getByRole('link', { name: /Are you there/ }).click()
    await left.panel.getByText('Read', { exact: true }).first().waitFor()
    await right.field.pressSequentially('Yes')
    await left.panel.getByText('is typing').waitFor()
    await right.field.press('Enter')
    await left.hears('Yes')
    expect(await right.tab('Chat').textContent()).toBe('Chat')
    await expectAccessible(page)
  })

  const writeToOther = async () =>
    `Write to ${await right.panel.getByRole('heading').first().textContent()}`

  testAtLength(
    'messages missed while the connection was cut arrive in order and once',
    async () => {
      await right.turn()
      for (const text of ['one', 'two', 'three']) await left.write(text)
      await left.hears('three')
      // Also in a conversation that cannot be loaded.
      await right.tab('Chat').click()
      await right.panel.locator('.item a').click()
      await right.panel.getByText('No connection').waitFor()
      await right.write('four')
      await right.panel.getByText('Waiting for a connection').waitFor()
      expect(await right.said()).toEqual(['four'])
      await right.turn()
      await left.hears('four')
      await waitFor(async () => (await right.said()).slice(-5).join() === 'Yes,one,two,three,four')
      expect((await left.said()).slice(-5)).toEqual(['Yes', 'one', 'two', 'three', 'four'])
    },
  )

  testAtLength('the Enter of an input method sends nothing', async () => {
    await left.field.fill('すし')
    for (const sign of [{ isComposing: true }, { keyCode: 229 }])
      await left.field.dispatchEvent('keydown', { key: 'Enter', ...sign })
    expect(await left.field.inputValue()).toBe('すし')
    await left.field.fill('')
  })

  testAtLength('both people see a picture, and a removed message disappears for both', async () => {
    const file = { name: 'garden.png', mimeType: 'image/png', buffer: png }
    await left.panel.locator('input[type=file]').setInputFiles(file)
    await left.panel.getByRole('button', { name: 'Remove garden.png' }).waitFor()
    await left.panel.getByRole('progressbar').waitFor({ state: 'detached' })
    await left.write('The garden')
    for (const { panel } of [left, right]) await panel.getByAltText('garden.png').waitFor()
    await left.hears('The garden')
    await left.panel.getByText('The garden').hover()
    await left.panel.getByRole('button', { name: 'Remove the message' }).last().click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove the message' }).click()
    await right.hears('This message was removed.')
    expect(await right.panel.getByAltText('garden.png').count()).toBe(0)
    // The button that had the focus is gone.
    await left.panel.locator('[role=log]:focus').waitFor()
  })

  testAtLength('both people read a notice of the platform, which nobody has said', async () => {
    const ask = await pages.trusted(pages.admin.email)
    const { body } = await ask('GET', '/v1/admin/users?per_page=100')
    const names = [left, right].map(({ panel }) => panel.getByRole('heading').first().textContent())
    const shown = await Promise.all(names)
    type User = { id: string; display_name: string }
    const people = body.data.filter(({ display_name }: User) => shown.includes(display_name))
    const said = await left.said()
    const ids = people.map(({ id }: User) => id)
    await pages.notice(ask, ids, 'The stay begins on the 10th')
    for (const person of [left, right]) {
      await person.panel.getByRole('log').getByText('The stay begins on the 10th').waitFor()
    }
    expect(await left.said()).toEqual(said)
  })

  testAtLength('photos that arrive late move nothing', async () => {
    const arrival = Promise.withResolvers<void>()
    await page.route(
      (url) => url.searchParams.has('w'),
      async (route) => {
        await arrival.promise
        await route.continue()
      },
    )
    const buffer = Buffer.from(await new Bun.Image(png).resize(900, 1_200).jpeg().bytes())
    const file = { name: 'photo.jpg', mimeType: 'image/jpeg', buffer }
    await left.panel.locator('input[type=file]').setInputFiles(file)
    await left.panel.getByRole('button', { name: 'Remove photo.jpg' }).waitFor()
    await left.panel.getByRole('progressbar').waitFor({ state: 'detached' })
    await left.write('A photo')
    for (const person of [left, right]) await person.hears('A photo')
    // A receipt is a word of another width.
    const sent = left.panel.locator('.bubble.own', { hasText: 'A photo' })
    await sent.getByText('Read', { exact: true }).waitFor()
    const twoFrames = 'for (const _ of [1, 2]) await new Promise(requestAnimationFrame)'
    await page.evaluate(`(async () => {
      ${twoFrames}
      window.shifts = []
      const observer = new PerformanceObserver((list) => window.shifts.push(...list.getEntries()))
      observer.observe({ type: 'layout-shift' })
    })()`)
    const photos = '[...document.images].filter(({ alt }) => alt === "photo.jpg")'
    const areShown = () =>
      page.evaluate<boolean[]>(`${photos}.map(({ naturalWidth }) => naturalWidth > 0)`)
    expect(await areShown()).toEqual([false, false])
    arrival.resolve()
    await waitFor(async () => !(await areShown()).includes(false), 'the photos')
    const shifts = `(async () => {
      ${twoFrames}
      return window.shifts.map(({ value }) => value)
    })()`
    expect(await page.evaluate(shifts)).toEqual([])
    await page.unrouteAll()
  })

  testAtLength(
    'earlier messages load on scrolling up, and the visible ones stay in place',
    async () => {
      const nina = pages.as((await pages.register('Anina')).token)
      await right.panel.getByRole('link', { name: 'Back' }).click()
      const [user_id] = await right.panel.locator('code').allTextContents()
      const { body } = await nina('POST', '/v1/chat/conversations', { user_id })
      for (let number = 1; number <= 35; number++)
        await nina('POST', `/v1/chat/conversations/${body.id}/messages`, {
          body: `number ${number}`,
        })
      await right.panel.getByRole('link', { name: /number 35/ }).click()
      await right.hears('number 35')
      expect(await right.said()).not.toContain('number 5')
      const log = 'document.querySelector(".panel.right [role=log]")'
      const top = (element: string) => `${element}.getBoundingClientRect().top`
      const isFirstAbove = `${top(`${log}.querySelector(".bubble")`)} < ${top(log)}`
      await page.evaluate(`${log}.scrollTop = -${log}.scrollHeight`)
      await right.hears('number 1')
      await waitFor(() => page.evaluate<boolean>(isFirstAbove))
      expect(await right.said()).toHaveLength(35)
      await right.panel.getByRole('link', { name: 'Back' }).click()
      await right.panel.getByRole('link', { name: /A photo/ }).click()
    },
  )

  testAtLength('a blocked person reads why, and can send again after the unblock', async () => {
    await right.press('Block')
    await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
    await right.panel.getByText('You have blocked').waitFor()
    await left.write('Hello?')
    await left.panel.getByText('one has blocked the other').waitFor()
    // The channel shows it, too, without a response.
    await page.route('**/v1/users/blocks/*', loseResponse)
    await right.panel.locator('.blocked').getByRole('button').click()
    await right.panel.getByText('You have blocked').waitFor({ state: 'detached' })
    await right.panel.locator('textarea:focus').waitFor()
    await page.unrouteAll()
    const toast = page.locator('.toast', { hasText: 'The service cannot be reached' })
    await toast.getByRole('button', { name: 'Close' }).click()
    await left.press('Send again')
    await right.hears('Hello?')
    expect((await left.said()).filter((text) => text === 'Hello?')).toHaveLength(1)
    await left.press('Report')
    await page.getByRole('dialog').getByRole('button', { name: 'Report' }).click()
    await page.getByText('Reported.').waitFor()
  })

  testAtLength(
    'a reply of support arrives at once, with a notification that opens it',
    async () => {
      const held = Promise.withResolvers<void>()
      await page.route('**/v1/chat/conversations', async (route) => {
        await held.promise
        await route.continue()
      })
      await left.tab('Chat').click()
      const found = page.waitForResponse(/\/conversations\/\w+$/)
      await left.press(await writeToOther())
      await left.tab('Tickets').click()
      held.resolve()
      await (await found).finished()
      await page.unrouteAll()
      // Whoever has gone elsewhere stays there.
      await left.panel.getByRole('link', { name: 'New ticket' }).click()
      await left.panel.getByLabel('Subject').fill('My second invoice')
      await left.panel.getByLabel('How can support help?').fill('The address is wrong')
      await left.press('Open the ticket')
      await left.hears('The address is wrong')
      await expectAccessible(page)
      await answer('We have changed it')
      await left.hears('We have changed it')
      await right.tab('Notifications').click()
      await left.tab('Notifications 1 unread').click()
      await left.press('Allow push notifications')
      // Test profiles are incognito, where the browser declines push, or says that it failed.
      await left.panel.getByText(/page are not allowed|could not subscribe/).waitFor()
      ignoreError(/does not support the Push API in incognito mode/)
      await expectAccessible(page)
      await left.panel.getByRole('button', { name: /My second invoice/ }).click()
      await left.hears('We have changed it')
      await waitFor(async () => (await left.tab('Notifications').textContent()) === 'Notifications')
    },
  )

  testAtLength(
    'a file that is stored while its button has the focus leaves it in the form',
    async () => {
      const held = Promise.withResolvers<void>()
      await page.route('**/v1/files', async (route) => {
        await held.promise
        await route.continue()
      })
      await left.tab('Tickets').click()
      await left.panel.getByRole('link', { name: 'New ticket' }).click()
      const file = { name: 'invoice.png', mimeType: 'image/png', buffer: png }
      await left.panel.locator('input[type=file]').setInputFiles(file)
      await left.panel.getByRole('button', { name: 'Remove invoice.png' }).focus()
      held.resolve()
      await left.panel.locator('textarea:focus').waitFor()
      await page.unrouteAll()
    },
  )

  testAtLength('a new ticket that cannot be sent says so once', async () => {
    await page.route('**/v1/support/tickets', (route) => route.abort())
    await left.panel.getByLabel('Subject').fill('Lost')
    await left.panel.getByLabel('How can support help?').fill('Lost')
    await left.press('Open the ticket')
    const failure = page.getByText('The service cannot be reached')
    await failure.first().waitFor()
    expect(await failure.count()).toBe(1)
    await page.unrouteAll()
    ignoreError(/ERR_FAILED/)
    await left.panel.getByRole('link', { name: 'Back' }).click()
  })

  testAtLength('a subject from right to left keeps its beginning', async () => {
    const subject = 'فاتورتي الثانية'
    await left.tab('Tickets').click()
    await left.panel.getByRole('link', { name: 'New ticket' }).click()
    await left.panel.getByLabel('Subject').fill(subject)
    await left.panel.getByLabel('How can support help?').fill('The address is wrong')
    await left.press('Open the ticket')
    await left.panel.getByRole('link', { name: 'Back' }).click()
    await left.panel.locator('.item strong:dir(rtl)', { hasText: subject }).waitFor()
  })

  /** Ignores a browser message that the test provokes. */
  function ignoreError(expected: RegExp) {
    const others = pages.wrongs.filter((wrong) => !expected.test(wrong))
    pages.wrongs.splice(0, Number.POSITIVE_INFINITY, ...others)
  }

  async function answer(body: string) {
    const credentials = { body: { email: pages.admin.email, password } }
    const { body: admin } = await call(pages.base, 'POST', '/v1/auth/login', credentials)
    const id = new URL(page.url()).searchParams.get('left')?.split('.')[1]
    const path = `/v1/admin/support/tickets/${id}/messages`
    await call(pages.base, 'POST', path, { token: admin.access_token, body: { body } })
  }

  testAtLength(
    'another language applies at once, also to errors, and keeps the drafts',
    async () => {
      await left.tab('Chat').click()
      await left.panel.locator('.item a').click()
      await left.field.fill('Half a sentence')
      await choose(page, 'Language', 'Français')
      await left.panel.getByText('En direct.').waitFor()
      expect(await page.locator('html').getAttribute('lang')).toBe('fr')
      expect(await left.panel.getByLabel('Message', { exact: true }).inputValue()).toBe(
        'Half a sentence',
      )
      await accessibleOnPhone()
      await choose(page, 'Langue', 'English')
      await left.panel.getByText('Live.').waitFor()
    },
  )

  testAtLength('a broken answer is shown, and long names fit on a phone', async () => {
    const name = 'Donaudampfschifffahrtselektrizitaetenhauptbetriebswerk'
    for (const person of [left, right]) {
      const { token } = JSON.parse(
        await page.evaluate(
          `JSON.stringify({ token: JSON.parse(localStorage.getItem('demo ${person === left ? 'left' : 'right'} hostline ' + location.origin + ' session')).accessToken })`,
        ),
      )
      await call(pages.base, 'PATCH', '/v1/users/me', { token, body: { display_name: name } })
    }
    await page.reload()
    await left.panel.getByText(name).first().waitFor()
    await expectNarrowAccessible(page)
    await page.setViewportSize({ width: 1280, height: 800 })
    await left.tab('Notifications').click()
    // The button for more is gone after the last page, and the first further row has the focus.
    await page.route(/\/v1\/notifications\?/, async (route) => {
      const isLast = route.request().url().includes('cursor=')
      const answer = await route.fetch({
        url: route
          .request()
          .url()
          .replace(/cursor=[^&]*/, ''),
      })
      const { data, pagination } = await answer.json()
      const one = { ...data[0], id: isLast ? 'last' : 'first' }
      const cursor = isLast ? null : 'more'
      const json = { data: [one], pagination: { ...pagination, cursor, has_more: !isLast } }
      await route.fulfill({ response: answer, json })
    })
    await page.reload()
    await left.press('Show more')
    await left.panel.locator('li:nth-child(2) button:focus').waitFor()
    await page.unrouteAll()
    await page.route(/\/v1\/notifications\?/, async (route) => {
      const answer = await route.fetch()
      const body = await answer.json()
      for (const one of body.data) one.created_at = 'never'
      await route.fulfill({ response: answer, json: body })
    })
    await page.reload()
    await left.panel.getByText('This page has a fault').waitFor()
    ignoreError(/^Invalid time value$/)
    await page.unrouteAll({ behavior: 'wait' }) // the other person's answer may be on its way
    await page.reload()
    await left.tab('Chat').click()
    await left.panel.locator('.item a').click()
    await left.field.waitFor()
  })

  testAtLength(
    'both people stay logged in after a reload, and after the server was killed and restarted',
    async () => {
      await page.reload()
      await left.panel.getByText('Live.').waitFor()
      await pages.stop('SIGKILL')
      await left.panel.getByText('The client tries again by itself').waitFor()
      await left.write('Written without a server')
      const environment = { PORT: new URL(pages.base).port, RATE_LIMIT_REGISTER: '1/1h' }
      await using _server = await startServer({ dataDir: pages.dataDir, environment })
      await page.evaluate('dispatchEvent(new Event("online"))')
      await right.tab('Chat 1 unread').click()
      await right.panel.getByText('Written without a server').waitFor()
      for (const { panel } of [left, right]) await panel.getByText('Live.').waitFor()
      ignoreError(/^WebSocket connection to .* failed/)
      await expectLimit()
    },
  )

  /** The limit of registrations stops neither the button nor those who know their address. */
  async function expectLimit() {
    for (const { press } of [left, right]) await press('Log out')
    await left.register('first@example.com')
    await left.panel.getByText('Live.').waitFor()
    await right.register('second@example.com')
    await right.panel.getByText(/works again in 60 minutes/).waitFor()
    await left.press('Log out')
    await page.getByRole('button', { name: 'Start with two people' }).click()
    for (const { panel } of [left, right]) await panel.getByText('Live.').waitFor()
  }
})
