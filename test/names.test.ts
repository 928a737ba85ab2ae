import { expect, test } from 'bun:test'
import { join } from 'node:path'

// A process of its own, because its name servers are replaced.
async function outputOf(code: string, environment = {}) {
  const env = { ...process.env, ...environment }
  const child = Bun.spawn(['bun', '-e', code], { cwd: join(import.meta.dir, '..'), env })
  return (await child.stdout.text()).trim()
}

test('many names without an answer leave the disk its threads', async () => {
  const code = `
    const dns = await import('node:dns')
    const { open } = await import('node:fs/promises')
    const { mustBeAnswered } = await import('./src/outside/names.ts')
    const { port } = await Bun.udpSocket({ hostname: '127.0.0.1' })
    const resolver = new dns.promises.Resolver()
    for (const one of [dns, resolver]) one.setServers(['127.0.0.1:' + port])
    const hosts = Array.from({ length: 64 }, (_, n) => 'h' + n + '.example.com')
    const names = hosts.map((host) => mustBeAnswered(host, resolver).then(() => 'answered', () => 'failed'))
    const sync = async () => {
      const file = await open('package.json')
      await file.datasync()
      return 'synced'
    }
    console.log(await Promise.race([...names, sync()]))
    process.exit()`
  expect(await outputOf(code)).toBe('synced')
})

test('the names of push services and buckets are asked for without a thread', async () => {
  const code = `
    const dns = await import('node:dns')
    const { openBucket } = await import('./src/outside/bucket.ts')
    const { post } = await import('./src/outside/push/post.ts')
    const asked = new Set()
    const data = (_, query) => {
      const [name] = /push|store/.exec(query.toString('latin1')) ?? []
      if (name) asked.add(name)
      if (asked.size < 2) return
      console.log([...asked].sort().join(' '))
      process.exit()
    }
    const { port } = await Bun.udpSocket({ hostname: '127.0.0.1', socket: { data } })
    dns.setServers(['127.0.0.1:' + port])
    const keys = { region: '', accessKeyId: '', secretAccessKey: '' }
    const bucket = openBucket({ endpoint: 'https://store.example.com', name: 'n', prefix: '', ...keys })
    const body = { headers: {}, body: '' }
    await Promise.allSettled([post('https://push.example.com/', body), bucket.get('key')])
    process.exit()`
  expect(await outputOf(code)).toBe('push store')
})

test('pushes and buckets go through the proxy of the environment', async () => {
  const asked = new Set<string>()
  await using proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url }) {
      asked.add(new URL(url).host)
      return new Response('', { status: 400 })
    },
  })
  const code = `
    const { openBucket } = await import('./src/outside/bucket.ts')
    const { post } = await import('./src/outside/push/post.ts')
    const keys = { region: '', accessKeyId: '', secretAccessKey: '' }
    const bucket = openBucket({ endpoint: 'http://store.invalid', name: 'n', prefix: '', ...keys })
    const body = { headers: {}, body: '' }
    await Promise.allSettled([post('http://push.invalid/', body), bucket.get('key')])
    process.exit()`
  await outputOf(code, { HTTP_PROXY: proxy.url.origin })
  expect([...asked].sort()).toEqual(['push.invalid', 'store.invalid'])
})
