import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { migrate, migrations, mustBeCurrent } from '../src/db/migrations.ts'
import { lockDirectory, openForServer, openToInspect } from '../src/db/open.ts'
import { secrets } from '../src/db/schema.ts'
import { StartError } from '../src/lib/errors.ts'
import { hostline } from './support/command.ts'
import { migratedDirectory } from './support/database.ts'
import { temporaryDirectory } from './support/directory.ts'
import { testAtLength } from './support/faults.ts'
import { startServer } from './support/process.ts'
import { replicaWithStats } from './support/replica.ts'
import { startService } from './support/service.ts'

const drizzleFolder = join(import.meta.dir, '../drizzle')
const pragma = (sqlite: Database, name: string) =>
  Object.values(sqlite.query<Record<string, unknown>, []>(`PRAGMA ${name}`).get() ?? {})[0]

describe('the file', () => {
  test('is readable by its owner only, with its WAL', async () => {
    await using service = await startService()
    await service.register()
    for (const name of ['hostline.db', 'hostline.db-wal', 'hostline.db-shm', 'hostline.lock']) {
      expect([name, statSync(join(service.directory, name)).mode & 0o777]).toEqual([name, 0o600])
    }
  })

  test('is a WAL database with foreign keys', async () => {
    await using service = await startService()
    const { sqlite } = service
    const names = ['journal_mode', 'synchronous', 'foreign_keys', 'wal_autocheckpoint']
    expect(names.map((name) => pragma(sqlite, name))).toEqual(['wal', 1, 1, 0])
    expect(sqlite.query('PRAGMA foreign_key_check').all()).toEqual([])
  })

  test('contains no password and no token', async () => {
    await using service = await startService()
    const { token, refreshToken } = await service.register()
    await service.stop()
    const bytes = readFileSync(join(service.directory, 'hostline.db'), 'latin1')
    for (const secret of ['correct horse', token, refreshToken, refreshToken.slice(3)]) {
      expect(bytes.includes(secret)).toBe(false)
    }
  })
})

describe('a statement', () => {
  // SQLite itself prefers the table whose compared value is not 1, and makes a limit a constant of the program.
  test.each([
    { how: 'QUERY PLAN', which: 'WHERE c.title = ?1 AND r.body = ?2' },
    { how: 'QUERY PLAN', which: 'WHERE c.title IS ?1 AND r.body IS ?2' },
    { how: '', which: 'LIMIT ?1 OFFSET ?2' },
  ])('is planned once, whatever its values: $which', async ({ how, which }) => {
    await using service = await startService()
    const statement = service.sqlite.prepare<object, [number, number]>(
      `EXPLAIN ${how} SELECT c.id FROM canned_replies c JOIN reports r ON c.id = r.id ${which}`,
    )
    const [first, second] = [statement.all(1, 5), statement.all(5, 1)]
    expect(second).toEqual(first as object[])
  })
})

describe('migrations', () => {
  test('every generated file is embedded, in order', () => {
    const journal = JSON.parse(readFileSync(join(drizzleFolder, 'meta/_journal.json'), 'utf8'))
    const files = journal.entries.map(({ tag }: { tag: string }) =>
      readFileSync(join(drizzleFolder, `${tag}.sql`), 'utf8'),
    )
    expect(migrations).toEqual(files)
    expect(readdirSync(drizzleFolder).filter((name) => name.endsWith('.sql'))).toHaveLength(
      files.length,
    )
  })

  // A released database has run them: append another one instead.
  test.each([
    ['0000_initial.sql', 'cd4d7ddc5a230f6099fd82188ab7a8fe5c87e2067eeaf6dbd308ee7137ba7173'],
    ['0001_safety.sql', 'f6b60b2303f3242d883d59b7d6a9fc0431c13643944de7a19b2801409f5f1068'],
    ['0002_one_owner.sql', 'b8bc13f2a916fb3e8e0e43c8a39f4dbd9962d02a0da824418807cf8eb72e91d1'],
    ['0003_in_step.sql', '20a075d81191037c327056e025633eaa77ba4fd379cea1c4000fe881d8d53c62'],
    [
      '0004_bans_and_deliveries.sql',
      '3c8d5f52c183494baf026000ba4162984988e944efd21c5712832d03f883c29b',
    ],
    ['0005_voice.sql', 'f9a5fe55551bbe9ddbce9166f5ee7c522e4e807bc3249e50cae3ab732a485eac'],
    ['0006_archive.sql', 'fe26af95738a4fd620251b273c2b6c054c6436aed59393e2b5f4b6bcaa644f7a'],
    ['0007_settings.sql', 'a17f33ff0e4371b68c7e43d1634f85fe90331546f79fb44a053eb3ca99bc4d4a'],
    ['0008_in_bulk.sql', '0fcf06d779d28100cc5e411724764cbd7c29ada3426b7c2fbc85d81639842f4c'],
    [
      '0009_reports_of_a_person.sql',
      '46f23c03034b59549e48535b9093da295407b254c2bcf93e21283f2579495de6',
    ],
    ['0010_pictures.sql', '20b91947f75d693416e96547cfc81bcf04f61a9928db82c8f4a6d717ad4fff89'],
    ['0011_custom_types.sql', 'd54dd40b20c21a8a2dff75995eaa49afc2f8e4eea258eb5ef3fe07c0b5e4ce8a'],
    ['0012_message_files.sql', '7d3ea94ed5b71d45d7855c5c0625a62af6d78d79f0767b355d25543d69816539'],
    ['0013_held_push.sql', 'cef7e9580efcb8ee4d1f422b95ab05fb9e2df0f9706b55197add92dc4fbdbacd'],
    ['0014_forgetting.sql', 'bf1fe95d3ee347c11e6a162500fd996ae195cc8d560284bc4a491d3367c40eea'],
    ['0015_webhook_bound.sql', 'd9f6b5368b845ddacacd74441f30d7530ed130a4ffdb8e2aaca68d10f8315e90'],
  ])('%s is frozen', (name, hash) => {
    const text = readFileSync(join(drizzleFolder, name))
    expect(new Bun.CryptoHasher('sha256').update(text).digest('hex')).toBe(hash)
  })

  testAtLength('each version migrates to the next one', () => {
    using sqlite = new Database(':memory:')
    for (const count of migrations.keys().map((index) => index + 1)) {
      migrate(sqlite, 'memory', { steps: migrations.slice(0, count) })
      expect(pragma(sqlite, 'user_version')).toBe(count)
    }
  })

  test.each([0, 1, 3])('version %d migrates to this one at once', (count) => {
    using sqlite = new Database(':memory:')
    migrate(sqlite, 'memory', { steps: migrations.slice(0, count) })
    migrate(sqlite, 'memory')
    expect(pragma(sqlite, 'user_version')).toBe(migrations.length)
  })

  test('conversations that were blocked before get the names of that day', () => {
    using sqlite = new Database(':memory:')
    migrate(sqlite, 'memory', { steps: migrations.slice(0, 2) })
    for (const name of ['ada', 'bob']) {
      sqlite.run(
        `INSERT INTO users (id, email, display_name, locale, role, password_hash, created_at)
         VALUES ('${name}', '${name}@example.com', '${name}', 'en', 'user', 'none', 0)`,
      )
    }
    sqlite.run("INSERT INTO blocks VALUES ('ada', 'bob', 'x', 1), ('bob', 'ada', NULL, NULL)")
    migrate(sqlite, 'memory')
    const names = sqlite.query('SELECT other_name FROM blocks ORDER BY user_id').values()
    expect(names).toEqual([['bob'], ['ada']])
  })

  test('files of others, used in messages and pictures, are kept by their owners only', () => {
    using sqlite = new Database(':memory:')
    const count = migrations.findIndex((step) => step.includes('removed_messages'))
    migrate(sqlite, 'memory', { steps: migrations.slice(0, count) })
    sqlite.run('PRAGMA foreign_keys = OFF')
    for (const [usedBy, file] of [
      ['ada', 'kept'],
      ['bob', 'forwarded'],
      ['ticket', 'attached'],
    ]) {
      sqlite.run(`INSERT INTO files VALUES ('${file}', 'ada', '', 1, '', 0, 1, NULL, 1)`)
      sqlite.run(`INSERT INTO file_uses VALUES ('message of ${usedBy}', '${file}')`)
      sqlite.run(
        `INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, created_at)
         VALUES ('${usedBy}', 1, 'message of ${usedBy}', '${usedBy}', 'text', '', 1)`,
      )
    }
    sqlite.run("DELETE FROM messages WHERE sender_id = 'ticket'")
    for (const step of migrations.slice(count, count + 1)) sqlite.run(step)
    const unused = sqlite.query('SELECT id FROM files WHERE unused_since IS NOT NULL').values()
    expect(unused).toEqual([['forwarded']])
  })

  test('a failed migration leaves everything unchanged, also for the older executable', () => {
    using directory = temporaryDirectory()
    const path = join(directory.path, 'hostline.db')
    using sqlite = new Database(path, { create: true })
    migrate(sqlite, path)
    sqlite.run("INSERT INTO secrets VALUES ('a', 'kept')")
    sqlite.run('VACUUM') // a rollback does not restore what free pages hold
    const before = sqlite.serialize()
    const halfway = 'CREATE TABLE b (x); DELETE FROM secrets; CREATE TABLE a (x)'
    const newer = [...migrations, 'CREATE TABLE a (x)', halfway]
    expect(() => migrate(sqlite, path, { steps: newer })).toThrow(StartError)
    expect(() => migrate(sqlite, path, { steps: newer })).toThrow(
      new StartError(
        `the database ${path} cannot be migrated and stays at version ${migrations.length}: table a already exists`,
      ),
    )
    expect(sqlite.serialize()).toEqual(before)
    migrate(sqlite, path)
  })

  test('a migration that rebuilds a table keeps the rows that refer to it', () => {
    using sqlite = new Database(':memory:')
    sqlite.run('PRAGMA foreign_keys = ON')
    const first = `CREATE TABLE parents (id TEXT PRIMARY KEY);
      CREATE TABLE children (parent TEXT REFERENCES parents (id) ON DELETE CASCADE)`
    const anew = `CREATE TABLE new (id TEXT PRIMARY KEY, name TEXT);
      INSERT INTO new (id) SELECT id FROM parents;
      DROP TABLE parents;
      ALTER TABLE new RENAME TO parents`
    migrate(sqlite, 'memory', { steps: [first] })
    sqlite.run("INSERT INTO parents VALUES ('a')")
    sqlite.run("INSERT INTO children VALUES ('a')")
    migrate(sqlite, 'memory', { steps: [first, anew] })
    expect(sqlite.query('SELECT * FROM children').all()).toEqual([{ parent: 'a' }])
    expect(pragma(sqlite, 'foreign_keys')).toBe(1)
    const broken = [first, anew, `${anew}; DELETE FROM parents`]
    expect(() => migrate(sqlite, 'memory', { steps: broken })).toThrow(
      'version 2: a foreign key is broken',
    )
  })

  test('a migration that rebuilds no table reads no rows to check their foreign keys', () => {
    using sqlite = new Database(':memory:')
    sqlite.run('PRAGMA foreign_keys = ON')
    const first = `CREATE TABLE parents (id TEXT PRIMARY KEY);
      CREATE TABLE children (parent TEXT REFERENCES parents (id))`
    migrate(sqlite, 'memory', { steps: [first] })
    sqlite.run("INSERT INTO parents VALUES ('a')")
    sqlite.run("INSERT INTO children VALUES ('a')")
    const queries = spyOn(sqlite, 'query')
    const index = 'CREATE INDEX children_parent ON children (parent)'
    migrate(sqlite, 'memory', { steps: [first, index] })
    expect(queries).not.toHaveBeenCalledWith('PRAGMA foreign_key_check')
    const broken = [first, index, 'DELETE FROM parents']
    expect(() => migrate(sqlite, 'memory', { steps: broken })).toThrow('version 2: FOREIGN KEY')
  })

  testAtLength('match the schema in the sources', () => {
    const result = Bun.spawnSync(['bun', 'drizzle-kit', 'generate', '--name', 'missing'], {
      cwd: join(import.meta.dir, '..'),
    })
    expect(result.stdout.toString()).toContain('No schema changes')
  })

  test('keep tables clustered by the keys of their range reads', async () => {
    await using service = await startService()
    const clustered = service.sqlite
      .query<{ name: string }, []>(
        "SELECT name FROM pragma_table_list WHERE wr = 1 AND type = 'table' ORDER BY name",
      )
      .all()
    const names = [
      'blocks',
      'deliveries',
      'file_uses',
      'follows',
      'messages',
      'notification_preferences',
      'notifications',
      'participants',
      'recovery_codes',
      'ticket_messages',
      'webhook_deliveries',
    ]
    expect(clustered.map(({ name }) => name)).toEqual(names)
  })
})

test('the ORM prepares a query once, also after one that was refused', () => {
  using directory = migratedDirectory()
  const { sqlite, orm, close } = openForServer(directory.path)
  const prepare = sqlite.prepare.bind(sqlite)
  const prepared: string[] = []
  const noting = (text: string) => {
    prepared.push(text)
    return prepare(text)
  }
  Object.assign(sqlite, { prepare: noting })
  const add = (name: string) => orm.insert(secrets).values({ name, value: name }).run()
  const list = (name: string) => orm.select().from(secrets).where(eq(secrets.name, name)).all()
  for (const name of ['a', 'b']) add(name)
  expect(() => add('a')).toThrow('UNIQUE')
  add('c')
  expect(['a', 'b', 'c', 'd'].map((name) => list(name).length)).toEqual([1, 1, 1, 0])
  expect(prepared).toEqual([expect.stringMatching(/^insert/), expect.stringMatching(/^select/)])
  close()
})

describe('the start refuses in one line', () => {
  const refusal = (work: () => unknown) => {
    try {
      work()
      return 'opened'
    } catch (error) {
      return `${(error as Error).constructor.name}: ${(error as Error).message}`
    }
  }

  test('a newer database', () => {
    using directory = migratedDirectory()
    const connection = openForServer(directory.path)
    connection.sqlite.run('PRAGMA user_version = 99')
    connection.close()
    expect(refusal(() => openForServer(directory.path))).toMatch(
      /^StartError: .*version 99.*newer executable$/,
    )
  })

  test.each([
    [98, 'DROP TABLE blocks'],
    [1, 'DROP TABLE sent_mails'],
    [2, 'ALTER TABLE users DROP COLUMN email_bounced_at'],
  ])(
    'a database of version %d from before the first release; check says the same',
    async (version, change) => {
      using directory = migratedDirectory()
      const connection = openForServer(directory.path)
      connection.sqlite.run(
        `PRAGMA foreign_keys = OFF; ${change}; PRAGMA user_version = ${version}`,
      )
      connection.close()
      const reason = `the database ${connection.path} (version ${version}) was made before the release 0.1.0: no released hostline opens it`
      expect(refusal(() => openForServer(directory.path))).toBe(`StartError: ${reason}`)
      expect(await hostline(['check'], directory.path)).toMatchObject({
        exitCode: 1,
        out: expect.stringContaining(`FAILED database: ${reason}`),
      })
    },
  )

  test("another program's database", () => {
    using directory = temporaryDirectory()
    using other = new Database(join(directory.path, 'hostline.db'), { create: true })
    other.run('PRAGMA user_version = 1')
    expect(refusal(() => openForServer(directory.path))).toMatch(
      /^StartError: .*another program: set DATA_DIR$/,
    )
  })

  test('a corrupt file', () => {
    using directory = temporaryDirectory()
    writeFileSync(
      join(directory.path, 'hostline.db'),
      'this is no database, it only looks like a file'.repeat(100),
    )
    expect(refusal(() => openForServer(directory.path))).toMatch(
      /^StartError: cannot use the database .*it is not a database: set DATA_DIR, or .*$/,
    )
  })

  test('a data directory that is a file', () => {
    using directory = temporaryDirectory()
    const path = join(directory.path, 'file')
    writeFileSync(path, '')
    expect(refusal(() => openForServer(path))).toMatch(
      /^StartError: cannot write to the data directory /,
    )
  })

  testAtLength('a data directory in use, until its process is gone in any way', async () => {
    using directory = temporaryDirectory()
    const dataDir = directory.path
    const first = await startServer({ dataDir })
    const second = await startServer({ dataDir }).catch((error: Error) => error.message)
    expect(second).toContain(
      `ended with 1: hostline: another hostline is already running on ${dataDir}`,
    )
    await first.kill('SIGKILL')
    await using third = await startServer({ dataDir })
    expect((await fetch(`${third.base}/readyz`)).status).toBe(200)
  })
})

// Here the stopping server of a pair has made it the copy of a standby.
test('neither a command nor a server without replication makes a database beside a copy', () => {
  using directory = temporaryDirectory()
  const { path } = directory
  writeFileSync(join(path, 'replica.db'), '')
  expect(() => openForServer(path)).toThrow(`with hostline restore ${join(path, 'replica.db')}`)
  const opening = [() => openForServer(path, { prepare: mustBeCurrent }), () => openToInspect(path)]
  for (const open of opening) {
    expect(open).toThrow('has the copy of a standby: ')
    expect(readdirSync(path)).not.toContain('hostline.db')
  }
})

test('a node keeps the directory locked from the moment it leads', async () => {
  using directory = temporaryDirectory()
  const unlock = lockDirectory(directory.path, 0)
  let unlocked = 0
  // The replica holds the lock until its last change of the directory.
  const replica = { ...replicaWithStats(), close: () => void unlocked++ }
  const service = await startService({ dataDir: directory.path, replica })
  expect(unlocked).toBe(0)
  await service.stop()
  expect(unlocked).toBe(1)
  unlock?.()
})

describe('constraints', async () => {
  const service = await startService()
  afterAll(() => service[Symbol.asyncDispose]())
  const { a, conversationId } = await service.pair()
  await service.say(a, conversationId, 'hello')

  test.each([
    ['a role', "UPDATE users SET role = 'root'"],
    ['a locale', "UPDATE users SET locale = 'xx'"],
    ['a flag', 'UPDATE users SET email_verified = 2'],
    ['a message type', "UPDATE messages SET type = 'video'"],
    ['a file without an address', "UPDATE messages SET type = 'file'"],
    ['a key state', "UPDATE signing_keys SET state = 'lost'"],
    ['two active keys', "UPDATE signing_keys SET state = 'active'"],
    [
      'an actor',
      "INSERT INTO audit_log (id, at, action, actor_type) VALUES ('x', 1, 'x', 'ghost')",
    ],
    ['a negative count', 'UPDATE participants SET unread_count = -1'],
    ['a conversation with oneself', 'UPDATE conversations SET user_a = user_b'],
    ['a message from a stranger', "UPDATE messages SET sender_id = 'stranger'"],
    ['a message without a conversation', "UPDATE messages SET conversation_id = 'nowhere'"],
    ['a session without a user', "UPDATE sessions SET user_id = 'nobody'"],
  ])('reject %s', (_, sql) => {
    expect(() => service.sqlite.run(sql)).toThrow(/constraint failed/)
  })
})
