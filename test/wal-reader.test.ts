import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { openWalReader, type WalPosition } from '../src/db/wal-reader.ts'
import { memoryFolder, temporaryDirectory } from './support/directory.ts'

const pageSize = 4_096

/** A database, a reader of its WAL, and a copy built from what it reads. */
function watched() {
  const directory = temporaryDirectory(memoryFolder())
  const path = join(directory.path, 'one.db')
  const copyPath = join(directory.path, 'copy.db')
  using made = new Database(path)
  made.run('PRAGMA journal_mode = wal')
  made.run('CREATE TABLE rows (n INTEGER, bytes BLOB)')
  made.close()
  copyFileSync(path, copyPath)
  const database = new Database(path)
  database.run('PRAGMA wal_autocheckpoint = 0')
  database.query('SELECT count(*) FROM rows').get()
  const copy = openSync(copyPath, 'r+')
  const reader = openWalReader(path)
  const take = (number: number, bytes: Buffer) =>
    void writeSync(copy, bytes, 0, pageSize, (number - 1) * pageSize)
  reader.resumeAtBeginning()
  return {
    database,
    reader,
    take,
    /** A second reader of the same WAL. */
    other: () => openWalReader(path),
    read: () => reader.read(take),
    insert: (n: number) => database.run('INSERT INTO rows VALUES (?, randomblob(6000))', [n]),
    /** The next commit restarts the WAL. */
    checkpoint: () => database.run('PRAGMA wal_checkpoint(RESTART)'),
    copied(): unknown[] {
      using sqlite = new Database(copyPath)
      return sqlite.query('SELECT n FROM rows ORDER BY n').values().flat()
    },
    [Symbol.dispose]() {
      database.close()
      reader.close()
      directory[Symbol.dispose]()
    },
  }
}

test('each read returns the commits since the last one', () => {
  using wal = watched()
  expect(wal.read()).toBe('nothing')
  wal.insert(1)
  wal.insert(2)
  expect([wal.reader.isAtEnd(), wal.read(), wal.reader.isAtEnd()]).toEqual([false, 'pages', true])
  expect([wal.copied(), wal.read()]).toEqual([[1, 2], 'nothing'])
  wal.insert(3)
  expect([wal.read(), wal.copied()]).toEqual(['pages', [1, 2, 3]])
})

test('rolled back and uncommitted pages are not read', () => {
  using wal = watched()
  wal.database.run('BEGIN')
  wal.insert(1)
  expect(wal.read()).toBe('nothing')
  wal.database.run('ROLLBACK')
  expect(wal.read()).toBe('nothing')
})

test('a large transaction is read as a whole', () => {
  using wal = watched()
  const insert = wal.database.prepare('INSERT INTO rows VALUES (?, randomblob(6000))')
  const numbers = Array.from({ length: 700 }, (_, n) => n)
  wal.database.transaction(() => {
    for (const n of numbers) insert.run(n)
  })()
  expect([wal.read(), wal.copied()]).toEqual(['pages', numbers])
})

test('nothing is missing when the WAL is restarted after the last read', () => {
  using wal = watched()
  wal.insert(1)
  wal.read()
  for (const n of [2, 3, 4]) {
    wal.checkpoint()
    wal.insert(n)
    expect(wal.read()).toBe('pages')
  }
  expect(wal.copied()).toEqual([1, 2, 3, 4])
})

test('frames overwritten before they were read are a gap, and the next read continues after it', () => {
  using wal = watched()
  wal.insert(1)
  wal.read()
  wal.insert(2)
  wal.checkpoint()
  wal.insert(3)
  expect(wal.read()).toBe('gap')
  wal.insert(4)
  expect(wal.read()).toBe('pages')
})

test('a WAL that was restarted twice in between is a gap', () => {
  using wal = watched()
  wal.insert(1)
  wal.read()
  for (const n of [2, 3]) {
    wal.checkpoint()
    wal.insert(n)
  }
  expect(wal.read()).toBe('gap')
})

test('a second reader continues from a position, and reads only later commits', () => {
  using wal = watched()
  wal.insert(1)
  wal.read()
  const { salts = '', frame = 0, checksum = '' } = wal.reader.position() ?? {}
  wal.insert(2)
  const other = wal.other()
  expect(other.resume({ salts, frame, checksum })).toBe(true)
  expect([other.read(wal.take), wal.copied()]).toEqual(['pages', [1, 2]])
  expect(other.read(wal.take)).toBe('nothing')
})

test('a reader that begins with the WAL reads all its commits', () => {
  using wal = watched()
  wal.insert(1)
  const other = wal.other()
  other.resumeAtBeginning()
  expect([other.read(wal.take), wal.copied()]).toEqual(['pages', [1]])
})

test.each<[string, Partial<WalPosition>]>([
  ['other salts', { salts: '00112233aabbccdd' }],
  ['another checksum', { checksum: '00112233aabbccdd' }],
  ['a frame that is not there yet', { frame: 100 }],
  // Every database without a WAL has this one.
  ['an empty wal', { salts: '0000000000000000', frame: 0, checksum: '0000000000000000' }],
])('a position of %s is not in this WAL', (_, change) => {
  using wal = watched()
  const empty = wal.other()
  wal.insert(1)
  wal.read()
  const mark = wal.reader.position()
  expect(mark && wal.other().resume({ ...mark, ...change })).toBe(false)
  empty.close()
})

test('the position of an empty WAL does not match another database', () => {
  using one = watched()
  using another = watched()
  const mark = one.reader.index()
  expect(another.other().resume(mark)).toBe(false)
})

test('a restarted WAL does not contain an old position', () => {
  using wal = watched()
  wal.insert(1)
  wal.read()
  const mark = wal.reader.position()
  wal.checkpoint()
  wal.insert(2)
  expect(mark && wal.other().resume(mark)).toBe(false)
})
