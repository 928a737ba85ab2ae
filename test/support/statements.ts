import { Database } from 'bun:sqlite'

/** Calls `onRun` at each run of an SQL statement on the calling thread, on any connection. */
export function watchRuns(onRun: () => void) {
  // Prepared statements of every kind end in the same native object; only `run` of the database does not.
  const { native } = new Database(':memory:').prepare('SELECT 1')
  wrap(Object.getPrototypeOf(native), ['all', 'get', 'iterate', 'raw', 'run', 'values'], onRun)
  wrap(Database.prototype, ['exec', 'run'], onRun)
}

/** The SQL of every statement prepared from now on, on any connection of this thread, as it stands in the source. */
export function recordStatements(): ReadonlySet<string> {
  const texts = new Set<string>()
  wrap(Database.prototype, ['exec', 'prepare', 'query', 'run'], (text) =>
    texts.add(String(text).replaceAll('+?', '?')),
  )
  return texts
}

function wrap(owner: object, names: string[], before: (...args: unknown[]) => void) {
  for (const name of names) {
    const original = Reflect.get(owner, name)
    Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
      before(...args)
      return Reflect.apply(original, this, args)
    })
  }
}
