import { afterAll, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { borrowPage, returnPage } from './support/browser.ts'
import { createConsumer } from './support/consumers.ts'
import { startFaultProxy } from './support/fault-proxy.ts'
import { testAtLength } from './support/faults.ts'
import { png } from './support/files.ts'
import { freePort } from './support/process.ts'
import { startService } from './support/service.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

const folder = join(import.meta.dir, '../examples/web')
const consumer = createConsumer()
afterAll(() => consumer[Symbol.dispose]())

test('the example app is short, and its versions are exact, locked and those of the tests', async () => {
  const sources = [...new Bun.Glob('src/*.{ts,tsx}').scanSync(folder)]
  const texts = await Promise.all(sources.map((path) => Bun.file(join(folder, path)).text()))
  expect(texts.join('\n').match(/.+/g)?.length).toBeLessThanOrEqual(250)
  const { dependencies, devDependencies } = await Bun.file(join(folder, 'package.json')).json()
  const { packages } = await Bun.file(join(folder, 'package-lock.json')).json()
  expect(packages['']).toMatchObject({ dependencies, devDependencies })
  const tested = await Bun.file(join(import.meta.dir, 'consumers/package.json')).json()
  expect(tested.devDependencies).toMatchObject({ ...dependencies, ...devDependencies })
})

/** The app, compiled and built as its README says, with the service behind its own origin. */
async function startApp() {
  await consumer.addClient()
  for (const name of ['index.html', 'tsconfig.json', 'vite.config.ts', 'src'])
    cpSync(join(folder, name), consumer.path(name), { recursive: true })
  expect(await consumer.tool('tsc')).toEqual({ exitCode: 0, output: '' })
  expect(await consumer.tool('vite', 'build')).toMatchObject({ exitCode: 0 })
  const service = await startService({ listen: true })
  const proxy = startFaultProxy(service.base)
  const port = await freePort()
  const vite = consumer.path('node_modules/.bin/vite')
  const preview = Bun.spawn(
    [vite, 'preview', '--host', '127.0.0.1', '--port', `${port}`, '--strictPort'],
    {
      cwd: consumer.path('.'),
      env: { ...process.env, HOSTLINE: proxy.base },
      stdout: 'ignore',
      stderr: 'ignore',
    },
  )
  const origin = `http://127.0.0.1:${port}`
  await waitFor(() => fetch(origin).catch(() => undefined))
  const page = await borrowPage()
  await page.goto(origin)
  return {
    service,
    proxy,
    page,
    async [Symbol.asyncDispose]() {
      await returnPage(page)
      preview.kill()
      await preview.exited
      await proxy[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

testAtLength.skipIf(!tools.chromium)(
  'the example app talks, shows files, receipts and typing, asks support, and sends what was written offline',
  async () => {
    await using app = await startApp()
    const { service, proxy, page } = app
    const bob = await service.register('bob')
    const button = (name: string | RegExp) => page.getByRole('button', { name })
    const log = page.getByRole('log')
    await page.getByLabel('E-mail address').fill('nina@example.com')
    await page.getByLabel('Password').fill('short')
    await button('Register').click()
    await page.getByRole('alert').getByText('8').waitFor()
    await page.getByLabel('E-mail address').fill('nina@example.com')
    await page.getByLabel('Password').fill('correct horse')
    await button('Register').click()
    await page.getByText('live').waitFor()

    const [id = ''] = await page.locator('code').allTextContents()
    const conversation = await service.openConversation(bob, { id })
    await service.say(bob, conversation, 'Hello Nina')
    await button(/Hello Nina 1/).click()
    await log.getByText('Hello Nina').waitFor()
    await button(/Hello Nina$/).waitFor()
    const socket = await service.connect(bob)
    socket.send({ type: 'typing', conversation_id: conversation })
    await page.getByText('is typing').waitFor()
    const picture = { name: 'garden.png', mimeType: 'image/png', buffer: png }
    await page.getByLabel('File').setInputFiles(picture)
    await page.getByLabel('Message').fill('My garden')
    await button('Send').click()
    await log.getByAltText('garden.png').waitFor()
    socket.send({ type: 'read', conversation_id: conversation })
    await log.getByText('My garden ✓✓').waitFor()

    proxy.control.isOffline = true
    proxy.cut(1006)
    await page.getByText('offline').waitFor()
    await page.getByLabel('Message').fill('Later')
    await button('Send').click()
    await log.getByText('Later …').waitFor()
    await page.reload()
    proxy.control.isOffline = false
    await page.evaluate('dispatchEvent(new Event("online"))')
    await button(/Later/).waitFor()

    await button('tickets').click()
    await page.getByLabel('Subject').fill('Invoice')
    await page.getByLabel('Question').fill('Where is it?')
    await button('Ask support').click()
    await log.getByText('Where is it?').waitFor()
    await page.getByLabel('Reply').fill('I have found it.')
    await button('Reply').click()
    await log.getByText('I have found it.').waitFor()
    const { token } = await service.issueKey(['notifications'])
    const body = { user_id: id, type: 'broadcast', title: 'News', body: 'The garden is open.' }
    await service.call('POST', '/v1/service/notifications', { token, body })
    await button('notifications 1').click()
    await button('Mark all as read').click()
    await page.getByText('The garden is open.').waitFor()
    await button(/^notifications$/).waitFor()
    await button('Log out').click()
    await page.getByLabel('Password').waitFor()
  },
)
