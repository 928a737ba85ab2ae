import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { openProfile } from './support/browser.ts'
import { hostline } from './support/command.ts'
import { testAtLength } from './support/faults.ts'
import { choose, expectAccessible, password, startPages } from './support/pages.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

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
    await page.getByRole('heading', { name: 'localhost' }).waitFor()
    await waitFor(async () => (await page.title()) === 'Log in · localhost', 'the title')
    await page.locator('main:focus').waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Log in' }).waitFor()
    await expectAccessible(page)
  })

  testAtLength('an admin who forgot the password gets a link', async () => {
    await page.getByRole('button', { name: 'Forgot the password?' }).click()
    await expectAccessible(page, 'dialog')
    await page.getByRole('dialog').getByLabel('Your address').fill(pages.admin.email)
    const asked = page.waitForResponse('**/v1/auth/password/forgot')
    await page.getByRole('button', { name: 'Mail the link' }).click()
    expect((await asked).status()).toBe(204)
    await page.getByText(pages.admin.email).waitFor()
  })

  testAtLength(
    'the session of an app on the same origin survives a visit of the console',
    async () => {
      const { email } = await pages.register('Ana')
      /** Runs the client of an app in the page. */
      const inApp = async (login?: { email: string; password: string }) => {
        await page.goto(`${pages.base}/`)
        return page.evaluate(
          async ({ path, baseUrl, login }) => {
            const { createClient, webStorage } = await import(path)
            const client = createClient({ baseUrl, storage: webStorage(localStorage) })
            return login ? client.login(login) : client.restore()
          },
          { path: '/client.js', baseUrl: pages.base, login },
        )
      }
      await inApp({ email, password })
      await page.goto(`${pages.base}/console`)
      await page.getByText('Log in as an admin.').waitFor()
      await pages.logIn(page)
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByRole('button', { name: 'Log in' }).waitFor()
      expect(await inApp()).toMatchObject({ email })
      await page.goto(`${pages.base}/console`)
    },
  )

  describe.each([
    ['forbids storage', forbidStorage, 'frieda'],
    ['has no room for more', fillStorage, 'fritz'],
  ] as const)('in a browser that %s', (_, limitStorage, name) => {
    testAtLength('console, demo and reference work', async () => {
      await using profile = await openProfile()
      const limited = await profile.newPage()
      await limited.addInitScript(limitStorage)
      await limited.goto(`${pages.base}/docs`)
      await limited.getByLabel('Theme').selectOption('dark')
      await limited.locator('html[data-theme=dark]').waitFor()
      await limited.goto(`${pages.base}/demo`)
      await limited.getByRole('heading').first().waitFor()
      await limited.goto(`${pages.base}/console`)
      await pages.logIn(limited)
      await limited.getByText('Live').waitFor()
    })

    testAtLength('an admin whose account has another language logs in', async () => {
      const { email } = await pages.createAdmin(`${name}@example.com`)
      await (await pages.trusted(email))('PATCH', '/v1/users/me', { locale: 'de' })
      await using profile = await openProfile()
      const limited = await profile.newPage()
      await limited.addInitScript(limitStorage)
      await limited.goto(`${pages.base}/console`)
      await limited.getByLabel('E-mail address').fill(email)
      await limited.getByLabel('Password').fill(password)
      await limited.keyboard.press('Enter')
      await limited.getByRole('button', { name: 'Abmelden' }).waitFor()
      await limited.getByRole('link', { name: 'Personen' }).click()
      await limited.getByRole('heading', { name: 'Personen' }).waitFor()
    })
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
    await page.locator('#main:focus').waitFor()
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
      await page.evaluate("localStorage.setItem('hostline draft x', '{}')")
      await other.getByRole('button', { name: 'Log out' }).click()
      const question = other.getByRole('dialog')
      await question.getByText('Delete an unsent draft?').waitFor()
      await question.getByRole('button', { name: 'Cancel' }).click()
      await question.waitFor({ state: 'hidden' })
      await other.getByRole('button', { name: 'Log out' }).click()
      await question.getByRole('button', { name: 'Log out' }).click()
      await page.getByText('Your session has ended').waitFor()
      expect(await page.evaluate("localStorage.getItem('hostline draft x')")).toBeNull()
      // Both go on after a login in one.
      await pages.logIn(page)
      await other.getByText('Live').waitFor()
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

  testAtLength('forced colours leave visible where one is', async () => {
    await pages.openConsole('/console/system')
    await page.locator('.tabs a[aria-current]').waitFor()
    await page.emulateMedia({ forcedColors: 'active' })
    const links = ['.side nav a', '.tabs a']
    const marked = `${JSON.stringify(links)}.map((links) => {
      const colour = (which) => getComputedStyle(document.querySelector(links + which)).backgroundColor
      return colour('[aria-current]') !== colour(':not([aria-current])')
    })`
    const isMarked = await page.evaluate(marked)
    await page.emulateMedia({ forcedColors: null })
    expect(isMarked).toEqual([true, true])
  })

  testAtLength('the chosen light or dark theme is kept', async () => {
    await pages.openConsole()
    await page.emulateMedia({ colorScheme: 'light' })
    await page.getByRole('link', { name: 'Account' }).click()
    const background = () =>
      page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const before = await background()
    await choose(page, 'Appearance', 'Dark')
    expect(await background()).not.toBe(before)
    await page.reload()
    await page.getByRole('button', { name: /^Appearance/ }).waitFor()
    expect(await background()).not.toBe(before)
  })

  testAtLength(
    'the console speaks the language of the account, also after a login elsewhere',
    async () => {
      await choose(page, 'Language', 'Deutsch')
      await page.locator('main').getByRole('button', { name: 'Abmelden' }).click()
      await page.getByText('Melden Sie sich als Admin an.').waitFor()
      await page.evaluate('localStorage.clear()')
      await page.reload()
      await pages.logIn(page)
      await page.getByRole('link', { name: 'Konto' }).click()
      expect(await page.locator('html').getAttribute('lang')).toBe('de')
      await choose(page, 'Sprache', 'Français')
      await page.setViewportSize({ width: 320, height: 640 })
      const last = await page.getByRole('link', { name: 'Compte' }).boundingBox()
      expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual(320)
      await page.setViewportSize({ width: 1280, height: 800 })
      await choose(page, 'Langue', 'English')
      await page.getByRole('link', { name: 'Account' }).waitFor()
    },
  )

  testAtLength(
    'single keys can be switched off, and a logout forgets what was drafted',
    async () => {
      await pages.openConsole('/console/account')
      const keys = page.getByLabel('Single keys run commands')
      // Without a wait between them: the second key counts for a second only.
      const goToBroadcast = () => Promise.all(['g', 'b'].map((key) => page.keyboard.press(key)))
      await keys.uncheck()
      await goToBroadcast()
      expect(page.url()).toEndWith('/console/account')
      await keys.check()
      await goToBroadcast()
      await page.getByLabel('Title').fill('A secret plan')
      const stored = () => page.evaluate('JSON.stringify(localStorage)')
      expect(await stored()).toContain('A secret plan')
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Log out' }).click()
      await page.getByRole('button', { name: 'Log in' }).waitFor()
      expect(await stored()).not.toContain('A secret plan')
    },
  )
})

// They run in the page before its scripts.
function forbidStorage() {
  const get = () => {
    throw new DOMException('denied', 'SecurityError')
  }
  for (const name of ['localStorage', 'sessionStorage']) {
    Object.defineProperty(globalThis, name, { get, configurable: true })
  }
}
function fillStorage() {
  Storage.prototype.setItem = () => {
    throw new DOMException('full', 'QuotaExceededError')
  }
}

/** Runs in the page: makes its access token expire soon. */
function expireSoon() {
  for (const [key, text] of Object.entries({ ...localStorage })) {
    if (!key.endsWith(' session')) continue
    const session = { ...JSON.parse(text), expiresAt: Date.now() + 20_000 }
    localStorage.setItem(key, JSON.stringify(session))
  }
}
