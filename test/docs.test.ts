import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { leastSqliteVersion } from '../src/cli/run.ts'
import { entries } from '../src/config.ts'
import { idleTimeoutSeconds } from '../src/http/body.ts'
import { describedRoutes } from '../src/http/route-table.ts'
import { stopDeadlineMilliseconds } from '../src/listen.ts'
import { maxExcerpts, maxPerMail } from '../src/modules/chat/unread-store.ts'
import { drainMilliseconds } from '../src/replication/leader.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { startService } from './support/service.ts'

const project = join(import.meta.dir, '..')
const empty = temporaryDirectory()
afterAll(() => empty[Symbol.dispose]())

const files = ['README.md', ...new Bun.Glob('docs/*.*').scanSync(project)]

/** The commands in the examples of a file, without comments. */
function commandsIn(file: string): string[] {
  const text = readFileSync(join(project, file), 'utf8')
  return [...text.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block = '']) =>
    block
      .split('\n')
      .map((line) => line.replace(/\s+#.*$/, ''))
      .flatMap((line) => line.match(/^(?:.*[ /])?hostline ([a-z][^|]*)$/)?.[1] ?? []),
  )
}

const examples = files.flatMap((file) => commandsIn(file).map((command) => ({ file, command })))

test('commands in the documentation', () => {
  expect(examples.length).toBeGreaterThan(20)
})

// Without a database most of them fail, but none with a usage error.
test.each(examples)('$file: hostline $command is a valid call', async ({ command }) => {
  const words = command.match(/'[^']*'|\S+/g) ?? []
  const args = words.map((word) => word.replaceAll("'", ''))
  const environment = { HOST: '127.0.0.1', PORT: '1' }
  const { exitCode, err } = await hostline(args, empty.path, { environment })
  expect([exitCode === 2, err.includes('    at ')]).toEqual([false, false])
})

test('links within the documentation have a target', () => {
  const slug = (title: string) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-')
  const broken = files
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => {
      const text = readFileSync(join(project, file), 'utf8')
      return [...text.matchAll(/\]\((?!https?:)([^)#]*)(#[^)]*)?\)/g)].filter(
        ([, path = '', anchor]) => {
          const target = path === '' ? join(project, file) : join(project, file, '..', path)
          const found = readText(target)
          if (found === undefined) return true
          const titles = [...found.matchAll(/^#+ (.*)$/gm)].map(
            ([, title = '']) => `#${slug(title)}`,
          )
          return anchor !== undefined && !titles.includes(anchor)
        },
      )
    })
  expect(broken.map(([link]) => link)).toEqual([])
})

test('the documentation names existing routes', async () => {
  await using service = await startService()
  const routes = describedRoutes(service.app).map(
    ({ method, path }) => new RegExp(`^${method} ${path.replace(/:\w+/g, '[^/]+')}$`),
  )
  const text = [...files, 'client/README.md'].map((file) =>
    readFileSync(join(project, file), 'utf8'),
  )
  const named = text.join('\n').match(/\b(GET|POST|PUT|PATCH|DELETE) \/v1\/[\w/:{}-]*\w\}?/g) ?? []
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((name) => !routes.some((route) => route.test(name)))).toEqual([])
})

test('the security page names existing tests and files', () => {
  const [promises = ''] =
    readText(join(project, 'docs/security.md'))?.split('## Not promised') ?? []
  const answers = readText(join(project, 'docs/asvs.md')) ?? ''
  const tests = [
    ...[...promises.matchAll(/\(([a-z, -]+)\)$/gm)].flatMap(([, names = '']) => names.split(', ')),
    ...[...answers.matchAll(/([a-z-]+)\.test\b/g)].map(([, name = '']) => name),
  ]
  const paths = [...answers.matchAll(/`([a-z-]+\/[a-z-]+)`/g)].map(([, path = '']) => path)
  const named = [
    ...tests.map((name) => [`test/${name}.test.ts`]),
    ...paths.map((path) => [`src/${path}`, `src/${path}.ts`, `src/modules/${path}.ts`]),
  ]
  const isThere = (path: string) => existsSync(join(project, path))
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter((places) => !places.some(isThere))).toEqual([])
})

test('the choices page names each dependency', async () => {
  const { dependencies } = await Bun.file(join(project, 'package.json')).json()
  const [, table = ''] = readText(join(project, 'docs/choices.md'))?.split('## Dependencies') ?? []
  const named = [...table.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(.*?)`/g)].map(([, name = '']) => name),
  )
  expect(named.sort()).toEqual(Object.keys(dependencies).sort())
})

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

test('the stop grace periods in the documentation allow for a server and its jobs', async () => {
  const compose = await Bun.file(join(project, 'examples/compose.yaml')).text()
  const operations = await Bun.file(join(project, 'docs/operations.md')).text()
  const documented = [
    /stop_grace_period: (\d+)s/.exec(compose),
    /--stop-timeout (\d+)/.exec(operations),
  ]
  const needed = (stopDeadlineMilliseconds + drainMilliseconds) / 1_000 + 5
  for (const found of documented) expect(Number(found?.[1])).toBeGreaterThanOrEqual(needed)
})

test('the documented proxies close their idle connections before the server does', async () => {
  const pages = ['docs/operations.md', 'examples/Caddyfile'].map((path) =>
    Bun.file(join(project, path)).text(),
  )
  const text = (await Promise.all(pages)).join()
  // The runtime ends idle connections every four seconds.
  const leastSeconds = idleTimeoutSeconds - 2
  expect(text).toContain(`Hostline closes a connection after ${leastSeconds} `)
  const documented = [...text.matchAll(/keepalive (\d+)s/g)].map(([, seconds]) => Number(seconds))
  expect(documented.length).toBe(4)
  for (const seconds of documented) expect(seconds).toBeLessThan(leastSeconds)
})

test('the image writes to its volume alone', async () => {
  const dockerfile = await Bun.file(join(project, 'Dockerfile')).text()
  const volume = /^VOLUME (.+)$/m.exec(dockerfile)?.[1]
  const [, variables = ''] = /^ENV (.+)$/m.exec(dockerfile) ?? []
  expect(variables.split(' ')).toEqual([`DATA_DIR=${volume}`, `TMPDIR=${volume}`])
})

test('scripts work in a fresh checkout', async () => {
  const { scripts } = await Bun.file(join(project, 'package.json')).json()
  const installing = Object.keys(scripts).filter((name) =>
    scripts[name].startsWith('bun install --frozen-lockfile'),
  )
  // They call or follow scripts that install.
  const others = ['posttest', 'test:repeat', 'test:faults:short']
  expect([...installing, ...others].sort()).toEqual(Object.keys(scripts).sort())
})

test('the choices page says how much a mail about unread messages shows', async () => {
  const choices = await Bun.file(join(project, 'docs/choices.md')).text()
  expect(choices).toMatch(
    new RegExp(`up to ${maxPerMail} conversations,\\s+of each the ${maxExcerpts} newest messages`),
  )
})

test('the documentation names sections of the API reference where they are', async () => {
  await using service = await startService()
  const text = [...files, 'CHANGELOG.md'].map((file) => readFileSync(join(project, file), 'utf8'))
  const named = [...text.join('\n').matchAll(/`(\/docs[\w/]*)#(\w+)`/g)]
  expect(named.length).toBeGreaterThan(1)
  for (const [, path, id] of named) {
    const page = await service.app.handle(new Request(`http://localhost${path}`))
    expect(await page.text()).toContain(`id="${id}"`)
  }
})

test.each(['CHANGELOG.md', 'docs/operations.md'])('%s names the SQLite that is refused', (file) => {
  const [, named] = /SQLite below ([\d.]+\d)/.exec(readFileSync(join(project, file), 'utf8')) ?? []
  expect(named).toBe(leastSqliteVersion)
})

test('the security page names each address of the configuration that is called', async () => {
  const security = await Bun.file(join(project, 'docs/security.md')).text()
  const section = /^## Outgoing connections$(.*?)^## /ms.exec(security)?.[1]
  const called = Object.keys(entries).filter((name) => /_(URL|HOSTS)$/.test(name))
  for (const name of called.filter((one) => one !== 'PUBLIC_URL')) {
    expect(section).toContain(`\`${name}\``)
  }
})

test('the documentation names no variable that is gone', () => {
  const ofOthers = ['CAP_NET_BIND_SERVICE', 'NODE_EXTRA_CA_CERTS']
  const known = new Set([...Object.keys(entries), ...ofOthers])
  const named = files.flatMap((file) => {
    const text = readFileSync(join(project, file), 'utf8')
    return text.match(/\b[A-Z][A-Z\d]*_[A-Z\d_]+\b(?<!_PROXY)/g) ?? []
  })
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter((name) => !known.has(name))).toEqual([])
})
