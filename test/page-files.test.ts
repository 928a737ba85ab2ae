import { expect, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { startService } from './support/service.ts'
import { shared } from './support/shared.ts'

const kilobyte = 1_000

const anyService = shared(() => startService())
const forOtherOrigins = shared(() =>
  startService({ environment: { CORS_ORIGINS: 'https://a.example' } }),
)

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
  const service = await anyService()
  const first = await get(service.app, '/console')
  expect(first.headers.get('cache-control')).toBe('no-cache')
  const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
  const again = await get(service.app, '/console/desk/01KJPY44E0KNM7KKYK5Z5CDZ4Y', headers)
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect((await get(service.app, '/demo', headers)).status).toBe(200)
})

test('assets have a hash in their name, and are cached forever', async () => {
  const service = await anyService()
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
      expect(path).toMatch(/-([a-z0-9]{8}\.(js|css|svg)|[\d.]+-latin\.woff2)$/)
    }
  }
  expect((await get(service.app, '/assets/constructor')).status).toBe(404)
})

test.each([
  '/v1/openapi.json',
  '/v1/asyncapi.json',
  '/client.js',
  '/state.js',
  '/client.d.ts',
  '/docs',
])('%s is compressed, and sent again only after a change', async (path) => {
  const service = await forOtherOrigins()
  const plain = await get(service.app, path, { origin: 'https://a.example' })
  const text = await plain.text()
  expect(plain.headers.get('cache-control')).toBe('no-cache')
  expect(plain.headers.get('vary')).toContain('Accept-Encoding')
  const tags = [plain.headers.get('etag')]
  for (const [encoding, decode] of Object.entries(decoders)) {
    const accept = { 'accept-encoding': `zstd, ${encoding}` }
    const answer = await get(service.app, path, accept)
    const { headers } = answer
    const bytes = new Uint8Array(await answer.arrayBuffer())
    expect([headers.get('content-encoding'), decode(bytes).toString() === text]).toEqual([
      encoding,
      true,
    ])
    expect(bytes.length).toBeLessThan(text.length / 2)
    const tag = headers.get('etag') ?? ''
    tags.push(tag)
    for (const known of [tag, `"else", W/${tag}`, '*']) {
      const again = await get(service.app, path, { ...accept, 'if-none-match': known })
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', tag])
    }
  }
  expect(new Set(tags).size).toBe(3)
  const refused = await get(service.app, path, { 'accept-encoding': 'br;q=0, gzip;q=0.0' })
  expect(refused.headers.has('content-encoding')).toBe(false)
})

const decoders = { gzip: gunzipSync, br: brotliDecompressSync }

test('assets are compressed for clients that accept it', async () => {
  const service = await anyService()
  const html = await (await get(service.app, '/console')).text()
  const path = loadedBy(html).find((name) => name.endsWith('.css')) ?? ''
  const compressed = await get(service.app, path, { 'accept-encoding': 'gzip' })
  expect(compressed.headers.get('content-encoding')).toBe('gzip')
  const plain = await get(service.app, path)
  expect(plain.headers.has('content-encoding')).toBe(false)
  expect(gunzipSync(await compressed.arrayBuffer()).toString()).toBe(await plain.text())
})

test('the console loads at most 100 KB before it shows something, font and language included', async () => {
  const service = await anyService()
  const html = await (await get(service.app, '/console')).text()
  const scripts = loadedBy(html).filter((path) => path.endsWith('.js'))
  const code = await Promise.all(scripts.map(async (path) => (await get(service.app, path)).text()))
  const [, longest] = /"(\/assets\/fr-\w+\.js)"/.exec(code.join()) ?? []
  let total = 0
  for (const path of [...loadedBy(html), longest ?? '']) {
    const answer = await get(service.app, path, { 'accept-encoding': 'gzip, br' })
    expect([path, answer.status]).toEqual([path, 200])
    total += (await answer.arrayBuffer()).byteLength
  }
  expect(total).toBeLessThan(100 * kilobyte)
})

test('a browser gets a page in place of one that does not exist, a program an error', async () => {
  await using service = await startService({ environment: { DEMO: 'false' } })
  const headers = { accept: 'text/html,*/*;q=0.8', 'accept-language': 'de' }
  for (const path of ['/nope', '/demo']) {
    const answer = await get(service.app, path, headers)
    const [sent, html] = [answer.headers, await answer.text()]
    expect([answer.status, sent.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
    expect(sent.get('content-security-policy')).toContain("style-src 'self'")
    expect(html).toContain('<html lang="de">')
    expect(html).toMatch(/<header class="word-mark">localhost<[\s\S]*<h1>Das gibt es nicht\.<\/h1>/)
  }
  for (const [path, accept] of [
    ['/nope', {}],
    ['/v1/nope', headers],
    ['/v1', headers],
  ] as const) {
    const answer = await get(service.app, path, accept)
    const { error } = (await answer.json()) as { error: object }
    expect([answer.status, error]).toEqual([404, expect.objectContaining({ code: 'not_found' })])
  }
})

test('the styles of one area of the console reach no other', async () => {
  const folder = `${import.meta.dir}/../src/web`
  const read = async (pattern: string) => {
    const paths = [...new Bun.Glob(pattern).scanSync(folder)]
    return Promise.all(
      paths.map(async (path) => [path, await Bun.file(`${folder}/${path}`).text()] as const),
    )
  }
  const sources = await read('{kit,console}/**/*.tsx')
  const areas = await read('console/*/*.css')
  expect(areas.length).toBeGreaterThan(4)
  for (const [path, styles] of areas) {
    const area = path.replace(/[^/]+$/, '')
    const others = sources.filter(([source]) => !source.startsWith(area))
    const used = new Set(others.flatMap(([, text]) => classesIn(text)))
    const selectors = [...styles.matchAll(/^ {2}([^\s@/].*?)(?: \{|,)$/gm)].map(
      ([, one = '']) => one,
    )
    const isOwn = (selector: string) =>
      [...selector.matchAll(/\.([\w-]+)/g)].some(([, name = '']) => !used.has(name))
    expect([path, selectors.filter((one) => !isOwn(one))]).toEqual([path, []])
  }
})

const classesIn = (source: string) =>
  [...source.matchAll(/class=(?:"([^"]*)"|\{([^}\n]*)\}?)/g)].flatMap(([, plain = '', made = '']) =>
    `${plain} ${made}`.split(/[^\w-]+/),
  )

test('without the demo its page is not found', async () => {
  await using service = await startService({ environment: { DEMO: 'false' } })
  expect((await get(service.app, '/demo')).status).toBe(404)
  expect(await (await get(service.app, '/')).text()).not.toContain('/demo')
  await using secure = await startService({ environment: { PUBLIC_URL: 'https://a.example' } })
  expect((await get(secure.app, '/demo')).status).toBe(404)
})
