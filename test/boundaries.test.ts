import { afterAll, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

// Who may know whom (docs/architecture.md), shown by imports that break each rule and by neighbours that do not.

const refused = [
  ['src/serve.ts', './modules/chat/routes.ts'],
  ['src/serve.ts', './modules/chat/socket.ts'],
  ['src/modules/support/service.ts', './admin-routes.ts'],
  ['src/modules/chat/service.ts', 'elysia'],
  ['src/modules/chat/service.ts', '../../http/exchange.ts'],
  ['src/modules/chat/store.ts', 'elysia'],
  ['src/modules/accounts/key-store.ts', '@elysiajs/jwt'],
  ['src/modules/chat/service.ts', 'drizzle-orm'],
  ['src/modules/chat/routes.ts', '../../db/schema.ts'],
  ['src/serve.ts', 'drizzle-orm/bun-sqlite'],
  ['src/modules/chat/service.ts', '../accounts/store.ts'],
  ['src/modules/chat/routes.ts', '../accounts/keys.ts'],
  ['src/modules/accounts/service.ts', '../chat/service.ts'],
  ['src/http/pipeline.ts', '../modules/accounts/tokens.ts'],
  ['src/realtime/hub.ts', '../modules/chat/frames.ts'],
  ['src/db/writer.ts', '../modules/chat/store.ts'],
  ['src/metrics/channel.ts', '../modules/chat/frames.ts'],
  ['src/modules/chat/channel.ts', 'prom-client'],
  ['src/modules/chat/service.ts', 'prom-client'],
  ['src/db/writer.ts', 'prom-client'],
  ['src/http/pipeline.ts', 'prom-client'],
  ['src/serve.ts', 'prom-client'],
  ['src/lib/text.ts', '../http/body.ts'],
  ['src/lib/text.ts', '../db/client.ts'],
  ['src/modules/chat/service.ts', '../../db/client.ts'],
  ['src/modules/accounts/mail-jobs.ts', '../../mail/smtp.ts'],
  ['src/app.ts', './mail/log-mailer.ts'],
  ['client/session.ts', '../src/modules/accounts/model.ts'],
  ['client/channel.ts', '../src/realtime/close-codes.ts'],
  ['client/platform.ts', '../src/lib/clock.ts'],
  ['client/api.ts', '@sinclair/typebox'],
  ['client/api.ts', 'node:crypto'],
] as const

const allowed = [
  ['src/app.ts', './modules/chat/routes.ts'],
  ['src/serve.ts', './db/client.ts'],
  ['src/serve.ts', './mail/smtp.ts'],
  ['src/modules/accounts/mail-jobs.ts', '../../mail/mailer.ts'],
  ['src/modules/chat/store.ts', 'drizzle-orm'],
  ['src/modules/chat/store.ts', '../../db/schema.ts'],
  ['src/modules/chat/service.ts', '../../db/writer.ts'],
  ['src/modules/chat/service.ts', './store.ts'],
  ['src/modules/chat/routes.ts', '../../http/exchange.ts'],
  ['src/lib/text.ts', './errors.ts'],
  ['src/metrics/channel.ts', '../realtime/close-codes.ts'],
  ['src/metrics/channel.ts', 'prom-client'],
  ['client/session.ts', './storage.ts'],
  ['client/contract.ts', '../src/modules/chat/model.ts'],
] as const

const project = join(import.meta.dir, '..')
const directory = mkdtempSync(join(tmpdir(), 'hostline-boundaries-'))
afterAll(() => rmSync(directory, { recursive: true }))
const complaints = lintAll([...refused, ...allowed])

test.each([...refused])('%s must not import %s', (file, imported) => {
  expect(complaints).toContain(`${file} ${imported}`)
})

test.each([...allowed])('%s may import %s', (file, imported) => {
  expect(complaints).not.toContain(`${file} ${imported}`)
})

test('of the service, the client takes nothing but types along', async () => {
  const entrypoints = [join(project, 'client/client.ts')]
  const { outputs } = await Bun.build({ entrypoints, target: 'browser', sourcemap: 'external' })
  const map = await outputs.find(({ kind }) => kind === 'sourcemap')?.json()
  const foreign = map.sources.filter((source: string) => !/(^|\/)client\/[\w-]+\.ts$/.test(source))
  expect(map.sources).not.toBeEmpty()
  expect(foreign).toEqual([])
})

/** Lints files that hold just these imports.
 *  @returns the refused ones, as "file import" */
function lintAll(imports: (readonly [string, string])[]): string[] {
  copyFileSync(join(project, 'biome.json'), join(directory, 'biome.json'))
  const files = Map.groupBy(imports, ([file]) => file)
  for (const [file, lines] of files) {
    mkdirSync(dirname(join(directory, file)), { recursive: true })
    const source = lines.map(([, imported]) => `import '${imported}'`)
    writeFileSync(join(directory, file), source.join('\n'))
  }
  const { stdout } = Bun.spawnSync(
    [
      join(project, 'node_modules/.bin/biome'),
      'lint',
      '--only=style/noRestrictedImports',
      '--reporter=github',
      '--max-diagnostics=none',
    ],
    { cwd: directory },
  )
  const found = stdout.toString().matchAll(/noRestrictedImports,file=([^,]+),line=(\d+)/g)
  return [...found].map(([, file = '', line]) => {
    const name = file.replace(`${directory}/`, '')
    return `${name} ${files.get(name)?.[Number(line) - 1]?.[1]}`
  })
}
