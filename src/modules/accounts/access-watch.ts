import type { Database } from 'bun:sqlite'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { AccountStore } from './store.ts'

const intervalMilliseconds = 1_000
/** More than a command takes from reading the clock until its change is seen here. */
const lookBackMilliseconds = 30_000

type AccessWatchOptions = {
  sqlite: Database
  store: AccountStore
  clock: Clock
  log: Log
  /** The user's role changed or they were disabled. */
  onAccessChanged: (userId: string) => void
  /** Something changed, perhaps keys. */
  onForeignCommit: () => Promise<void>
}

/** Notices what a command beside this process changed about accounts and keys, within 2 s (decisions 12).
 *  @returns how to stop */
export function watchAccess(options: AccessWatchOptions): () => void {
  const { sqlite, store, clock, log, onAccessChanged, onForeignCommit } = options
  const statement = sqlite.prepare<{ data_version: number }, []>('PRAGMA data_version')
  // SQLite counts the commits of other connections alone.
  const foreignCommits = () => statement.get()?.data_version
  const recentChanges = () =>
    new Map(
      store.listAccessChangedSince(clock.now() - lookBackMilliseconds).map((c) => [c.id, c.at]),
    )
  let seen = foreignCommits()
  let handled = recentChanges()

  async function look() {
    // In this order: a commit between the two is acted upon now, and known at the next look.
    const current = foreignCommits()
    const changes = recentChanges()
    if (current !== seen) {
      for (const [userId, at] of changes) {
        if (handled.get(userId) !== at) onAccessChanged(userId)
      }
      await onForeignCommit()
      seen = current
    }
    handled = changes
  }

  return clock.every(intervalMilliseconds, () => {
    look().catch((error: unknown) => {
      log.error('changes beside this process could not be read; trying again', { error })
    })
  })
}
