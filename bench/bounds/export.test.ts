import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryDirectory } from '../../test/support/directory.ts'
import { call, startServer } from '../../test/support/process.ts'
import { measured } from '../measure.ts'

const path = '/v1/users/me/export'

test(
  'an export of 400,000 received messages never holds the loop for more than 20 ms',
  async () => {
    using directory = temporaryDirectory()
    await using server = await startServer({ dataDir: directory.path })
    const register = async (name: string) => {
      const body = { email: `${name}@example.com`, password: 'correct horse' }
      return (await call(server.base, 'POST', '/v1/auth/register', { body })).body
    }
    const [ada, bob] = [await register('ada'), await register('bob')]
    const body = { user_id: ada.user.id }
    const opened = await call(server.base, 'POST', '/v1/chat/conversations', {
      token: bob.access_token,
      body,
    })
    const sqlite = new Database(join(directory.path, 'hostline.db'))
    sqlite.run('PRAGMA busy_timeout = 5000')
    sqlite.run(
      `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
       INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, created_at)
       SELECT ?1, i, printf('%s%08d', substr(?1, 1, 18), i), ?2, 'text', 'what people write to each other', i FROM n`,
      [opened.body.id, bob.user.id],
    )
    sqlite.close()
    const looks = async () => {
      const metrics = await (await fetch(`${server.base}/metrics`)).text()
      const numberOf = (line: string) =>
        Number(metrics.split(`hostline_event_loop_delay_seconds_${line} `)[1]?.split('\n')[0])
      return { within: numberOf('bucket{le="0.025"}'), all: numberOf('count') }
    }
    const before = await looks()
    const answer = await fetch(server.base + path, {
      headers: { authorization: `Bearer ${ada.access_token}` },
    })
    let bytes = 0
    const reader = answer.body?.getReader()
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      bytes += part.value.length
    }
    expect(bytes).toBeGreaterThan(80_000_000)
    const after = await looks()
    const all = after.all - before.all
    const late = all - (after.within - before.within)
    console.log(`export: ${late} of ${all} timers fired more than 25 ms late`)
    expect(all).toBeGreaterThan(10)
    // Other tests run on the same machine, so a few may be late.
    expect(late).toBeLessThan(all / 10)
  },
  measured,
)
