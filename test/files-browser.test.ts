import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { openProfile } from './support/browser.ts'
import { testAtLength } from './support/faults.ts'
import { png, upload } from './support/files.ts'
import { startService } from './support/service.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

// A browser must display other people's uploads without running any of their code on our origin.

const run = 'document.title = "run"; window.parent.name = "run"'

/** A second of silence as WAV. */
const silence = (() => {
  const samples = 8_000
  const head = Buffer.alloc(44)
  head.write('RIFF')
  head.writeUInt32LE(36 + samples, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(samples, 24)
  head.writeUInt32LE(samples, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(samples, 40)
  return Buffer.concat([head, Buffer.alloc(samples, 128)])
})()

testAtLength.skipIf(!tools.chromium)(
  'a browser shows images and plays sound, and runs no uploaded file',
  async () => {
    await using service = await startService({ listen: true })
    await using browser = await openProfile()
    const ada = await service.register()
    const put = async (bytes: string | Uint8Array, type: string, name: string) => {
      const { body } = await upload(service, ada, bytes, { type, name })
      return service.base + new URL(body.file_url).pathname
    }
    const page = await browser.newPage()

    await page.goto(await put(png, 'image/png', 'a.png'))
    expect(await page.evaluate('document.images[0].naturalWidth')).toBe(1)
    expect(await page.evaluate('self.origin')).toBe('null')
    await page.goto(await put(silence, 'audio/wav', 'a.wav'))
    await waitFor(() => page.evaluate('document.querySelector("video").readyState > 0'))

    const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>${run}</script></svg>`
    const html = `<!doctype html><script>${run}</script>`
    const documents = [
      await put(html, 'text/html', 'a.html'),
      await put(svg, 'image/svg+xml', 'a.svg'),
      await put(html, 'image/png', 'a.html'),
      await put(
        `<html xmlns="http://www.w3.org/1999/xhtml"><script>${run}</script></html>`,
        'text/xml',
        'a.xml',
      ),
    ]
    for (const url of documents) expect(await isDownloaded(page, url)).toBe(true)

    await page.goto(`${service.base}/verify-email`)
    for (const type of ['text/javascript', 'application/x-javascript', 'text/plain', 'text/css']) {
      const url = await put(run, type, 'a.js')
      await page.addScriptTag({ url }).catch(() => {})
    }
    const worker = await put(run, 'text/javascript', 'worker.js')
    const registered = page.evaluate(`navigator.serviceWorker.register(${JSON.stringify(worker)})`)
    expect(await registered.then(() => true).catch(() => false)).toBe(false)
    expect(await page.title()).not.toBe('run')
    expect(await page.evaluate('window.name')).toBe('')
  },
)

async function isDownloaded(page: Page, url: string): Promise<boolean> {
  const download = page.waitForEvent('download')
  await page.goto(url).catch(() => {})
  return (await download.catch(() => undefined)) !== undefined
}
