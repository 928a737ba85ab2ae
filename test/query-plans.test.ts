import { afterAll, beforeAll, expect } from 'bun:test'
import { describedRoutes } from '../src/http/route-table.ts'
import type { JobKind } from '../src/jobs/outbox.ts'
import { createTestClock } from './support/clock.ts'
import { describeAtLength, testAtLength } from './support/faults.ts'
import { startService, type TestService } from './support/service.ts'
import { recordStatements } from './support/statements.ts'
import { tour } from './support/tour.ts'
import { waitFor } from './support/wait.ts'

// Every statement of a running service with its plan. An index search counts as bounded; a scan, a materialised
// subquery and a sort do not, unless they are listed here.

/** Tables with few rows, at any age of the service. */
const small = ['bans', 'canned_replies', 'service_keys', 'signing_keys', 'vapid_keys', 'webhooks']

/** Scans, materialised subqueries and sorts, and what bounds each. */
const bounded: Array<[step: RegExp, bound: string]> = [
  [/^SCAN audit_log USING .* limit \?( offset \?)?$/, 'one page, in the order of the index'],
  [
    /^SCAN announcements USING COVERING INDEX .* limit \?( offset \?)?\) order/,
    'one page, in its order',
  ],
  [/^SCAN announcements .* select count\(\*\)/, 'every announcement, for admins: few are written'],
  [
    /^SCAN announcements: update .* json_remove/,
    'the same, once for a removed person: 5 ms for 10,000',
  ],
  [/^SCAN reports USING COVERING INDEX .* limit \?( offset \?)?\) order/, 'one page, in its order'],
  [/^SCAN reports .* select count\(\*\)/, 'every report, for admins: what people write by hand'],
  [/^SCAN users USING INDEX users_present: .* limit \?( offset \?)?$/, 'one page, in its order'],
  [/^USE TEMP B-TREE .* limit \? offset \?\) "page" /, 'one page is sorted'],
  [
    /^SCAN tickets USING COVERING INDEX .* select count\(\*\)/,
    'every ticket, for admins: 6 ms at 100,000',
  ],
  [
    /^SCAN tickets USING COVERING INDEX tickets_queue: .* limit \?( offset \?)?$/,
    'one page, in its order',
  ],
  [
    /^USE TEMP B-TREE .* from "tickets" where .*"status" in .* limit \?( offset \?)?$/,
    'the first of each status',
  ],
  [/^LIST SUBQUERY .* IN \(SELECT value FROM json_each/, 'the tickets of one page'],
  [/^LIST SUBQUERY .*"id" in \(select "id" .* limit \?( offset \?)?\)\)? order by/, 'one page'],
  [/^(LIST SUBQUERY|USE TEMP B-TREE) .*"push_tokens"\."user_id" = \?/, 'a user has 25 at most'],
  [/^SCAN settings: /, 'a dozen settings'],
  [/^SCAN pragma_/, 'one row'],
  [/^USE TEMP B-TREE .* from "signing_keys" order by/, 'a few keys'],
  [
    /^(LIST SUBQUERY|USE TEMP B-TREE) .* FROM user_search .* LIMIT \?\)/,
    'a thousand people at most',
  ],
  [/^USE TEMP B-TREE .* INTO `?ticket_search`?/, 'the messages of one ticket'],
  [/^SCAN ticket_search VIRTUAL TABLE INDEX 0:=: DELETE /, 'one row, by its number'],
  [/^LIST SUBQUERY .* DELETE FROM .* LIMIT \?\)( RETURNING |$)/i, 'the rows of one write'],
  [/^(LIST SUBQUERY|USE TEMP B-TREE) .* min\(seq\) AS seq FROM messages /, 'the open reports'],
  [/^SCAN outbox USING COVERING INDEX outbox_due: .* limit \?\) "some"$/, 'counts 10,000 at most'],
  [
    /^SCAN outbox USING COVERING INDEX .*: SELECT \(SELECT count\(\*\) FROM outbox\)/,
    'its pages are counted',
  ],
  [/^USE TEMP B-TREE FOR GROUP BY: .* "outbox"."dead_at" is not null/, 'jobs that were given up'],
  [/^SCAN outbox USING .* limit \?( offset \?)?$/, 'one page, in the order of the index'],
  [/^SCAN calls .* select count\(\*\)/, 'the calls of 30 days, for the platform'],
  [/^SCAN users .* select count\(\*\) from "users"/, 'everybody, for admins: 3 ms at 100,000'],
  [/^SCAN .*: insert into "?(users|broadcasts)\b/i, 'runs only while a foreign key is broken'],
]

/** The outcome of a job of each kind. */
const jobs: Record<JobKind, 'done'> = {
  verification_mail: 'done',
  password_reset_mail: 'done',
  password_changed_mail: 'done',
  confirm_mail: 'done',
  totp_enabled_mail: 'done',
  totp_disabled_mail: 'done',
  email_change_mail: 'done',
  email_changed_mail: 'done',
  broadcast: 'done',
  reach_changed: 'done',
  erasure: 'done',
  guest_end: 'done',
  support_inbox_mail: 'done',
  assignee_mail: 'done',
  announcement: 'done',
  notification_mail: 'done',
  urgent_push: 'done',
  notification_push: 'done',
  message_push: 'done',
  unread_push: 'done',
  held_push: 'done',
  notification: 'done',
  unread_mail: 'done',
  file_removal: 'done',
  file_release: 'done',
  webhook_delivery: 'done',
}

type Step = { detail: string }
type Opcode = { opcode: string; p1: number }

describeAtLength('a running service', () => {
  const clock = createTestClock()
  let statements: ReturnType<typeof recordStatements>
  let service: TestService
  let metrics: string
  beforeAll(async () => {
    statements = recordStatements()
    service = await startService({
      listen: true,
      clock,
      isAllowedPushEndpoint: () => true,
      environment: { SUPPORT_INBOX: 'desk@example.com', WEBHOOK_PRIVATE: 'true' },
    })
    await tour(service, clock)
    metrics = (await service.call('GET', '/metrics')).body
    await runRetention()
  })
  afterAll(() => service[Symbol.asyncDispose]())

  testAtLength('no query plan reads or sorts more rows as the service grows older', () => {
    const steps = [...statements, ...triggerStatements()].filter(hasPlan).flatMap(stepsOf)
    const isBounded = (step: string) => bounded.some(([known]) => known.test(step))
    expect(steps.filter((step) => !isBounded(step))).toEqual([])
    // Entries that are no longer needed must be removed.
    expect(bounded.filter(([known]) => !steps.some((step) => known.test(step)))).toEqual([])
  })

  testAtLength('the due jobs of a receiver are found without reading those of others', () => {
    const due = [...statements].filter((sql) =>
      /^SELECT id FROM outbox WHERE kind = \? AND receiver = \?/.test(sql),
    )
    const plans = due.map((sql) =>
      service.sqlite.query<Step, []>(`EXPLAIN QUERY PLAN ${sql}`).all(),
    )
    const detail =
      'SEARCH outbox USING COVERING INDEX outbox_due (kind=? AND receiver=? AND run_at<?)'
    expect(plans).toEqual([[expect.objectContaining({ detail })]])
  })

  testAtLength('calls that have lapsed are skipped by the index alone', () => {
    const counts = [...statements].filter((sql) =>
      /^select count\(\*\) from "calls" where .*"active_at" > \?/.test(sql),
    )
    const plans = counts.map((sql) =>
      service.sqlite.query<Step, []>(`EXPLAIN QUERY PLAN ${sql}`).all(),
    )
    const detail = 'SEARCH calls USING COVERING INDEX calls_state (state=?)'
    expect(plans).toEqual([[expect.objectContaining({ detail })]])
  })

  testAtLength(
    'entries of the audit log within a time are counted by the index of their ids',
    () => {
      const counts = [...statements].filter((sql) =>
        /^select count\(\*\) from "audit_log" where .*"at" >= \?/.test(sql),
      )
      const firstReads = counts.map((sql) => {
        const program = service.sqlite.query<Opcode, []>(`EXPLAIN ${sql}`).all()
        const seek = program.findIndex(({ opcode }) => opcode === 'DeferredSeek')
        return [program[seek + 1]?.opcode, program[seek + 1]?.p1 === program[seek]?.p1]
      })
      expect(firstReads).toEqual([['Column', true]])
    },
  )

  testAtLength('the broadcasts of a person are found without reading those of others', () => {
    const own = [...statements].filter((sql) =>
      /^select .* from "broadcasts" where \("broadcasts"."sender_id" = \? and "broadcasts"."id" >/.test(
        sql,
      ),
    )
    const plans = own.flatMap((sql) =>
      service.sqlite.query<Step, []>(`EXPLAIN QUERY PLAN ${sql}`).all(),
    )
    const detail = 'SEARCH broadcasts USING INDEX broadcasts_sender (sender_id=? AND id>?)'
    expect(new Set(plans.map((step) => step.detail))).toEqual(new Set([detail]))
  })

  testAtLength('storing a message builds no temporary index', () => {
    const inserts = [...statements].filter((sql) => sql.startsWith('INSERT INTO messages '))
    const opcodes = inserts.flatMap((sql) =>
      service.sqlite.query<Opcode, []>(`EXPLAIN ${sql}`).all(),
    )
    expect(opcodes).toContainEqual(expect.objectContaining({ opcode: 'IdxInsert' }))
    expect(opcodes).not.toContainEqual(expect.objectContaining({ opcode: 'OpenEphemeral' }))
  })

  testAtLength('the newest conversation of a user is found without reading the others', () => {
    const newest = [...statements].filter((sql) => /^SELECT max\(last_activity_id\)/.test(sql))
    const plans = newest.map((sql) =>
      service.sqlite.query<Step, []>(`EXPLAIN QUERY PLAN ${sql}`).all(),
    )
    const detail =
      'SEARCH participants USING COVERING INDEX participants_inbox (user_id=? AND is_archived=?)'
    expect(plans).toEqual([[expect.objectContaining({ detail })]])
  })

  testAtLength('every route and every kind of job ran', () => {
    const successes = metrics.matchAll(/_count\{method="(\w+)",route="([^"]+)",status="[23]\d\d"/g)
    const seen = new Set([...successes].map(([, method, path]) => `${method} ${path}`))
    const routes = describedRoutes(service.app).map(({ method, path }) => `${method} ${path}`)
    // The metrics count socket upgrades separately.
    expect(routes.filter((route) => !seen.has(route))).toEqual(['GET /v1/chat/ws'])
    const missing = Object.entries(jobs).filter(
      ([kind, outcome]) =>
        !metrics.includes(`hostline_jobs_total{kind="${kind}",outcome="${outcome}"}`),
    )
    expect(missing).toEqual([])
  })

  /** Half a year later: unused rows are deleted and unanswered tickets are closed. */
  async function runRetention() {
    clock.advance(182 * 86_400_000)
    await waitFor(
      () => [...statements].some((sql) => /^delete from .calls/i.test(sql)),
      'retention',
    )
  }

  /** The statements of triggers, with parameters for their rows: the plan of a statement does not include its
   *  triggers. */
  function triggerStatements(): string[] {
    const all = service.sqlite.query<{ sql: string }, []>(
      "SELECT sql FROM sqlite_schema WHERE type = 'trigger'",
    )
    return all.all().flatMap(({ sql }) => {
      const body = sql.slice(sql.indexOf('BEGIN') + 'BEGIN'.length, sql.lastIndexOf('END'))
      return body.split(';').map((text) => text.replace(/\b(old|new)\.`?\w+`?/g, '?').trim())
    })
  }

  /** The steps of a plan that may read or sort a whole table, with the statement. */
  function stepsOf(sql: string): string[] {
    const plan = service.sqlite.query<Step, []>(`EXPLAIN QUERY PLAN ${sql}`).all()
    const details = plan.map(({ detail }) => detail)
    return details
      .filter((detail) =>
        /^(SCAN|MATERIALIZE|LIST SUBQUERY|USE TEMP B-TREE)|AUTOMATIC/.test(detail),
      )
      .filter((detail) => !isHarmless(detail, details))
      .map((detail) => `${detail}: ${sql.replace(/\s+/g, ' ')}`)
  }
})

// A backup has tables of its own for files.
const hasPlan = (sql: string) =>
  /^(delete|insert|select|update|with)\b/i.test(sql) &&
  !/RAISE|sqlite_schema|backup_(files|pieces)/.test(sql)

function isHarmless(detail: string, plan: readonly string[]): boolean {
  const [, scanned = ''] = /^SCAN (\S+)/.exec(detail) ?? []
  return (
    // Rows in the statement itself, or found by a full-text index.
    /^SCAN (CONSTANT ROW|\d+-ROW VALUES|json_each |\w+ VIRTUAL TABLE INDEX \d+:.*M)/.test(detail) ||
    // The source of these rows is a step of its own.
    plan.includes(`CO-ROUTINE ${scanned}`) ||
    small.includes(scanned)
  )
}
