import { afterAll, beforeAll, expect } from 'bun:test'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { borrowPage, returnPage } from './support/browser.ts'
import { createConsumer } from './support/consumers.ts'
import { startFaultProxy } from './support/fault-proxy.ts'
import { describeAtLength, testAtLength } from './support/faults.ts'
import { startService, type TestService } from './support/service.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

// A third-party app, built by Vite.
const consumer = createConsumer({
  'index.html':
    '<!doctype html><title>App</title><link rel="icon" href="data:,"><script type="module" src="/main.ts"></script>',
  'main.ts': `import { createClient, webStorage } from 'hostline-client'
    const baseUrl = new URLSearchParams(location.search).get('service')
    const client = createClient({ baseUrl, storage: webStorage(localStorage) })
    Object.assign(globalThis, { client, bodies: [] })
    client.on('new_message', ({ message }) => bodies.push(message.body))
    client.restore()`,
})
afterAll(() => consumer[Symbol.dispose]())

/** The app in a browser, served by another host than the service. */
async function startApp({ host }: { host: string }) {
  const app = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const file = Bun.file(consumer.path(`dist${pathname === '/' ? '/index.html' : pathname}`))
      return (await file.exists()) ? new Response(file) : new Response(null, { status: 404 })
    },
  })
  const origin = `http://${host}:${app.port}`
  const service = await startService({ listen: true, environment: { CORS_ORIGINS: origin } })
  const proxy = startFaultProxy(service.base)
  const page = await borrowPage()
  return {
    service,
    proxy,
    page,
    origin,
    async open(tab = page): Promise<Page> {
      await tab.goto(`${origin}/?service=${encodeURIComponent(proxy.base)}`)
      return tab
    },
    async [Symbol.asyncDispose]() {
      await returnPage(page)
      await proxy[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
      await app.stop(true)
    },
  }
}

describeAtLength.skipIf(!tools.chromium)('an app built with Vite, in a browser', () => {
  let built: Awaited<ReturnType<typeof consumer.tool>>
  beforeAll(async () => {
    await consumer.addClient()
    mkdirSync(consumer.path('public'))
    await Bun.write(
      consumer.path('public/service-worker.js'),
      Bun.file(consumer.path('node_modules/hostline-client/service-worker.js')),
    )
    built = await consumer.tool('vite', 'build', '--logLevel', 'error')
  })

  testAtLength('builds without a warning', () => {
    expect(built).toEqual({ exitCode: 0, output: '' })
  })

  testAtLength(
    'chats from an insecure origin, shares a session between tabs and continues after a reload',
    async () => {
      await using all = await startApp({ host: 'app.test' })
      const one = await all.open()
      const other = await all.open(await one.context().newPage())
      const bob = await all.service.register('bob')
      expect(await one.evaluate('[isSecureContext, typeof crypto.randomUUID]')).toEqual([
        false,
        'undefined',
      ])
      await one.evaluate(`client.register({ email: 'ada@example.com', password: 'correct horse' })`)
      await other.evaluate('client.restore()')
      await one.evaluate('client.connect()')
      const id = await one.evaluate(`client.conversations.open('${bob.id}').then(({ id }) => id)`)
      await one.evaluate(`client.send('${id}', { body: 'hello' })`)
      await one.waitForFunction(`bodies.includes('hello')`)

      // Both tabs find at the same moment that the token is refused.
      await one.evaluate(`{
      const key = Object.keys(localStorage).find((key) => key.endsWith(' session'))
      const stored = JSON.parse(localStorage.getItem(key))
      localStorage.setItem(key, JSON.stringify({ ...stored, accessToken: 'not.a.token' }))
    }`)
      for (const tab of [one, other]) await tab.reload()
      const people = await Promise.all(
        [one, other].map((tab) => tab.evaluate('client.account.get()')),
      )
      expect(people).toMatchObject([{ email: 'ada@example.com' }, { email: 'ada@example.com' }])
      expect(await other.evaluate('client.user().email')).toBe('ada@example.com')
      await other.close()
    },
  )

  testAtLength('sends messages after a reload that it could not send before', async () => {
    await using all = await startApp({ host: 'app.test' })
    const page = await all.open()
    const bob = await all.service.register('bob')
    await page.evaluate(`client.register({ email: 'ada@example.com', password: 'correct horse' })`)
    const id = await page.evaluate(`client.conversations.open('${bob.id}').then(({ id }) => id)`)
    all.proxy.control.isOffline = true
    await page.evaluate(`void client.send('${id}', { body: 'kept' })`)
    all.proxy.control.isOffline = false
    await page.reload()
    await page.evaluate('Promise.all(client.pending().map(({ sent }) => sent))')
    const { body } = await all.service.call('GET', `/v1/chat/conversations/${id}/messages`, bob)
    expect(body.data.map((message: { body: string }) => message.body)).toEqual(['kept'])
  })

  testAtLength('sends a file with its progress, and shows the reason of a refusal', async () => {
    await using all = await startApp({ host: 'app.test' })
    const page = await all.open()
    await page.evaluate(`client.register({ email: 'ada@example.com', password: 'correct horse' })`)
    const [file, last, refusal] = (await page.evaluate(`(async () => {
      const steps = []
      const onProgress = (sent, total) => steps.push([sent, total])
      const file = await client.files.upload(new File(['x'.repeat(1_000_000)], 'ä.txt', { type: 'text/plain' }), { onProgress })
      const large = new Blob([new Uint8Array(26_000_000)])
      const refusal = await client.files.upload(large, { onProgress }).catch(({ name, code, status, requestId }) =>
        ({ name, code, status, hasId: requestId?.length === 26 }))
      return [file, steps.find(([sent, total]) => sent === total), refusal]
    })()`)) as [unknown, unknown, unknown]
    expect(file).toMatchObject({
      file_name: 'ä.txt',
      file_size: 1_000_000,
      file_type: 'text/plain',
    })
    expect(last).toEqual([1_000_000, 1_000_000])
    expect(refusal).toMatchObject({ name: 'ApiError', code: 'validation_error', status: 413 })
  })

  testAtLength(
    'runs the socket of docs/guide.md in the console of the service’s own page',
    async () => {
      await using service = await startService({ listen: true })
      await greet(service)
      const page = await borrowPage()
      const said: string[] = []
      page.on('console', (line) => said.push(line.text()))
      await page.goto(service.base)
      await page.evaluate(`(async () => { ${fromGuide('js', service.base)} })()`)
      await waitFor(() => said.length === 3)
      expect(said).toEqual(['new_message Hello Bob', 'new_message Hello Ada', 'ack Hello Ada'])
      await returnPage(page)
    },
  )

  testAtLength('runs the page of docs/guide.md', async () => {
    await using all = await startApp({ host: 'localhost' })
    await greet(all.service)
    await Bun.write(consumer.path('dist/guide.html'), fromGuide('html', all.service.base))
    const { page } = all
    await page.goto(`${all.origin}/guide.html`)
    await page.waitForSelector('li')
    await page.fill('input', 'Hello Ada')
    await page.click('button')
    await page.waitForSelector('li + li')
    expect(await page.locator('li').allTextContents()).toEqual(['Hello Bob', 'Hello Ada'])
  })

  testAtLength(
    'shows a push with the package’s service worker, also without an open page',
    async () => {
      await using all = await startApp({ host: 'localhost' })
      const page = await all.open()
      await page.context().grantPermissions(['notifications'], { origin: all.origin })
      const devtools = await page.context().newCDPSession(page)
      const registered = new Promise<string>((resolve) => {
        devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: [first] }) => {
          if (first) resolve(first.registrationId)
        })
      })
      await devtools.send('ServiceWorker.enable')
      await page.evaluate(`navigator.serviceWorker.register('/service-worker.js')
      .then(() => navigator.serviceWorker.ready).then(() => true)`)
      const registrationId = await registered
      const data = JSON.stringify({
        title: 'Bob',
        body: 'hello',
        data: { type: 'chat_message' },
        tag: 'c',
      })
      await devtools.send('ServiceWorker.deliverPushMessage', {
        origin: all.origin,
        registrationId,
        data,
      })
      const shown = `navigator.serviceWorker.ready.then((it) => it.getNotifications()).then((all) =>
      all.map(({ title, body, data, tag }) => ({ title, body, data, tag })))`
      const found = await page.waitForFunction(`${shown}.then((all) => all.length > 0 && all)`)
      expect(await found.jsonValue()).toEqual([
        { title: 'Bob', body: 'hello', data: { type: 'chat_message' }, tag: 'c' },
      ])
    },
  )
})

async function greet(service: TestService) {
  const [ada, bob] = [await service.register('ada'), await service.register('bob')]
  await service.say(ada, await service.openConversation(ada, bob), 'Hello Bob')
}

/** The first code block of a language. */
function fromGuide(language: string, base: string) {
  const guide = readFileSync(join(import.meta.dir, '../docs/guide.md'), 'utf8')
  const [, block = ''] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(guide) ?? []
  return block.replaceAll('http://localhost:3000', base)
}
