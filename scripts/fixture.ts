import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { version } from '../package.json' with { type: 'json' }
import { createTestClock } from '../test/support/clock.ts'
import { startService, type TestService } from '../test/support/service.ts'
import { tour } from '../test/support/tour.ts'

/** Creates the database fixture of this version, which later versions must open; run once for each release: `bun
 *  scripts/fixture.ts`. */

const clock = createTestClock()
await using service = await startService({
  listen: true,
  clock,
  isAllowedPushEndpoint: () => true,
  environment: { SUPPORT_INBOX: 'desk@example.com', WEBHOOK_PRIVATE: 'true' },
})
await tour(service, clock)
await leaveSomething(service)
const copy = `${service.directory}/copy.db`
service.sqlite.run('VACUUM INTO ?', [copy])
const name = process.argv[2] ?? version
const fixture = fileURLToPath(new URL(`../test/fixtures/${name}.db.gz`, import.meta.url))
writeFileSync(fixture, Bun.gzipSync(readFileSync(copy)))
console.log(fixture)

/** Adds the rows that the fixture test reads and that the tour has removed or finished at its end. */
async function leaveSomething({
  call,
  login,
  registerAs,
  openConversation,
  say,
  issueKey,
}: TestService) {
  const [root, carol] = [await login('root@example.com'), await registerAs('host', 'carol')]
  await say(root, await openConversation(root, carol), 'Welcome')
  const { token } = await issueKey()
  const requests: [string, string, string, object?][] = [
    [carol.token, 'POST', '/v1/support/tickets', { subject: 'Refund', body: 'Where is it?' }],
    [
      root.token,
      'POST',
      '/v1/admin/support/canned-replies',
      { title: 'Thanks', body: 'Thank you.' },
    ],
    [
      root.token,
      'POST',
      '/v1/admin/notifications',
      { audience: 'users', user_ids: [carol.id], title: 'News', body: 'For you.' },
    ],
    [token, 'PUT', `/v1/service/follows/${carol.id}/${root.id}`],
    ['', 'POST', '/v1/auth/password/forgot', { email: carol.email }],
  ]
  for (const [token, method, path, body] of requests) {
    const { status } = await call(method, path, { token, body })
    if (status >= 400) throw new Error(`${method} ${path}: ${status}`)
  }
}
