import type { Database } from 'bun:sqlite'
import { inPieces } from './pieces.ts'
import type { Write } from './writer.ts'

/** The share of the file that may stay free for new rows. */
const spareShare = 0.1
/** Fewer free pages (4 MiB) are not worth the writes. */
const leastFreePages = 1_024
/** With many gigabytes of free pages a single move takes up to a millisecond. */
const stepMilliseconds = 4
/** Together with the pause between steps it bounds what is shipped to a bucket: about 8 MB a second. */
const pagesPerStep = 32
const restMilliseconds = 20
/** A start rewrites an older database of up to this size (64 MiB), which takes about a second. */
const rewrittenPages = 16_384

type Pages = { free: number; total: number; mode: number }

const pagesQuery = `SELECT freelist_count AS free, page_count AS total, auto_vacuum AS mode
  FROM pragma_freelist_count, pragma_page_count, pragma_auto_vacuum`

function pagesOf(sqlite: Database): Pages {
  return sqlite.query<Pages, []>(pagesQuery).get() ?? { free: 0, total: 0, mode: 0 }
}

/** Moves the last pages into free ones and cuts off the end. The next checkpoint truncates the file. */
export function createShrinking({ $client: sqlite }: { $client: Database }, write: Write) {
  const moveLast = sqlite.prepare('PRAGMA incremental_vacuum(1)')

  function isDue() {
    const { free, total, mode } = pagesOf(sqlite)
    return mode > 0 && free > Math.max(leastFreePages, total * spareShare)
  }

  function step(most: number): true | undefined {
    if (!isDue()) return undefined
    const until = performance.now() + stepMilliseconds
    for (let n = 0; n < most && performance.now() < until; n++) moveLast.run()
    return true
  }

  return async (isStopping: () => boolean): Promise<void> => {
    if (isDue()) await inPieces(write, step, { size: pagesPerStep, isStopping, restMilliseconds })
  }
}

/** Lets the file of a new database shrink. Has no effect after the first page is written. */
export function letShrink(sqlite: Database): void {
  if (pagesOf(sqlite).total === 0) sqlite.run('PRAGMA auto_vacuum = INCREMENTAL')
}

/** Rewrites a database from before 0.2.0 so that its file can shrink. The server waits meanwhile, so a large one is rewritten
 *  only by a restore. */
export function letOldShrink(sqlite: Database, most = rewrittenPages): void {
  const { total, mode } = pagesOf(sqlite)
  if (mode === 0 && total <= most) rewrite(sqlite)
}

export function rewrite(sqlite: Database): void {
  // Without it copies of rows stay in the gaps of pages, where deleting an account would not reach them.
  sqlite.run('PRAGMA secure_delete = ON')
  sqlite.run('PRAGMA auto_vacuum = INCREMENTAL')
  sqlite.run('VACUUM')
}
