import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { AppError, type ErrorKind, errors } from '../src/lib/errors.ts'
import { describeAtLength, testAtLength } from './support/faults.ts'
import { expectAccessible, expectNarrowAccessible, password, startPages } from './support/pages.ts'
import { startService, type TestService } from './support/service.ts'
import { shared } from './support/shared.ts'
import { tools } from './support/tools.ts'
import { waitFor, waitOut } from './support/wait.ts'

type Named = { operationId: string; summary: string }
type Described = {
  paths: Record<string, Record<string, Named>>
  webhooks: Record<string, { post: Named }>
  components: { messages: Record<string, { name: string }> }
}

const start = shared(startService)

async function read(service: TestService, path: string): Promise<string> {
  return (await service.app.handle(new Request(`http://localhost${path}`))).text()
}

const described = async (service: TestService, path: string) =>
  JSON.parse(await read(service, path)) as Described

/** All pages, as one text. */
async function readReference(service: TestService): Promise<string> {
  const first = await read(service, '/docs')
  const others = [...first.matchAll(/<div class="nav-group"><a href="(\/docs\/[^#"]*)/g)]
  const texts = await Promise.all(others.map(([, path = '']) => read(service, path)))
  return [first, ...texts].join('\n')
}

const textOf = (markup = '') =>
  markup
    .replace(/<[^>]*>/g, '')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&gt;', '>')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&')

describe('the page of the reference', () => {
  test('has every operation, webhook event and frame of the documents', async () => {
    const service = await start()
    const { paths, webhooks } = await described(service, '/v1/openapi.json')
    const { components } = await described(service, '/v1/asyncapi.json')
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { operationId, summary }]) =>
          `${operationId}: ${summary.replace(/\.$/, '').replaceAll('`', '')}: ${method.toUpperCase()} ${path}`,
      ),
    )
    const events = Object.entries(webhooks).map(
      ([event, { post }]) => `${post.operationId}: ${event}: POST your endpoint`,
    )
    const page = await readReference(service)
    const articles = [...page.matchAll(/<article class="part" id="([^"]*)".*?<\/article>/gs)]
    const shown = articles.map(([article, id]) => {
      const [title, endpoint] = [/<h3.*?<\/h3>/s, /<p class="endpoint">.*?<\/p>/s].map((part) =>
        textOf(part.exec(article)?.[0]),
      )
      return `${id}: ${title}: ${endpoint}`
    })
    const frames = Object.entries(components.messages).map(([id, { name }]) => `${id}: ${name}: `)
    const expected = [...operations, ...events, ...frames]
    expect(expected.filter((one) => !shown.includes(one))).toEqual([])
    const others = shown.filter((one) => !expected.includes(one) && !one.startsWith('object-'))
    expect(others.map((one) => one.split(':')[0])).toEqual([
      ...[
        'basics',
        'authentication',
        'errors',
        'reasons',
        'pagination',
        'rate-limits',
        'repeating',
      ],
      'connecting',
    ])
  })

  test('has ids of its own on each page, and links that lead to them', async () => {
    const service = await start()
    const all = await readReference(service)
    const pages = all.split('</html>').slice(0, -1)
    const idsOf = (page: string) => [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
    for (const page of pages) expect(new Set(idsOf(page)).size).toBe(idsOf(page).length)
    const own = pages.flatMap((page) =>
      [...page.matchAll(/ href="#([^"]*)"/g)].filter(([, id]) => !idsOf(page).includes(id)),
    )
    expect(own).toEqual([])
    const links = new Set([...all.matchAll(/ href="(\/docs[^"]*)"/g)].map(([, href]) => href))
    expect(links.size).toBeGreaterThan(100)
    for (const link of links) {
      const [path = '', id = ''] = link?.split('#') ?? []
      expect((await read(service, path)).includes(` id="${id}"`) || link).toBe(true)
    }
  })

  test('explains every reason, and operations lead to those that they may have', async () => {
    const page = await readReference(await start())
    for (const kind of Object.keys(errors) as ErrorKind[]) {
      const { status, code, reason = code } = new AppError(kind)
      expect(page).toContain(`<li id="reason-${status}-${reason}">`)
    }
    const [send = ''] = /<article class="part" id="sendMessage".*?<\/article>/s.exec(page) ?? []
    expect(send).toContain('href="/docs#reason-403-blocked"')
    expect(send).not.toContain('reason-409-stale_ticket')
  })

  test('lets choose where a parameter takes one of few values', async () => {
    const page = await readReference(await start())
    const [list = ''] =
      /<article class="part" id="adminListTickets".*?<\/article>/s.exec(page) ?? []
    expect(list).toContain(
      '<select name="query priority"><option></option><option>low</option><option>normal</option>',
    )
  })

  test('has no style, script or handler within its markup, and escapes what it shows', async () => {
    const page = await readReference(await start())
    expect(/<script(?! [^>]*src=)|<style| style=| on\w+="/.exec(page)?.[0]).toBeUndefined()
    expect(page.includes('-H &#39;authorization: Bearer ACCESS_TOKEN&#39;')).toBe(true)
  })

  test('finds no section by the name of the host, whose port may look like a status', async () => {
    const index = JSON.parse(await read(await start(), '/docs/search.json'))
    const named = index.filter(({ texts: [name] }: { texts: string[] }) =>
      name?.includes('localhost'),
    )
    expect(named).toEqual([])
  })

  test('an address of a section leads to its place', async () => {
    const { app } = await start()
    const answer = await app.handle(new Request('http://localhost/docs/sendMessage'))
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/docs/chat#sendMessage'])
    const odd = await app.handle(new Request('http://localhost/docs//evil.example/"x'))
    expect(odd.headers.get('location')).toBe('/docs')
  })

  test('loads at most 60 KB, of which its script is at most 8', async () => {
    const { app } = await start()
    const headers = { 'accept-encoding': 'gzip' }
    const page = await read(await start(), '/docs')
    const paths = [...page.matchAll(/(?:href|src)="(\/assets\/[\w.-]+)"/g)].map(([, path]) => path)
    const sizes = await Promise.all(
      ['/docs', ...paths].map(async (path) => {
        const answer = await app.handle(new Request(`http://localhost${path}`, { headers }))
        return [path, (await answer.arrayBuffer()).byteLength] as const
      }),
    )
    const sum = (some: typeof sizes) => some.reduce((total, [, size]) => total + size, 0)
    expect(sum(sizes.filter(([path]) => path?.endsWith('.js')))).toBeLessThan(8_000)
    expect(sum(sizes)).toBeLessThan(60_000)
  })
})

describeAtLength.skipIf(!tools.chromium)('the reference in a browser', () => {
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

  const partOf = (id: string) => page.locator(`#${id}`)

  /** Opens the form of an operation. */
  async function openForm(id: string) {
    await page.goto(`${pages.base}/docs/${id}`)
    const part = partOf(id)
    await part.locator('summary', { hasText: 'Try it' }).click()
    return part
  }

  testAtLength('nothing moves while it loads, also when its font is late', async () => {
    const shown = Promise.withResolvers<void>()
    await page.route('**/*.woff2', async (route) => {
      await shown.promise
      await route.continue()
    })
    await page.goto(`${pages.base}/docs`, { waitUntil: 'commit' })
    await waitFor(() => page.evaluate('performance.getEntriesByType("paint").length > 0'))
    shown.resolve()
    await page.waitForLoadState()
    await page.unrouteAll()
    const shifts = await page.evaluate(`(async () => {
      const found = []
      const observer = new PerformanceObserver((list) => found.push(...list.getEntries()))
      observer.observe({ type: 'layout-shift', buffered: true })
      await document.fonts.ready
      for (const _ of [1, 2]) await new Promise(requestAnimationFrame)
      return [...found, ...observer.takeRecords()].map(({ value, sources }) =>
        [value, ...sources.map(({ node }) => node?.textContent.slice(0, 80))])
    })()`)
    expect(shifts).toEqual([])
  })

  // Operations look alike: checking two of them takes axe one second instead of fifteen.
  testAtLength(
    'it is accessible, in both themes, with a response, and unfolded on a narrow screen',
    async () => {
      const keepOnly = (ids: string) =>
        page
          .locator(`article:not(${ids}), nav li:nth-child(n + 3)`)
          .evaluateAll((parts) => parts.map((part) => part.remove()))
      await keepOnly('#reasons, #rate-limits')
      await expectAccessible(page)
      await page.getByLabel('Theme').selectOption('dark')
      const form = await openForm('getHealth')
      await keepOnly('#getHealth')
      await form.getByRole('button', { name: 'Send GET' }).click()
      await form.getByText('200 OK', { exact: true }).waitFor()
      await expectAccessible(page)
      await page.setViewportSize({ width: 320, height: 640 })
      await openForm('adminListTickets')
      await keepOnly('#adminListTickets')
      await partOf('adminListTickets').getByText('Either').click()
      await page.getByRole('button', { name: 'Contents' }).click()
      await expectNarrowAccessible(page)
      await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
      await page.waitForURL('**/docs/webhooks#webhooks')
      await isAtTop(page, 'webhooks')
      page = await pages.open('/docs')
    },
  )

  testAtLength('limits, reasons and examples fit on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 800 })
    const tooWide = await page
      .locator('.limits, .reasons > li, .code pre, .endpoint, .fields > li')
      .evaluateAll((all) =>
        all
          .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1)
          .map(({ textContent }) => textContent),
      )
    expect(tooWide).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
    await page.setViewportSize({ width: 320, height: 640 })
    const selects = page.locator('.top-bar select')
    const last = await selects.last().boundingBox()
    expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual(320 - 8)
    // What is chosen is not cut.
    const cut = await selects.evaluateAll((all) =>
      all.filter((select) => {
        const { offsetWidth: width, style } = select
        style.maxWidth = 'none'
        return select.offsetWidth > width
      }),
    )
    expect(cut).toEqual([])
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  testAtLength(
    'a link opens its operation, scrolling changes the address, and back returns',
    async () => {
      page = await pages.open('/docs/sendMessage')
      await isAtTop(page, 'sendMessage')
      const links = page.getByRole('navigation', { name: 'Reference' })
      await links.getByRole('link', { name: /^Mutes a conversation/ }).click()
      await page.waitForURL('**/docs/chat#muteConversation')
      await isAtTop(page, 'muteConversation')
      expect(await page.evaluate('document.activeElement.textContent')).toContain('Mutes')
      await page.mouse.move(700, 400)
      await page.mouse.wheel(0, 3_000)
      await page.waitForURL(({ hash }) => !/muteConversation|sendMessage/.test(hash))
      await page.goBack()
      await page.waitForURL('**/docs/chat#sendMessage')
      await isAtTop(page, 'sendMessage')
    },
  )

  testAtLength(
    'the search finds names, statuses, reasons and secrets, and Enter opens the first',
    async () => {
      // A refusal is no index: the next key reads it again.
      const refusal = { status: 503, json: { error: { code: 'unavailable', message: 'Later.' } } }
      await page.route('**/docs/search.json', (route) => route.fulfill(refusal), { times: 1 })
      await page.locator('.search input').fill('m')
      await page.getByText('The service could not be reached.').waitFor()
      const found = page.getByRole('navigation', { name: 'Found' }).getByRole('link')
      const search = page.getByRole('searchbox')
      const firstFor = async (text: string) => {
        await search.fill(text)
        return (await found.allTextContents())[0]
      }
      await page.route('**/search.json', (route) => route.abort(), { times: 1 })
      const failed = page.waitForEvent('requestfailed')
      await search.fill('note')
      await failed
      await page.getByText('The service could not be reached.').waitFor()
      await search.fill('')
      await page.locator('h1').click()
      await page.keyboard.press('/')
      await page.keyboard.type('note ticket')
      await found.filter({ hasText: 'Adds a note' }).first().waitFor()
      expect(await firstFor('429')).toContain('rate_limited')
      expect(await firstFor('whsec')).toContain('Creates a webhook')
      expect(await firstFor('stale_ticket')).toContain('Reasons')
      expect(await firstFor('X-RateLimit-Reset')).toContain('Rate limits')
      await search.fill('users/me/export')
      await page.keyboard.press('Enter')
      await page.waitForURL('**#exportAccount')
      await isAtTop(page, 'exportAccount')
      await search.fill('xyzzy')
      await page.getByText('Nothing has “xyzzy”').waitFor()
      await search.fill('')
      await page.getByRole('navigation', { name: 'Reference' }).waitFor()
    },
  )

  testAtLength(
    'a request is sent as the logged-in user, and a refusal is shown as received',
    async () => {
      const part = await openForm('getProfile')
      await part.getByRole('button', { name: 'Send GET' }).click()
      await part.getByText('401 Unauthorized', { exact: true }).waitFor()
      await part.getByRole('button', { name: 'Log in' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('E-mail address').fill(pages.admin.email)
      await dialog.getByLabel('Password').fill('wrong horse')
      await page.keyboard.press('Enter')
      await dialog.getByText('The e-mail address or the password is wrong.').waitFor()
      await dialog.getByLabel('Password').fill(password)
      // Enter pressed again before the response begins no second session.
      const held = Promise.withResolvers<void>()
      let logins = 0
      await page.route('**/v1/auth/login', async (route) => {
        logins++
        await held.promise
        await route.continue()
      })
      await page.keyboard.press('Enter')
      await waitFor(() => logins === 1)
      await page.keyboard.press('Enter')
      await waitOut(100)
      held.resolve()
      await part.getByText('As grace').waitFor()
      expect(logins).toBe(1)
      await page.unrouteAll()
      await part.getByRole('button', { name: 'Send GET' }).click()
      await part.getByText('200 OK', { exact: true }).waitFor()
      await part.getByText(`"${pages.admin.id}"`).waitFor()

      const conversation = await openForm('createConversation')
      const body = conversation.getByLabel('Body')
      expect(JSON.parse(await body.inputValue())).toEqual({ user_id: expect.any(String) })
      await body.fill('{"user_id": "nobody"}')
      await conversation.getByRole('button', { name: 'Send POST' }).click()
      await conversation.getByText('400 Bad Request', { exact: true }).waitFor()
      await conversation.getByText('"details": {').waitFor()
      await conversation.getByText('x-request-id', { exact: true }).waitFor()
      await body.fill('{"user_id": ')
      await conversation.getByRole('button', { name: 'Send POST' }).click()
      await conversation.getByText('The body is not valid JSON').waitFor()
    },
  )

  testAtLength(
    'the samples follow the form and the token, and the example of a ticket works as it stands',
    async () => {
      const part = await openForm('createTicket')
      const sample = part.locator('[data-sample=curl]')
      expect(await sample.textContent()).toMatch(/Bearer eyJ[\w.-]+'/)
      await part.getByRole('button', { name: 'Send POST' }).click()
      await part.getByText('201 Created', { exact: true }).waitFor()
      await part.getByLabel('Body').fill('{"subject": "It\'s late", "body": "Where is it?"}')
      expect(await sample.textContent()).toContain("It'\\''s late")
      const list = await openForm('listMessages')
      await list.getByLabel('id', { exact: true }).fill('01KJ/X')
      await list.getByLabel('limit').fill('5')
      const curl = list.locator('[data-sample=curl]')
      expect(await curl.textContent()).toContain('/v1/chat/conversations/01KJ%2FX/messages?limit=5')
      await page.getByLabel('Samples').selectOption('client')
      await curl.waitFor({ state: 'hidden' })
      const call = list.locator('[data-sample=client]')
      expect(await call.textContent()).toContain("params: { id: '01KJ/X' }, query: { limit: '5' }")
      await page.getByLabel('Samples').selectOption('curl')
      await list.getByRole('button', { name: 'Log out' }).click()
      expect(await curl.textContent()).toContain('Bearer ACCESS_TOKEN')
    },
  )

  testAtLength(
    'a token and a file are used as given, and the token stays until it is forgotten',
    async () => {
      const { token } = await pages.register('Nina')
      const part = await openForm('uploadFile')
      await part.getByRole('button', { name: 'Log in' }).click()
      await page.getByLabel('Or an access token').fill(token)
      await page.getByRole('button', { name: 'Use this token' }).click()
      const file = { name: 'größe.txt', mimeType: 'text/plain', buffer: Buffer.from('12 cm') }
      await part.getByLabel('File', { exact: true }).setInputFiles(file)
      await part.getByRole('button', { name: 'Send POST' }).click()
      await part.getByText('201 Created', { exact: true }).waitFor()
      await part.getByText('"größe.txt"').waitFor()
      const other = await openForm('getProfile')
      await other.getByText('With the token that you gave').waitFor()
      await other.getByRole('button', { name: 'Forget the token' }).click()
      await page.reload()
      await other.locator('summary', { hasText: 'Try it' }).click()
      await other.getByText('Without a token').waitFor()
    },
  )

  testAtLength('a sample is copied as it is shown', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto(`${pages.base}/docs/sendMessage`)
    const part = partOf('sendMessage')
    await part.getByRole('button', { name: /^Copy: Request/ }).click()
    await part.getByText('Copied').waitFor()
    const copied = () => page.evaluate('navigator.clipboard.readText()')
    expect(await copied()).toStartWith("curl -X POST 'http://")
  })

  testAtLength('the chosen theme is there before anything is shown, on every page', async () => {
    await page.getByLabel('Theme').selectOption('dark')
    for (const path of ['/', '/docs', '/reset-password', '/demo', '/console']) {
      await page.goto(pages.base + path, { waitUntil: 'commit' })
      await page.locator('body').waitFor({ state: 'attached' })
      expect([path, await page.locator('html').getAttribute('data-theme')]).toEqual([path, 'dark'])
      const [first = ''] = /<(script|link rel="stylesheet").*?>/.exec(await page.content()) ?? []
      expect(first).toMatch(/^<script src="\/assets\/theme-\w{8}\.js">$/)
    }
    page = await pages.open('/docs')
  })

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
