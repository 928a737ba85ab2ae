import { expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { startService } from './support/service.ts'

const kilobyte = 1_000

async function get(
  app: Awaited<ReturnType<typeof startService>>['app'],
  path: string,
  headers = {},
) {
  return app.handle(new Request(`http://localhost${path}`, { headers }))
}

/** The assets that a page loads before it shows something. */
function loadedBy(html: string): string[] {
  return [...html.matchAll(/(?:href|src)="(\/assets\/[\w.-]+)"/g)].map(([, path = '']) => path)
}

test('a page is revalidated on each request, and sent again only after a change', async () => {
  await using service = await startService()
  const first = await get(service.app, '/console')
  expect(first.headers.get('cache-control')).toBe('no-cache')
  const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
  const again = await get(service.app, '/console/desk/01KJPY44E0KNM7KKYK5Z5CDZ4Y', headers)
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect((await get(service.app, '/demo', headers)).status).toBe(200)
})

test('assets have a hash in their name, and are cached forever', async () => {
  await using service = await startService()
  for (const page of ['/', '/console', '/demo', '/docs', '/set-up']) {
    const html = await (await get(service.app, page)).text()
    expect(loadedBy(html)).not.toBeEmpty()
    for (const path of loadedBy(html)) {
      const answer = await get(service.app, path)
      expect([path, answer.status, answer.headers.get('cache-control')]).toEqual([
        path,
        200,
        'public, max-age=31536000, immutable',
      ])
      expect(path).toMatch(/-[a-z0-9]{8}\.(js|css|svg)$/)
    }
  }
  expect((await get(service.app, '/assets/constructor')).status).toBe(404)
})

test('assets are compressed for clients that accept it', async () => {
  await using service = await startService()
  const html = await (await get(service.app, '/console')).text()
  const path = loadedBy(html).find((name) => name.endsWith('.css')) ?? ''
  const compressed = await get(service.app, path, { 'accept-encoding': 'gzip, br' })
  expect(compressed.headers.get('content-encoding')).toBe('gzip')
  const plain = await get(service.app, path)
  expect(plain.headers.has('content-encoding')).toBe(false)
  expect(gunzipSync(await compressed.arrayBuffer()).toString()).toBe(await plain.text())
})

test('the console loads at most 120 KB before it shows something, its font included', async () => {
  await using service = await startService()
  const html = await (await get(service.app, '/console')).text()
  const styles = loadedBy(html).find((name) => name.endsWith('.css')) ?? ''
  const [font = ''] =
    /\/assets\/instrument-sans-[\d.]+-latin\.woff2/.exec(
      await (await get(service.app, styles)).text(),
    ) ?? []
  let total = 0
  for (const path of [...loadedBy(html), font]) {
    const answer = await get(service.app, path, { 'accept-encoding': 'gzip' })
    expect([path, answer.status]).toEqual([path, 200])
    total += (await answer.arrayBuffer()).byteLength
  }
  expect(total).toBeLessThan(120 * kilobyte)
})

test('without the demo its page is not found', async () => {
  await using service = await startService({ environment: { DEMO: 'false' } })
  expect((await get(service.app, '/demo')).status).toBe(404)
  expect(await (await get(service.app, '/')).text()).not.toContain('/demo')
  await using secure = await startService({ environment: { PUBLIC_URL: 'https://a.example' } })
  expect((await get(secure.app, '/demo')).status).toBe(404)
})
