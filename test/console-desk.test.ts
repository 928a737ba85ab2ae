import { afterAll, beforeAll, expect } from 'bun:test'
import type { Page, Route } from 'playwright-core'
import { describeAtLength, testAtLength } from './support/faults.ts'
import { png } from './support/files.ts'
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
import { TestSocket } from './support/socket.ts'
import { tools } from './support/tools.ts'
import { waitFor, waitOut } from './support/wait.ts'

const tickets = '/v1/admin/support/tickets'

describeAtLength.skipIf(!tools.chromium)('the desk', () => {
  let pages: Awaited<ReturnType<typeof startPages>>
  let admin: ReturnType<typeof pages.as>
  let page: Page
  beforeAll(async () => {
    pages = await startPages()
    const credentials = { email: pages.admin.email, password }
    const { body } = await pages.as('')('POST', '/v1/auth/login', credentials)
    admin = pages.as(body.access_token)
    const canned = { title: 'Payout is on its way', body: 'Your payout left us today.' }
    await admin('POST', '/v1/admin/support/canned-replies', canned)
  })
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  /** A user who opens tickets and writes into them. */
  async function customer(name: string, displayName = name) {
    const { id, token } = await pages.register(name, displayName)
    const call = pages.as(token)
    return {
      id,
      /** @returns the address of the file */
      async upload(name: string, type: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
        const headers = {
          authorization: `Bearer ${token}`,
          'content-type': type,
          'x-file-name': encodeURIComponent(name),
        }
        const stored = await fetch(`${pages.base}/v1/files`, {
          method: 'POST',
          headers,
          body: bytes,
        })
        return ((await stored.json()) as { file_url: string }).file_url
      },
      /** Shows a picture with the name. */
      wear: (avatar_url: string) => call('PATCH', '/v1/users/me', { avatar_url }),
      open: async (subject: string): Promise<string> =>
        (await call('POST', '/v1/support/tickets', { subject, body: `${subject}?` })).body.id,
      write: (id: string, body: string, files: string[] = []) =>
        call('POST', `/v1/support/tickets/${id}/messages`, {
          body,
          attachments: files.map((file_url) => ({ file_url })),
        }),
      close: (id: string) => call('POST', `/v1/support/tickets/${id}/close`),
      notices: async (): Promise<string[]> =>
        (await call('GET', '/v1/notifications')).body.data.map(
          ({ type }: { type: string }) => type,
        ),
    }
  }

  const show = async (id: string) => (await admin('GET', `${tickets}/${id}`)).body
  const said = (text: string) => page.getByRole('log').getByText(text).waitFor()
  const heading = (name: string) => page.getByRole('heading', { name }).waitFor()
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const row = (text: string) => page.locator('.ticket-row', { hasText: text })
  /** An upload in progress has a button to remove it, too, but shows no size. */
  const uploaded = (name: string) =>
    page.locator('.attached .file', { hasText: name }).locator('.small').waitFor()

  testAtLength('the ticket that has waited longest is answered by keyboard alone', async () => {
    const nina = await customer('Nina')
    await nina.wear(await nina.upload('face.png', 'image/png', png))
    const id = await nina.open('Payout is late')
    const tom = await customer('Tom')
    await tom.open('Camera is black')
    page = await pages.openConsole('/console/desk')
    await page.getByText('Live').waitFor()
    let reads: string[] = []
    page.on('request', (request) => {
      if (request.isNavigationRequest()) reads = []
      if (request.url().includes('/v1/admin/')) reads.push(request.url())
    })
    await page.reload()
    await row('Camera is black').waitFor()
    await page.getByText('Live').waitFor()
    // Each list is read once, whether the channel opens before its response or after.
    expect(reads.filter((url, at) => reads.indexOf(url) !== at)).toEqual([])
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await said('Payout is late?')
    await row('Payout is late').locator('img.avatar').waitFor()
    await page.locator('.ticket-header img.avatar').waitFor()

    await page.keyboard.press('n')
    await page.keyboard.type('Called the bank.')
    const proof = { name: 'proof.txt', mimeType: 'text/plain', buffer: Buffer.from('42') }
    await page.locator('input[type=file]').setInputFiles(proof)
    await uploaded('proof.txt')
    await page.getByText('Reply', { exact: true }).click()
    expect(await button('Remove proof.txt').count()).toBe(0)
    await page.getByText('Note', { exact: true }).click()
    await page.getByRole('textbox', { name: 'Internal note' }).press('Control+Enter')
    await said('only admins see this')
    await page.keyboard.press('Escape')
    await button('Edit the note').press('Enter')
    await page.locator('dialog textarea:focus').waitFor()
    await page.keyboard.press('End')
    await page.keyboard.type(' Twice.')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await said('Called the bank. Twice.')
    await said('edited')
    // What another desk changes is seen here, too.
    const other = { body: 'From elsewhere.' }
    const { id: noteId } = (await admin('POST', `${tickets}/${id}/notes`, other)).body
    await said('From elsewhere.')
    await admin('DELETE', `${tickets}/${id}/notes/${noteId}`)
    const elsewhere = page.getByRole('log').getByText('From elsewhere.')
    await elsewhere.waitFor({ state: 'detached' })
    await admin('POST', `${tickets}/${id}/notes`, { body: 'A slip.' })
    const slip = page.locator('article', { hasText: 'A slip.' })
    await slip.getByRole('button', { name: 'Delete the note' }).press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the note' }).press('Enter')
    await slip.waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.role')).toBe('log')
    await page.keyboard.press('r')
    await page.keyboard.type('Hello! /payo')
    await page.getByRole('option', { name: 'Payout is on its way' }).waitFor()
    await page.keyboard.press('Enter')
    await choose(page, 'Status after sending', 'Send and set in progress')
    await button('Send and set in progress').click()
    await said('Hello! Your payout left us today.')

    await nina.write(id, 'It has arrived, thank you!')
    await said('It has arrived')
    await row('Payout is late').getByText('It has arrived').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('c')
    await said('set the status to “Closed”')
    await expectAccessible(page)
    await tom.open('Sound is gone')
    await button('1 new, 1 gone · Show').press('Enter')
    await row('Sound is gone').waitFor()
    await page.locator('.virtual:focus').waitFor()
    expect(await row('Payout is late').count()).toBe(0)
    expect(await show(id)).toMatchObject({
      status: 'closed',
      assignee: { id: pages.admin.id },
      notes: [{ body: 'Called the bank. Twice.', attachments: [{ file_name: 'proof.txt' }] }],
    })

    const subjects = () => page.locator('.ticket-row strong').allTextContents()
    await button('Newest first').click()
    await waitFor(async () => (await subjects())[0] === 'Sound is gone', 'the turned order')
    expect(page.url()).toEndWith(`${id}?order=shortest_waiting`)
    await page.goto(`${pages.base}/console/desk`)
    await row('Camera is black').waitFor()
    expect(await subjects()).toEqual(['Sound is gone', 'Camera is black'])
    await button('Newest first').click()
    await waitFor(async () => (await subjects())[0] === 'Camera is black', 'the usual order')
  })

  testAtLength('two admins in one ticket see each other', async () => {
    const id = await (await customer('Lou')).open('Who is there?')
    await pages.createAdmin('leo@example.com')
    const credentials = { email: 'leo@example.com', password }
    const { body } = await pages.as('')('POST', '/v1/auth/login', credentials)
    const url = `${pages.base.replace('http', 'ws')}/v1/chat/ws?events=support`
    const leo = await TestSocket.open(`${url}&token=${body.access_token}`)
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    const seen = { type: 'ticket_viewed', ticket_id: id, user_id: pages.admin.id }
    expect(await leo.next('ticket_viewed')).toEqual(seen)
    leo.send({ type: 'viewing', ticket_id: id })
    await page.getByText('Also here: leo').waitFor()
    expect(await leo.next('ticket_viewed')).toEqual(seen)
    await expectAccessible(page)
    leo.close()
  })

  testAtLength('a draft survives a reload, and a stale reply asks before it is sent', async () => {
    const mia = await customer('Mia')
    const id = await mia.open('Refund')
    for (let n = 0; n < 12; n++) await mia.write(id, `Line ${n}\n\n\n\nof many`)
    await page.goto(`${pages.base}/console#ticket=${id}`)
    await said('Line 11')
    await page.getByRole('textbox', { name: 'Reply' }).fill('Done.')
    await row('Refund').getByText('Draft').waitFor()
    await page.reload()
    await said('Line 11')
    await row('Refund').getByText('Draft').waitFor()
    await page.getByRole('log').evaluate((log) => log.scrollTo(0, -log.scrollHeight))
    await mia.write(id, 'One more thing')
    await button('New message').waitFor()
    await button('Send').click()
    await page.getByText('Mia wrote meanwhile.').waitFor()
    expect((await show(id)).messages).toHaveLength(14)
    await delayEffects(page)
    await button('New message').click()
    await page.locator('.thread:focus').waitFor()
    await button('Send').click()
    await said('Done.')
    const field = page.getByRole('textbox', { name: 'Reply' })
    await waitFor(async () => (await field.inputValue()) === '', 'an empty field')
    await row('Refund').getByText('Draft').waitFor({ state: 'detached' })
    await choose(page, 'Category', 'Billing')
    await said('set the category to “Billing”')
    await row('Refund').getByText('Billing').waitFor()
    expect((await show(id)).category).toBe('billing')
    await page.getByText(`#${id.slice(-6)}`, { exact: true }).waitFor()
  })

  testAtLength(
    'a reply with a lost response keeps its text and files, and is stored once',
    async () => {
      const id = await (await customer('Ivy')).open('Receipt')
      await page.getByRole('button', { name: /^1 new.* · Show$/ }).click()
      await row('Receipt').locator('a').click()
      await said('Receipt?')
      const file = { name: 'receipt.txt', mimeType: 'text/plain', buffer: Buffer.from('42') }
      await page.locator('input[type=file]').setInputFiles(file)
      // The button of an upload in progress goes when it ends.
      await uploaded('receipt.txt')
      await button('Remove receipt.txt').press('Enter')
      await page.locator('.composer textarea:focus').waitFor()
      await page.locator('input[type=file]').setInputFiles(file)
      await uploaded('receipt.txt')
      await page.getByRole('textbox', { name: 'Reply' }).fill('Here it is.')
      await page.route(`**${tickets}/*/messages`, loseResponse)
      await button('Send').click()
      await page.getByText('The service cannot be reached').waitFor()
      await page.unroute(`**${tickets}/*/messages`)
      const later = { ...file, name: 'later.txt' }
      await page.route(`**${tickets}/*/messages`, async (route) => {
        await page.locator('input[type=file]').setInputFiles(later)
        await uploaded('later.txt')
        await route.continue()
      })
      await button('Send').click()
      await button('Remove receipt.txt').waitFor({ state: 'detached' })
      // A file attached while the reply was under way waits for the next reply.
      expect(await button('Remove later.txt').count()).toBe(1)
      await page.unroute(`**${tickets}/*/messages`)
      const [, reply, ...others] = (await show(id)).messages
      expect(reply).toMatchObject({ body: 'Here it is.', attachments: [{ file_size: 2 }] })
      expect(others).toEqual([])
    },
  )

  testAtLength(
    'a reply with a lost response that is sent again to resolve the ticket does not seem to have',
    async () => {
      const id = await (await customer('Uma')).open('Lost and solved')
      await page.goto(`${pages.base}/console/desk/${id}?view=all`)
      await said('Lost and solved?')
      await page.getByRole('textbox', { name: 'Reply' }).fill('Solved.')
      await page.route(`**${tickets}/*/messages`, loseResponse)
      await button('Send').click()
      await page.getByText('The service cannot be reached').waitFor()
      await page.unroute(`**${tickets}/*/messages`)
      await choose(page, 'Status after sending', 'Send and resolve')
      await button('Send and resolve').click()
      await page.getByText('wrote meanwhile').waitFor()
      const { messages, status } = await show(id)
      expect([messages.length, status]).toEqual([2, 'open'])
      await page.getByRole('textbox', { name: 'Reply' }).fill('')
      await choose(page, 'Status after sending', 'Send, status as it is')
    },
  )

  testAtLength('two tabs have one draft of a ticket, which is stored once', async () => {
    const id = await (await customer('Amy')).open('Two tabs')
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Two tabs?')
    const other = await page.context().newPage()
    await other.goto(page.url())
    const fieldIn = (tab: Page) => tab.getByRole('textbox', { name: 'Reply' })
    const isWritten = (tab: Page, text: string) =>
      waitFor(async () => (await fieldIn(tab).inputValue()) === text, `“${text}” in a tab`)
    await fieldIn(other).waitFor()
    await fieldIn(page).fill('Once.')
    await isWritten(other, 'Once.')
    await page.route(`**${tickets}/*/messages`, loseResponse)
    await button('Send').click()
    await page.getByText('The service cannot be reached').waitFor()
    await waitFor(() => button('Send').isEnabled())
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Send')
    await page.unroute(`**${tickets}/*/messages`)
    await other.getByRole('button', { name: 'Send', exact: true }).click()
    await isWritten(page, '')
    await other.close()
    expect((await show(id)).messages).toHaveLength(2)
  })

  testAtLength('a note that is stored after its ticket was opened again is no draft', async () => {
    const eli = await customer('Eli')
    const [id, other] = [await eli.open('Left and back'), await eli.open('Elsewhere')]
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Left and back?')
    const held = Promise.withResolvers<void>()
    await page.route('**/notes', async (route) => {
      await held.promise
      await route.continue()
    })
    const field = page.locator('.composer').getByRole('textbox')
    await page.keyboard.press('n')
    await field.fill('Only once.')
    await button('Add note').click()
    await page.locator(`[data-id="${other}"] a`).click()
    await said('Elsewhere?')
    await page.locator(`[data-id="${id}"] a`).click()
    await said('Left and back?')
    await page.keyboard.press('n')
    expect(await field.inputValue()).toBe('Only once.')
    held.resolve()
    await waitFor(async () => (await field.inputValue()) === '')
    await page.unroute('**/notes')
    expect((await show(id)).notes).toHaveLength(1)
  })

  testAtLength(
    'a file, and what is typed, stay when a ticket is left before its answers',
    async () => {
      const flo = await customer('Flo')
      const [id, other] = [await flo.open('Left with a file'), await flo.open('Looked up')]
      await page.goto(`${pages.base}/console/desk/${id}?view=all`)
      const field = page.getByRole('textbox', { name: 'Reply' })
      const go = async (to: string, subject: string) => {
        await page.locator(`[data-id="${to}"] a`).click()
        await said(`${subject}?`)
      }
      const hold = async (address: string) => {
        const held = Promise.withResolvers<void>()
        await page.route(address, async (route) => {
          await held.promise
          await route.continue()
        })
        return async () => {
          const answer = page.waitForResponse(address)
          held.resolve()
          await (await answer).finished()
          await page.unroute(address)
        }
      }
      await field.fill('See the file.')
      const storeFile = await hold('**/v1/files')
      const file = { name: 'late.txt', mimeType: 'text/plain', buffer: Buffer.from('42') }
      await page.locator('input[type=file]').setInputFiles(file)
      await go(other, 'Looked up')
      await storeFile()
      await waitOut(100)
      await go(id, 'Left with a file')
      await button('Remove late.txt').waitFor()
      expect(await field.inputValue()).toBe('See the file.')
      const storeReply = await hold(`**${tickets}/*/messages`)
      await button('Send').click()
      await go(other, 'Looked up')
      await go(id, 'Left with a file')
      await field.fill('And one thing more.')
      await go(other, 'Looked up')
      await storeReply()
      await waitOut(100)
      await go(id, 'Left with a file')
      expect(await field.inputValue()).toBe('And one thing more.')
      await field.fill('')
    },
  )

  testAtLength('an answer that comes late takes no focus from where somebody types', async () => {
    const id = await (await customer('Rob')).open('Slow answers')
    await admin('POST', `${tickets}/${id}/notes`, { body: 'A slow slip.' })
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    const slip = page.locator('article', { hasText: 'A slow slip.' })
    const field = page.getByRole('textbox', { name: 'Reply' })
    const search = page.getByRole('searchbox')
    let held = Promise.withResolvers<void>()
    for (const address of ['**/notes/*', `**${tickets}/*/messages`]) {
      await page.route(address, async (route) => {
        await held.promise
        await route.continue()
      })
    }
    await slip.getByRole('button', { name: 'Delete the note' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the note' }).click()
    await field.pressSequentially('Dear R')
    held.resolve()
    await slip.waitFor({ state: 'detached' })
    // Outside a field “c” closes the ticket.
    await page.keyboard.type('ob, can')
    expect(await field.inputValue()).toBe('Dear Rob, can')
    held = Promise.withResolvers()
    await button('Send').click()
    await search.focus()
    held.resolve()
    await said('Dear Rob, can')
    await page.keyboard.type('Slow')
    expect(await search.inputValue()).toBe('Slow')
    await page.unrouteAll()
    expect((await show(id)).status).not.toBe('closed')
    await search.fill('')
  })

  testAtLength('keys go where earlier keys have led, also on a busy machine', async () => {
    const ben = await customer('Ben')
    const [id, next] = [await ben.open('Busy one'), await ben.open('Busy two')]
    await page.goto(`${pages.base}/console/desk?q=busy`)
    const readAhead = page.waitForResponse(`**${tickets}/${next}`)
    await row('Busy one').locator('a').click()
    await said('Busy one?')
    await (await readAhead).finished()
    await delayEffects(page)
    await row('Busy two').locator('a').click()
    await page.keyboard.press('r')
    await page.keyboard.type('Dear B')
    await waitForEffects()
    await page.keyboard.type('en')
    const field = page.getByRole('textbox', { name: 'Reply' })
    expect(await field.inputValue()).toBe('Dear Ben')
    await field.fill('')
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 1000, height: 800 })
    for (const key of ['i', 'Escape']) await page.keyboard.press(key)
    await waitForEffects()
    expect(await page.locator('.details-toggle:focus').count()).toBe(1)
    await page.setViewportSize({ width: 1280, height: 800 })
    for (const key of ['u', '/', 'End', ' ']) await page.keyboard.press(key)
    await waitForEffects()
    await page.keyboard.type('one')
    expect(await page.getByRole('searchbox').inputValue()).toBe('busy one')
    await page.waitForURL('**/desk?q=busy+one')
    await button('Clear search and filters').click()
    await page.keyboard.type('t')
    await waitForEffects()
    await page.keyboard.type('wo')
    expect(await page.getByRole('searchbox').inputValue()).toBe('two')
    expect((await show(id)).status).toBe('open')
    await page.goto(`${pages.base}/console/desk`)
  })

  testAtLength(
    'a message stays while messages are pointed at, one that comes then, too',
    async () => {
      const id = await (await customer('Tia')).open('Toasts')
      await page.goto(`${pages.base}/console/desk/${id}?view=all`)
      await said('Toasts?')
      await page.keyboard.press('3')
      const first = page.locator('.toast', { hasText: 'Priority: High' })
      await first.hover()
      await page.keyboard.press('4')
      const second = page.locator('.toast', { hasText: 'Priority: Urgent' })
      await second.waitFor()
      await waitOut(7_000)
      expect([await first.isVisible(), await second.isVisible()]).toEqual([true, true])
      await page.mouse.move(0, 0)
      await second.waitFor({ state: 'detached' })
    },
  )

  testAtLength(
    'an answered or resolved ticket makes way for the next, which is read by one request',
    async () => {
      const liv = await customer('Liv')
      for (const n of ['one', 'two', 'three', 'four']) await liv.open(`Way ${n}`)
      page = await pages.openConsole('/console/desk', { width: 1440, height: 800 })
      await page.goto(`${pages.base}/console/desk?view=unassigned&q=liv`)
      await row('Way four').waitFor()
      const ids = await page
        .locator('[data-id]')
        .evaluateAll((rows) => rows.map((one) => one.getAttribute('data-id') ?? ''))
      const opened = (n: number) => page.waitForURL((url) => url.pathname.endsWith(`/${ids[n]}`))
      const reads: string[] = []
      page.on('request', (request) => {
        if (/\/tickets\/\w{26}$/.test(request.url())) reads.push(request.method() + request.url())
      })
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await opened(0)
      await said('Way')
      await choose(page, 'Status', 'Resolved')
      await opened(1)
      await page.keyboard.press('j')
      await opened(2)
      await said('Way')
      const twice = reads.filter((read, at) => read.startsWith('GET') && reads.indexOf(read) !== at)
      expect(twice).toEqual([])
      await choose(page, 'Status after sending', 'Send and open the next')
      await page.getByRole('textbox', { name: 'Reply' }).fill('On our way.')
      await button('Send and open the next').click()
      await opened(3)
      await said('Way')
      // It stays chosen for the next ticket, but moves nobody who has left before the reply was stored.
      const held = Promise.withResolvers<void>()
      await page.route('**/messages', async (route) => {
        await held.promise
        await route.continue()
      })
      await page.getByRole('textbox', { name: 'Reply' }).fill('Soon.')
      await button('Send and open the next').click()
      await page.locator(`[data-id="${ids[1]}"] a`).click()
      await opened(1)
      const stored = page.waitForResponse('**/messages')
      held.resolve()
      await (await stored).finished()
      await page.evaluate('new Promise((resolve) => requestIdleCallback(resolve))')
      expect(page.url()).toContain(`/${ids[1]}`)
    },
  )

  testAtLength(
    'a new ticket counts in the title, and is shown by the desktop in a hidden tab',
    async () => {
      page = await pages.openConsole('/console/account')
      await page.evaluate(() => {
        const shown: [title: string, id: string][] = []
        class Shown {
          static permission = 'granted'
          static requestPermission = async () => 'granted'
          constructor(title: string, { tag }: { tag: string }) {
            shown.push([title, tag])
          }
        }
        Object.assign(globalThis, { Notification: Shown, shown })
      })
      await page.getByLabel('Notify me of tickets that wait').check()
      const areas = page.getByRole('navigation', { name: 'Areas' })
      await areas.getByRole('link', { name: 'Desk' }).click()
      const zoe = await customer('Zoe')
      await zoe.open('In sight')
      const waiting = async () => (await admin('GET', '/v1/admin/support/counts')).body.waiting
      const count = async () => Number(/^\((\d+)\)/.exec(await page.title())?.[1] ?? 0)
      await waitFor(async () => (await count()) === (await waiting()))
      await page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")
      const id = await zoe.open('Out of sight')
      await waitFor(async () => (await page.evaluate('shown.length')) === 1)
      expect(await page.evaluate('shown')).toEqual([[expect.stringContaining('Out of sight'), id]])
      await waitFor(async () => (await count()) === (await waiting()))
      await page.goto(`${pages.base}/console/desk`)
    },
  )

  testAtLength(
    'a canned reply names the person, any of many is found, and addresses are links',
    async () => {
      for (let n = 0; n < 120; n++)
        await admin('POST', '/v1/admin/support/canned-replies', {
          title: `Answer ${n}`,
          body: `Hello {name}, see https://example.com/${n}.`,
        })
      for (const locale of ['de', 'en'])
        await admin('POST', '/v1/admin/support/canned-replies', {
          title: `Answer 117 ${locale}`,
          body: `Hello {name}, see https://example.com/117.`,
          locale,
        })
      const id = await (await customer('Nora')).open('Help with login')
      await page.goto(`${pages.base}/console/desk/${id}`)
      await said('Help with login?')
      await page.keyboard.press('r')
      await page.keyboard.type('/answer 117')
      await page.getByRole('option', { name: 'Answer 117 en' }).waitFor()
      const titles = page.getByRole('option').locator('strong')
      expect(await titles.allTextContents()).toEqual([
        'Answer 117',
        'Answer 117 en',
        'Answer 117 de · Deutsch',
      ])
      await page.keyboard.press('Enter')
      const field = page.getByRole('textbox', { name: 'Reply' })
      expect(await field.inputValue()).toBe('Hello Nora, see https://example.com/117.')
      await button('Send').click()
      const link = page.getByRole('log').getByRole('link', { name: 'https://example.com/117' })
      expect(await link.getAttribute('href')).toBe('https://example.com/117')
      expect(await link.getAttribute('rel')).toBe('noreferrer')
    },
  )

  testAtLength(
    'Escape closes a menu alone; a single selected ticket is resolved with an undo; keys move the focus, not the history',
    async () => {
      const una = await customer('Una')
      const id = await una.open('Keyboard one')
      const later = await una.open('Keyboard two')
      await page.goto(`${pages.base}/console/desk?q=keyboard`)
      await row('Keyboard one').locator('a').click()
      await said('Keyboard one?')
      await page.getByRole('button', { name: /^Status:/ }).click()
      await page.getByRole('listbox', { name: 'Status' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('listbox', { name: 'Status' }).waitFor({ state: 'hidden' })
      expect(page.url()).toContain(id)

      const focused = () => page.evaluate<string>('document.activeElement.textContent')
      // What is found comes newest first.
      await page.keyboard.press('k')
      await waitFor(async () => (await focused()) === 'Keyboard two')
      expect(page.url()).toContain(later)
      await page.evaluate('history.back()')
      await waitFor(() => new URL(page.url()).pathname === '/console/desk')

      await row('Keyboard one').locator('a').focus()
      await page.keyboard.press('x')
      await page.keyboard.press('e')
      // It stays while it is pointed at.
      await page.getByText('Resolved · Keyboard one').hover()
      await page.getByText('selected').waitFor({ state: 'hidden' })
      await button('Undo').click()
      expect([(await show(id)).history, await una.notices()]).toEqual([[], []])
      await button('Clear search and filters').click()
      await waitFor(() => page.evaluate<boolean>("document.activeElement.tagName === 'INPUT'"))
    },
  )

  testAtLength('a held key resolves one ticket, not the next ones as well', async () => {
    const hal = await customer('Hal')
    for (const subject of ['Held one', 'Held two', 'Held three']) await hal.open(subject)
    await page.goto(`${pages.base}/console/desk?q=held`)
    await row('Held one').locator('a').click()
    await said('Held one?')
    // The second and third have the browser's mark of a repetition.
    for (let times = 0; times < 3; times++) {
      await page.keyboard.down('e')
      await page.locator('.thread .message').first().waitFor()
    }
    await page.keyboard.up('e')
    await page.getByText('Resolved · Held').first().hover()
    await waitOut(500)
    expect(await page.locator('.toast', { hasText: 'Resolved · Held' }).count()).toBe(1)
    await button('Undo').click()
    await page.locator('.ticket-header h2:focus').waitFor()
  })

  testAtLength(
    'of two changes of a ticket the later one counts, also after a slow one',
    async () => {
      const id = await (await customer('Kim')).open('Two changes')
      await page.goto(`${pages.base}/console/desk/${id}?view=all`)
      await said('Two changes?')
      const held = Promise.withResolvers<void>()
      let changes = 0
      await page.route(`**${tickets}/${id}`, async (route) => {
        if (route.request().method() === 'PATCH' && changes++ === 0) await held.promise
        await route.continue()
      })
      await choose(page, 'Priority', 'High')
      await choose(page, 'Priority', 'Urgent')
      await waitOut(300)
      held.resolve()
      await said('set the priority to “Urgent”')
      await waitFor(async () => changes === 2 && (await show(id)).history.length === 2)
      expect((await show(id)).priority).toBe('urgent')
      await page.getByRole('button', { name: 'Priority: Urgent' }).waitFor()
      await page.unrouteAll()
    },
  )

  testAtLength('an undo leaves what a colleague has set since', async () => {
    const id = await (await customer('Udo')).open('Set twice')
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Set twice?')
    await page.keyboard.press('3')
    // It stays while it is pointed at.
    await page.getByText('Priority: High · Set twice').hover()
    await admin('PATCH', `${tickets}/${id}`, { priority: 'urgent' })
    await said('set the priority to “Urgent”')
    await button('Undo').click()
    await page.getByText('Priority: Urgent · Set twice').waitFor()
    expect((await show(id)).priority).toBe('urgent')
  })

  testAtLength('a late undo changes its own ticket and does not switch to another', async () => {
    const ida = await customer('Ida')
    const id = await ida.open('Late undo')
    await (await customer('Uwe')).open('Another one')
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Late undo?')
    await page.keyboard.press('e')
    // It stays while it is pointed at.
    await page.getByText('Resolved · Late undo').hover()
    await row('Another one').locator('a').press('Enter')
    await said('Another one?')
    await button('Undo').click()
    expect((await show(id)).history).toEqual([])
    expect(await ida.notices()).toEqual([])
    await said('Another one?')
    let title = ''
    const isTitle = async () => {
      title = await page.title()
      return title.endsWith('Another one · Desk · localhost')
    }
    await waitFor(isTitle, () => `the title of the other ticket, not ${title}`)
    // Without an undo it is sent, at the latest when something else follows.
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Late undo?')
    await button('Resolve').click()
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await waitFor(async () => (await show(id)).status === 'resolved')
  })

  testAtLength('what the owner writes before a resolve is sent keeps the ticket open', async () => {
    const iris = await customer('Iris')
    const id = await iris.open('Not yet')
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Not yet?')
    await page.keyboard.press('e')
    const offer = page.getByText('Resolved · Not yet')
    // It stays while it is pointed at.
    await offer.hover()
    await iris.write(id, 'It broke again.')
    await row('It broke again.').waitFor()
    await offer.waitFor({ state: 'hidden' })
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('It broke again.')
    const { status, history, waiting_since } = await show(id)
    expect([status, history, waiting_since]).toEqual(['open', [], expect.any(String)])
    expect(await iris.notices()).toEqual([])
  })

  testAtLength('a ticket that its owner closes before a resolve is sent stays closed', async () => {
    const gil = await customer('Gil')
    const id = await gil.open('Settled already')
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Settled already?')
    await page.keyboard.press('e')
    const offer = page.getByText('Resolved · Settled already')
    // It stays while it is pointed at.
    await offer.hover()
    await gil.close(id)
    await offer.waitFor({ state: 'hidden' })
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('set the status to “Closed”')
    expect(await show(id)).toMatchObject({ status: 'closed', history: [{ to: 'closed' }] })
    expect(await gil.notices()).toEqual([])
  })

  testAtLength('a waiting ticket that is set in progress goes on waiting meanwhile', async () => {
    const id = await (await customer('Abe')).open('Still waiting')
    await page.goto(`${pages.base}/console/desk?q=waiting`)
    await row('Still waiting').locator('a').click()
    await said('Still waiting?')
    const held = Promise.withResolvers<void>()
    await page.route(`**${tickets}/${id}`, async (route) => {
      await held.promise
      await route.continue()
    })
    await page.keyboard.press('p')
    await page.getByRole('button', { name: 'Status: In progress' }).waitFor()
    expect(await row('Still waiting').getAttribute('class')).toContain('waiting')
    held.resolve()
    await said('set the status to “In progress”')
    await page.unrouteAll()
  })

  testAtLength(
    'a purged ticket leaves the screen, and its list tells that it changed',
    async () => {
      const bad = await customer('Bad')
      const id = await bad.open('Purged')
      await admin('POST', `${tickets}/${id}/messages`, { body: 'Never again.' })
      await page.goto(`${pages.base}/console/desk/${id}?view=all`)
      await said('Never again.')
      await page.getByText('Live').waitFor()
      const trusted = await pages.trusted(pages.admin.email)
      expect((await trusted('POST', `/v1/admin/users/${bad.id}/purge`)).status).toBe(202)
      await page.getByText('It is not here any more').waitFor()
      expect(await page.getByText('Never again.', { exact: true }).count()).toBe(1)
      await button('Changed · Show').click()
      await row('Purged').waitFor({ state: 'detached' })
    },
  )

  testAtLength('a text that is too long is refused whole, not cut', async () => {
    const id = await (await customer('Max')).open('Long text')
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Long text?')
    const field = page.getByRole('textbox', { name: 'Reply' })
    await field.focus()
    await page.keyboard.insertText('a '.repeat(5_001))
    await button('Send').click()
    await page.getByText('at most 10000 characters').waitFor()
    expect(await field.inputValue()).toHaveLength(10_002)
    await field.fill('')
  })

  testAtLength('what came while a tab was closed for good shows once it reconnects', async () => {
    const pam = await customer('Pam')
    const id = await pam.open('Too many tabs')
    const tab = await page.context().newPage()
    let end = () => {}
    await tab.routeWebSocket(/\/chat\/ws/, (socket) => {
      socket.connectToServer()
      end = () => socket.close({ code: 4409 })
    })
    await tab.goto(`${pages.base}/console/desk/${id}?view=all`)
    await tab.getByRole('log').getByText('Too many tabs?').waitFor()
    await tab.getByText('Live').waitFor()
    end()
    const reconnect = tab.getByRole('button', { name: 'Reconnect' }).first()
    await reconnect.waitFor()
    await pam.write(id, 'Did you miss this?')
    await reconnect.click()
    await tab.getByRole('log').getByText('Did you miss this?').waitFor()
    await tab.close()
  })

  testAtLength('a ticket that has left the list and comes back is not selected', async () => {
    const sue = await customer('Sue')
    const [id, other] = [await sue.open('Comes back'), await sue.open('Stays')]
    for (const one of [id, other]) {
      await admin('PATCH', `${tickets}/${one}`, { category: 'account' })
    }
    await page.goto(`${pages.base}/console/desk?category=account`)
    for (const subject of ['Comes back', 'Stays']) {
      await page.getByRole('checkbox', { name: `Select ${subject}` }).click()
    }
    await page.getByText('2 tickets selected').waitFor()
    await admin('POST', `${tickets}/${id}/messages`, { body: 'Answered.' })
    await page.getByRole('button', { name: /1 gone · Show/ }).click()
    await page.getByText('1 ticket selected').waitFor()
    await sue.write(id, 'Once more.')
    await page.getByRole('button', { name: /1 new · Show/ }).click()
    await row('Comes back').waitFor()
    await page.getByText('1 ticket selected').waitFor()
    expect(await page.getByRole('checkbox', { name: 'Select Comes back' }).isChecked()).toBe(false)
    await page.keyboard.press('Escape')
  })

  testAtLength('a colleague who was hired meanwhile is named, and can be assigned', async () => {
    const id = await (await customer('Ned')).open('For a colleague')
    const tab = await page.context().newPage()
    await tab.clock.install()
    await tab.goto(`${pages.base}/console/desk/${id}?view=all`)
    await tab.getByRole('log').getByText('For a colleague?').waitFor()
    const { id: assignee_id } = await pages.createAdmin('zac@example.com')
    await admin('PATCH', `${tickets}/${id}`, { assignee_id })
    await tab.getByText('assigned this to somebody').waitFor()
    await tab.clock.fastForward(61_000)
    await tab.getByText('assigned this to zac').waitFor()
    await tab.getByRole('button', { name: 'Assignee: zac' }).click()
    await tab.getByRole('option', { name: 'zac' }).waitFor()
    await tab.close()
  })

  testAtLength('the badge counts a ticket although it could not be read when it came', async () => {
    const tab = await page.context().newPage()
    await tab.clock.install()
    await tab.goto(`${pages.base}/console/account`)
    await tab.getByText('Live').waitFor()
    const badge = tab.getByRole('link', { name: /^Desk/ }).locator('.badge')
    await badge.waitFor()
    const before = Number(await badge.textContent())
    await tab.route('**/support/counts', (route) => route.fulfill({ status: 503, body: '{}' }))
    const failed = tab.waitForResponse('**/support/counts')
    await (await customer('Joe')).open('Uncounted')
    await tab.clock.fastForward(2_000)
    await failed
    await tab.unroute('**/support/counts')
    await tab.clock.fastForward(61_000)
    await waitFor(async () => Number(await badge.textContent()) === before + 1)
    await tab.close()
  })

  testAtLength('where single keys are off, Tab and Space select a ticket', async () => {
    await (await customer('Tabea')).open('By Tab')
    await page.evaluate("localStorage.setItem('hostline shortcuts', 'off')")
    await page.goto(`${pages.base}/console/desk?view=all&q=tabea`)
    await row('By Tab').getByRole('link').focus()
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Space')
    await page.getByText('1 ticket selected').waitFor()
    await page.evaluate("localStorage.removeItem('hostline shortcuts')")
  })

  testAtLength(
    'several tickets are changed at once, and the URL keeps view, search and ticket',
    async () => {
      const oskar = await customer('Oskar')
      for (const subject of ['First', 'Second', 'Third']) await oskar.open(subject)
      await page.goto(`${pages.base}/console/desk?view=unassigned&q=oskar`)
      await row('Third').waitFor()
      await page.keyboard.press('j')
      await page.keyboard.press('x')
      const last = page.getByRole('checkbox', { name: 'Select First' })
      await last.click({ modifiers: ['Shift'] })
      await page.getByText('3 tickets selected').waitFor()
      await page.keyboard.press('c')
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('heading', { name: 'Close 3 tickets?' }).waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      const withPriority = async () =>
        (await admin('GET', `${tickets}?priority=high`)).body.data.length
      await choose(page, 'Set priority', 'High')
      await page.getByText('3 tickets changed').hover()
      expect(await withPriority()).toBe(3)
      // The menu that had the focus is gone.
      await page.locator('.ticket-row a:focus').waitFor()
      await button('Undo').click()
      await waitFor(async () => (await withPriority()) === 0, 'the undo')
      await button('Select all').click()
      await page.getByText('3 tickets selected').waitFor()
      await page.locator('.virtual:focus').waitFor()
      await choose(page, 'Assign', 'Nobody')
      await page.getByText('3 tickets changed').last().waitFor()

      await row('Third').locator('a').click()
      await heading('Third')
      await page.reload()
      await heading('Third')
      await page.getByRole('searchbox').fill('second')
      await row('First').waitFor({ state: 'detached' })
      expect(page.url()).toEndWith('?view=unassigned&q=second')
      await page.goBack()
      await page.getByText('No ticket chosen').waitFor()
      // Whoever has left the desk is told what failed.
      await button('Select all').click()
      const held = Promise.withResolvers<void>()
      await page.route(`**${tickets}/*`, async (route) => {
        if (route.request().method() !== 'PATCH') return route.continue()
        await held.promise
        await route.abort()
      })
      await choose(page, 'Set priority', 'Low')
      await page.getByRole('link', { name: 'People' }).click()
      await heading('People')
      held.resolve()
      await page.getByText('tickets could not be changed').waitFor()
      await page.unrouteAll()
    },
  )

  testAtLength(
    'long names of files and people fit, a late picture leaves the end in sight, and a toast the field',
    async () => {
      const long = await customer(
        'Long',
        `${'ميرا'.repeat(8)} ${'Konstantinopolitanische'.repeat(2)}`,
      )
      const id = await long.open(`Statements${'_of_March'.repeat(20)}`)
      await long.open('Another matter with a rather long subject, which the details list')
      const roof = Buffer.from(await new Bun.Image(png).resize(900, 700).jpeg().bytes())
      const name = 'Kontoauszug_2026-03-31_Musterbank_Girokonto_Original.pdf'
      const statement = await long.upload(name, 'application/pdf', Buffer.from('%PDF-1.4\n'))
      const picture = await long.upload('roof.jpg', 'image/jpeg', roof)
      await long.write(id, 'Here they are.', [statement, picture])
      for (const text of ['First', 'Second', 'Third']) await long.write(id, text.repeat(40))
      const held = Promise.withResolvers<void>()
      await page.route('**/v1/files/**', async (route) => {
        await held.promise
        await route.continue()
      })
      await page.setViewportSize({ width: 1440, height: 700 })
      await page.goto(`${pages.base}/console/desk/${id}?view=all`)
      await said('ThirdThird')
      held.resolve()
      const image = page.locator('.thread img')
      await waitFor(() =>
        image.evaluate(({ naturalWidth }: { naturalWidth: number }) => naturalWidth > 0),
      )
      const hidden = () => page.locator('.thread').evaluate((thread) => -thread.scrollTop)
      await waitFor(async () => (await hidden()) < 2, 'the end of the thread')
      await page.getByRole('heading', { name: 'Other tickets' }).waitFor()
      await expectAccessible(page)
      await page.keyboard.press('3')
      const toast = page.locator('.toast', { hasText: 'Priority: High' })
      await toast.waitFor()
      await expectWholeWords(page)
      const [box, field] = [
        await toast.boundingBox(),
        await page.locator('.composer').boundingBox(),
      ]
      expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(field?.y ?? 0)
      await expectNarrowAccessible(page)
      await page.unrouteAll()
      await pages.openConsole('/console/desk')
    },
  )

  testAtLength('earlier messages stay when the ticket is read again meanwhile', async () => {
    const lea = await customer('Lea')
    const id = await lea.open('A long story')
    for (let n = 1; n <= 210; n++) {
      await admin('POST', `${tickets}/${id}/messages`, { body: `Part ${n}.` })
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${pages.base}/console/desk/${id}?view=all`)
    await said('Part 210.')
    const held = Promise.withResolvers<void>()
    const read = page.waitForRequest(`**${tickets}/${id}`)
    await page.route(`**${tickets}/${id}`, async (route) => {
      await held.promise
      await route.continue()
    })
    await lea.write(id, 'The end.')
    await read
    const bubbles = page.getByRole('log').locator('.bubble')
    const before = await bubbles.count()
    await page.getByRole('log').evaluate((log) => log.scrollTo(0, -log.scrollHeight))
    await button('Show earlier messages').click()
    await waitFor(async () => (await bubbles.count()) > before + 9)
    const now = await bubbles.count()
    await page.locator('[role=log]:focus').waitFor()
    held.resolve()
    await said('The end.')
    expect(await bubbles.count()).toBe(now + 1)
    await page.unrouteAll()
    // The badge differs from its row, also in the open one.
    const colour = (one: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${one}')).backgroundColor`)
    await admin('PATCH', `${tickets}/${id}`, { status: 'resolved' })
    await row('A long story').locator('.badge').waitFor()
    expect(await colour('.item.open .badge')).not.toBe(await colour('.item.open'))
    await page.goto(`${pages.base}/console/desk/01KJPY44E0KNM7KKYK5Z5CDZ4Y`)
    await page.getByText('It is not here any more').waitFor()
    await pages.openConsole('/console/desk')
  })

  testAtLength('after a restore the open ticket loses what it has undone', async () => {
    const rae = await customer('Rae')
    const id = await rae.open('Restored')
    await rae.write(id, 'Undone.')
    let resync = () => {}
    let lose = () => {}
    const tab = await page.context().newPage()
    await tab.routeWebSocket(/\/chat\/ws/, (socket) => {
      socket.connectToServer()
      const frame = { type: 'resync', newest_message_id: '0'.repeat(26) }
      resync = () => socket.send(JSON.stringify(frame))
      lose = () => socket.close()
    })
    await tab.goto(`${pages.base}/console/desk/${id}?view=all`)
    const log = tab.getByRole('log')
    await log.getByText('Undone.').waitFor()
    await tab.getByText('Live').waitFor()
    const restored = async (route: Route) => {
      const response = await route.fetch()
      const { messages, ...ticket } = await response.json()
      await route.fulfill({ response, json: { ...ticket, messages: messages.slice(0, 1) } })
    }
    await tab.route(`**${tickets}/${id}`, restored)
    resync()
    await log.getByText('Undone.').waitFor({ state: 'detached' })
    await log.getByText('Restored?').waitFor()
    // The position of the socket may survive the restore, and then no resync comes.
    await tab.unrouteAll()
    await rae.write(id, 'Undone, too.')
    await log.getByText('Undone, too.').waitFor()
    await tab.route(`**${tickets}/${id}`, restored)
    lose()
    await log.getByText('Undone, too.').waitFor({ state: 'detached' })
    await tab.close()
  })

  testAtLength('on a phone only the list or the ticket is visible', async () => {
    const eva = await customer('Eva')
    for (const subject of ['One more', 'And a third']) await eva.open(subject)
    const id = await eva.open('Donaudampfschifffahrtselektrizität '.repeat(5).trim())
    await eva.write(id, 'Kontoauszug'.repeat(20))
    await page.setViewportSize({ width: 320, height: 640 })
    await page.goto(`${pages.base}/console/desk`)
    await page.getByRole('searchbox').fill('Donau')
    await row('Donaudampf').waitFor()
    await expectNarrowAccessible(page)
    await row('Donaudampf').locator('a').click()
    await page.waitForURL(`**/desk/${id}*`)
    await said('Donaudampf')
    await page.locator('.ticket-header h2:focus').waitFor()
    await button('Details').click()
    await page.getByText('eva@example.com').waitFor()
    await page.getByRole('link', { name: /And a third/ }).waitFor()
    await expectNarrowAccessible(page)
    await button('Hide the details').click()
    // Its message covers a strip of the ticket only.
    await page.keyboard.press('a')
    expect((await page.locator('.toast').boundingBox())?.height).toBeLessThan(80)
    await button('Undo').click()
    await button('Back to the list').click()
    await row('Donaudampf').waitFor()
  })

  testAtLength('at 400 % zoom messages have room beside header and composer', async () => {
    const id = await (await customer('Wilma')).open('Donaudampfschifffahrtselektrizität')
    page = await pages.openConsole(`/console/desk/${id}?view=all`, { width: 320, height: 256 })
    await page.getByRole('log').getByText('Wilma').waitFor()
    expect((await page.getByRole('log').boundingBox())?.height).toBeGreaterThan(100)
    await page.getByRole('textbox').click()
  })

  testAtLength('a ticket has room beside the list on a tablet', async () => {
    const id = await (await customer('Ole')).open('The invoice has a mistake')
    page = await pages.openConsole(`/console/desk/${id}?view=all`, { width: 1130, height: 800 })
    await page.getByRole('log').getByText('Ole').waitFor()
    await expectWholeWords(page)
  })

  testAtLength('the words beside a note are whole where its hint is long', async () => {
    const id = await (await customer('Zita')).open('En français')
    page = await pages.openConsole()
    const speak = (language: string) =>
      page.evaluate(`localStorage.setItem('hostline language of console', '${language}')`)
    await speak('fr')
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 640 })
      await page.goto(`${pages.base}/console/desk/${id}?view=all`)
      await said('En français?')
      await page.keyboard.press('n')
      await page.getByText('Visible des administrateurs seulement').waitFor()
      await expectWholeWords(page)
    }
    await speak('en')
  })

  testAtLength('a time stands after a name that is written from right to left', async () => {
    const other = await pages.createAdmin('amal@example.com')
    await (await pages.trusted(other.email))('PATCH', '/v1/users/me', { display_name: 'أمل' })
    const id = await (await customer('Tova')).open('Handover')
    await admin('PATCH', `${tickets}/${id}`, { assignee_id: other.id })
    page = await pages.openConsole(`/console/desk/${id}?view=all`)
    await page.getByText('assigned this to أمل').waitFor()
    const gap = `(() => {
      const [line, name] = [document.querySelector('.change'), new Range()]
      name.selectNodeContents(line.firstChild)
      const { left } = line.querySelector('time').getBoundingClientRect()
      return left - name.getBoundingClientRect().right
    })()`
    expect(await page.evaluate(gap)).toBeGreaterThan(0)
  })

  testAtLength('what came and went during an outage is not new', async () => {
    const pia = await customer('Pia')
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${pages.base}/console/desk`)
    await row('').first().waitFor()
    await page.getByText('Live').waitFor()
    const id = await pia.open('Came and went')
    await page.getByRole('button', { name: /1 new.* · Show/ }).waitFor()
    await page.context().setOffline(true)
    await page.getByText('Offline').first().waitFor()
    await admin('PATCH', `${tickets}/${id}`, { status: 'closed' })
    await page.context().setOffline(false)
    await page.getByText('Live').waitFor()
    await page.getByRole('button', { name: /1 new/ }).waitFor({ state: 'detached' })
  })

  testAtLength('what another desk changes while the ticket is read is read again', async () => {
    const id = await (await customer('Lia')).open('Two notes')
    const path = `${tickets}/${id}`
    const frames: string[] = []
    page.once('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => frames.push(String(payload))),
    )
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${pages.base}/console/desk/${id}`)
    await said('Two notes?')
    await page.getByText('Live').waitFor()
    await page.route(
      (url) => url.pathname === path,
      async (route) => {
        const response = await route.fetch()
        const before = frames.length
        await admin('POST', `${path}/notes`, { body: 'The second one.' })
        await waitFor(() => frames.length > before)
        await route.fulfill({ response })
      },
      { times: 1 },
    )
    await admin('POST', `${path}/notes`, { body: 'The first one.' })
    await said('The first one.')
    await said('The second one.')
  })

  testAtLength('a ticket that comes while the list is read again is new', async () => {
    const tim = await customer('Tim')
    const frames: string[] = []
    page.once('websocket', (socket) =>
      socket.on('framereceived', ({ payload }) => frames.push(String(payload))),
    )
    await page.goto(`${pages.base}/console/desk?order=shortest_waiting`)
    await row('').first().waitFor()
    await page.getByText('Live').waitFor()
    await tim.open('Came before')
    await page.getByRole('button', { name: /1 new/ }).waitFor()
    await page.route(
      `**${tickets}?*`,
      async (route) => {
        const response = await route.fetch()
        const before = frames.length
        await tim.open('Came meanwhile')
        await waitFor(() => frames.length > before)
        await route.fulfill({ response })
      },
      { times: 1 },
    )
    await delayEffects(page)
    await page.getByRole('button', { name: /1 new/ }).click()
    await row('Came before').waitFor()
    await page.getByRole('button', { name: /1 new/ }).click()
    await row('Came meanwhile').waitFor()
  })

  testAtLength('a search shows how many it finds, and where in a long ticket', async () => {
    const ivo = await customer('Ivo')
    const id = await ivo.open('Very long')
    await ivo.open('Longer')
    await ivo.write(id, 'The Café by the harbor')
    for (let n = 0; n < 20; n++) await ivo.write(id, `Line ${n}`)
    const found = () =>
      page.evaluate<string[]>("[...CSS.highlights.get('found') ?? []].map(String)")
    await page.goto(`${pages.base}/console/desk/${id}?view=all&q=cafe+harb`)
    await waitFor(async () => `${await found()}` === 'Café,harbor')
    expect(await page.locator('.title .amount').textContent()).toBe('1')
    const text = page.getByText('The Café by the harbor')
    await waitFor(async () => {
      const box = await text.boundingBox()
      return box !== null && box.y >= 0 && box.y < 600
    })
    await ivo.write(id, 'One more')
    await page.getByRole('button', { name: 'New message' }).waitFor()
    expect(await found()).toEqual(['Café', 'harbor'])
  })
})
