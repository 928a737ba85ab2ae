import { firstIdAt } from '../src/lib/ids.ts'
import { createTestClock } from '../test/support/clock.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { startService } from '../test/support/service.ts'

/** Retention deletes messages, by default a million, and makes the file smaller while two people write without pause. Prints
 *  how late a timer of 5 ms was, and how much CPU time the event loop used between two ticks, which is independent of other
 *  load on the machine: bun bench/forgetting.ts [messages]. It fails when more than one turn in a thousand was busy for more
 *  than 20 ms. */
const total = Number(process.argv[2] ?? 1_000_000)
const conversations = Math.ceil(total / 50)
const day = 86_400_000

using directory = temporaryDirectory()
const clock = createTestClock()
await using service = await startService({ clock, dataDir: directory.path })
const admin = await service.registerAs('admin')
const { a, conversationId } = await service.pair()
const { sqlite } = service
fill()
const { token } = admin
const body = { message_retention_days: 30 }
await service.call('PATCH', '/v1/admin/settings', { token, body })
const before = await loaded(() => Bun.sleep(10_000))
const forgetting = await loaded(async () => {
  clock.advance(day)
  Object.assign(a, await service.login(a.email))
  const done = sqlite.query("SELECT 1 FROM audit_log WHERE action = 'retention_run'")
  while (done.get() === null) await Bun.sleep(100)
})
const isShrinking = sqlite.query(
  'SELECT freelist_count * 10 > page_count AND freelist_count > 1024 FROM pragma_freelist_count, pragma_page_count',
)
const megabytesBefore = fileMegabytes()
const shrinking = await loaded(async () => {
  clock.advance(60_000)
  while (isShrinking.values()[0]?.[0] === 1) await Bun.sleep(100)
})
const left = sqlite.query<{ n: number }, []>('SELECT count(*) AS n FROM messages').get()?.n
console.log(`${total} messages in ${conversations} conversations; ${left} left, all written now`)
console.log(`the file: ${megabytesBefore} MB, then ${fileMegabytes()} MB`)
console.log('| | s | late: p99 / max ms | busy: p99.9 / max ms | sends: n / p50 / p99 ms |')
console.log('|---|---|---|---|---|')
for (const [name, row] of Object.entries({ before, forgetting, shrinking }))
  console.log(`| ${name} | ${row.text}`)
process.exitCode = Math.max(forgetting.busy, shrinking.busy) <= 20 ? 0 : 1

function fill() {
  const at = clock.now() - 100 * day
  const insertConversation = sqlite.prepare(
    'INSERT INTO conversations (id, user_a, user_b, last_seq, created_at) VALUES (?, ?, ?, 50, ?)',
  )
  const insertParticipant = sqlite.prepare(
    `INSERT INTO participants (user_id, conversation_id, other_user_id, unread_count, last_activity_id)
     VALUES (?, ?, ?, ?, ?)`,
  )
  const insertMessage = sqlite.prepare(
    `INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, client_id, created_at)
     VALUES (?, ?, ?, ?, 'text', ?, ?, ?)`,
  )
  const insertUser = sqlite.prepare(
    `INSERT INTO users (id, email, display_name, locale, role, password_hash, created_at)
     VALUES (?, ?, 'Somebody', 'en', 'guest', 'x', ?)`,
  )
  const id = (n: number) => firstIdAt(at).slice(0, 16) + String(n).padStart(10, '0')
  const text = 'A message of about eighty characters, which is what people write on average. '
  sqlite.transaction(() => {
    for (let n = 0; n < conversations; n++) {
      const [one, other, talk] = [id(3 * n), id(3 * n + 1), id(3 * n + 2)]
      insertUser.run(one, `${one}@example.com`, at)
      insertUser.run(other, `${other}@example.com`, at)
      insertConversation.run(talk, one, other, at)
      insertParticipant.run(one, talk, other, 0, talk)
      insertParticipant.run(other, talk, one, 50, talk)
      for (const person of [one, other]) {
        sqlite.run(
          'INSERT INTO inboxes (user_id, conversation_count, unread_count) VALUES (?, 1, ?)',
          [person, person === other ? 50 : 0],
        )
      }
    }
    // Everybody writes in turn, so that neighbours in time are in different conversations.
    for (let n = 0; n < conversations * 50; n++) {
      const place = n % conversations
      const message = firstIdAt(at + 1).slice(0, 16) + String(n).padStart(10, '0')
      const seq = Math.floor(n / conversations) + 1
      insertMessage.run(id(3 * place + 2), seq, message, id(3 * place), text, message, at)
    }
  })()
  sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
}

/** Sends messages without pause during `work`, and measures the event loop. */
async function loaded(work: () => Promise<unknown>) {
  const delays: number[] = []
  const turns: number[] = []
  const sends: number[] = []
  let last = performance.now()
  let lastCpu = cpuMilliseconds()
  let isOver = false
  const timer = setInterval(() => {
    const now = performance.now()
    const cpu = cpuMilliseconds()
    delays.push(now - last - 5)
    turns.push(cpu - lastCpu)
    last = now
    lastCpu = cpu
  }, 5)
  const sending = (async () => {
    while (!isOver) {
      const startedAt = performance.now()
      const sent = await service.say(a, conversationId, 'Are you there?')
      if (sent.status !== 201 && sent.status !== 401 && sent.status !== 403) {
        throw new Error(JSON.stringify(sent.body))
      }
      sends.push(performance.now() - startedAt)
      await Bun.sleep(2)
    }
  })()
  const startedAt = performance.now()
  await work()
  const seconds = (performance.now() - startedAt) / 1_000
  isOver = true
  await sending
  clearInterval(timer)
  const busy = `${quantile(turns, 0.999)} / ${quantile(turns, 1)}`
  const stops = `${seconds.toFixed(1)} | ${quantile(delays, 0.99)} / ${quantile(delays, 1)} | ${busy}`
  const sent = `${sends.length} / ${quantile(sends, 0.5)} / ${quantile(sends, 0.99)}`
  return { busy: Number(quantile(turns, 0.999)), text: `${stops} | ${sent} |` }
}

/** In MB, after a checkpoint. */
function fileMegabytes() {
  sqlite.run('PRAGMA wal_checkpoint(PASSIVE)')
  return Math.round(Bun.file(`${directory.path}/hostline.db`).size / 1e6)
}

function quantile(values: number[], q: number): string {
  const sorted = [...values].sort((x, y) => x - y)
  return (sorted[Math.min(Math.floor(sorted.length * q), sorted.length - 1)] ?? 0).toFixed(1)
}

function cpuMilliseconds(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
