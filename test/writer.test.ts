import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type CheckpointReply, createCheckpointer } from '../src/db/checkpointer.ts'
import { openForServer } from '../src/db/open.ts'
import { openWal } from '../src/db/storage.ts'
import { createWriter, mostPending, type WriterOptions } from '../src/db/writer.ts'
import type { AppError } from '../src/lib/errors.ts'
import { migratedDirectory } from './support/database.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const worker = new URL('../src/db/checkpoint-worker.ts', import.meta.url)

/** A writer over a real file with a table of notes. */
function startWriter(options: Partial<WriterOptions> = {}) {
  const directory = migratedDirectory()
  const connection = openForServer(directory.path)
  const { sqlite } = connection
  sqlite.run('CREATE TABLE notes (text TEXT PRIMARY KEY)')
  const wal = openWal(connection.path)
  const fatal: unknown[] = []
  const writer = createWriter({
    sqlite,
    sync: wal.sync,
    onCommit: () => {},
    onFatal: (error) => fatal.push(error),
    log: silent,
    maxBatchMilliseconds: Number.POSITIVE_INFINITY,
    ...options,
  })
  const add = (text: string) => () => void sqlite.run('INSERT INTO notes VALUES (?)', [text])
  return {
    ...writer,
    sqlite,
    path: connection.path,
    fatal,
    add,
    notes: () =>
      sqlite
        .query<{ text: string }, []>('SELECT text FROM notes ORDER BY rowid')
        .all()
        .map(({ text }) => text),
    async [Symbol.asyncDispose]() {
      await wal.close()
      connection.close()
      directory[Symbol.dispose]()
    },
  }
}

/** A disk whose syncs are released by the test. */
function heldBackSync() {
  const waiting: Array<() => void> = []
  return {
    sync: () => new Promise<void>((resolve) => waiting.push(resolve)),
    get running() {
      return waiting.length
    },
    release: () => waiting.shift()?.(),
  }
}

/** Runs everything that does not wait for the disk. */
async function turns(count = 20) {
  for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve))
}

const full = () => {
  throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
}

async function outcome(promise: Promise<unknown>) {
  return promise.then(
    () => 'done',
    (error: AppError) => error.kind ?? error.message,
  )
}

describe('group commit', () => {
  test('the writes of one turn are one transaction', async () => {
    const commits: number[] = []
    await using db = startWriter({ onCommit: (size) => commits.push(size) })
    await Promise.all(['a', 'b', 'c'].map((text) => db.write(db.add(text))))
    expect([commits, db.notes()]).toEqual([[3], ['a', 'b', 'c']])
  })

  test('a throwing function rolls back and rejects alone', async () => {
    await using db = startWriter()
    const results = await Promise.all([
      outcome(db.write(db.add('before'))),
      outcome(
        db.write(() => {
          db.add('undone')()
          throw new Error('no')
        }),
      ),
      outcome(db.write(db.add('before'))),
      outcome(db.write(db.add('after'))),
    ])
    const unique = 'UNIQUE constraint failed: notes.text'
    expect(results).toEqual(['done', 'no', unique, 'done'])
    expect(db.notes()).toEqual(['before', 'after'])
  })

  test('afterCommit runs in commit order, before the promise, and never after a rollback', async () => {
    await using db = startWriter()
    const order: string[] = []
    const note = (text: string) => {
      db.add(text)()
      db.afterCommit(() => order.push(`after ${text}`))
    }
    await Promise.all([
      db.write(() => note('a')).then(() => order.push('a')),
      outcome(
        db.write(() => {
          note('b')
          throw new Error('no')
        }),
      ),
      db.write(() => note('c')).then(() => order.push('c')),
    ])
    expect(order).toEqual(['after a', 'after c', 'a', 'c'])
    expect(() => db.afterCommit(() => {})).toThrow('inside the work of a write')
  })

  test('a batch with a throwing write runs again, and writes nothing twice', async () => {
    await using db = startWriter()
    let runs = 0
    const counted = db.write(() => {
      runs++
      db.add('counted')()
    })
    const failing = outcome(db.write(async () => 1))
    await counted
    expect([runs, await failing, db.notes()]).toEqual([
      2,
      'write takes a synchronous function',
      ['counted'],
    ])
  })

  test('a refused write does not lengthen a batch: the loop is blocked for the same number', async () => {
    const sizes: number[] = []
    await using db = startWriter({
      onCommit: (size) => sizes.push(size),
      maxBatchMilliseconds: 5,
    })
    const takeMillisecond = () => {
      for (const startedAt = performance.now(); performance.now() - startedAt < 1; );
    }
    const refuse = () => {
      throw new Error('no')
    }
    const works = Array.from({ length: 60 }, (_, n) => (n % 20 === 3 ? refuse : takeMillisecond))
    const outcomes = await Promise.all(works.map((work) => outcome(db.write(work))))
    expect(outcomes.filter((text) => text === 'no')).toHaveLength(3)
    // 5 ms, the write that exceeds them, and refused ones, which take no time.
    expect(Math.max(...sizes)).toBeLessThanOrEqual(6 + 1)
    expect(sizes.reduce((sum, size) => sum + size)).toBe(60)
  })

  test('a throwing commit observer is logged and stops no queue', async () => {
    const logged: string[] = []
    await using db = startWriter({
      onCommit() {
        throw new Error('no')
      },
      log: { ...silent, error: (text) => logged.push(text) },
    })
    // More than one batch takes.
    await Promise.all(Array.from({ length: 300 }, (_, n) => db.write(db.add(`note ${n}`))))
    expect([db.notes().length, new Set(logged)]).toEqual([
      300,
      new Set(['the observer of a commit failed']),
    ])
  })

  test('a throwing afterCommit blocks no other write', async () => {
    await using db = startWriter()
    const throwing = db.write(() => {
      db.afterCommit(() => {
        throw new Error('a frame')
      })
      return 1
    })
    expect(await Promise.all([throwing, db.write(() => 2)])).toEqual([1, 2])
  })

  test('promises settle in the order of the calls', async () => {
    await using db = startWriter()
    const order: number[] = []
    const writes = Array.from({ length: 600 }, (_, n) =>
      db.write(() => n).then((value) => order.push(value)),
    )
    await Promise.all(writes)
    expect(order).toEqual(Array.from({ length: 600 }, (_, n) => n))
  })

  test('reads of a turn share a transaction, which ends before the next commit, or with the turn', async () => {
    await using writer = startWriter()
    const isSharing = () => writer.sqlite.inTransaction
    writer.shareReads()
    writer.shareReads()
    const written = writer.write(writer.add('one'))
    expect([isSharing(), writer.notes()]).toEqual([true, []])
    await written
    expect([isSharing(), writer.notes()]).toEqual([false, ['one']])
    writer.shareReads()
    await turns(1)
    expect(isSharing()).toBe(false)
    await writer.write(() => writer.shareReads())
    await writer.write(writer.add('two'))
    expect(writer.notes()).toEqual(['one', 'two'])
  })

  test('nothing is committed while commits are held', async () => {
    await using db = startWriter()
    const writes = [db.write(db.add('before'))]
    db.hold()
    writes.push(db.write(db.add('meanwhile')))
    await turns()
    expect(db.notes()).toEqual([])
    db.resume()
    await Promise.all(writes)
    expect(db.notes()).toEqual(['before', 'meanwhile'])
  })

  test('an asynchronous function is refused', async () => {
    await using db = startWriter()
    expect(await outcome(db.write(async () => 1))).toBe('write takes a synchronous function')
  })
})

describe('waiting for the disk', () => {
  test('a promise resolves only after a sync that began after its commit', async () => {
    const disk = heldBackSync()
    await using db = startWriter({ sync: disk.sync })
    const settled: string[] = []
    const write = (text: string) => db.write(db.add(text)).then(() => settled.push(text))
    const first = write('first')
    await turns()
    const second = write('second')
    await turns()
    expect([db.notes(), settled, disk.running]).toEqual([['first', 'second'], [], 1])
    disk.release()
    await first
    await turns()
    expect([settled, disk.running]).toEqual([['first'], 1])
    disk.release()
    await second
    expect(settled).toEqual(['first', 'second'])
  })

  test('refusals wait too: they may depend on a write that is not synced yet', async () => {
    const disk = heldBackSync()
    await using db = startWriter({ sync: disk.sync })
    const results: string[] = []
    void db.write(db.add('a')).then(() => results.push('written'))
    void outcome(db.write(db.add('a'))).then((result) => results.push(result))
    await turns()
    expect(results).toEqual([])
    disk.release()
    await turns()
    expect(results).toEqual(['written', 'UNIQUE constraint failed: notes.text'])
  })

  test('over HTTP and the socket no acknowledgement is sent before the sync', async () => {
    let disk: ReturnType<typeof heldBackSync> | undefined
    const sync = (real: () => Promise<void>) => disk?.sync() ?? real()
    await using service = await startService({ listen: true, sync })
    const { a, b, conversationId } = await service.pair()
    const [ada, bob] = [await service.connect(a), await service.connect(b)]
    const seen: string[] = []
    const post = (name: string) =>
      service
        .call('POST', `/v1/chat/conversations/${conversationId}/messages`, {
          token: a.token,
          body: { body: 'hi', client_id: 'k' },
        })
        .then(({ status, headers }) =>
          seen.push(`${name} ${status} ${headers.get('idempotent-replayed')}`),
        )
    disk = heldBackSync()
    const first = post('first')
    // Another write may be waiting for the disk.
    const messages = service.sqlite.query('SELECT 1 FROM messages')
    await waitFor(() => messages.get())
    const replay = post('replay')
    ada.send({ type: 'message', conversation_id: conversationId, body: 'by frame' })
    bob.send({ type: 'read', conversation_id: conversationId })
    // A pong would wait for the read mark.
    bob.send({ type: 'unknown' })
    await bob.next('error')
    await ada.settled()
    expect([seen, ada.frames, bob.frames]).toEqual([[], [], []])
    const held = disk
    disk = undefined
    held.release()
    await Promise.all([first, replay])
    await bob.next('new_message')
    await ada.next('read_receipt')
    expect(seen.toSorted()).toEqual(['first 201 null', 'replay 201 true'])
  })

  test('a pong waits for every read mark before it, also when a later one is refused at once', async () => {
    let disk: ReturnType<typeof heldBackSync> | undefined
    const sync = (real: () => Promise<void>) => disk?.sync() ?? real()
    await using service = await startService({ listen: true, sync })
    const { a, b, conversationId } = await service.pair()
    await service.say(a, conversationId, 'hello')
    const bob = await service.connect(b)
    disk = heldBackSync()
    const mark = { type: 'read', conversation_id: conversationId }
    bob.send(mark)
    // Another write may be waiting for the disk.
    const unread = service.sqlite.query('SELECT 1 FROM participants WHERE unread_count > 0')
    await waitFor(() => unread.get() === null)
    for (let n = 0; n < mostPending; n++) void service.write(() => {}).catch(() => {})
    for (const frame of [mark, { type: 'ping' }, { type: 'unknown' }]) bob.send(frame)
    expect(await bob.next('error')).toMatchObject({ request: { type: 'read' } })
    expect(await bob.next('error')).toMatchObject({ request: { type: 'unknown' } })
    expect(bob.frames).toEqual([])
    const held = disk
    disk = undefined
    held.release()
    await bob.next('pong')
  })
})

describe('failure', () => {
  test('a failing commit rejects all its writes, and writing works again once there is room', async () => {
    await using db = startWriter()
    await db.write(db.add('kept'))
    const pages = db.sqlite.query<{ page_count: number }, []>('PRAGMA page_count').get()?.page_count
    db.sqlite.run(`PRAGMA max_page_count = ${pages}`)
    const big = 'x'.repeat(20_000)
    const results = await Promise.all([
      outcome(db.write(db.add('small'))),
      outcome(db.write(db.add(big))),
      outcome(db.write(db.add('other'))),
    ])
    expect(results).toEqual(['unavailable', 'unavailable', 'unavailable'])
    expect([db.isHealthy(), db.notes()]).toEqual([false, ['kept']])
    db.sqlite.run('PRAGMA max_page_count = 1000000')
    expect(await outcome(db.write(db.add('again')))).toBe('done')
    expect([db.isHealthy(), db.notes()]).toEqual([true, ['kept', 'again']])
  })

  test('a full disk in the middle of a batch loses the whole batch', async () => {
    await using db = startWriter()
    const refuse = () => {
      throw new Error('no')
    }
    for (const first of [db.add('before'), refuse]) {
      const results = await Promise.all([
        outcome(db.write(first)),
        outcome(db.write(full)),
        outcome(db.write(db.add('after'))),
      ])
      expect([results, db.notes()]).toEqual([['unavailable', 'unavailable', 'unavailable'], []])
    }
  })

  test('the writes behind a failed batch are committed', async () => {
    await using db = startWriter()
    const failed = outcome(db.write(full))
    const last = Array.from({ length: 256 }, (_, n) => outcome(db.write(db.add(`${n}`)))).at(-1)
    expect([await failed, await last, db.notes()]).toEqual(['unavailable', 'done', ['255']])
  })

  test('after closing nothing more is accepted', async () => {
    await using db = startWriter()
    const writing = db.write(db.add('last'))
    await db.close()
    await writing
    expect(await outcome(db.write(db.add('late')))).toBe('unavailable')
    expect(db.notes()).toEqual(['last'])
  })

  test('an empty commit does not prove that there is room', async () => {
    await using db = startWriter()
    await db.write(db.add('a'))
    db.sqlite.run('PRAGMA max_page_count = 1') // SQLite keeps it at the present size
    expect(await outcome(db.write(db.add('b'.repeat(100_000))))).toBe('unavailable')
    await db.write(() => undefined)
    expect(db.isHealthy()).toBe(false)
    db.sqlite.run('PRAGMA max_page_count = 1000000')
    await db.write(db.add('c'))
    expect(db.isHealthy()).toBe(true)
  })

  test('over HTTP it is a 503 with Retry-After, reads continue, and readiness follows', async () => {
    await using service = await startService()
    const { a, conversationId } = await service.pair()
    const status = async (path: string) =>
      (await service.call('GET', path, { token: a.token })).status
    const limit = (pages: number) => service.sqlite.run(`PRAGMA max_page_count = ${pages}`)
    limit(1) // SQLite keeps it at the present size
    let answer = await service.say(a, conversationId, 'y'.repeat(5_000))
    for (let n = 0; answer.status === 201 && n < 50; n++) {
      answer = await service.say(a, conversationId, 'y'.repeat(5_000))
    }
    expect([answer.status, answer.body.error.code]).toEqual([503, 'internal_error'])
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await status('/v1/chat/conversations')).toBe(200)
    limit(1_000_000)
    expect((await service.say(a, conversationId, 'room again')).status).toBe(201)
    expect(await status('/readyz')).toBe(200)
  })

  test('readiness is false while the database cannot be written, and recovers by itself', async () => {
    await using service = await startService()
    const ready = async () => (await service.call('GET', '/readyz')).status
    expect(await ready()).toBe(200)
    using other = new Database(join(service.directory, 'hostline.db'))
    other.run('BEGIN IMMEDIATE')
    service.sqlite.run('PRAGMA busy_timeout = 0')
    const { status } = await service.call('POST', '/v1/auth/register', {
      body: { email: 'a@b.co', password: 'long enough' },
    })
    other.run('ROLLBACK')
    service.sqlite.run('PRAGMA query_only = ON')
    expect([status, await ready()]).toEqual([503, 503])
    service.sqlite.run('PRAGMA query_only = OFF')
    expect(await ready()).toBe(200)
  })

  test('a failing sync rejects and is reported as fatal; nothing settles afterwards', async () => {
    const sync = () => Promise.reject(new Error('EIO'))
    await using db = startWriter({ sync })
    expect(await outcome(db.write(db.add('lost')))).toBe('unavailable')
    expect(db.fatal).toEqual([new Error('EIO')])
    let settled = false
    void outcome(db.write(db.add('later'))).then(() => (settled = true))
    await turns()
    expect(settled).toBe(false)
  })

  test('the queue is bounded: writes beyond it are refused at once', async () => {
    const disk = heldBackSync()
    await using db = startWriter({ sync: disk.sync, maxPending: 3 })
    const writes = ['a', 'b', 'c'].map((text) => db.write(db.add(text)))
    expect(await outcome(db.write(db.add('d')))).toBe('unavailable')
    await turns()
    expect(await outcome(db.write(db.add('e')))).toBe('unavailable') // committed, yet waiting for the disk
    disk.release()
    await Promise.all(writes)
    expect(db.notes()).toEqual(['a', 'b', 'c'])
  })
})

/** A checkpointer whose worker gives these replies in turn. */
function scripted(...replies: CheckpointReply[]) {
  const script = `const replies = ${JSON.stringify([...replies, { type: 'closed' }])}
    self.onmessage = () => postMessage(replies.shift())`
  const db = startWriter()
  const happened: unknown[] = []
  const checkpointer = createCheckpointer({
    sqlite: db.sqlite,
    path: db.path,
    worker: new URL(URL.createObjectURL(new Blob([script]))),
    log: { ...silent, warn: () => happened.push('warned') },
    onFatal: (error) => happened.push(error),
    hold: () => happened.push('hold'),
    release: () => happened.push('release'),
    interval: 0,
    maxWalFrames: 200,
  })
  return {
    happened,
    committed: checkpointer.committed,
    until: (count: number) =>
      waitFor(() => {
        if (happened.length === count) return true
        checkpointer.committed()
        return false
      }),
    async [Symbol.asyncDispose]() {
      await checkpointer.close()
      await db[Symbol.asyncDispose]()
    },
  }
}

const done = (walFrames: number, copiedFrames: number): CheckpointReply => ({
  type: 'done',
  walFrames,
  copiedFrames,
})
const failed = (code: string): CheckpointReply => ({ type: 'failed', code, message: code })

test('commits are held once while the rest of a long WAL is copied, unless a reader blocks that', async () => {
  const full = failed('SQLITE_FULL')
  const replies = [done(300, 100), full, done(199, 199), full, done(300, 300), done(310, 310)]
  await using run = scripted(...replies)
  await run.until(4)
  expect(run.happened).toEqual(['warned', 'warned', 'hold', 'release'])
})

test('a failed checkpoint ends the hold; one that could not sync is fatal', async () => {
  const replies = [done(300, 300), failed('SQLITE_FULL'), failed('SQLITE_IOERR_FSYNC')]
  await using run = scripted(...replies)
  await run.until(4)
  const fatal = expect.objectContaining({ code: 'SQLITE_IOERR_FSYNC' })
  expect(run.happened).toEqual(['hold', 'release', 'warned', fatal])
})

test('a checkpoint that ends while the server stops holds no commits', async () => {
  const run = scripted(done(300, 300))
  run.committed()
  await run[Symbol.asyncDispose]()
  expect(run.happened).toEqual([])
})

test('the WAL is restarted repeatedly under steady writing', async () => {
  let committed: (size: number) => void = () => {}
  await using db = startWriter({ onCommit: (size) => committed(size) })
  const { sqlite, path, fatal } = db
  const checkpointer = createCheckpointer({
    sqlite,
    path,
    worker,
    log: silent,
    onFatal: (error) => fatal.push(error),
    hold: db.hold,
    release: db.resume,
    interval: 20,
    maxWalFrames: 200,
  })
  committed = checkpointer.committed
  const text = 'z'.repeat(6_000)
  const state = sqlite.prepare<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)')
  let [written, frames, restarts] = [0, 0, 0]
  await waitFor(async () => {
    for (let n = 0; n < 20; n++) await db.write(db.add(`${written++} ${text}`))
    const framesBefore = frames
    frames = state.get()?.log ?? 0
    if (frames < framesBefore) restarts++
    return restarts === 3
  }, 'the wal to start again three times')
  await checkpointer.close()
  expect(fatal).toEqual([])
  expect(db.sqlite.query<{ n: number }, []>('SELECT count(*) n FROM notes').get()?.n).toBe(written)
})
