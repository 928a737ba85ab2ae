import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, setSystemTime, spyOn, test } from 'bun:test'
import {
  chownSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { backUp } from '../src/db/backup.ts'
import { hostline as run } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { executable as built } from './support/executable.ts'
import { testAtLength } from './support/faults.ts'
import { allMessages, call, meet, startServer } from './support/process.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const workshop = temporaryDirectory()
const at = (...names: string[]) => join(workshop.path, ...names)
afterAll(() => workshop[Symbol.dispose]())
const { path: executable } = await built()

function hostline(dataDir: string, ...args: string[]) {
  const env = { ...process.env, DATA_DIR: dataDir, MIN_FREE_MB: '0' }
  return Bun.spawn([executable, ...args], { env, stdout: 'pipe', stderr: 'pipe' })
}

async function finished(command: ReturnType<typeof hostline>) {
  const exitCode = await command.exited
  const [out, err] = await Promise.all([
    new Response(command.stdout).text(),
    new Response(command.stderr).text(),
  ])
  return { exitCode, out, err }
}

/** A data directory with a conversation, left by a server that has ended. */
const filled = (async () => {
  const dataDir = at('filled')
  await using server = await startServer({ dataDir })
  const people = await meet(server.base)
  await say(server.base, people, 'kept')
  await server.kill('SIGTERM')
  return { dataDir, people }
})()

type People = Awaited<ReturnType<typeof meet>>

function say(base: string, { a, conversationId }: People, body: string) {
  const path = `/v1/chat/conversations/${conversationId}/messages`
  return call(base, 'POST', path, { token: a.token, body: { body } })
}

/** The messages of the conversation as a server on a data directory has them. */
async function messagesIn(dataDir: string, { a, conversationId }: People) {
  await using server = await startServer({ dataDir })
  const messages = await allMessages(server.base, conversationId, a.token)
  await server.kill('SIGTERM')
  return messages.map(({ body }) => body)
}

describe('a backup', () => {
  testAtLength(
    'beside a busy server is one verified file with all writes acknowledged before it began',
    async () => {
      const [dataDir, file] = [at('busy'), at('busy.db')]
      await using server = await startServer({ dataDir })
      const people = await meet(server.base)
      const acknowledged: string[] = []
      let isOver = false
      const senders = Array.from({ length: 8 }, async (_, sender) => {
        for (let n = 0; !isOver; n++) {
          const body = `${sender} ${n} ${'x'.repeat(3_000)}`
          if ((await say(server.base, people, body)).status === 201) acknowledged.push(body)
        }
      })
      await waitFor(() => acknowledged.length >= 500)
      const before = [...acknowledged]
      expect(await finished(hostline(dataDir, 'backup', file))).toMatchObject({
        exitCode: 0,
        out: expect.stringMatching(/busy\.db: \d+ KiB, checked\n/),
      })
      isOver = true
      await Promise.all(senders)
      expect(acknowledged.length).toBeGreaterThan(before.length)
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(readdirSync(workshop.path).filter((name) => name.startsWith('busy.db'))).toEqual([
        'busy.db',
      ])
      const copy = new Database(file, { readonly: true })
      const bodies = copy.query<{ body: string; seq: number }, []>('SELECT body, seq FROM messages')
      const rows = bodies.all()
      copy.close()
      const kept = new Set(rows.map(({ body }) => body))
      expect(before.filter((body) => !kept.has(body))).toEqual([])
      expect(Math.max(...rows.map(({ seq }) => seq))).toBe(rows.length)

      const { out } = await run(['check'], dataDir)
      expect(out).toMatch(/ok {4} last backup: .*, 0 days ago/)
    },
  )

  testAtLength('ends although writes arrive faster than it copies', async () => {
    await using service = await startService()
    service.sqlite.run('CREATE TABLE filler (bytes BLOB)')
    let isOver = false
    const writing = (async () => {
      while (!isOver) {
        service.sqlite.run('INSERT INTO filler VALUES (zeroblob(4000000))')
        await new Promise(setImmediate)
      }
    })()
    await backUp(service.directory, at('outrun.db')).finally(() => {
      isOver = true
    })
    await writing
    expect(statSync(at('outrun.db')).size).toBeLessThan(40_000_000)
  })

  test('in a directory is named after the date, and the newest are kept', async () => {
    const { dataDir } = await filled
    const directory = at('dated')
    mkdirSync(directory)
    const old = [1, 2, 3].map((day) => `hostline-2020-01-0${day}T00-00-00Z.db`)
    const killed = 'hostline-2020-01-03T00-00-00Z.db.999999999.partial'
    for (const name of [...old, killed, 'mine.db']) writeFileSync(join(directory, name), '')
    const { exitCode } = await run(['backup', directory, '--keep', '2'], dataDir)
    expect(exitCode).toBe(0)
    expect(readdirSync(directory).sort()).toEqual([
      old[2] ?? '',
      expect.stringMatching(/^hostline-20[2-9]\d-.*Z-.*\.db$/),
      'mine.db',
    ])
  })

  test('in a directory stays when the others have later dates, because the clock was ahead', async () => {
    const { dataDir } = await filled
    const directory = at('ahead')
    mkdirSync(directory)
    const later = [1, 2, 3].map((day) => `hostline-2999-01-0${day}T00-00-00Z.db`)
    for (const name of later) writeFileSync(join(directory, name), '')
    const { exitCode, out } = await run(['backup', directory, '--keep', '3'], dataDir)
    expect([exitCode, readdirSync(directory).sort()]).toEqual([
      0,
      [expect.stringMatching(/^hostline-20/), ...later.slice(1)],
    ])
    expect(out).toContain(', checked')
  })

  test('into a file removes what a killed one to the same file left', async () => {
    const { dataDir } = await filled
    const directory = at('again')
    mkdirSync(directory)
    const left = [
      'a.db.999999999.partial',
      'a.db.999999999.partial-wal',
      `a.db.${process.pid}.partial`,
    ]
    const others = ['b.db.999999999.partial', `a.db.${process.pid}0.txt`]
    for (const name of [...left, ...others]) writeFileSync(join(directory, name), '')
    expect(await run(['backup', join(directory, 'a.db')], dataDir)).toMatchObject({ exitCode: 0 })
    expect(readdirSync(directory).sort()).toEqual(['a.db', ...others].sort())
  })

  test('is copied to the bucket also when the reader of the output is gone', async () => {
    const { dataDir } = await filled
    const directory = at('unread')
    mkdirSync(directory)
    const env = {
      DATA_DIR: dataDir,
      MIN_FREE_MB: '0',
      BACKUP_S3_URL: 's3://key:secret@127.0.0.1:1/none?tls=off',
    }
    const script = `("${executable}" backup "${directory}"; echo "ended with $?" >&2) | true`
    const shell = Bun.spawn(['sh', '-c', script], { env, stderr: 'pipe' })
    expect(await shell.stderr.text()).toMatch(/^hostline: the bucket .*\nended with 1\n$/)
  })

  test('leaves the unfinished backup of another user', async () => {
    const { dataDir } = await filled
    const directory = at('shared')
    mkdirSync(directory)
    const theirs = 'hostline-2020-01-03T00-00-00Z.db.999999998.partial'
    writeFileSync(join(directory, theirs), '')
    using _ = spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
    })
    expect(await run(['backup', directory], dataDir)).toMatchObject({ exitCode: 0 })
    expect(readdirSync(directory)).toContain(theirs)
  })

  test('counts although an old one cannot be removed', async () => {
    const { dataDir } = await filled
    const directory = at('stuck')
    const stuck = 'hostline-2020-01-01T00-00-00Z.db'
    mkdirSync(join(directory, stuck), { recursive: true }) // stands for the file of another user in a sticky directory
    const { exitCode, out, err } = await run(['backup', directory, '--keep', '1'], dataDir)
    expect([exitCode, out, err]).toEqual([
      0,
      expect.stringContaining(', checked'),
      expect.stringMatching(/^hostline: an old backup cannot be removed: .*$/),
    ])
    expect((await run(['check'], dataDir)).out).toContain('ok     last backup: ')
  })

  test('within the same second gets a name of its own; so do the files that restores keep', async () => {
    const { dataDir } = await filled
    const [directory, target] = [at('at-once'), at('replaced-at-once')]
    mkdirSync(directory)
    using _ = frozenTime()
    const backup = () => run(['backup', directory], dataDir)
    const restore = () => run(['restore', join(dataDir, 'hostline.db'), '--force'], target)
    // One after the other: each command stands for a process of its own, and blocks its only thread while it waits for
    // the directory.
    const results = []
    for (const command of [backup, backup, restore, restore, restore]) results.push(await command())
    expect(results.map(({ err }) => err)).toEqual(['', '', '', '', ''])
    expect(readdirSync(directory)).toHaveLength(2)
    expect(readdirSync(target).filter((name) => name.includes('replaced'))).toHaveLength(2)
  })

  test('beside a backup by another process gets a name of its own', async () => {
    const { dataDir } = await filled
    const directory = at('beside')
    mkdirSync(directory)
    const both = [1, 2].map(() => finished(hostline(dataDir, 'backup', directory)))
    const results = await Promise.all(both)
    expect(results.map(({ exitCode, err }) => [exitCode, err])).toEqual([
      [0, ''],
      [0, ''],
    ])
    expect(readdirSync(directory)).toHaveLength(2)
  })

  testAtLength('that is killed leaves the previous backup', async () => {
    const { dataDir } = await filled
    const file = at('killed.db')
    await run(['backup', file], dataDir)
    const before = await Bun.file(file).bytes()
    const second = hostline(dataDir, 'backup', file)
    const hasBegun = () => readdirSync(workshop.path).some((name) => name.startsWith('killed.db.'))
    await waitFor(() => hasBegun() || second.exitCode !== null)
    second.kill('SIGKILL')
    await second.exited
    const after = await Bun.file(file).bytes()
    // A backup that is killed late may be complete.
    if (second.exitCode !== 0) expect(after.length).toBe(before.length)
    const copy = new Database(file, { readonly: true })
    expect(copy.query('PRAGMA integrity_check').values()).toEqual([['ok']])
    copy.close()
  })

  test.each([
    [['backup'], 2, 'backup needs a file'],
    [['backup', ''], 2, 'backup needs a file'],
    [['backup', 'a', '--keep', '3'], 2, '--keep is for a directory that exists'],
    [['backup', workshop.path, '--keep', 'all'], 2, '--keep takes a number from 1 to 9999'],
    [['backup', at('filled', 'hostline.db')], 1, 'is a database in use'],
    [['backup', at('nowhere', 'x.db')], 1, 'no backup was made in'],
    [['backup', join(import.meta.dir, 'backup.test.ts')], 1, 'exists and is not a backup'],
    [['restore', at('filled', 'hostline.db'), '--force'], 1, 'is the database itself'],
    [['restore'], 2, 'restore needs the file of a backup'],
    [['restore', at('nowhere.db')], 1, 'there is no'],
  ])('%p is refused in one line', async (args, exitCode, reason) => {
    const { dataDir } = await filled
    const result = await run(args, dataDir)
    expect(result).toEqual({ exitCode, out: '', err: expect.stringContaining(reason) })
    expect(result.err.trim().split('\n')).toHaveLength(1)
  })

  test('during which its server stops leading fails, and does not replace an earlier one', async () => {
    const { dataDir } = await filled
    const [moved, file] = [at('moved'), at('of-moved.db')]
    cpSync(dataDir, moved, { recursive: true })
    writeFileSync(file, 'earlier')
    const copying = backUp(moved, file)
    // As the leader of a pair does.
    renameSync(join(moved, 'hostline.db'), join(moved, 'replica.db'))
    rmSync(join(moved, 'hostline.db-wal'))
    expect(copying).rejects.toThrow('stopped leading meanwhile')
    expect(readFileSync(file, 'utf8')).toBe('earlier')
  })

  test('of a damaged database fails', async () => {
    const { dataDir } = await filled
    const damaged = at('damaged')
    cpSync(dataDir, damaged, { recursive: true })
    truncateSync(join(damaged, 'hostline.db'), statSync(join(damaged, 'hostline.db')).size / 2)
    const { exitCode, err } = await run(['backup', at('of-damaged.db')], damaged)
    expect([exitCode, err]).toEqual([1, expect.stringContaining('damaged')])
    expect(existsSync(at('of-damaged.db'))).toBe(false)
  })
})

describe('a restore', () => {
  test('into an empty directory restores everything', async () => {
    const { dataDir, people } = await filled
    await run(['backup', at('whole.db')], dataDir)
    const target = at('empty', 'data')
    expect(await run(['restore', at('whole.db')], target)).toMatchObject({ exitCode: 0, err: '' })
    expect(statSync(join(target, 'hostline.db')).mode & 0o777).toBe(0o600)
    expect(await messagesIn(target, people)).toEqual(['kept'])
  })

  test('gives the files to the owner of the directory, also when root runs it', async () => {
    const { dataDir } = await filled
    const target = at('owned')
    const self = process.getuid?.() ?? 0
    const isRoot = self === 0
    mkdirSync(target)
    if (isRoot) chownSync(target, 65_534, 65_534)
    await run(['restore', join(dataDir, 'hostline.db')], target)
    const owners = readdirSync(target).map((name) => statSync(join(target, name)).uid)
    expect(new Set(owners)).toEqual(new Set([isRoot ? 65_534 : self]))
  })

  test('follows no symbolic links, also when root runs it', async () => {
    const { dataDir } = await filled
    const [target, victim] = [at('linked'), at('victim')]
    mkdirSync(join(target, 'files'), { recursive: true })
    writeFileSync(victim, '', { mode: 0o644 })
    const before = statSync(victim)
    if (before.uid === 0) chownSync(target, 65_534, 65_534)
    symlinkSync(victim, join(target, 'files', 'x'))
    expect(await run(['restore', join(dataDir, 'hostline.db')], target)).toMatchObject({
      exitCode: 0,
    })
    for (const name of ['hostline.lock', 'hostline.db']) {
      rmSync(join(target, name))
      symlinkSync(victim, join(target, name))
    }
    for (const args of [
      ['restore', join(dataDir, 'hostline.db'), '--force'],
      ['user', 'list'],
    ]) {
      const { exitCode, err } = await run(args, target)
      expect([exitCode, err]).toEqual([1, expect.stringContaining('it is a link')])
    }
    const { mode, uid } = statSync(victim)
    expect({ mode, uid }).toEqual({ mode: before.mode, uid: before.uid })
  })

  test('over existing data needs --force and keeps the old data, with the WAL of a killed server', async () => {
    const { dataDir, people } = await filled
    const file = at('over.db')
    await run(['backup', file], dataDir)
    const target = at('over')
    cpSync(dataDir, target, { recursive: true })
    await using server = await startServer({ dataDir: target })
    await say(server.base, people, 'newer')
    const beside = await run(['restore', file, '--force'], target)
    expect(beside.err).toContain('a hostline is running on')
    await server.kill('SIGKILL')
    expect(existsSync(join(target, 'hostline.db-wal'))).toBe(true)
    expect((await run(['restore', file], target)).err).toContain('--force replaces it')

    expect(await run(['restore', file, '--force'], target)).toMatchObject({ exitCode: 0 })
    const aside = readdirSync(target).filter((name) => name.startsWith('hostline-replaced-'))
    expect(aside).toEqual([expect.stringMatching(/^hostline-replaced-.*Z-.*\.db$/)])
    expect(existsSync(join(target, 'hostline.db-wal'))).toBe(false)
    expect(await messagesIn(target, people)).toEqual(['kept'])

    const again = at('again')
    await run(['restore', join(target, aside[0] ?? '')], again)
    expect(await messagesIn(again, people)).toEqual(['newer', 'kept'])
  })

  test('accepts the database file of a killed server with its WAL', async () => {
    const { dataDir, people } = await filled
    const source = at('plain')
    cpSync(dataDir, source, { recursive: true })
    await using server = await startServer({ dataDir: source })
    await say(server.base, people, 'in the wal')
    await server.kill('SIGKILL')
    const target = at('from-plain')
    await run(['restore', join(source, 'hostline.db')], target)
    expect(await messagesIn(target, people)).toEqual(['in the wal', 'kept'])
  })

  test.each([
    [
      'no database',
      (file: string) => writeFileSync(file, 'x'.repeat(5_000)),
      'it is not a database',
    ],
    [
      'half a database',
      (file: string) => truncateSync(file, statSync(file).size / 2),
      'it is damaged',
    ],
    [
      'a database without its last byte',
      (file: string) => truncateSync(file, statSync(file).size - 1),
      'it is damaged: it is cut off',
    ],
    [
      'a database with zeros in the place of a page',
      (file: string) => overwrite(file, 8_192, Buffer.alloc(4_096)),
      'it is damaged: Tree',
    ],
    [
      'a database with a page in the place of another one',
      (file: string) => overwrite(file, 8_192, readFileSync(file).subarray(0, 4_096)),
      'it is damaged: Tree',
    ],
    ['an empty file', (file: string) => truncateSync(file, 0), 'it is empty'],
    [
      'a database of another program',
      (file: string) => change(file, 'application_id = 1'),
      'program',
    ],
    [
      'a newer database',
      (file: string) => change(file, 'user_version = 99'),
      'use a newer executable',
    ],
  ])('of %s is refused and leaves the current data unchanged', async (_, spoil, reason) => {
    const { dataDir, people } = await filled
    const [file, target] = [at('spoilt.db'), at('stays')]
    copyFileSync(join(dataDir, 'hostline.db'), file)
    spoil(file)
    cpSync(dataDir, target, { recursive: true })
    const before = readdirSync(target).sort()
    const { exitCode, err } = await run(['restore', file, '--force'], target)
    expect([exitCode, err]).toEqual([1, expect.stringContaining(reason)])
    expect(err.split('\n')).toHaveLength(1)
    expect(readdirSync(target).sort()).toEqual(before)
    if (reason === 'program') expect(await messagesIn(target, people)).toEqual(['kept'])
  })
})

/** Stops the clock until the end of the scope. */
function frozenTime() {
  setSystemTime(new Date())
  return { [Symbol.dispose]: () => void setSystemTime() }
}

function overwrite(path: string, at: number, bytes: Uint8Array) {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, at)
  closeSync(file)
}

function change(file: string, pragma: string) {
  const database = new Database(file)
  database.run(`PRAGMA ${pragma}`)
  database.close()
}
