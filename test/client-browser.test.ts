import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { temporaryDirectory } from './support/directory.ts'
import { startFaultProxy } from './support/fault-proxy.ts'
import { startService } from './support/service.ts'

const executablePath = Bun.which('chromium') ?? Bun.which('google-chrome')
const switches = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-sync']

/** Two tabs of one browser, on the origin under which they reach the service. */
async function startTabs() {
  const directory = temporaryDirectory()
  const service = await startService({ listen: true })
  const proxy = startFaultProxy(service.base)
  const browser = await chromium.launchPersistentContext(`${directory.path}/profile`, {
    executablePath: executablePath ?? '',
    args: switches,
    headless: true,
    bypassCSP: true,
  })
  const open = async () => {
    const page = await browser.newPage()
    await page.goto(`${proxy.base}/v1/openapi.json`)
    await load(page)
    return page
  }
  return {
    service,
    proxy,
    tabs: [await open(), await open()] as const,
    async [Symbol.asyncDispose]() {
      await browser.close()
      await proxy[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
      directory[Symbol.dispose]()
    },
  }
}

/** Gives a page the client as a browser gets it, with the storage that the tabs share. */
async function load(page: Page) {
  const entrypoints = [join(import.meta.dir, '../client/client.ts')]
  const { outputs } = await Bun.build({ entrypoints, target: 'browser', minify: true })
  const script = await outputs[0]?.text()
  await page.evaluate(`import(URL.createObjectURL(
    new Blob([${JSON.stringify(script)}], { type: 'text/javascript' })
  )).then(({ createClient, webStorage }) => {
    globalThis.client = createClient({ baseUrl: location.origin, storage: webStorage(localStorage) })
  })`)
}

describe.skipIf(!executablePath)('the client, in a browser', () => {
  test('chats, shares a session between tabs and goes on after a reload', async () => {
    await using all = await startTabs()
    const { service, proxy, tabs } = all
    const [one, other] = tabs
    const bob = await service.register('bob')
    await one.evaluate(`client.register({ email: 'ada@example.com', password: 'correct horse' })`)
    await other.evaluate('client.restore()')
    await one.evaluate(`client.conversations.open('${bob.id}').then(({ id }) => {
      globalThis.conversation = id
      globalThis.bodies = []
      globalThis.channel = client.connect()
      channel.on('new_message', ({ message }) => bodies.push(message.body))
    })`)
    await one.waitForFunction(`channel.status() === 'open'`)
    await one.evaluate(`client.send(conversation, { body: 'hello' })`)
    await one.waitForFunction(`bodies.includes('hello')`)

    // Both tabs find that the token no longer works, at once.
    const spoil = `localStorage.setItem('hostline.session', JSON.stringify({
      ...JSON.parse(localStorage.getItem('hostline.session')), accessToken: 'not.a.token' }))`
    await one.evaluate(spoil)
    for (const tab of tabs) {
      await tab.reload()
      await load(tab)
      await tab.evaluate('client.restore()')
    }
    const people = await Promise.all(tabs.map((tab) => tab.evaluate('client.me()')))
    expect(people).toMatchObject([{ email: 'ada@example.com' }, { email: 'ada@example.com' }])
    // What one tab stored may reach the other late; the service forgives the second try.
    expect(proxy.count('POST', '/v1/auth/refresh')).toBeWithin(1, 3)
    expect(proxy.frames.toServer).toMatchObject([{ type: 'message', body: 'hello' }])
    const sessions = await Promise.all(tabs.map((tab) => tab.evaluate(`client.user().email`)))
    expect(sessions).toEqual(['ada@example.com', 'ada@example.com'])
  })
})
