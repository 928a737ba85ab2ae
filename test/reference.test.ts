import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { testAtLength } from './support/faults.ts'
import { expectAccessible, expectNarrowAccessible, password, startPages } from './support/pages.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

type Named = { operationId: string; summary: string }
type Described = {
  paths: Record<string, Record<string, Named>>
  webhooks: Record<string, { post: Named }>
  components: { messages: Record<string, { name: string }> }
}

describe.skipIf(!tools.chromium)('the API reference', () => {
  let pages: Awaited<ReturnType<typeof startPages>>
  let page: Page
  beforeAll(async () => {
    pages = await startPages()
    page = await pages.open('/docs')
  })
  afterAll(async () => {
    await pages[Symbol.asyncDispose]()
    expect(pages.wrongs).toEqual([])
  })

  const described = async (path: string) =>
    (await (await fetch(pages.base + path)).json()) as Described

  const partOf = (id: string) => page.locator(`#${id}`)

  /** Follows a link to a section. */
  async function leadTo(id: string) {
    await partOf(id).locator('.title-link').dispatchEvent('click')
    return partOf(id)
  }

  /** Opens the form of an operation. */
  async function openForm(id: string) {
    const part = await leadTo(id)
    await part.getByRole('button', { name: 'Try it' }).click()
    return part
  }

  test('every operation, webhook event and frame of the documents is on the page', async () => {
    const { paths, webhooks } = await described('/v1/openapi.json')
    const { components } = await described('/v1/asyncapi.json')
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, summary }]) => [
        operationId,
        summary.replace(/\.$/, '').replaceAll('`', ''),
        `${method.toUpperCase()}${path}`,
      ]),
    )
    const events = Object.entries(webhooks).map(([event, { post }]) => [
      post.operationId,
      event,
      'POSTyour endpoint',
    ])
    await page.locator('article').first().waitFor()
    const shown = await page.locator('article:has(.endpoint)').evaluateAll((parts) =>
      parts.map(({ id, children: [text] }) => {
        const inside = (what: string) => text?.querySelector(what)?.textContent
        return [id, inside('h3'), inside('.endpoint')]
      }),
    )
    const expected = [...operations, ...events]
    expect(shown.filter(([id]) => id !== 'connecting').toSorted()).toEqual(expected.toSorted())
    const frames = Object.entries(components.messages).map(([id, { name }]) => `${id} ${name}`)
    const parts = await page
      .locator('article')
      .evaluateAll((all) =>
        all.map(({ id, children: [text] }) => `${id} ${text?.querySelector('h3')?.textContent}`),
      )
    expect(frames.filter((frame) => !parts.includes(frame))).toEqual([])
    expect(new Set(parts.map((part) => part.split(' ')[0])).size).toBe(parts.length)
  })

  // Operations look alike: checking two of them takes axe one second instead of fifteen.
  testAtLength(
    'the reference is accessible, with a response, and unfolded on a narrow screen',
    async () => {
      await page.getByRole('heading', { name: 'Rate limits' }).waitFor()
      await page
        .locator('article:not(#getHealth, #adminGetTicket), nav li:nth-child(n + 3)')
        .evaluateAll((parts) => parts.map((part) => part.remove()))
      await expectAccessible(page)
      const form = await openForm('getHealth')
      await form.getByRole('button', { name: 'Send GET' }).click()
      await form.getByText('200 OK').waitFor()
      await expectAccessible(page, '#getHealth')
      await page.setViewportSize({ width: 320, height: 640 })
      const part = await leadTo('adminGetTicket')
      await part.getByText('Fields of messages').click()
      await part.getByText('Fields of author').first().click()
      await page.getByRole('button', { name: 'Contents' }).click()
      await expectNarrowAccessible(page)
      await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
      await isAtTop(page, 'webhooks')
    },
  )

  testAtLength(
    'a link opens its operation, scrolling changes the URL, and back returns',
    async () => {
      await pages.open('/docs#sendMessage')
      await partOf('sendMessage').getByText('at most 5,000 characters').waitFor()
      await isAtTop(page, 'sendMessage')
      expect(new URL(page.url()).pathname).toBe('/docs/sendMessage')
      await page
        .getByRole('navigation')
        .getByRole('link', { name: /^Mutes a conversation/ })
        .click()
      await page.waitForURL('**/docs/muteConversation')
      await isAtTop(page, 'muteConversation')
      await page.mouse.move(700, 400)
      await page.mouse.wheel(0, 3_000)
      await page.waitForURL((url) => !/muteConversation|sendMessage/.test(url.pathname))
      await page.goBack()
      await page.waitForURL('**/docs/sendMessage')
      await isAtTop(page, 'sendMessage')
    },
  )

  testAtLength('the search matches any word, and Enter opens the first result', async () => {
    const links = page.getByRole('navigation', { name: 'Reference' }).getByRole('link')
    await links.first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('note ticket')
    await page.getByText('2 found').waitFor()
    expect(await links.allTextContents()).toContainEqual(expect.stringContaining('Adds a note'))
    await page.getByRole('searchbox').fill('users/me/export')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/docs/exportAccount')
    await isAtTop(page, 'exportAccount')
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Exports')
    await page.getByRole('searchbox').fill('xyzzy')
    await page.getByText('Nothing is called').waitFor()
    await page.getByRole('searchbox').fill('')
  })

  testAtLength(
    'a token and a file are used as given, and the token is forgotten with the page',
    async () => {
      const { token } = await pages.register('Nina')
      const part = await openForm('uploadFile')
      await part.getByRole('button', { name: 'Log in' }).click()
      await page.getByLabel('Or an access token').fill(token)
      await page.getByRole('button', { name: 'Use this token' }).click()
      const file = { name: 'größe.txt', mimeType: 'text/plain', buffer: Buffer.from('12 cm') }
      await part.getByLabel('File', { exact: true }).setInputFiles(file)
      await part.getByRole('button', { name: 'Send POST' }).click()
      await part.getByText('201 Created').waitFor()
      await part.getByText('"größe.txt"').waitFor()
      await page.reload()
      await part.getByRole('button', { name: 'Try it' }).click()
      await part.getByText('Without a token').waitFor()
    },
  )

  test('a request is sent as the logged-in user, and a refusal is shown as received', async () => {
    const part = await openForm('getProfile')
    await part.getByRole('button', { name: 'Send GET' }).click()
    await part.getByText('401 Unauthorized').waitFor()
    await part.getByRole('button', { name: 'Log in' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('E-mail address').fill(pages.admin.email)
    await dialog.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await part.getByText('As grace').waitFor()
    await part.getByRole('button', { name: 'Send GET' }).click()
    await part.getByText('200 OK').waitFor()
    await part.getByText(`"${pages.admin.id}"`).waitFor()

    const conversation = await openForm('createConversation')
    const body = conversation.getByLabel('Body')
    expect(JSON.parse(await body.inputValue())).toEqual({ user_id: expect.any(String) })
    await body.fill('{"user_id": "nobody"}')
    await conversation.getByRole('button', { name: 'Send POST' }).click()
    await conversation.getByText('400 Bad Request').waitFor()
    await conversation.getByText('"details": {').waitFor()
    await conversation.getByText('x-request-id').waitFor()
    await body.fill('{"user_id": ')
    await conversation.getByRole('button', { name: 'Send POST' }).click()
    await conversation.getByText('The body is not valid JSON').waitFor()
  })

  testAtLength(
    'examples are copied as a command or as a call of the client, and each response is shown',
    async () => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      const part = await leadTo('sendMessage')
      await part.getByRole('button', { name: /^Copy: Request/ }).click()
      await part.getByRole('button', { name: 'Copied' }).waitFor()
      const copied = () => page.evaluate('navigator.clipboard.readText()')
      expect(await copied()).toStartWith("curl -X POST \\\n  'http://")
      await part.getByRole('button', { name: 'Client' }).click()
      await part.getByRole('button', { name: /^Copy: Request/ }).click()
      await part
        .getByText("await client.request('POST /v1/chat/conversations/{id}/messages', {")
        .waitFor()
      await part.getByLabel('Which answer').selectOption('403 blocked')
      await part.getByText('"forbidden"').first().waitFor()
    },
  )

  testAtLength(
    'the word mark leads to the start page, which is accessible and links to everything',
    async () => {
      await page.getByRole('link', { name: 'Hostline', exact: true }).click()
      await page.getByRole('heading', { name: 'The first admin' }).waitFor()
      await expectAccessible(page)
      await expectNarrowAccessible(page)
      const links = await page
        .locator('main a')
        .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))
      const answers = await Promise.all(links.map((path) => fetch(pages.base + path)))
      expect(answers.map(({ status }) => status)).toEqual(links.map(() => 200))
      expect(links).toContain('/demo')
    },
  )
})

/** Waits until a section is at the top, below the bar. */
async function isAtTop(page: Page, id: string) {
  await waitFor(() => page.evaluate(`Math.abs(${topOf(id)} - 56) < 8`))
}

const topOf = (id: string) => `document.getElementById('${id}').getBoundingClientRect().top`
