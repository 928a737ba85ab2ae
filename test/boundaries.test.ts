import { afterAll, expect, test } from 'bun:test'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ICruiseResult, IViolation } from 'dependency-cruiser'
import config from '../dependency-cruiser.config.ts'

// The import rules of docs/architecture.md, with imports that break each rule and neighbours that do not.

const refused = [
  ['src/serve.ts', './modules/chat/routes.ts'],
  ['src/modules/support/desk-service.ts', './desk-routes.ts'],
  ['src/modules/chat/chat.ts', '../../realtime/socket.ts'],
  ['src/modules/chat/chat.ts', '../../web/routes.ts'],
  ['src/modules/chat/chat.ts', '../support/routes.ts'],
  ['src/modules/chat/chat.ts', 'type ../support/support.ts'],
  ['src/modules/chat/service.ts', '../accounts/store.ts'],
  ['src/modules/accounts/service.ts', 'type ../chat/service.ts'],
  ['src/http/pipeline.ts', '../modules/accounts/sign-in/tokens.ts'],
  ['src/realtime/hub.ts', 'type ../modules/chat/frames.ts'],
  ['src/jobs/runner.ts', '../modules/chat/chat.ts'],
  ['src/outside/mail/templates.ts', '../../modules/chat/model.ts'],
  ['src/outside/push/pusher.ts', '../../modules/notifications/jobs.ts'],
  ['src/db/writer.ts', '../modules/chat/store.ts'],
  ['src/web/account/account-pages.ts', '../../modules/accounts/model.ts'],
  ['src/web/console/shell.tsx', '../../lib/text.ts'],
  ['src/web/demo/main.tsx', '../console/session.ts'],
  ['src/web/kit/format.ts', '../console/session.ts'],
  ['src/metrics.ts', './modules/chat/frames.ts'],
  ['src/modules/chat/service.ts', 'elysia'],
  ['src/modules/chat/service.ts', '../../http/request-context.ts'],
  ['src/modules/chat/store.ts', 'type elysia'],
  ['src/modules/chat/broadcasts.ts', '../../http/body.ts'],
  ['src/modules/accounts/sign-in/session-store.ts', '@elysiajs/jwt'],
  ['src/modules/chat/service.ts', 'drizzle-orm'],
  ['src/modules/chat/routes.ts', 'type ../../db/schema.ts'],
  ['src/jobs/runner.ts', '../db/schema.ts'],
  ['src/lib/text.ts', 'drizzle-orm'],
  ['src/serve.ts', 'drizzle-orm/bun-sqlite'],
  ['src/modules/chat/service.ts', '../../db/open.ts'],
  ['src/modules/chat/store.ts', 'bun:sqlite'],
  ['src/app.ts', './outside/mail/smtp.ts'],
  ['src/modules/accounts/address/recovery.ts', '../../../outside/mail/smtp.ts'],
  ['src/modules/notifications/jobs.ts', '../../outside/push/fcm.ts'],
  ['src/outside/push/pusher.ts', './web-push.ts'],
  ['src/modules/files/service.ts', '../../files/disk.ts'],
  ['src/jobs/runner.ts', '../files/s3.ts'],
  ['src/files/disk.ts', '../modules/files/files.ts'],
  ['src/realtime/hub.ts', 'prom-client'],
  ['src/modules/chat/service.ts', 'prom-client'],
  ['src/serve.ts', 'prom-client'],
  ['src/cli/run.ts', './user.ts'],
  ['src/lib/text.ts', '../http/body.ts'],
  ['src/lib/text.ts', 'type ../db/open.ts'],
  ['client/src/session.ts', 'type ../../src/modules/accounts/model.ts'],
  ['client/src/platform.ts', '../../src/lib/clock.ts'],
  ['client/src/api.ts', '@sinclair/typebox'],
  ['client/src/api.ts', 'bun:sqlite'],
  ['client/src/state.ts', 'preact'],
  ['client/src/react.ts', 'elysia'],
  ['src/lib/text.ts', './nowhere.ts'],
] as const

const allowed = [
  ['src/app.ts', './web/routes.ts'],
  ['src/app.ts', './realtime/socket.ts'],
  ['src/modules/support/support.ts', './desk-routes.ts'],
  ['src/modules/chat/chat.ts', 'type elysia'],
  ['src/modules/chat/routes.ts', '../../http/request-context.ts'],
  ['src/modules/chat/service.ts', './store.ts'],
  ['src/modules/chat/service.ts', '../../db/writer.ts'],
  ['src/modules/chat/service.ts', '../../realtime/hub.ts'],
  ['src/modules/chat/store.ts', 'drizzle-orm'],
  ['src/modules/chat/inbox-store.ts', '../../db/schema.ts'],
  ['src/modules/chat/store.ts', 'type ../../db/open.ts'],
  ['src/modules/accounts/sign-in/tokens.ts', '@elysiajs/jwt'],
  ['src/modules/accounts/address/recovery.ts', '../../../outside/mail/mailer.ts'],
  ['src/modules/support/canned-replies.ts', 'drizzle-orm'],
  ['src/jobs/outbox.ts', '../db/schema.ts'],
  ['src/serve.ts', './db/open.ts'],
  ['src/serve.ts', './outside/mail/smtp.ts'],
  ['src/cli/check.ts', '../outside/push/web-push.ts'],
  ['src/serve.ts', './files/disk.ts'],
  ['src/files/s3.ts', './disk.ts'],
  ['src/modules/files/service.ts', 'type ../../files/storage.ts'],
  ['src/config-values.ts', 'type ./files/s3.ts'],
  ['src/cli/run.ts', './terminal.ts'],
  ['src/metrics.ts', 'prom-client'],
  ['src/metrics.ts', './realtime/hub.ts'],
  ['src/lib/text.ts', './errors.ts'],
  ['src/lib/ids.ts', 'ulid'],
  ['src/web/console/shell.tsx', '../kit/router.ts'],
  ['src/web/console/session.ts', '../../../client/src/client.ts'],
  ['client/src/session.ts', './storage.ts'],
] as const

const project = join(import.meta.dir, '..')
const directory = mkdtempSync(join(tmpdir(), 'hostline-boundaries-'))
afterAll(() => rmSync(directory, { recursive: true }))
const violations = cruise([...refused, ...allowed])
const complaints = violations.map(importOf)

test.each([...refused])('%s must not import %s', (file, imported) => {
  expect(complaints).toContain(`${file} ${imported}`)
})

test.each([...allowed])('%s may import %s', (file, imported) => {
  expect(complaints).not.toContain(`${file} ${imported}`)
})

test('every file named here exists', () => {
  const files = [...refused, ...allowed].flatMap(([file, imported]) => {
    const path = imported.replace('type ', '')
    return path.startsWith('.') ? [file, join(dirname(file), path)] : [file]
  })
  expect(files.filter((file) => !existsSync(join(project, file)))).toEqual(['src/lib/nowhere.ts'])
})

test('every import rule has an example', () => {
  const bitten = new Set(violations.map(({ rule }) => rule.name))
  expect(config.forbidden.filter(({ name = '' }) => !bitten.has(name))).toEqual([])
})

/** Checks files that consist of these imports. */
function cruise(imports: (readonly [string, string])[]) {
  symlinkSync(join(project, 'node_modules'), join(directory, 'node_modules'))
  for (const [file, imported] of imports) {
    const [path = '', type] = imported.split(' ').reverse()
    append(file, type ? `import type {} from '${path}'\n` : `import '${path}'\n`)
    if (path.startsWith('.') && !path.includes('nowhere')) append(join(dirname(file), path), '')
  }
  const rules = join(project, 'dependency-cruiser.config.ts')
  const { stdout } = Bun.spawnSync(
    [process.execPath, '--bun', 'depcruise', '--config', rules, '-T', 'json', '{src,client}'],
    { cwd: directory },
  )
  const { summary }: ICruiseResult = JSON.parse(stdout.toString())
  return summary.violations
}

function append(file: string, line: string) {
  const path = join(directory, file)
  mkdirSync(dirname(path), { recursive: true })
  appendFileSync(path, line)
}

function importOf({ from, unresolvedTo, dependencyTypes = [] }: IViolation) {
  return `${from} ${dependencyTypes.includes('type-only') ? 'type ' : ''}${unresolvedTo}`
}
