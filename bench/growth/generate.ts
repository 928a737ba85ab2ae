import type { Database } from 'bun:sqlite'
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { monotonicFactory } from 'ulid'
import { openForServer } from '../../src/db/open.ts'
import type { Dataset, Fill, Landmarks } from './dataset.ts'
import { isScope, type Scope, scopes } from './scopes.ts'

const day = 86_400_000
// Recent enough that retention deletes nothing.
const firstDay = Math.floor(Date.now() / day) * day - 28 * day
// Small enough for twenty million ids before today.
const stepMilliseconds = 100
const rowsPerTransaction = 50_000

/** Fills a new data directory for one scope of `bench:growth`. */
export const generate = (directory: string, scale: number, scope: Scope) =>
  fillDatabase(directory, scale, scopes[scope].fills)

/** Fills a new data directory and verifies it.
 *  @throws when a rule of a fill is broken */
export async function fillDatabase(
  directory: string,
  scale: number,
  fills: readonly Fill[],
): Promise<Landmarks> {
  const connection = openForServer(directory)
  const { sqlite, path } = connection
  try {
    // The fill is the only connection and can be repeated after a crash, so it needs no WAL and no syncs. Bun ignores
    // `OFF` without an error, and a WAL would grow until the end.
    sqlite.run('PRAGMA journal_mode = MEMORY')
    sqlite.run('PRAGMA synchronous = OFF')
    sqlite.run('PRAGMA cache_size = -1000000')
    // Verified once at the end.
    sqlite.run('PRAGMA foreign_keys = OFF')
    const conversations = { bigConversation: '', smallConversation: '', busyConversation: '' }
    const landmarks = { scale, people: [], newestToCleo: [], ...conversations }
    const dataset = {
      ...connection,
      ...reproducible(),
      landmarks,
      repeat: repeatIn(sqlite),
    }
    for (const { fill } of fills) await fill(dataset)
    sqlite.run('PRAGMA journal_mode = WAL')
    verify(sqlite, landmarks, fills)
    return landmarks
  } finally {
    connection.close()
    // Later measurements must not wait for these pages to reach the disk.
    sync(path)
  }
}

/** A clock that advances with each id, and a seeded random generator. */
function reproducible(): Pick<Dataset, 'newId' | 'clock' | 'pick'> {
  let now = firstDay
  let state = 1
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const nextId = monotonicFactory(random)
  return {
    newId() {
      now += stepMilliseconds
      return nextId(now)
    },
    clock: { now: () => now, every: () => () => {} },
    pick: (below) => Math.floor(random() * below),
  }
}

function repeatIn(sqlite: Database): Dataset['repeat'] {
  return (count, work) => {
    for (let start = 0; start < count; start += rowsPerTransaction) {
      const end = Math.min(count, start + rowsPerTransaction)
      sqlite.transaction(() => {
        for (let n = start; n < end; n++) work(n)
      })()
    }
  }
}

/** @throws naming the first rule that is broken */
function verify(sqlite: Database, landmarks: Landmarks, filled: readonly Fill[]) {
  for (const { name, rules } of filled) {
    for (const [rule, query] of Object.entries(rules(landmarks))) {
      const [broken] = sqlite.query<Record<string, number>, []>(query).values()[0] ?? []
      if (broken !== 0) throw new Error(`${name}: ${rule} is violated (${String(broken)})`)
    }
  }
  const orphan = sqlite.query('PRAGMA foreign_key_check').get()
  if (orphan) throw new Error(`a foreign key has no target: ${JSON.stringify(orphan)}`)
}

function sync(path: string) {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}

if (import.meta.main) {
  const [directory, scope, scale = '1'] = process.argv.slice(2)
  if (directory === undefined || scope === undefined || !isScope(scope)) {
    throw new Error(
      `bun bench/growth/generate.ts DIRECTORY ${Object.keys(scopes).join('|')} [SCALE]`,
    )
  }
  const startedAt = performance.now()
  await generate(directory, Number(scale), scope)
  console.log(`filled in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
}
