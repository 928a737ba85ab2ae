import type { Core } from '../core.ts'

const intervalMilliseconds = 1_000

/** Calls `onCommit` within two seconds after a command beside this process has committed.
 *  @returns how to stop */
export function watchForeignCommits(
  { orm, clock, log }: Core,
  onCommit: () => Promise<void>,
): () => void {
  // SQLite counts the commits of other connections alone.
  const version = orm.$client.prepare<{ data_version: number }, []>('PRAGMA data_version')
  const read = () => version.get()?.data_version
  let seen = read()

  async function look() {
    const current = read()
    if (current === seen) return
    await onCommit()
    seen = current
  }

  return clock.every(intervalMilliseconds, () => {
    look().catch((error: unknown) => {
      log.error('changes of another process could not be read; trying again', { error })
    })
  })
}
